"""An observation and the states of machines → one observation, in one of five shapes.

Each shape says which space its observations fill, and makes them for one
environment or for many at once. States come in the order of the machines.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Container, Mapping, Sequence
from math import prod
from typing import Any, Literal, TypeAlias, get_args

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space, iterate
from numpy.typing import NDArray

from resolvent.arguments import shown
from resolvent.control.wrapping.parts import (
    Part,
    flattened,
    is_taken,
    no_fixed_size,
    part_name,
    parts_of,
    refusal,
    space_text,
)
from resolvent.errors import OptionError, SpaceWarning
from resolvent.machines import Machines

Mode: TypeAlias = Literal["dict", "flatten", "multidiscrete", "discrete", "belief"]
Numbers: TypeAlias = NDArray[np.int64]
Sizes: TypeAlias = Mapping[str, int]
"""How many states there are, by the name under which one of them is shown."""
StateSpaces: TypeAlias = Mapping[str, gym.Space[Any]]
"""What is shown of states, by the name under which it is."""

_MODES: tuple[str, ...] = get_args(Mode)


class Augmentation(ABC):
    """How observations and states are put together; `space` is that of the results.

    It is made from the inner space and the numbers of states of all machines,
    and raises an `OptionError` if that space does not fit.
    """

    space: gym.Space[Any]

    @abstractmethod
    def one(self, observation: Any, states: Sequence[Any]) -> Any:
        """Return the augmented observation of one environment.

        `states` has a number for each machine; in mode "belief" how likely each state is.
        """

    @abstractmethod
    def many(self, observations: Any, states: Sequence[NDArray[Any]]) -> Any:
        """Return the augmented observations of a batch, from a column of states a machine."""

    def decode(self, observation: Any) -> tuple[Any, ...]:
        """Return the inner observation and the states."""
        raise OptionError(
            'only observations of mode="discrete" need decoding: '
            'elsewhere read the states in info, such as info["transition_state"]'
        )


def state_names(machines: Machines) -> list[str]:
    """Return the names under which the states of machines are shown.

    >>> from resolvent.environments import House
    >>> state_names(House().machines())
    ['transition_state', 'reward_state']
    """
    return [f"{kind}_state" for kind in machines]


def belief_names(machines: Machines) -> list[str]:
    """Return the names under which it is shown how likely states are.

    >>> from resolvent.environments import House
    >>> belief_names(House().machines())
    ['transition_belief', 'reward_belief']
    """
    return [f"{kind}_belief" for kind in machines]


def augmentation(mode: Mode, inner: gym.Space[Any], machines: Machines) -> Augmentation:
    """Return how a mode augments the observations of a space."""
    if not isinstance(mode, str) or mode not in _MODES:
        raise OptionError(f"mode={shown(mode)}: use one of {', '.join(map(repr, _MODES))}")
    counts = [machine.states for machine in machines.values()]
    sizes = dict(zip(state_names(machines), counts, strict=True))
    if mode == "dict":
        return _in_dict(inner, {name: spaces.Discrete(size) for name, size in sizes.items()})
    if mode == "belief":
        boxes = (spaces.Box(0.0, 1.0, (size,), np.float32) for size in counts)
        return _in_dict(inner, dict(zip(belief_names(machines), boxes, strict=True)))
    refused = no_fixed_size(mode, inner)
    if refused is not None:
        raise refused
    shapes: dict[str, type[Flat | Columns | Numbered]] = {
        "flatten": Flat,
        "multidiscrete": Columns,
        "discrete": Numbered,
    }
    return shapes[mode](inner, sizes)


def _in_dict(inner: gym.Space[Any], shown: StateSpaces) -> Augmentation:
    parts = parts_of(inner)
    for part in parts:
        if not is_taken(part.space):
            warnings.warn(f"Stable-Baselines3 {refusal(part)}", SpaceWarning, stacklevel=4)
    depth = 1 if isinstance(inner, spaces.Dict) else 0
    if any(len(part.path) > depth or part.shown is not None for part in parts):
        return InParts(inner, parts, shown)
    return WithKeys(inner, shown) if isinstance(inner, spaces.Dict) else InDict(inner, shown)


class InDict(Augmentation):
    """{"observation": inner, "transition_state": …, "reward_state": …, and so on}."""

    def __init__(self, inner: gym.Space[Any], shown: StateSpaces) -> None:
        self.space = spaces.Dict([("observation", inner), *shown.items()])
        self._names = list(shown)

    def one(self, observation: Any, states: Sequence[Any]) -> Any:
        """Return a dict of the observation and all states."""
        return {"observation": observation, **dict(zip(self._names, states, strict=True))}

    def many(self, observations: Any, states: Sequence[NDArray[Any]]) -> Any:
        """Return a dict of the batch and all columns of states."""
        return {"observation": observations, **_copies(self._names, states)}


class WithKeys(Augmentation):
    """A Dict observation with a key more for each machine."""

    def __init__(self, inner: spaces.Dict, shown: StateSpaces) -> None:
        _check_free(inner.spaces, shown)
        self.space = spaces.Dict([*inner.spaces.items(), *shown.items()])
        self._names = list(shown)

    def one(self, observation: Any, states: Sequence[Any]) -> Any:
        """Return the observation's keys and all states."""
        return {**observation, **dict(zip(self._names, states, strict=True))}

    def many(self, observations: Any, states: Sequence[NDArray[Any]]) -> Any:
        """Return the batch's keys and all columns of states."""
        return {**observations, **_copies(self._names, states)}


class InParts(Augmentation):
    """The parts of an observation with parts within parts, and a key more for each machine."""

    def __init__(self, inner: gym.Space[Any], parts: Sequence[Part], shown: StateSpaces) -> None:
        prefix = () if isinstance(inner, spaces.Dict) else ("observation",)
        names = [part_name((*prefix, *part.path)) for part in parts]
        if len(set(names)) < len(names):
            raise OptionError(
                f"two parts of the observation would be called {max(names, key=names.count)!r}: "
                'rename one, or use mode="flatten"'
            )
        _check_free(names, shown)
        self._parts = dict(zip(names, parts, strict=True))
        inside = [(name, part.space) for name, part in self._parts.items()]
        self.space = spaces.Dict([*inside, *shown.items()])
        self._names = list(shown)

    def one(self, observation: Any, states: Sequence[Any]) -> Any:
        """Return a dict of all parts and all states."""
        parts = {name: part.one(observation) for name, part in self._parts.items()}
        return {**parts, **dict(zip(self._names, states, strict=True))}

    def many(self, observations: Any, states: Sequence[NDArray[Any]]) -> Any:
        """Return a dict of the batches of all parts and all columns of states."""
        count = len(states[0])
        parts = {name: part.many(observations, count) for name, part in self._parts.items()}
        return {**parts, **_copies(self._names, states)}


class Flat(Augmentation):
    """One vector: the flattened observation, then the state of each machine one-hot.

    It keeps the type of the flattened observation's numbers, since a one-hot
    state fits into any.
    """

    def __init__(self, inner: gym.Space[Any], sizes: Sizes) -> None:
        flat: Any = spaces.utils.flatten_space(inner)
        counts = list(sizes.values())
        self.space = spaces.Box(
            np.concatenate([flat.low, np.zeros(sum(counts), flat.dtype)]),
            np.concatenate([flat.high, np.ones(sum(counts), flat.dtype)]),
            dtype=flat.dtype,
        )
        self._inner = inner
        self._start = int(inner.start) if isinstance(inner, spaces.Discrete) else None
        self._length, self._dtype = self.space.shape[0], flat.dtype
        self._width = flat.shape[0]
        self._columns = [self._width + sum(counts[:place]) for place in range(len(counts))]

    def one(self, observation: Any, states: Sequence[int]) -> Any:
        """Return one vector."""
        vector = np.zeros(self._length, self._dtype)
        if self._start is None:
            vector[: self._width] = flattened(self._inner, observation)
        else:
            vector[observation - self._start] = 1
        for column, state in zip(self._columns, states, strict=True):
            vector[column + state] = 1
        return vector

    def many(self, observations: Any, states: Sequence[Numbers]) -> Any:
        """Return a matrix with a row for each environment."""
        count = len(states[0])
        rows = np.arange(count)
        matrix = np.zeros((count, self._length), self._dtype)
        if self._start is not None:
            matrix[rows, np.asarray(observations) - self._start] = 1
        elif isinstance(self._inner, spaces.Box):
            matrix[:, : self._width] = np.reshape(observations, (count, -1))
        else:
            each = iterate(batch_space(self._inner, count), observations)
            for row, observation in enumerate(each):
                matrix[row, : self._width] = flattened(self._inner, observation)
        for column, state in zip(self._columns, states, strict=True):
            matrix[rows, column + state] = 1
        return matrix


class Columns(Augmentation):
    """[observation …, transition state, reward state, …], each counted from 0."""

    def __init__(self, inner: gym.Space[Any], sizes: Sizes) -> None:
        self._start: Any
        if isinstance(inner, spaces.Discrete):
            widths, self._start = [int(inner.n)], int(inner.start)
        elif isinstance(inner, spaces.MultiDiscrete) and inner.nvec.ndim == 1:
            widths, self._start = inner.nvec.tolist(), inner.start
        else:
            raise OptionError(
                'mode="multidiscrete" needs Discrete observations or one row of MultiDiscrete '
                f'ones, not {space_text(inner)}: use mode="dict" or mode="flatten"'
            )
        self.space = spaces.MultiDiscrete([*widths, *sizes.values()])
        self._width = len(widths)
        self._is_row = isinstance(inner, spaces.MultiDiscrete)

    def one(self, observation: Any, states: Sequence[int]) -> Any:
        """Return one row."""
        seen = observation - self._start
        columns = seen.tolist() if self._is_row else [seen]
        return np.array([*columns, *states], np.int64)

    def many(self, observations: Any, states: Sequence[Numbers]) -> Any:
        """Return a row for each environment."""
        count = len(states[0])
        rows = np.empty((count, self._width + len(states)), np.int64)
        rows[:, : self._width] = np.reshape(observations, (count, -1)) - self._start
        for place, column in enumerate(states, self._width):
            rows[:, place] = column
        return rows


class Numbered(Augmentation):
    """One number: ((observation − start) · |Q| + transition state) · |U| + reward state, …."""

    def __init__(self, inner: gym.Space[Any], sizes: Sizes) -> None:
        if not isinstance(inner, spaces.Discrete):
            raise OptionError(
                f'mode="discrete" needs Discrete observations, not {space_text(inner)}: '
                'use mode="multidiscrete" for a row of numbers, mode="flatten" for arrays'
            )
        self._sizes = tuple(sizes.values())
        self.space = spaces.Discrete(int(inner.n) * prod(self._sizes))
        self._start = int(inner.start)

    def one(self, observation: Any, states: Sequence[int]) -> Any:
        """Return one number."""
        number = int(observation) - self._start
        for size, state in zip(self._sizes, states, strict=True):
            number = number * size + state
        return number

    def many(self, observations: Any, states: Sequence[Numbers]) -> Any:
        """Return a number for each environment."""
        numbers = np.asarray(observations, np.int64) - self._start
        for size, column in zip(self._sizes, states, strict=True):
            numbers = numbers * size + column
        return numbers

    def decode(self, observation: Any) -> tuple[Any, ...]:
        """Return the inner observation and the states behind a number."""
        number, states = int(observation), list[int]()
        for size in reversed(self._sizes):
            number, state = divmod(number, size)
            states.append(state)
        return number + self._start, *reversed(states)


def _check_free(names: Container[str], shown: StateSpaces) -> None:
    taken = [key for key in shown if key in names]
    if taken:
        raise OptionError(
            f'the observation has a key {taken[0]!r} already: rename it, or use mode="flatten"'
        )


def _copies(names: Sequence[str], columns: Sequence[NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {name: column.copy() for name, column in zip(names, columns, strict=True)}
