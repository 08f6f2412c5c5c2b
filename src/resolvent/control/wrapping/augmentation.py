"""An observation and the states of both machines → one observation, in one of four shapes.

Each shape says which space its observations fill, and makes them for one
environment or for many at once.
"""

from abc import ABC, abstractmethod
from typing import Any, Literal, TypeAlias, get_args

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space, iterate
from numpy.typing import NDArray

from resolvent.errors import OptionError
from resolvent.machines import MachinePair

Mode: TypeAlias = Literal["dict", "flatten", "multidiscrete", "discrete"]
Numbers: TypeAlias = NDArray[np.int64]

_MODES: tuple[str, ...] = get_args(Mode)


class Augmentation(ABC):
    """How observations and states are put together; `space` is that of the results.

    It is made from the inner space and the numbers of states of both machines,
    and raises an `OptionError` if that space does not fit.
    """

    space: gym.Space[Any]

    @abstractmethod
    def one(self, observation: Any, transition_state: int, reward_state: int) -> Any:
        """Return the augmented observation of one environment."""

    @abstractmethod
    def many(self, observations: Any, transition_states: Numbers, reward_states: Numbers) -> Any:
        """Return the augmented observations of a batch."""

    def decode(self, observation: Any) -> tuple[Any, int, int]:
        """Return the inner observation and both states."""
        raise OptionError(
            'only observations of mode="discrete" need decoding: '
            'elsewhere read info["transition_state"] and info["reward_state"]'
        )


def augmentation(mode: Mode, inner: gym.Space[Any], machines: MachinePair) -> Augmentation:
    """Return how a mode augments the observations of a space."""
    if mode not in _MODES:
        raise OptionError(f"mode={mode!r}: use one of {', '.join(map(repr, _MODES))}")
    states = machines.transition.states, machines.reward.states
    if mode == "dict":
        if isinstance(inner, spaces.Dict):
            return WithKeys(inner, *states)
        return InDict(inner, *states)
    shapes: dict[str, type[Flat | Columns | Numbered]] = {
        "flatten": Flat,
        "multidiscrete": Columns,
        "discrete": Numbered,
    }
    return shapes[mode](inner, *states)


class InDict(Augmentation):
    """{"observation": inner, "transition_state": …, "reward_state": …}."""

    def __init__(self, inner: gym.Space[Any], transition_states: int, reward_states: int) -> None:
        self.space = spaces.Dict(
            [("observation", inner), *_state_spaces(transition_states, reward_states)]
        )

    def one(self, observation: Any, transition_state: int, reward_state: int) -> Any:
        """Return a dict of the observation and both states."""
        return {
            "observation": observation,
            "transition_state": transition_state,
            "reward_state": reward_state,
        }

    def many(self, observations: Any, transition_states: Numbers, reward_states: Numbers) -> Any:
        """Return a dict of the batch and both columns of states."""
        return {
            "observation": observations,
            "transition_state": transition_states.copy(),
            "reward_state": reward_states.copy(),
        }


class WithKeys(Augmentation):
    """A Dict observation with two keys more."""

    def __init__(self, inner: spaces.Dict, transition_states: int, reward_states: int) -> None:
        added = _state_spaces(transition_states, reward_states)
        taken = [key for key, _ in added if key in inner.spaces]
        if taken:
            raise OptionError(
                f'the observation has a key {taken[0]!r} already: rename it, or use mode="flatten"'
            )
        self.space = spaces.Dict([*inner.spaces.items(), *added])

    def one(self, observation: Any, transition_state: int, reward_state: int) -> Any:
        """Return the observation's keys and both states."""
        return {
            **observation,
            "transition_state": transition_state,
            "reward_state": reward_state,
        }

    def many(self, observations: Any, transition_states: Numbers, reward_states: Numbers) -> Any:
        """Return the batch's keys and both columns of states."""
        return {
            **observations,
            "transition_state": transition_states.copy(),
            "reward_state": reward_states.copy(),
        }


class Flat(Augmentation):
    """One vector: the flattened observation, one-hot transition state, one-hot reward state.

    It keeps the type of the flattened observation's numbers, since a one-hot
    state fits into any.
    """

    def __init__(self, inner: gym.Space[Any], transition_states: int, reward_states: int) -> None:
        flat = spaces.utils.flatten_space(inner)
        if not isinstance(flat, spaces.Box):
            raise OptionError(
                f'mode="flatten" cannot flatten observations of {inner}: use mode="dict"'
            )
        added = transition_states + reward_states
        self.space = spaces.Box(
            np.concatenate([flat.low, np.zeros(added, flat.dtype)]),
            np.concatenate([flat.high, np.ones(added, flat.dtype)]),
            dtype=flat.dtype,
        )
        self._inner = inner
        self._start = int(inner.start) if isinstance(inner, spaces.Discrete) else None
        self._length, self._dtype = self.space.shape[0], flat.dtype
        self._width = flat.shape[0]
        self._reward_column = self._width + transition_states

    def one(self, observation: Any, transition_state: int, reward_state: int) -> Any:
        """Return one vector."""
        vector = np.zeros(self._length, self._dtype)
        if self._start is None:
            vector[: self._width] = self._flattened(observation)
        else:
            vector[observation - self._start] = 1
        vector[self._width + transition_state] = 1
        vector[self._reward_column + reward_state] = 1
        return vector

    def many(self, observations: Any, transition_states: Numbers, reward_states: Numbers) -> Any:
        """Return a matrix with a row for each environment."""
        count = len(transition_states)
        rows = np.arange(count)
        matrix = np.zeros((count, self._length), self._dtype)
        if self._start is not None:
            matrix[rows, np.asarray(observations) - self._start] = 1
        elif isinstance(self._inner, spaces.Box):
            matrix[:, : self._width] = np.reshape(observations, (count, -1))
        else:
            each = iterate(batch_space(self._inner, count), observations)
            for row, observation in enumerate(each):
                matrix[row, : self._width] = self._flattened(observation)
        matrix[rows, self._width + transition_states] = 1
        matrix[rows, self._reward_column + reward_states] = 1
        return matrix

    def _flattened(self, observation: Any) -> NDArray[Any]:
        return np.asarray(spaces.utils.flatten(self._inner, observation))


class Columns(Augmentation):
    """[observation …, transition state, reward state], each counted from 0."""

    def __init__(self, inner: gym.Space[Any], transition_states: int, reward_states: int) -> None:
        self._start: Any
        if isinstance(inner, spaces.Discrete):
            sizes, self._start = [int(inner.n)], int(inner.start)
        elif isinstance(inner, spaces.MultiDiscrete) and inner.nvec.ndim == 1:
            sizes, self._start = inner.nvec.tolist(), inner.start
        else:
            raise OptionError(
                'mode="multidiscrete" needs Discrete observations or one row of MultiDiscrete '
                f'ones, not {inner}: use mode="dict" or mode="flatten"'
            )
        self.space = spaces.MultiDiscrete([*sizes, transition_states, reward_states])
        self._width = len(sizes)
        self._is_row = isinstance(inner, spaces.MultiDiscrete)

    def one(self, observation: Any, transition_state: int, reward_state: int) -> Any:
        """Return one row."""
        seen = observation - self._start
        columns = seen.tolist() if self._is_row else [seen]
        return np.array([*columns, transition_state, reward_state], np.int64)

    def many(self, observations: Any, transition_states: Numbers, reward_states: Numbers) -> Any:
        """Return a row for each environment."""
        count = len(transition_states)
        rows = np.empty((count, self._width + 2), np.int64)
        rows[:, : self._width] = np.reshape(observations, (count, -1)) - self._start
        rows[:, self._width] = transition_states
        rows[:, self._width + 1] = reward_states
        return rows


class Numbered(Augmentation):
    """One number: ((observation − start) · |Q| + transition state) · |U| + reward state."""

    def __init__(self, inner: gym.Space[Any], transition_states: int, reward_states: int) -> None:
        if not isinstance(inner, spaces.Discrete):
            raise OptionError(
                f'mode="discrete" needs Discrete observations, not {inner}: '
                'use mode="multidiscrete" for a row of numbers, mode="flatten" for arrays'
            )
        self.space = spaces.Discrete(int(inner.n) * transition_states * reward_states)
        self._start = int(inner.start)
        self._states = transition_states, reward_states

    def one(self, observation: Any, transition_state: int, reward_state: int) -> Any:
        """Return one number."""
        transition_states, reward_states = self._states
        place = (int(observation) - self._start) * transition_states + transition_state
        return place * reward_states + reward_state

    def many(self, observations: Any, transition_states: Numbers, reward_states: Numbers) -> Any:
        """Return a number for each environment."""
        seen = np.asarray(observations, np.int64) - self._start
        return (seen * self._states[0] + transition_states) * self._states[1] + reward_states

    def decode(self, observation: Any) -> tuple[Any, int, int]:
        """Return the inner observation and both states behind a number."""
        place, reward_state = divmod(int(observation), self._states[1])
        seen, transition_state = divmod(place, self._states[0])
        return seen + self._start, transition_state, reward_state


def _state_spaces(transition_states: int, reward_states: int) -> list[tuple[str, gym.Space[Any]]]:
    return [
        ("transition_state", spaces.Discrete(transition_states)),
        ("reward_state", spaces.Discrete(reward_states)),
    ]
