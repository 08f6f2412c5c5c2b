"""Episodes that teach a learner, stepped from here or played on a world's tables.

Both give the same values, situation for situation and bit for bit: they make the
same updates with the same random numbers.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.control.learning.beginning import Begun
from resolvent.control.learning.evaluating import best_actions
from resolvent.control.learning.guidance import Guidance
from resolvent.control.learning.world_view import WorldView
from resolvent.limits import check_table
from resolvent.traces.live.answering import ended, of_reset, of_step
from resolvent.traces.live.naming import finite_reward
from resolvent.traces.symbols import Symbol, as_symbol
from resolvent.traces.vocabulary import Codes

_STEPS_BETWEEN_LOOKS = 1 << 17


class Played(NamedTuple):
    """What one episode came to."""

    total: float
    discounted: float
    steps: int


class Lessons(ABC):
    """One learner in one environment.

    It has the situations of the model that guides it first, then those that it has begun with.
    """

    def __init__(
        self, env: gym.Env[Any, Any], learner: _core.QLearner, guidance: Guidance | None
    ) -> None:
        self.env = env
        self.learner = learner
        self.guidance = guidance
        if guidance is not None:
            for promise in guidance.potential.of_situation.tolist():
                learner.add(promise)

    @abstractmethod
    def play(self, seed: int | None, epsilon: float, max_steps: int | None) -> Played:
        """Play an episode, learning at each step."""

    @abstractmethod
    def symbols(self) -> list[Symbol]:
        """Return what the environment shows in each situation met, in the learner's order."""

    @abstractmethod
    def potentials(self) -> NDArray[np.float64]:
        """Return what each situation met promises, in the learner's order."""

    @abstractmethod
    def in_tables(self, view: WorldView) -> tuple[_core.Lessons, NDArray[np.int64]]:
        """Return tables that number situations, and the best action in each of these."""

    def _begin(self, number: int, begun: Begun) -> None:
        """Let the learner begin with values that were learned elsewhere."""
        if number == self.learner.situations:
            self.learner.add(begun.potential)
        self.learner.put(number, begun.values - begun.potential)

    def _best(self) -> NDArray[np.int64]:
        return best_actions(self.learner.values().reshape(self.learner.situations, -1))


class LiveLessons(Lessons):
    """Steps any environment."""

    def __init__(
        self,
        env: gym.Env[Any, Any],
        learner: _core.QLearner,
        guidance: Guidance | None,
        gamma: float,
        begun: Sequence[Begun] = (),
    ) -> None:
        super().__init__(env, learner, guidance)
        self._gamma = gamma
        self._first_action = int(getattr(env.action_space, "start", 0))
        self._actions = int(env.action_space.n)  # type: ignore[attr-defined]
        self._numbers: dict[Symbol, int] = {}
        self._potentials: list[float] = []
        if guidance is not None:
            encode = guidance.augmented.encode
            for number, situation in enumerate(guidance.situations):
                self._numbers[as_symbol(encode(*situation))] = number
            self._potentials = guidance.potential.of_situation.tolist()
        for one in begun:
            number = self._numbers.setdefault(one.symbol, len(self._numbers))
            if number == len(self._potentials):
                self._potentials.append(one.potential)
            self._begin(number, one)

    def play(self, seed: int | None, epsilon: float, max_steps: int | None) -> Played:
        """Play an episode, a step at a time."""
        learner = self.learner
        situation = self._met(of_reset(self.env.reset(seed=seed))[0])
        total = discounted = 0.0
        weight, steps, over = 1.0, 0, False
        while not over and steps != max_steps:
            action = learner.choose(situation, epsilon)
            shown = self._shown()
            given = self.env.step(self._first_action + action)
            observation, paid, terminated, truncated, _ = of_step(given)
            reward, done = finite_reward(paid), ended(terminated, "terminated")
            arrived = situation if done else self._met(observation)
            learner.update(situation, action, reward, arrived, done)
            if shown is not None and self.guidance is not None and self.guidance.steps:
                learner.imagine(self.guidance.steps, shown, action, situation)
            total += reward
            discounted += weight * reward
            weight *= self._gamma
            steps += 1
            over, situation = done or ended(truncated, "truncated"), arrived
        return Played(total, discounted, steps)

    def symbols(self) -> list[Symbol]:
        """Return the observations met, those of the model first."""
        return list(self._numbers)

    def potentials(self) -> NDArray[np.float64]:
        """Return what was noted when each situation was met."""
        return np.array(self._potentials)

    def in_tables(self, view: WorldView) -> tuple[_core.Lessons, NDArray[np.int64]]:
        """Look up what was met in the tables of the world behind the environment."""
        tables, places = view.numbering(self.symbols())
        return tables, self._best()[places]

    def _met(self, observation: Any) -> int:
        symbol = as_symbol(observation)
        number = self._numbers.get(symbol)
        if number is None:
            number = self._numbers[symbol] = len(self._numbers)
            potential = 0.0
            if self.guidance is not None:
                _, *states = self.guidance.augmented.situation
                potential = float(self.guidance.potential.of_states[*states])
            check_table(number + 1, self._actions, 8, "situations by actions")
            self._potentials.append(potential)
            self.learner.add(potential)
        return number

    def _shown(self) -> int | None:
        """Return the model's code of the inner observation, if there are steps to imagine."""
        if self.guidance is None or self.guidance.steps is None:
            return None
        return self.guidance.observation_code(self.guidance.augmented.situation[0])


class TableLessons(Lessons):
    """Plays on the tables of a built-in world; each episode's start comes from its `reset`."""

    def __init__(
        self,
        env: gym.Env[Any, Any],
        learner: _core.QLearner,
        guidance: Guidance | None,
        view: WorldView,
        begun: Sequence[Begun] = (),
    ) -> None:
        super().__init__(env, learner, guidance)
        self._view = view
        numbers: dict[tuple[int, ...], int] = {}
        if guidance is None:
            self.tables = view.lessons()
        else:
            codes = [
                guidance.observation_code(o) for o in range(len(view.world.mechanics.observations))
            ]
            self.tables = view.lessons(
                guidance.steps,
                np.array([-1 if code is None else code for code in codes], np.int32),
                guidance.potential.of_states,
            )
            numbers = {situation: place for place, situation in enumerate(guidance.situations)}
        rows = view.rows([one.symbol for one in begun])
        for one in begun:
            self._begin(numbers.setdefault(tuple(rows[one.symbol]), len(numbers)), one)
        self.tables.expect(np.array(list(numbers), np.int32).ravel())

    def play(self, seed: int | None, epsilon: float, max_steps: int | None) -> Played:
        """Play an episode, many steps at a time, so that Ctrl-C gets through."""
        self.env.reset(seed=seed)
        self.tables.begin(self.learner, self._view.world.state)
        left = max_steps
        while left is None or left > 0:
            steps = _STEPS_BETWEEN_LOOKS if left is None else min(left, _STEPS_BETWEEN_LOOKS)
            if self.tables.run(self.learner, epsilon, steps):
                break
            left = None if left is None else left - steps
        return Played(*self.tables.played)

    def in_tables(self, view: WorldView) -> tuple[_core.Lessons, NDArray[np.int64]]:
        """Return its own tables."""
        return self.tables, self._best()

    def symbols(self) -> list[Symbol]:
        """Return what the environment would show."""
        return [self._view.symbol(row) for row in self._codes().tolist()]

    def potentials(self) -> NDArray[np.float64]:
        """Return what the model says, and by states alone where it does not know a situation."""
        if self.guidance is None:
            return np.zeros(self.learner.situations)
        _, transition, reward = self._codes().T
        promise = self.guidance.potential
        by_states: NDArray[np.float64] = promise.of_states[transition, reward]
        by_states[: len(promise.of_situation)] = promise.of_situation
        return by_states

    def _codes(self) -> Codes:
        codes: Codes = self.tables.codes().reshape(-1, self._view.width)
        return codes
