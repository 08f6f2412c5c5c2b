"""Join observations and the states of machines into one observation, in one of four shapes.

Input: an observation and a state for each machine, in the order of the machines, for one
environment or for a batch; in mode "belief" the probabilities of the states. Output: an
observation of the shape's space. Stable-Baselines3 takes a Dict of arrays and of numbers from 0 on;
nested Dicts, Tuples and Texts are split into parts.
"""

import operator
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from math import prod
from typing import Any, Literal, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space, iterate
from numpy.typing import NDArray

from resolvent._util.text import short
from resolvent.errors import OptionError, SpaceWarning, TraceError
from resolvent.machines import Machines

Mode: TypeAlias = Literal["dict", "flatten", "multidiscrete", "discrete", "belief"]
Numbers: TypeAlias = NDArray[np.int64]
Sizes: TypeAlias = Mapping[str, int]  # numbers of states, by the key of the state in observations
StateSpaces: TypeAlias = Mapping[str, gym.Space[Any]]  # by their key in observations
_DEEP_SPACES = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)


@dataclass(frozen=True)
class Part:
    """One part of a space's observations, at `path`; `convert` makes a value of `space` of it."""

    path: tuple[Any, ...]
    inner: gym.Space[Any]
    space: gym.Space[Any]
    convert: Callable[[Any], Any] | None

    def of(self, observation: Any) -> Any:
        """Return the converted part of one observation."""
        part = reduce(operator.getitem, self.path, observation)
        return part if self.convert is None else self.convert(part)

    def of_batch(self, observations: Any, count: int) -> Any:
        """Return the converted part of a batch of `count` observations."""
        parts = reduce(operator.getitem, self.path, observations)
        if self.convert is None:
            return parts
        each = iterate(batch_space(self.inner, count), parts)
        return np.stack([self.convert(part) for part in each])


def parts_of(space: gym.Space[Any], path: tuple[Any, ...] = ()) -> list[Part]:
    """Return the parts of a space, with Dicts and Tuples taken apart."""
    if isinstance(space, spaces.Dict):
        inner: dict[Any, gym.Space[Any]] = {**space.spaces}
    elif isinstance(space, spaces.Tuple):
        inner = dict(enumerate(space.spaces))
    else:
        return [Part(path, space, *_converted(space))]
    return [
        part for key, part_space in inner.items() for part in parts_of(part_space, (*path, key))
    ]


def _part_name(path: tuple[Any, ...]) -> str:
    return "/".join(map(str, path))  # PyTorch allows no dot in the name of a module


def _flat_box(space: gym.Space[Any]) -> spaces.Box | None:
    """Return the space of flattened observations, or None if they have no fixed size."""
    try:
        flat = spaces.utils.flatten_space(space)
    except (NotImplementedError, ValueError):
        return None  # a custom space, such as MiniGrid's missions, perhaps within a OneOf
    return flat if isinstance(flat, spaces.Box) else None


def _flattened(space: gym.Space[Any], observation: Any, *, dtype: Any = None) -> NDArray[Any]:
    """Flatten an observation as Gymnasium does; `TraceError` if it is not in its space."""
    try:
        return np.asarray(spaces.utils.flatten(space, observation), dtype)
    except (KeyError, IndexError) as error:  # a text with other characters, or too long
        raise TraceError(
            f"the observation {short(repr(observation), 60)} is not in {_space_text(space)}: "
            "correct the environment's observation_space"
        ) from error


def check_fixed_size(mode: str, space: gym.Space[Any]) -> None:
    """Raise `OptionError` if a part of a space has no fixed size."""
    for part in parts_of(space):
        if _flat_box(part.inner) is None:
            raise OptionError(
                f'mode="{mode}" {_refusal(part)}, or use mode="dict" for a tabular learner'
            )


def _refusal(part: Part) -> str:
    """Return the reason why deep learners do not take a part, and the remedy."""
    name = f" part {_part_name(part.path)!r} is" if part.path else "y are"
    leave = "leave it out with gymnasium.wrappers.FilterObservation, or " * bool(part.path)
    return (
        f"needs observations of a fixed size, and the{name} {_space_text(part.inner)}: "
        f"{leave}encode it with gymnasium.wrappers.TransformObservation"
    )


def _space_text(space: gym.Space[Any]) -> str:
    """Return a space as one line of text."""
    return short(" ".join(str(space).split()), 80)


def _converted(space: gym.Space[Any]) -> tuple[gym.Space[Any], Callable[[Any], Any] | None]:
    """Return the space of a converted part, and the conversion; None if it stays as it is."""
    dtype: Any = space.dtype
    if isinstance(space, spaces.Discrete):  # numbers above 0 stay: names belong to them
        start, least = int(space.start), min(int(space.start), 0)
        counted = spaces.Discrete(int(space.n) + start - least)
        return counted, partial(operator.add, -least) if least else None
    if isinstance(space, spaces.MultiDiscrete):
        if space.nvec.ndim == 1 and not np.any(space.start):
            return space, None
        lowest = np.minimum(space.start, 0)
        widths = (space.nvec + space.start - lowest).ravel()
        return spaces.MultiDiscrete(widths, dtype=dtype), partial(_row, lowest, dtype)
    if isinstance(space, spaces.Box) and not space.shape:
        low, high = np.reshape(space.low, 1), np.reshape(space.high, 1)
        return spaces.Box(low, high, dtype=dtype), partial(_row, dtype.type(0), dtype)
    if isinstance(space, spaces.Text):
        # Numbers of characters; one more number fills short texts.
        codes = spaces.MultiDiscrete([len(space.character_set) + 1] * space.max_length)
        return codes, partial(_flattened, space, dtype=codes.dtype)
    if isinstance(space, spaces.OneOf):
        flat = _flat_box(space)
        if flat is not None:
            return flat, partial(_flattened, space)
    return space, None


def _row(lowest: Any, dtype: Any, numbers: Any) -> NDArray[Any]:
    return np.ravel(numbers - lowest).astype(dtype)


def state_names(machines: Machines) -> list[str]:
    """Return the keys of the machines' states in observations and infos."""
    return [f"{name}_state" for name in machines]


class _InDict:
    """A Dict on one level: the observation or its parts, and a key for each machine.

    An observation that learners take as it is stays whole, under "observation".
    """

    def __init__(self, inner: gym.Space[Any], states: StateSpaces) -> None:
        parts = parts_of(inner)
        for part in parts:
            if not isinstance(part.space, _DEEP_SPACES):
                warnings.warn(f"Stable-Baselines3 {_refusal(part)}", SpaceWarning, stacklevel=4)
        self._is_dict = isinstance(inner, spaces.Dict)
        prefix = () if self._is_dict else ("observation",)
        names = [_part_name((*prefix, *part.path)) for part in parts]
        keys = [*names, *states]
        if len(set(keys)) < len(keys):
            raise OptionError(
                f"two parts of the augmented observation would be called "
                f'{max(keys, key=keys.count)!r}: rename one, or use mode="flatten"'
            )
        named = dict(zip(names, parts, strict=True))
        own = ((name, part.space) for name, part in named.items())
        self.space = spaces.Dict([*own, *states.items()])  # a mapping would be sorted
        is_flat = all(len(part.path) <= self._is_dict and part.convert is None for part in parts)
        self._parts = None if is_flat else named
        self._is_whole = is_flat and not self._is_dict
        self._names = list(states)

    def augment(self, observation: Any, states: Sequence[Any]) -> Any:
        named_states = dict(zip(self._names, states, strict=True))
        if self._is_whole:
            return {"observation": observation, **named_states}
        if self._parts is None:
            return {**observation, **named_states}
        parts = {name: part.of(observation) for name, part in self._parts.items()}
        return {**parts, **named_states}

    def augment_batch(self, observations: Any, states: Sequence[NDArray[Any]]) -> Any:
        count = len(states[0])
        named_states = dict(zip(self._names, (column.copy() for column in states), strict=True))
        if self._parts is None:
            inside = observations if self._is_dict else {"observation": observations}
            return {**inside, **named_states}
        parts = {name: part.of_batch(observations, count) for name, part in self._parts.items()}
        return {**parts, **named_states}


class Flat:
    """One vector of the dtype of the flattened observation: that, then the states one-hot."""

    def __init__(self, inner: gym.Space[Any], sizes: Sizes) -> None:
        flat: Any = spaces.utils.flatten_space(inner)
        counts = list(sizes.values())
        self.space = spaces.Box(
            np.concatenate([flat.low, np.zeros(sum(counts), flat.dtype)]),
            np.concatenate([flat.high, np.ones(sum(counts), flat.dtype)]),
            dtype=flat.dtype,
        )
        self._inner, self._dtype = inner, flat.dtype
        self._start = int(inner.start) if isinstance(inner, spaces.Discrete) else None
        self._width, self._length = flat.shape[0], self.space.shape[0]
        self._columns = [self._width + sum(counts[:number]) for number in range(len(counts))]

    def augment(self, observation: Any, states: Sequence[Any]) -> Any:
        """Return one vector."""
        vector = np.zeros(self._length, self._dtype)
        if self._start is None:
            vector[: self._width] = _flattened(self._inner, observation)
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
                matrix[row, : self._width] = _flattened(self._inner, observation)
        for column, state in zip(self._columns, states, strict=True):
            matrix[rows, column + state] = 1
        return matrix


class _Columns:
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
                f'ones, not {_space_text(inner)}: use mode="dict" or mode="flatten"'
            )
        self.space = spaces.MultiDiscrete([*widths, *sizes.values()])
        self._width, self._is_row = len(widths), isinstance(inner, spaces.MultiDiscrete)

    def augment(self, observation: Any, states: Sequence[Any]) -> Any:
        seen = observation - self._start
        columns = seen.tolist() if self._is_row else [seen]
        return np.array([*columns, *states], np.int64)

    def augment_batch(self, observations: Any, states: Sequence[Numbers]) -> Any:
        count = len(states[0])
        rows = np.empty((count, self._width + len(states)), np.int64)
        rows[:, : self._width] = np.reshape(observations, (count, -1)) - self._start
        for number, column in enumerate(states, self._width):
            rows[:, number] = column
        return rows


class _Numbered:
    """One number: ((observation − start) · |Q| + transition state) · |U| + reward state, …."""

    def __init__(self, inner: gym.Space[Any], sizes: Sizes) -> None:
        if not isinstance(inner, spaces.Discrete):
            raise OptionError(
                f'mode="discrete" needs Discrete observations, not {_space_text(inner)}: '
                'use mode="multidiscrete" for a row of numbers, mode="flatten" for arrays'
            )
        self.sizes, self.start = tuple(sizes.values()), int(inner.start)
        self.space = spaces.Discrete(int(inner.n) * prod(self.sizes))

    def augment(self, observation: Any, states: Sequence[Any]) -> Any:
        number = int(observation) - self.start
        for size, state in zip(self.sizes, states, strict=True):
            number = number * size + state
        return number

    def augment_batch(self, observations: Any, states: Sequence[Numbers]) -> Any:
        numbers = np.asarray(observations, np.int64) - self.start
        for size, column in zip(self.sizes, states, strict=True):
            numbers = numbers * size + column
        return numbers


Augmentation: TypeAlias = _InDict | Flat | _Columns | _Numbered


def augmentation(mode: Mode, inner: gym.Space[Any], machines: Machines) -> Augmentation:
    """Return the shape of a mode for observations of a space."""
    counts = [machine.states for machine in machines.values()]
    sizes = dict(zip(state_names(machines), counts, strict=True))
    if mode == "dict":
        return _InDict(inner, {name: spaces.Discrete(size) for name, size in sizes.items()})
    if mode == "belief":
        boxes = [spaces.Box(0.0, 1.0, (size,), np.float32) for size in counts]
        names = [f"{name}_belief" for name in machines]
        return _InDict(inner, dict(zip(names, boxes, strict=True)))
    check_fixed_size(mode, inner)
    if mode == "flatten":
        return Flat(inner, sizes)
    return _Columns(inner, sizes) if mode == "multidiscrete" else _Numbered(inner, sizes)


def decode(shape: Augmentation, observation: Any) -> tuple[Any, ...]:
    """Return the inner observation and the states of an observation in mode "discrete"."""
    if not isinstance(shape, _Numbered):
        raise OptionError(
            'only observations of mode="discrete" need decoding: '
            'elsewhere read the states in info, such as info["transition_state"]'
        )
    number, states = int(observation), list[int]()
    for size in reversed(shape.sizes):
        number, state = divmod(number, size)
        states.append(state)
    return number + shape.start, *reversed(states)
