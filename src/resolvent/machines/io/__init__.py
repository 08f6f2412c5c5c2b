"""Machines ↔ files: the JSON format, reward-machine text, Mealy machines in DOT."""
