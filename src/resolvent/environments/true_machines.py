"""Moved."""

from resolvent.worlds.true_machines import (_function, _machine, _most_frequent, _termination, _trivial, _with_initial, true_pair)  # noqa: F401
