"""An observation space → its parts on one level, each of a kind that deep learners take.

Stable-Baselines3 takes a Dict of arrays and of numbers that are counted from 0, but no
Dict within a Dict, no Tuple and no Text. What has no fixed size stays as it is.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space, iterate
from numpy.typing import NDArray

from resolvent.errors import OptionError, TraceError
from resolvent.wording import short

Showing: TypeAlias = Callable[[Any], Any]

_BETWEEN = "/"  # PyTorch names no module with a dot in it
_TAKEN = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)


@dataclass(frozen=True)
class Part:
    """One part of the observations of a space: where it is, and how it is shown.

    `space` is that of what is shown; `shown` makes it, and is None where that is the part
    as it is.
    """

    path: tuple[Any, ...]
    inner: gym.Space[Any]
    space: gym.Space[Any]
    shown: Showing | None

    def one(self, observation: Any) -> Any:
        """Return what is shown of one observation."""
        part = self._within(observation)
        return part if self.shown is None else self.shown(part)

    def many(self, observations: Any, count: int) -> Any:
        """Return what is shown of a batch of so many observations."""
        parts = self._within(observations)
        if self.shown is None:
            return parts
        return np.stack([self.shown(one) for one in iterate(batch_space(self.inner, count), parts)])

    def _within(self, observation: Any) -> Any:
        for step in self.path:
            observation = observation[step]
        return observation


def parts_of(space: gym.Space[Any], path: tuple[Any, ...] = ()) -> list[Part]:
    """Return the parts of a space, those of Dicts and Tuples within it one by one.

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
    return [part for key, one in inner.items() for part in parts_of(one, (*path, key))]


def part_name(path: tuple[Any, ...]) -> str:
    """Return the name of a part in a Dict of one level.

    >>> part_name(("robot", "arm")), part_name(("observation", 0))
    ('robot/arm', 'observation/0')
    """
    return _BETWEEN.join(map(str, path))


def is_taken(space: gym.Space[Any]) -> bool:
    """Whether deep learners take what is shown of a part."""
    return isinstance(space, _TAKEN)


def flat_box(space: gym.Space[Any]) -> spaces.Box | None:
    """Return the space of flattened observations, or None where they have no fixed size.

    >>> flat_box(spaces.Discrete(3)).shape, flat_box(spaces.Sequence(spaces.Discrete(3)))
    ((3,), None)
    """
    try:
        flat = spaces.utils.flatten_space(space)
    except (NotImplementedError, ValueError):
        return None  # one that someone made up, such as MiniGrid's missions, or is within a OneOf
    return flat if isinstance(flat, spaces.Box) else None


def flattened(space: gym.Space[Any], observation: Any, *, dtype: Any = None) -> NDArray[Any]:
    """Flatten an observation as Gymnasium does, or say that it is not in its space."""
    try:
        return np.asarray(spaces.utils.flatten(space, observation), dtype)
    except (KeyError, IndexError) as error:  # a text with other characters, or too long
        raise TraceError(
            f"the observation {short(repr(observation), 60)} is not in {space_text(space)}: "
            "mend the environment's observation_space"
        ) from error


def no_fixed_size(mode: str, space: gym.Space[Any]) -> OptionError | None:
    """Return why a mode cannot show observations of a space, where a part has no fixed size."""
    for part in parts_of(space):
        if flat_box(part.inner) is None:
            return OptionError(
                f'mode="{mode}" {refusal(part)}, or use mode="dict" for a tabular learner'
            )
    return None


def refusal(part: Part) -> str:
    """Say why deep learners do not take a part, and what to do."""
    name = f" part {part_name(part.path)!r} is" if part.path else "y are"
    leave = "leave it out with gymnasium.wrappers.FilterObservation, or " * bool(part.path)
    return (
        f"needs observations of a fixed size, and the{name} {space_text(part.inner)}: "
        f"{leave}encode it with gymnasium.wrappers.TransformObservation"
    )


def space_text(space: gym.Space[Any]) -> str:
    """Write a space in a line.

    >>> space_text(spaces.MultiDiscrete([[3, 4], [2, 5]]))
    'MultiDiscrete([[3 4] [2 5]])'
    """
    return short(" ".join(str(space).split()), 80)


def _as_shown(space: gym.Space[Any]) -> tuple[gym.Space[Any], Showing | None]:
    """Return the space in which a part is shown, and what makes it so."""
    if isinstance(space, spaces.Discrete):
        return _counted_from_0(space)
    if isinstance(space, spaces.MultiDiscrete):
        return _row_from_0(space)
    if isinstance(space, spaces.Box) and not space.shape:
        low, high = np.reshape(space.low, 1), np.reshape(space.high, 1)
        dtype: Any = space.dtype
        return spaces.Box(low, high, dtype=dtype), partial(_row, least=dtype.type(0), dtype=dtype)
    if isinstance(space, spaces.Text):
        # Its characters by number; one more stands behind the end of a short text.
        codes = spaces.MultiDiscrete([len(space.character_set) + 1] * space.max_length)
        return codes, partial(flattened, space, dtype=codes.dtype)
    if isinstance(space, spaces.OneOf):
        flat = flat_box(space)
        if flat is not None:
            return flat, partial(flattened, space)
    return space, None


def _counted_from_0(space: spaces.Discrete) -> tuple[gym.Space[Any], Showing | None]:
    """Keep numbers that count from above 0, whatever their names, and move those below."""
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
