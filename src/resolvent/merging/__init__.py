"""Merging: `SampleSet` → prefix tree → red-blue state merging → raw automaton + event log."""

from resolvent.merging.answers import Agreement, Answer, Answers, ProposedMerge
from resolvent.merging.automaton import (
    Automaton,
    Contradiction,
    Event,
    GivenUp,
    TooManyStates,
    TooMuchWork,
    moves_alone,
)
from resolvent.merging.engines import ENGINES, Engine, engine_for, find_contradiction, merge, search
from resolvent.merging.repair import fewest_states, repaired
from resolvent.merging.strategy import STRATEGIES, Strategy, strategy_named

__all__ = [
    "ENGINES",
    "STRATEGIES",
    "Agreement",
    "Answer",
    "Answers",
    "Automaton",
    "Contradiction",
    "Engine",
    "Event",
    "GivenUp",
    "ProposedMerge",
    "Strategy",
    "TooManyStates",
    "TooMuchWork",
    "engine_for",
    "fewest_states",
    "find_contradiction",
    "merge",
    "moves_alone",
    "repaired",
    "search",
    "strategy_named",
]
