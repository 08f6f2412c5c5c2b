"""Runs of the experiments: which ones, each in a process of its own under limits, and kept."""
