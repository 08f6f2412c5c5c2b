"""Moved."""

from resolvent.inference.conflict import Contradiction  # noqa: F401
from resolvent.machines.automaton import (  # noqa: F401
    Automaton,
    Event,
    GivenUp,
    TooManyStates,
    TooMuchWork,
    automaton_from_columns,
    moves_alone,
)
