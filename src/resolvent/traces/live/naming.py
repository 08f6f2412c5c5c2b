"""A live environment → the symbols and labels that traces hold.

Whoever steps an environment (collecting, wrappers, plans) asks here what its
values are called and which label holds, so that all mean the same.
"""

import inspect
import math
import reprlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np

from resolvent.arguments import shown
from resolvent.errors import OptionError, TraceError
from resolvent.traces.labelling import Labelling
from resolvent.traces.symbols import INFO_KEYS, NO_EVENT, Label, Symbol, as_label, as_symbol
from resolvent.wording import short

AnyEnv: TypeAlias = gym.Env[Any, Any] | gym.vector.VectorEnv[Any, Any, Any]

_METHODS = ("get_events", "labels")

ONE = ("observation",)
STEP = ("observation", "action", "next_observation")
STEP_AND_INFO = ("observation", "action", "reward", "next_observation", "info")
"""What a labelling function may read; at a reset the last has None for what is not there."""

_WAYS = " or ".join(f"({', '.join(way)})" for way in (ONE, STEP, STEP_AND_INFO))


class Names:
    """Turns an observation or action into its symbol, by name where there are names, and back.

    Names are those of the environment, or what `name_of` returns for a value. `then`
    makes another symbol of each.
    """

    def __init__(
        self,
        env: AnyEnv,
        kind: str,
        name_of: Callable[[Any], Any] | None = None,
        then: Callable[[Symbol], Symbol] | None = None,
    ) -> None:
        self._then = then
        self._kind = kind
        self._space: gym.Space[Any] | None = getattr(env, f"{kind}_space", None)
        self._names: Sequence[Symbol] | None = None
        self._name_of = name_of
        if name_of is None:
            self._names = _attribute(env, f"{kind}_names")
        elif not callable(name_of):
            raise OptionError(
                f"name_of is a {type(name_of).__name__}: give a function of an observation"
            )

    def __call__(self, value: Any) -> Symbol:
        """Return the symbol that traces, or machines, hold for a value of the environment."""
        symbol = self._first(value)
        return symbol if self._then is None else self._then(symbol)

    def _first(self, value: Any) -> Symbol:
        if self._name_of is not None:
            return self._named(self._name_of, value)
        symbol = as_symbol(value)
        if self._names is None or type(symbol) is not int:
            return symbol
        if not 0 <= symbol < len(self._names):
            raise TraceError(
                f"{self._kind} {symbol} has no name: the environment's "
                f"{self._kind}_names are {len(self._names)}"
            )
        return self._names[symbol]

    def _named(self, name_of: Callable[[Any], Any], value: Any) -> Symbol:
        call = f"name_of({reprlib.repr(value)})"
        try:
            name = name_of(value)
        except Exception as error:
            raise TraceError(f"{call} {_raised(error)}") from error
        try:
            return as_symbol(name)
        except TraceError as error:
            raise TraceError(f"{call} gave {reprlib.repr(name)}: {error}") from error

    def of_space(self, space: gym.Space[Any]) -> Sequence[Symbol] | None:
        """Return the symbols of all values in a space, or None where they cannot be listed."""
        if not isinstance(space, gym.spaces.Discrete):
            return None
        values = range(int(space.start), int(space.start + space.n))
        if self._name_of is not None or self._then is not None:
            return [self(value) for value in values]
        return values if self._names is None else self._names[values.start : values.stop]

    @property
    def listed(self) -> tuple[Symbol, ...] | None:
        """The names of the numbers from 0 on, or None where the environment has none."""
        return tuple(map(as_symbol, self._names)) if isinstance(self._names, Sequence) else None

    def value(self, symbol: Symbol) -> Any:
        """Return the environment's value that a symbol stands for."""
        if self._names is not None and symbol in self._names:
            return tuple(self._names).index(symbol)
        return _value(symbol, self._space)


class Labels:
    """Finds the label of each step, wherever the environment or the caller gives it.

    `made` says whether `label_of` makes labels, and `reads` what it is to be called with.
    """

    def __init__(self, env: gym.Env[Any, Any] | None, label_of: Callable[..., Any] | None) -> None:
        self._ask = None
        if env is not None:
            method = label_method(env)
            self._ask = None if method is None else _attribute(env, method)
        if label_of is told_if_any and self._ask is not None:
            label_of = None
        self._label_of = label_of
        self.reads = () if label_of is None else parameters_of(label_of)

    @property
    def made(self) -> bool:
        """Whether labels are made by a function, whatever the environment says."""
        return self._label_of is not None

    @property
    def of_step(self) -> bool:
        """Whether labels are made of more than what a step led to."""
        return len(self.reads) > 1

    def at_reset(self, observation: Any, info: Mapping[str, Any]) -> Label:
        """Return the label of an episode's first observation; no event if none is told."""
        if self._label_of is None:
            found = self._told(info)
            return NO_EVENT if found is None else found
        if self.reads == STEP:
            return NO_EVENT
        if self.reads == STEP_AND_INFO:
            return self._called(None, None, None, observation, info)
        return self._called(observation)

    def after_step(
        self, observation: Any, action: Any, reward: Any, following: Any, info: Mapping[str, Any]
    ) -> Label:
        """Return the label of the observation that a step led to."""
        if self._label_of is None:
            found = self._told(info)
            if found is None:
                raise TraceError(
                    'the environment gives no label: pass labels="auto" (--labels auto) to have '
                    'events found, or "observation", "action" or "action+observation" to make '
                    "them of what is seen and done, or label_of=, or put a set of strings into "
                    'info["labels"] at every step (the empty set for no event)'
                )
            return found
        if self.reads == STEP:
            return self._called(observation, action, following)
        if self.reads == STEP_AND_INFO:
            return self._called(observation, action, reward, following, info)
        return self._called(following)

    def _told(self, info: Mapping[str, Any]) -> Label | None:
        for key in INFO_KEYS:
            if key in info:
                return as_label(info[key])
        return None if self._ask is None else as_label(self._ask())

    def _called(self, *arguments: Any) -> Label:
        if isinstance(self._label_of, MadeOf):  # no function of the user's: its errors are ours
            return self._label_of(*arguments)
        try:
            told = self._label_of(*arguments)  # type: ignore[misc]
        except Exception as error:
            raise TraceError(f"{_call(arguments)} {_raised(error)}") from error
        try:
            return as_label(told)
        except TraceError as error:
            raise TraceError(f"{_call(arguments)} gave {reprlib.repr(told)}: {error}") from error


def told_if_any(
    observation: Any, action: Any, reward: Any, following: Any, info: Mapping[str, Any]
) -> Any:
    """Return the label that an info tells, or None: a `label_of` for worlds that may have none."""
    return next((info[key] for key in INFO_KEYS if key in info), None)


class MadeOf:
    """A function for `label_of` that makes labels of what is seen and done, by a `Labelling`."""

    def __init__(
        self,
        labelling: Labelling,
        observations: Callable[[Any], Symbol],
        actions: Callable[[Any], Symbol],
    ) -> None:
        self._labelling = labelling
        self._observations, self._actions = observations, actions

    def __call__(
        self, observation: Any, action: Any, reward: Any, following: Any, info: Mapping[str, Any]
    ) -> Label:
        """Return the label of what a step led to, or of a reset, which has no action."""
        if action is None:
            return self._labelling.at_reset(self._observations(following))
        return self._labelling.after_step(self._actions(action), self._observations(following))


def finite_reward(reward: Any) -> float:
    """Return a reward as the float that traces hold."""
    try:
        number = float(reward)
    except (TypeError, ValueError, OverflowError):
        raise TraceError(f"the reward is {shown(reward)}; rewards must be numbers") from None
    if not math.isfinite(number):
        raise TraceError(f"the reward is {number}; rewards must be finite")
    return number + 0.0  # one zero, not two


def told_column(info: Mapping[str, Any], name: str) -> Symbol:
    """Return what an info says for a column of the traces.

    >>> told_column({"labels": (), "cost": np.int64(3)}, "cost")
    3
    """
    if name not in info:
        there = ", ".join(f'info["{key}"]' for key in info) or "nothing"
        raise TraceError(
            f'the environment gives no info["{name}"] after this step, but {there}: '
            f"put it there at every step, or do not name it in columns"
        )
    try:
        return as_symbol(info[name])
    except TraceError as error:
        raise TraceError(f'info["{name}"]: {error}') from error


def label_method(env: gym.Env[Any, Any]) -> str | None:
    """Return the name of the method by which an environment tells its label, if it has one."""
    return next((name for name in _METHODS if callable(_attribute(env, name))), None)


def _call(arguments: tuple[Any, ...]) -> str:
    return f"label_of({', '.join(map(reprlib.repr, arguments))})"


def _raised(error: Exception) -> str:
    """Say in one line what a function of the user's raised."""
    return f"raised {type(error).__name__}: {short(str(error), 400)}"


def _value(symbol: Any, space: gym.Space[Any] | None) -> Any:
    """Undo `as_symbol` for a value of this space."""
    if isinstance(space, gym.spaces.Dict):
        return {key: _value(one, space[key]) for key, one in symbol}
    if isinstance(space, gym.spaces.Tuple):
        return tuple(_value(one, part) for one, part in zip(symbol, space, strict=True))
    if isinstance(symbol, tuple) and space is not None:
        return np.array(symbol, space.dtype)
    return symbol


def parameters_of(label_of: Callable[..., Any]) -> tuple[str, ...]:
    """Return what a labelling function reads: `ONE`, `STEP` or `STEP_AND_INFO`.

    >>> parameters_of(lambda observation: "key")
    ('observation',)
    """
    if not callable(label_of):
        raise OptionError(f"label_of is a {type(label_of).__name__}: give a function of {_WAYS}")
    try:
        parameters = inspect.signature(label_of).parameters.values()
    except ValueError:  # some built-in functions tell no signature
        return ONE
    # Parameters with defaults are often constants bound to a lambda, so they do not count.
    required = [
        parameter
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        and parameter.default is parameter.empty
    ]
    ways = {0: ONE, **{len(way): way for way in (ONE, STEP, STEP_AND_INFO)}}
    if len(required) not in ways:
        raise OptionError(f"label_of has {len(required)} parameters: give it {_WAYS}")
    return ways[len(required)]


def _attribute(env: AnyEnv, name: str) -> Any:
    if isinstance(env, gym.vector.VectorEnv):
        return getattr(env.unwrapped, name, None)
    try:
        return env.get_wrapper_attr(name)
    except AttributeError:
        return None
