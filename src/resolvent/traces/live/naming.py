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

from resolvent.errors import OptionError, TraceError
from resolvent.traces.symbols import INFO_KEYS, NO_EVENT, Label, Symbol, as_label, as_symbol

AnyEnv: TypeAlias = gym.Env[Any, Any] | gym.vector.VectorEnv[Any, Any, Any]

_METHODS = ("get_events", "labels")


class Names:
    """Turns an observation or action into its symbol, by name where there are names, and back."""

    def __init__(self, env: AnyEnv, kind: str) -> None:
        self._kind = kind
        self._space: gym.Space[Any] | None = getattr(env, f"{kind}_space", None)
        self._names: Sequence[Symbol] | None = _attribute(env, f"{kind}_names")

    def __call__(self, value: Any) -> Symbol:
        """Return the symbol that traces hold for a value of the environment."""
        symbol = as_symbol(value)
        if self._names is None or type(symbol) is not int:
            return symbol
        if not 0 <= symbol < len(self._names):
            raise TraceError(
                f"{self._kind} {symbol} has no name: the environment's "
                f"{self._kind}_names are {len(self._names)}"
            )
        return self._names[symbol]

    def of_space(self, space: gym.Space[Any]) -> Sequence[Symbol] | None:
        """Return the symbols of all values in a space, or None where they cannot be listed."""
        if not isinstance(space, gym.spaces.Discrete):
            return None
        values = range(int(space.start), int(space.start + space.n))
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
    """Finds the label of each step, wherever the environment or the caller gives it."""

    def __init__(self, env: gym.Env[Any, Any] | None, label_of: Callable[..., Any] | None) -> None:
        self._label_of = label_of
        self.of_step = label_of is not None and takes_step(label_of)
        self._ask = None
        if env is not None:
            method = label_method(env)
            self._ask = None if method is None else _attribute(env, method)

    def at_reset(self, observation: Any, info: Mapping[str, Any]) -> Label:
        """Return the label of an episode's first observation; no event if none is told."""
        if self._label_of is None:
            found = self._told(info)
            return NO_EVENT if found is None else found
        return NO_EVENT if self.of_step else self._called(observation)

    def after_step(
        self, observation: Any, action: Any, following: Any, info: Mapping[str, Any]
    ) -> Label:
        """Return the label of the observation that a step led to."""
        if self._label_of is None:
            found = self._told(info)
            if found is None:
                raise TraceError(
                    'the environment gives no label: put a set of strings into info["labels"] '
                    "at every step (the empty set for no event), or in Python pass label_of="
                )
            return found
        if self.of_step:
            return self._called(observation, action, following)
        return self._called(following)

    def _told(self, info: Mapping[str, Any]) -> Label | None:
        for key in INFO_KEYS:
            if key in info:
                return as_label(info[key])
        return None if self._ask is None else as_label(self._ask())

    def _called(self, *arguments: Any) -> Label:
        try:
            told = self._label_of(*arguments)  # type: ignore[misc]
        except Exception as error:
            raise TraceError(
                f"{_call(arguments)} raised {type(error).__name__}: {error}"
            ) from error
        try:
            return as_label(told)
        except TraceError as error:
            raise TraceError(f"{_call(arguments)} gave {reprlib.repr(told)}: {error}") from error


def finite_reward(reward: Any) -> float:
    """Return a reward as the float that traces hold."""
    try:
        number = float(reward)
    except (TypeError, ValueError):
        raise TraceError(f"the reward is {reward!r}; rewards must be numbers") from None
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


def _value(symbol: Any, space: gym.Space[Any] | None) -> Any:
    """Undo `as_symbol` for a value of this space."""
    if isinstance(space, gym.spaces.Dict):
        return {key: _value(one, space[key]) for key, one in symbol}
    if isinstance(space, gym.spaces.Tuple):
        return tuple(_value(one, part) for one, part in zip(symbol, space, strict=True))
    if isinstance(symbol, tuple) and space is not None:
        return np.array(symbol, space.dtype)
    return symbol


def takes_step(label_of: Callable[..., Any]) -> bool:
    """Whether a labelling function reads (observation, action, next observation)."""
    if not callable(label_of):
        raise OptionError(
            f"label_of is a {type(label_of).__name__}: give a function of (observation) "
            "or of (observation, action, next_observation)"
        )
    try:
        parameters = inspect.signature(label_of).parameters.values()
    except ValueError:  # some built-in functions tell no signature
        return False
    # Parameters with defaults are often constants bound to a lambda, so they do not count.
    required = [
        parameter
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        and parameter.default is parameter.empty
    ]
    if len(required) not in (0, 1, 3):
        raise OptionError(
            f"label_of has {len(required)} parameters: "
            "give it (observation) or (observation, action, next_observation)"
        )
    return len(required) == 3


def _attribute(env: AnyEnv, name: str) -> Any:
    if isinstance(env, gym.vector.VectorEnv):
        return getattr(env.unwrapped, name, None)
    try:
        return env.get_wrapper_attr(name)
    except AttributeError:
        return None
