"""Scan Parquet files larger than memory: folders, globs, addresses → shards of episodes."""
