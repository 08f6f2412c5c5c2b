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
from resolvent.merging.engines import (
    ENGINES,
    Engine,
    check_seed_and_effort,
    engine_for,
    find_contradiction,
    merge,
    search,
)
from resolvent.merging.repair import fewest_states, repaired
from resolvent.merging.seeds import search_side_by_side
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
    "check_seed_and_effort",
    "engine_for",
    "fewest_states",
    "find_contradiction",
    "merge",
    "moves_alone",
    "repaired",
    "search",
    "search_side_by_side",
    "strategy_named",
]
