"""Replay: machines + traces → what the traces show of the machines. Nobody else walks traces.

One compiled pass goes through a shard; what it returns are plain columns, which add up
over shards, threads and time. Refinement, evidence, scores, plans, the supplement and
the report all read them.
"""

from resolvent.replay.coded import Alphabets, CodedShard
from resolvent.replay.corpus import Corpus
from resolvent.replay.kinds import Kinds
from resolvent.replay.replaying import (
    replay,
    replay_shard,
    replay_traces,
    states_at_steps,
)
from resolvent.replay.scoring import Scored, score, score_of, scored
from resolvent.replay.shown import Replay, Rows, Sightings
from resolvent.replay.steps import StepsAsked, steps_asked
from resolvent.replay.tables import Tables
from resolvent.replay.translating import in_machine_codes
from resolvent.replay.whole import through, whole

__all__ = [
    "Alphabets",
    "CodedShard",
    "Corpus",
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
