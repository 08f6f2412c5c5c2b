"""Join observations and the states of machines into one observation, in one of five shapes.

Input: an observation and a state for each machine, in the order of the machines, for one
environment or for a batch. Output: an observation of the shape's space. Stable-Baselines3 takes a
Dict of arrays and of numbers from 0 on; nested Dicts, Tuples and Texts are split into parts.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any, Literal, TypeAlias, get_args

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space, iterate
from numpy.typing import NDArray

from resolvent._util.text import short
from resolvent._util.validation import shown
from resolvent.errors import OptionError, SpaceWarning, TraceError
from resolvent.machines import Machines

Mode: TypeAlias = Literal["dict", "flatten", "multidiscrete", "discrete", "belief"]
Numbers: TypeAlias = NDArray[np.int64]
Sizes: TypeAlias = Mapping[str, int]
"""Numbers of states, by the key of the state in observations."""
StateSpaces: TypeAlias = Mapping[str, gym.Space[Any]]
"""Spaces of states, by their key in observations."""

Showing: TypeAlias = Callable[[Any], Any]
"""The conversion of a part of an observation."""

_MODES: tuple[str, ...] = get_args(Mode)
_BETWEEN = "/"  # PyTorch allows no dot in the name of a module
_DEEP_SPACES = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)


@dataclass(frozen=True)
class Part:
    """One part of the observations of a space, at `path`.

    `shown` converts it into a value of `space`; it is None if the part stays as it is.
    """

    path: tuple[Any, ...]
    inner: gym.Space[Any]
    space: gym.Space[Any]
    shown: Showing | None

    def convert(self, observation: Any) -> Any:
        """Return the converted part of one observation."""
        part = self._within(observation)
        return part if self.shown is None else self.shown(part)

    def convert_batch(self, observations: Any, count: int) -> Any:
        """Return the converted part of a batch of `count` observations."""
        parts = self._within(observations)
        if self.shown is None:
            return parts
        each = iterate(batch_space(self.inner, count), parts)
        return np.stack([self.shown(part) for part in each])

    def _within(self, observation: Any) -> Any:
        for step in self.path:
            observation = observation[step]
        return observation


def parts_of(space: gym.Space[Any], path: tuple[Any, ...] = ()) -> list[Part]:
    """Return the parts of a space, with Dicts and Tuples taken apart.

    >>> robot = spaces.Dict(arm=spaces.Discrete(3), place=spaces.Tuple([spaces.Discrete(2)] * 2))
    >>> [(part.path, str(part.space)) for part in parts_of(robot)]
    [(('arm',), 'Discrete(3)'), (('place', 0), 'Discrete(2)'), (('place', 1), 'Discrete(2)')]
    """
    if isinstance(space, spaces.Dict):
        inner: dict[Any, gym.Space[Any]] = {**space.spaces}
    elif isinstance(space, spaces.Tuple):
        inner = dict(enumerate(space.spaces))
    else:
        return [Part(path, space, *_as_shown(space))]
    return [
        part for key, part_space in inner.items() for part in parts_of(part_space, (*path, key))
    ]


def part_name(path: tuple[Any, ...]) -> str:
    """Return the name of a part in a Dict of one level.

    >>> part_name(("robot", "arm")), part_name(("observation", 0))
    ('robot/arm', 'observation/0')
    """
    return _BETWEEN.join(map(str, path))


def flat_box(space: gym.Space[Any]) -> spaces.Box | None:
    """Return the space of flattened observations, or None if they have no fixed size.

    >>> flat_box(spaces.Discrete(3)).shape, flat_box(spaces.Sequence(spaces.Discrete(3)))
    ((3,), None)
    """
    try:
        flat = spaces.utils.flatten_space(space)
    except (NotImplementedError, ValueError):
        return None  # a custom space, such as MiniGrid's missions, perhaps within a OneOf
    return flat if isinstance(flat, spaces.Box) else None


def flattened(space: gym.Space[Any], observation: Any, *, dtype: Any = None) -> NDArray[Any]:
    """Flatten an observation as Gymnasium does; `TraceError` if it is not in its space."""
    try:
        return np.asarray(spaces.utils.flatten(space, observation), dtype)
    except (KeyError, IndexError) as error:  # a text with other characters, or too long
        raise TraceError(
            f"the observation {short(repr(observation), 60)} is not in {space_text(space)}: "
            "mend the environment's observation_space"
        ) from error


def check_fixed_size(mode: str, space: gym.Space[Any]) -> None:
    """Raise `OptionError` if a part of a space has no fixed size."""
    for part in parts_of(space):
        if flat_box(part.inner) is None:
            raise OptionError(
                f'mode="{mode}" {_refusal(part)}, or use mode="dict" for a tabular learner'
            )


def _refusal(part: Part) -> str:
    """Return the reason why deep learners do not take a part, and the remedy."""
    name = f" part {part_name(part.path)!r} is" if part.path else "y are"
    leave = "leave it out with gymnasium.wrappers.FilterObservation, or " * bool(part.path)
    return (
        f"needs observations of a fixed size, and the{name} {space_text(part.inner)}: "
        f"{leave}encode it with gymnasium.wrappers.TransformObservation"
    )


def space_text(space: gym.Space[Any]) -> str:
    """Return a space as one line of text.

    >>> space_text(spaces.MultiDiscrete([[3, 4], [2, 5]]))
    'MultiDiscrete([[3 4] [2 5]])'
    """
    return short(" ".join(str(space).split()), 80)


def _as_shown(space: gym.Space[Any]) -> tuple[gym.Space[Any], Showing | None]:
    """Return the space of a converted part, and the conversion."""
    if isinstance(space, spaces.Discrete):
        return _counted_from_0(space)
    if isinstance(space, spaces.MultiDiscrete):
        return _row_from_0(space)
    if isinstance(space, spaces.Box) and not space.shape:
        low, high = np.reshape(space.low, 1), np.reshape(space.high, 1)
        dtype: Any = space.dtype
        return spaces.Box(low, high, dtype=dtype), partial(_row, least=dtype.type(0), dtype=dtype)
    if isinstance(space, spaces.Text):
        # Numbers of characters; one more number fills short texts.
        codes = spaces.MultiDiscrete([len(space.character_set) + 1] * space.max_length)
        return codes, partial(flattened, space, dtype=codes.dtype)
    if isinstance(space, spaces.OneOf):
        flat = flat_box(space)
        if flat is not None:
            return flat, partial(flattened, space)
    return space, None


def _counted_from_0(space: spaces.Discrete) -> tuple[gym.Space[Any], Showing | None]:
    """Shift numbers that start below 0; names belong to the others."""
    start = int(space.start)
    if start == 0:
        return space, None
    least = min(start, 0)
    return spaces.Discrete(int(space.n) + start - least), partial(_number, least=least)


def _row_from_0(space: spaces.MultiDiscrete) -> tuple[gym.Space[Any], Showing | None]:
    if space.nvec.ndim == 1 and not np.any(space.start):
        return space, None
    least = np.minimum(space.start, 0)
    widths = (space.nvec + space.start - least).ravel()
    dtype: Any = space.dtype
    row = spaces.MultiDiscrete(widths, dtype=dtype)
    return row, partial(_row, least=least, dtype=dtype)


def _number(number: Any, *, least: int) -> Any:
    return number - least


def _row(numbers: Any, *, least: Any, dtype: Any) -> NDArray[Any]:
    return np.ravel(numbers - least).astype(dtype)


class Augmentation(ABC):
    """A shape of augmented observations, which fill `space`.

    Constructors raise `OptionError` if the inner space does not fit the shape.
    """

    space: gym.Space[Any]

    @abstractmethod
    def augment(self, observation: Any, states: Sequence[Any]) -> Any:
        """Return the augmented observation of one environment.

        `states` has a state for each machine; in mode "belief" an array of probabilities.
        """

    @abstractmethod
    def augment_batch(self, observations: Any, states: Sequence[NDArray[Any]]) -> Any:
        """Return the augmented observations of a batch, from a column of states a machine."""

    def decode(self, observation: Any) -> tuple[Any, ...]:
        """Return the inner observation and the states of a "discrete" observation."""
        raise OptionError(
            'only observations of mode="discrete" need decoding: '
            'elsewhere read the states in info, such as info["transition_state"]'
        )


def state_names(machines: Machines) -> list[str]:
    """Return the keys of the machines' states in observations and infos.

    >>> from resolvent.worlds import House
    >>> state_names(House().machines())
    ['transition_state', 'reward_state']
    """
    return [f"{name}_state" for name in machines]


def augmentation(mode: Mode, inner: gym.Space[Any], machines: Machines) -> Augmentation:
    """Return the shape of a mode for observations of a space."""
    if not isinstance(mode, str) or mode not in _MODES:
        raise OptionError(f"mode={shown(mode)}: use one of {', '.join(map(repr, _MODES))}")
    counts = [machine.states for machine in machines.values()]
    sizes = dict(zip(state_names(machines), counts, strict=True))
    if mode == "dict":
        return _in_dict(inner, {name: spaces.Discrete(size) for name, size in sizes.items()})
    if mode == "belief":
        boxes = [spaces.Box(0.0, 1.0, (size,), np.float32) for size in counts]
        names = [f"{name}_belief" for name in machines]
        return _in_dict(inner, dict(zip(names, boxes, strict=True)))
    check_fixed_size(mode, inner)
    shapes: dict[str, type[Flat | Columns | Numbered]] = {
        "flatten": Flat,
        "multidiscrete": Columns,
        "discrete": Numbered,
    }
    return shapes[mode](inner, sizes)


def _in_dict(inner: gym.Space[Any], states: StateSpaces) -> Augmentation:
    parts = parts_of(inner)
    for part in parts:
        if not isinstance(part.space, _DEEP_SPACES):
            warnings.warn(f"Stable-Baselines3 {_refusal(part)}", SpaceWarning, stacklevel=5)
    depth = 1 if isinstance(inner, spaces.Dict) else 0
    if any(len(part.path) > depth or part.shown is not None for part in parts):
        return InParts(inner, parts, states)
    return WithKeys(inner, states) if isinstance(inner, spaces.Dict) else InDict(inner, states)


class InDict(Augmentation):
    """{"observation": inner, "transition_state": …, "reward_state": …, …}."""

    def __init__(self, inner: gym.Space[Any], states: StateSpaces) -> None:
        self.space = spaces.Dict([("observation", inner), *states.items()])
        self._names = list(states)

    def augment(self, observation: Any, states: Sequence[Any]) -> Any:
        """Return a dict of the observation and all states."""
        return {"observation": observation, **dict(zip(self._names, states, strict=True))}

    def augment_batch(self, observations: Any, states: Sequence[NDArray[Any]]) -> Any:
        """Return a dict of the batch and all columns of states."""
        return {"observation": observations, **_copies(self._names, states)}


class WithKeys(Augmentation):
    """A Dict observation with another key for each machine."""

    def __init__(self, inner: spaces.Dict, states: StateSpaces) -> None:
        _check_free(inner.spaces, states)
        self.space = spaces.Dict([*inner.spaces.items(), *states.items()])
        self._names = list(states)

    def augment(self, observation: Any, states: Sequence[Any]) -> Any:
        """Return the observation's keys and all states."""
        return {**observation, **dict(zip(self._names, states, strict=True))}

    def augment_batch(self, observations: Any, states: Sequence[NDArray[Any]]) -> Any:
        """Return the batch's keys and all columns of states."""
        return {**observations, **_copies(self._names, states)}


class InParts(Augmentation):
    """The parts of a nested observation on one level, and a key for each machine."""

    def __init__(self, inner: gym.Space[Any], parts: Sequence[Part], states: StateSpaces) -> None:
        prefix = () if isinstance(inner, spaces.Dict) else ("observation",)
        names = [part_name((*prefix, *part.path)) for part in parts]
        if len(set(names)) < len(names):
            raise OptionError(
                f"two parts of the observation would be called {max(names, key=names.count)!r}: "
                'rename one, or use mode="flatten"'
            )
        _check_free(names, states)
        self._parts = dict(zip(names, parts, strict=True))
        inside = [(name, part.space) for name, part in self._parts.items()]
        self.space = spaces.Dict([*inside, *states.items()])
        self._names = list(states)

    def augment(self, observation: Any, states: Sequence[Any]) -> Any:
        """Return a dict of all parts and all states."""
        parts = {name: part.convert(observation) for name, part in self._parts.items()}
        return {**parts, **dict(zip(self._names, states, strict=True))}

    def augment_batch(self, observations: Any, states: Sequence[NDArray[Any]]) -> Any:
        """Return a dict of the batches of all parts and all columns of states."""
        count = len(states[0])
        parts = {
            name: part.convert_batch(observations, count) for name, part in self._parts.items()
        }
        return {**parts, **_copies(self._names, states)}


class Flat(Augmentation):
    """One vector: the flattened observation, then the state of each machine one-hot.

    It has the dtype of the flattened observation.
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

    def augment(self, observation: Any, states: Sequence[int]) -> Any:
        """Return one vector."""
        vector = np.zeros(self._length, self._dtype)
        if self._start is None:
            vector[: self._width] = flattened(self._inner, observation)
        else:
            vector[observation - self._start] = 1
        for column, state in zip(self._columns, states, strict=True):
            vector[column + state] = 1
        return vector

    def augment_batch(self, observations: Any, states: Sequence[Numbers]) -> Any:
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

    def augment(self, observation: Any, states: Sequence[int]) -> Any:
        """Return one row."""
        seen = observation - self._start
        columns = seen.tolist() if self._is_row else [seen]
        return np.array([*columns, *states], np.int64)

    def augment_batch(self, observations: Any, states: Sequence[Numbers]) -> Any:
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

    def augment(self, observation: Any, states: Sequence[int]) -> Any:
        """Return one number."""
        number = int(observation) - self._start
        for size, state in zip(self._sizes, states, strict=True):
            number = number * size + state
        return number

    def augment_batch(self, observations: Any, states: Sequence[Numbers]) -> Any:
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


def _check_free(names: Container[str], states: StateSpaces) -> None:
    for key in states:
        if key in names:
            raise OptionError(
                f'the observation has a key {key!r} already: rename it, or use mode="flatten"'
            )


def _copies(names: Sequence[str], columns: Sequence[NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {name: column.copy() for name, column in zip(names, columns, strict=True)}
