"""Refinement: machines + what all traces show → where they conflict, and better machines."""

from resolvent.refinement.compaction import compacted
from resolvent.refinement.counterexamples import counterexamples
from resolvent.refinement.covering import covering
from resolvent.refinement.rebuilding import observed_termination, rebuilt

__all__ = ["compacted", "counterexamples", "covering", "observed_termination", "rebuilt"]
