"""Replay: machines + traces → counts that add up over shards, threads and time.

No other package walks traces. One compiled pass goes through a shard; refinement, evidence,
scores, plans, the supplement and the report read the counts that it returns.
"""
