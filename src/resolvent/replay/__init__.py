"""Replay: machines + traces → counts that add up over shards, threads and time.

No other package walks traces. One compiled pass goes through a shard; refinement, evidence,
scores, plans, the supplement and the report read the counts that it returns.
"""

from resolvent.replay.coded_shard import Alphabets, CodedShard
from resolvent.replay.corpus import Corpus, run_pass, scan_corpus
from resolvent.replay.counts import CountTable, MachineCounts, ReplayCounts, Rows
from resolvent.replay.replaying import (
    MachineTables,
    replay,
    replay_shard,
    replay_traces,
    states_at_steps,
)
from resolvent.replay.score import score, score_of, score_shards
from resolvent.replay.steps import StepQueries, step_queries, to_machine_codes

__all__ = [
    "Alphabets",
    "CodedShard",
    "Corpus",
    "CountTable",
    "MachineCounts",
    "MachineTables",
    "ReplayCounts",
    "Rows",
    "StepQueries",
    "replay",
    "replay_shard",
    "replay_traces",
    "run_pass",
    "scan_corpus",
    "score",
    "score_of",
    "score_shards",
    "states_at_steps",
    "step_queries",
    "to_machine_codes",
]
