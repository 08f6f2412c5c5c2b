"""Moved."""

from resolvent.paper.experiments.methods import (METHODS, Method, OURS, _method, aalpy, hmm, ilp, lrm, ours)  # noqa: F401
