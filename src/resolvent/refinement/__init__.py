"""Refinement: machines + all traces → where they fail, and what they rest on where they do not."""

from resolvent.refinement.compaction import compacted
from resolvent.refinement.corpus import Alphabets, Corpus
from resolvent.refinement.counterexamples import counterexamples
from resolvent.refinement.rebuilding import observed_termination, rebuilt
from resolvent.refinement.sightings import PairSightings, Sightings, replay

__all__ = [
    "Alphabets",
    "Corpus",
    "PairSightings",
    "Sightings",
    "compacted",
    "counterexamples",
    "observed_termination",
    "rebuilt",
    "replay",
]
