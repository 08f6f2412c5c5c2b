"""Moved."""

from resolvent.replay.coded_shard import Alphabets, CodedShard  # noqa: F401
