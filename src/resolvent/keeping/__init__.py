"""Keeping: what was made of a piece of work → a file of its own, so that it is made once.

Whoever is interrupted and started again finds what was finished, under the same key. A key
stands for all that a result depends on, so nothing kept is ever wrong: it is found or it is not.
"""

from resolvent.keeping.kept import Keepable, Kept
from resolvent.keeping.packing import Packing, digest_of
from resolvent.keeping.store import Store
from resolvent.keeping.workers import KeepingWorkers, Results

__all__ = [
    "Keepable",
    "KeepingWorkers",
    "Kept",
    "Packing",
    "Results",
    "Store",
    "digest_of",
]
