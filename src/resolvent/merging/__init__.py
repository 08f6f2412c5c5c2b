"""Merging: `SampleSet` → prefix tree → red-blue state merging → raw automaton + event log."""

from resolvent.merging.automaton import Automaton, Contradiction, Event
from resolvent.merging.engines import ENGINES, STRATEGIES, Engine, find_contradiction, merge
from resolvent.merging.orders import ORDERS
from resolvent.merging.watch import Progress

__all__ = [
    "ENGINES",
    "ORDERS",
    "STRATEGIES",
    "Automaton",
    "Contradiction",
    "Engine",
    "Event",
    "Progress",
    "find_contradiction",
    "merge",
]
