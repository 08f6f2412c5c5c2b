"""Look through wrappers at a tabular environment, and evaluate policies exactly on its tables.

Input: an environment. Output: a `TabularView` if only wrappers with a known effect surround a
tabular environment; else the reason.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import FrameStackObservation, OrderEnforcing, PassiveEnvChecker, TimeLimit
from numpy.typing import NDArray

from resolvent import _core
from resolvent.machines import MachinePair
from resolvent.rl.augment import AugmentObservation
from resolvent.rl.env import TabularEnv
from resolvent.traces.symbols import Symbol, as_symbol
from resolvent.traces.vocabulary import Codes

_TRANSPARENT = (OrderEnforcing, PassiveEnvChecker)


@dataclass(frozen=True, eq=False)
class TabularView:
    """A tabular environment, and how its observations reach the agent.

    They have the states of a pair of machines (`augmented`), or are the last few (`stack`), or
    unchanged. The codes are then (observation, transition state, reward state), the observations,
    or the observation.
    """

    world: TabularEnv
    augmented: AugmentObservation | None = None
    stack: int | None = None
    max_steps: int | None = None

    @property
    def width(self) -> int:
        """The number of codes of an observation."""
        return 3 if self.augmented is not None else self.stack or 1

    def symbol(self, codes: Sequence[int]) -> Symbol:
        """Return the symbol of the environment's observation with these codes."""
        if self.augmented is not None:
            return as_symbol(self.augmented.encode(*codes))
        return codes[0] if self.stack is None else tuple(codes)

    def codes_of(self, symbols: Sequence[Symbol]) -> dict[Symbol, tuple[int, ...]]:
        """Return the codes of those symbols that the environment can show, in their order."""
        if self.augmented is not None:
            return {symbol: self._codes[symbol] for symbol in symbols if symbol in self._codes}
        rows: dict[Symbol, Any] = {
            symbol: symbol if self.stack else (symbol,) for symbol in symbols
        }
        return {symbol: row for symbol, row in rows.items() if self._is_row(row)}

    def numbering(self, symbols: Sequence[Symbol]) -> tuple[_core.Lessons, NDArray[np.int64]]:
        """Return tables that number the observable symbols, and the indices of these."""
        codes, tables = self.codes_of(symbols), self.episode_tables()
        tables.expect(np.array(list(codes.values()), np.int32).ravel())
        indices = [index for index, symbol in enumerate(symbols) if symbol in codes]
        return tables, np.array(indices, np.int64)

    def episode_tables(
        self,
        known: _core.KnownSteps | None = None,
        known_observation: Codes | None = None,
        potential: NDArray[np.float64] | None = None,
    ) -> _core.Lessons:
        """Return the tables, ready for episodes that a learner plays in them."""
        world = self.world.mechanics
        transition = reward = np.zeros(len(world.labels), np.int32)
        reads_first = lags = False
        if self.augmented is not None:
            pair = self.augmented.machines
            transition = pair.transition.transitions_for(world.labels).ravel()
            reward = pair.reward.transitions_for(world.labels).ravel()
            reads_first, lags = pair.timing.first == 0, pair.timing.lag > 0
        if known_observation is None:
            known_observation = np.zeros(0, np.int32)
        return _core.lessons(
            np.ascontiguousarray(world.next_state.ravel()),
            world.ends.ravel().astype(np.int32),
            len(world.actions),
            np.ascontiguousarray(world.reward.ravel()),
            world.observation_of,
            world.label_of,
            len(world.labels),
            transition=transition,
            reward_moves=reward,
            reads_first=reads_first,
            lags=lags,
            stack=0 if self.augmented is not None else self.width,
            known=known,
            known_observation=known_observation,
            potential=np.zeros(0) if potential is None else potential.ravel(),
        )

    @cached_property
    def _codes(self) -> dict[Symbol, tuple[int, ...]]:
        """The codes of all augmented observations."""
        if self.augmented is None:
            return {}
        pair = self.augmented.machines
        sizes = pair.transition.states, pair.reward.states
        rows = product(*map(range, (len(self.world.mechanics.observations), *sizes)))
        return {self.symbol(codes): codes for codes in rows}

    def _is_row(self, codes: Any) -> bool:
        return (
            isinstance(codes, tuple)
            and len(codes) == self.width
            and all(type(code) is int for code in codes)
        )


def tabular_view(env: gym.Env[Any, Any]) -> TabularView | str:
    """Return the view of the tabular environment inside, or the reason why there is none.

    >>> from gymnasium.wrappers import TransformReward
    >>> from resolvent.worlds import House
    >>> tabular_view(TransformReward(House(), lambda reward: -reward))
    'TransformReward may change what the world tells'
    """
    augmented: AugmentObservation | None = None
    stack: int | None = None
    limits: list[int] = []
    inner = env
    while isinstance(inner, gym.Wrapper):
        is_changed = augmented is not None or stack is not None
        if type(inner) is TimeLimit:
            limits.append(inner._max_episode_steps)
        elif type(inner) is AugmentObservation and inner.is_plain and not is_changed:
            if not isinstance(inner.machines, MachinePair):
                return f"its tables cannot hold the machines {', '.join(inner.machines)}"
            augmented = inner
        elif type(inner) is FrameStackObservation and not is_changed:
            if inner.padding_type != "reset":
                return "FrameStackObservation pads with other observations than the first"
            stack = inner.stack_size
        elif type(inner) not in _TRANSPARENT:
            return f"{type(inner).__name__} may change what the world tells"
        inner = inner.env
    if not isinstance(inner, TabularEnv) or not inner.rolls_out:
        return f"{type(inner).__name__} is not a world of tables"
    if inner.mechanics.draws:
        return f"steps of {type(inner).__name__} are left to chance"
    return TabularView(inner, augmented, stack, min(limits, default=None))


@dataclass(frozen=True)
class Evaluation:
    """The mean discounted return of a policy.

    `ended` is the share of starts, or of episodes, from which an end is reached. If `exact`,
    the policy was followed on the tables from all starts, without a step limit and even through
    cycles. During learning, `episode` and `steps` count the episodes and steps before it.
    """

    value: float
    ended: float
    exact: bool
    episode: int | None = None
    steps: int | None = None


def best_actions(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the best action of each row of values, the lowest of equally good ones."""
    best: NDArray[np.int64] = np.argmax(values, axis=1)
    return best


def evaluate_exactly(
    view: TabularView, tables: _core.Lessons, policy: NDArray[np.int64], gamma: float
) -> Evaluation:
    """Evaluate a policy, with an action for each number of the tables, from every start."""
    starts = np.ascontiguousarray(view.world.mechanics.starts)
    value, ends = tables.worth(policy.astype(np.int32), gamma, starts)
    return Evaluation(float(value.mean()), float(ends.mean()), exact=True)
