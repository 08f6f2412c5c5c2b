"""Gymnasium wrappers: machine states in observations, and rewards shaped by a plan."""
