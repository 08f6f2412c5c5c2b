"""Moved."""

from resolvent.inference.engine import (  # noqa: F401
    ENGINES,
    Engine,
    check_seed_and_effort,
    engine_for,
    merge,
    search,
)
from resolvent.inference.restarts import fewest_states, repaired, search_side_by_side  # noqa: F401
from resolvent.inference.strategy import (  # noqa: F401
    STRATEGIES,
    Agreement,
    Answer,
    Answers,
    ProposedMerge,
    Strategy,
    strategy_named,
)
from resolvent.machines.automaton import (  # noqa: F401
    Automaton,
    Event,
    GivenUp,
    TooManyStates,
    TooMuchWork,
    moves_alone,
)
from resolvent.preprocess.contradictions import Contradiction, find_contradiction  # noqa: F401
