"""What was learned before → the values that a learner begins with in its environment."""

from dataclasses import dataclass
from itertools import product

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from resolvent.control.learning.guidance import Guidance
from resolvent.control.learning.learned import Learned
from resolvent.control.learning.world_view import WorldView
from resolvent.errors import OptionError
from resolvent.traces.symbols import Symbol, as_symbol


@dataclass(frozen=True, eq=False)
class Begun:
    """A situation, what it promises, and what each action is worth in it, without shaping."""

    symbol: Symbol
    potential: float
    values: NDArray[np.float64]


def beginning(
    start: Learned,
    actions: gym.spaces.Discrete,
    guidance: Guidance | None,
    view: WorldView | str,
) -> list[Begun]:
    """Return the situations that a learner begins with, in the order in which they were learned.

    Left out are those that the environment cannot show, as far as can be told. Where rewards
    are shaped, by a guidance, a situation counts if the model knows its observation.
    """
    if start.q.shape[1] != int(actions.n) or start.first_action != int(actions.start):
        raise OptionError(
            f"start has values for {start.q.shape[1]} actions from {start.first_action} on, and "
            f"the environment's are {actions}: begin with what was learned in this one"
        )
    symbols = start.situations
    if isinstance(view, WorldView):
        shown = view.rows(symbols)
        symbols = tuple(one for one in symbols if one in shown)
    promised = dict.fromkeys(symbols, 0.0) if guidance is None else _promised(guidance)
    returns = dict(zip(start.situations, start.returns, strict=True))
    return [
        Begun(symbol, promised[symbol], returns[symbol]) for symbol in symbols if symbol in promised
    ]


def _promised(guidance: Guidance) -> dict[Symbol, float]:
    """Return what each situation promises whose observation the model knows."""
    augmented, promise = guidance.augmented, guidance.potential
    by_states = {
        as_symbol(augmented.encode(value, *states)): float(promise.of_states[states])
        for value in guidance.values
        for states in product(*map(range, promise.of_states.shape))
    }
    worths = promise.of_situation.tolist()
    for situation, worth in zip(guidance.situations, worths, strict=True):
        by_states[as_symbol(augmented.encode(*situation))] = worth
    return by_states
