"""An environment → the built-in world behind it, and what an agent sees of that world.

Only wrappers that are known to change nothing else may lie in between. Then
whole episodes can be played on the world's tables, and a policy's worth is
exact; otherwise the environment has to be stepped.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import FrameStackObservation, OrderEnforcing, PassiveEnvChecker, TimeLimit
from numpy.typing import NDArray

from resolvent import _core
from resolvent.control.wrapping.augment_observation import AugmentObservation
from resolvent.environments.world import World
from resolvent.machines import Machine, MachinePair
from resolvent.traces.symbols import Symbol, as_symbol
from resolvent.traces.vocabulary import Codes, codes_of

_TRANSPARENT = (OrderEnforcing, PassiveEnvChecker)


@dataclass(frozen=True, eq=False)
class WorldView:
    """A world, and how its observations reach the agent.

    That is with the states of a pair of machines (`augmented`), the last few at once
    (`stack`), or as they are. A view's codes are then (observation, transition
    state, reward state), the observations, or the one observation.
    """

    world: World
    augmented: AugmentObservation | None = None
    stack: int | None = None
    max_steps: int | None = None

    @property
    def width(self) -> int:
        """How many codes make up what is seen."""
        return 3 if self.augmented is not None else self.stack or 1

    def symbol(self, codes: Sequence[int]) -> Symbol:
        """Return the symbol of the environment's observation that these codes stand for."""
        if self.augmented is not None:
            return as_symbol(self.augmented.encode(*codes))
        return codes[0] if self.stack is None else tuple(codes)

    def numbering(self, symbols: Sequence[Symbol]) -> tuple[_core.Lessons, NDArray[np.int64]]:
        """Return tables that number those symbols which can be seen, and which these are."""
        rows = self.rows(symbols)
        found = [place for place, one in enumerate(symbols) if one in rows]
        tables = self.lessons()
        tables.expect(np.array([rows[symbols[place]] for place in found], np.int32).ravel())
        return tables, np.array(found, np.int64)

    def rows(self, symbols: Sequence[Symbol]) -> dict[Symbol, Any]:
        """Return the codes of those symbols which can be seen, perhaps of others as well."""
        if self.augmented is None:
            return {one: one if self.stack else (one,) for one in symbols if self._shows(one)}
        pair = self.augmented.machines
        sizes = len(self.world.mechanics.observations), pair.transition.states
        every = product(*map(range, (*sizes, pair.reward.states)))
        return {self.symbol(codes): codes for codes in every}

    def lessons(
        self,
        known: _core.KnownSteps | None = None,
        known_observation: Codes | None = None,
        potential: NDArray[np.float64] | None = None,
    ) -> _core.Lessons:
        """Return the world's tables, ready for episodes that a learner plays in them."""
        world = self.world.mechanics
        nowhere = np.zeros(len(world.labels), np.int32)
        transition = reward = nowhere
        reads_first = lags = False
        if self.augmented is not None:
            pair = self.augmented.machines
            transition = _moves(pair.transition, world.labels)
            reward = _moves(pair.reward, world.labels)
            reads_first, lags = pair.timing.first == 0, pair.timing.lag > 0
        return _core.lessons(
            np.ascontiguousarray(world.following.ravel()),
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
            known_observation=np.zeros(0, np.int32)
            if known_observation is None
            else known_observation,
            potential=np.zeros(0) if potential is None else potential.ravel(),
        )

    def _shows(self, symbol: Symbol) -> bool:
        codes = (symbol,) if self.stack is None else symbol
        return (
            isinstance(codes, tuple)
            and len(codes) == self.width
            and all(type(code) is int for code in codes)
        )


def world_behind(env: gym.Env[Any, Any]) -> WorldView | str:
    """Return what an agent sees of the built-in world behind an environment, or why nobody knows.

    >>> from gymnasium.wrappers import TransformReward
    >>> from resolvent.environments import House
    >>> world_behind(TransformReward(House(), lambda reward: -reward))
    'TransformReward may change what the world tells'
    """
    augmented: AugmentObservation | None = None
    stack: int | None = None
    limits: list[int] = []
    inner = env
    while isinstance(inner, gym.Wrapper):
        changed = augmented is not None or stack is not None
        if type(inner) is TimeLimit:
            limits.append(inner._max_episode_steps)
        elif type(inner) is AugmentObservation and inner.is_plain and not changed:
            if not isinstance(inner.machines, MachinePair):
                return f"its tables have no place for the machines {', '.join(inner.machines)}"
            augmented = inner
        elif type(inner) is FrameStackObservation and _is_plain(inner) and not changed:
            stack = inner.stack_size
        elif type(inner) not in _TRANSPARENT:
            return f"{type(inner).__name__} may change what the world tells"
        inner = inner.env
    if not isinstance(inner, World) or not inner.rolls_out:
        return f"{type(inner).__name__} is not a world of tables"
    if inner.mechanics.draws:
        return f"steps of {type(inner).__name__} are left to chance"
    return WorldView(inner, augmented, stack, min(limits, default=None))


def _is_plain(stacked: FrameStackObservation[Any, Any, Any]) -> bool:
    """Whether an episode's first observation stands for those before it."""
    return stacked.padding_type == "reset"


def _moves(machine: Machine, labels: Sequence[Any]) -> Codes:
    """Return where each of a world's labels leads from each state; −1 where that was never seen."""
    lost = np.full((machine.states, 1), -1, np.int32)
    columns = np.hstack([machine.transitions, lost])
    return np.ascontiguousarray(columns[:, codes_of(labels, machine.labels, -1)].ravel())
