"""Replay: machines + traces → counts that add up over shards, threads and time.

No other package walks traces. One compiled pass goes through a shard; refinement, evidence,
scores, plans, the supplement and the report read the counts that it returns.
"""

from resolvent.replay.coded_shard import Alphabets, CodedShard
from resolvent.replay.corpus import Corpus
from resolvent.replay.counts import CountTable, GroupedCounts, Replay, Rows, Sightings
from resolvent.replay.passes import through, whole
from resolvent.replay.replaying import (
    Tables,
    in_machine_codes,
    replay,
    replay_shard,
    replay_traces,
    states_at_steps,
)
from resolvent.replay.score import Scored, score, score_of, scored
from resolvent.replay.steps import StepsAsked, steps_asked

Kinds = CountTable

__all__ = [
    "Alphabets",
    "CodedShard",
    "Corpus",
    "CountTable",
    "GroupedCounts",
    "Kinds",
    "Replay",
    "Rows",
    "Scored",
    "Sightings",
    "StepsAsked",
    "Tables",
    "in_machine_codes",
    "replay",
    "replay_shard",
    "replay_traces",
    "score",
    "score_of",
    "scored",
    "states_at_steps",
    "steps_asked",
    "through",
    "whole",
]
