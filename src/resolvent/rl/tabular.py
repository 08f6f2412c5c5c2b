"""Look through wrappers at a tabular environment, and evaluate policies exactly on its tables.

Input: an environment. Output: a `TabularView` if only wrappers with a known effect surround a
tabular environment; else the reason. Policies of other environments are evaluated by playing.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import FrameStackObservation, OrderEnforcing, PassiveEnvChecker, TimeLimit
from numpy.typing import NDArray

from resolvent import _core
from resolvent.errors import OptionError
from resolvent.machines import Machine, MachinePair
from resolvent.rl.env import TabularEnv, finite_reward
from resolvent.rl.rollout import Step, play_episode
from resolvent.rl.wrappers.augment import AugmentObservation
from resolvent.traces.symbols import Symbol, as_symbol
from resolvent.traces.vocabulary import Codes, codes_of

_TRANSPARENT = (OrderEnforcing, PassiveEnvChecker)


@dataclass(frozen=True, eq=False)
class TabularView:
    """A tabular environment, and how its observations reach the agent.

    They come with the states of a pair of machines (`augmented`), as the last few (`stack`), or
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

    def numbering(self, symbols: Sequence[Symbol]) -> tuple[_core.Lessons, NDArray[np.int64]]:
        """Return tables that number the observable symbols, and the places of these."""
        rows = self.rows(symbols)
        places = [place for place, symbol in enumerate(symbols) if symbol in rows]
        tables = self.episode_tables()
        tables.expect(np.array([rows[symbols[place]] for place in places], np.int32).ravel())
        return tables, np.array(places, np.int64)

    def rows(self, symbols: Sequence[Symbol]) -> dict[Symbol, Any]:
        """Return the codes of the observable symbols, perhaps of others, too."""
        if self.augmented is None:
            return {
                symbol: symbol if self.stack else (symbol,)
                for symbol in symbols
                if self._can_show(symbol)
            }
        pair = self.augmented.machines
        sizes = len(self.world.mechanics.observations), pair.transition.states
        rows = product(*map(range, (*sizes, pair.reward.states)))
        return {self.symbol(codes): codes for codes in rows}

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
            transition = _transitions(pair.transition, world.labels)
            reward = _transitions(pair.reward, world.labels)
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

    def _can_show(self, symbol: Symbol) -> bool:
        codes = (symbol,) if self.stack is None else symbol
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
                return f"its tables have no place for the machines {', '.join(inner.machines)}"
            augmented = inner
        elif type(inner) is FrameStackObservation and not is_changed and _repeats_first(inner):
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
    view: TabularView,
    tables: _core.Lessons,
    policy: NDArray[np.int64],
    gamma: float,
    *,
    episode: int | None = None,
    steps: int | None = None,
) -> Evaluation:
    """Evaluate a policy, with an action for each number of the tables, from every start."""
    starts = np.ascontiguousarray(view.world.mechanics.starts)
    value, ends = tables.worth(policy.astype(np.int32), gamma, starts)
    return Evaluation(float(value.mean()), float(ends.mean()), True, episode, steps)


def evaluate_by_playing(
    env: gym.Env[Any, Any],
    action: Callable[[Any], Any],
    gamma: float,
    *,
    episodes: int,
    seed: int | None,
    max_steps: int,
) -> Evaluation:
    """Evaluate a policy in episodes of at most `max_steps`."""
    if episodes < 1:
        raise OptionError(f"episodes={episodes}: play at least one")
    if max_steps < 1:
        raise OptionError(f"max_steps={max_steps}: allow at least one step")
    if seed is not None and seed < 0:
        raise OptionError(f"seed={seed}: use at least 0")
    actor = _ReturnActor(action, gamma)
    ends = [
        play_episode(env, actor, seed=seed if number == 0 else None, max_steps=max_steps)[0]
        for number in range(episodes)
    ]
    return Evaluation(math.fsum(actor.returns) / episodes, sum(ends) / episodes, exact=False)


class _ReturnActor:
    """Follow a policy, and sum the discounted rewards of each episode."""

    def __init__(self, action: Callable[[Any], Any], gamma: float) -> None:
        self.act, self.returns = action, list[float]()
        self._gamma, self._weight = gamma, 1.0

    def begin(self, observation: Any, info: dict[str, Any]) -> None:
        self.returns.append(0.0)
        self._weight = 1.0

    def observe(self, observation: Any, action: Any, step: Step) -> None:
        self.returns[-1] += self._weight * finite_reward(step[1])
        self._weight *= self._gamma


def _repeats_first(stacked: FrameStackObservation[Any, Any, Any]) -> bool:
    """Return whether an episode's first observation fills the stack."""
    return stacked.padding_type == "reset"


def _transitions(machine: Machine, labels: Sequence[Any]) -> Codes:
    """Return the next state for each state and label of an environment; −1 where unseen."""
    unseen = np.full((machine.states, 1), -1, np.int32)
    columns = np.hstack([machine.transitions, unseen])
    return np.ascontiguousarray(columns[:, codes_of(labels, machine.labels, -1)].ravel())
