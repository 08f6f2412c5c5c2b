"""A live environment → the symbols and labels that traces hold.

Whoever steps an environment (collecting, wrappers, plans) asks here what its
values are called and which label holds, so that all mean the same.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from resolvent.errors import OptionError, TraceError
from resolvent.traces.symbols import INFO_KEYS, NO_EVENT, Label, Symbol, as_label, as_symbol

_METHODS = ("get_events", "labels")


class Names:
    """Turns an observation or action into its symbol, by name where there are names, and back."""

    def __init__(self, env: gym.Env[Any, Any], kind: str) -> None:
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

    def value(self, symbol: Symbol) -> Any:
        """Return the environment's value that a symbol stands for."""
        if self._names is not None and symbol in self._names:
            return tuple(self._names).index(symbol)
        return _value(symbol, self._space)


class Labels:
    """Finds the label of each step, wherever the environment or the caller gives it."""

    def __init__(self, env: gym.Env[Any, Any], label_of: Callable[..., Any] | None) -> None:
        self._label_of = label_of
        self._of_step = label_of is not None and takes_step(label_of)
        methods = (_attribute(env, name) for name in _METHODS)
        self._method = next((method for method in methods if callable(method)), None)

    def at_reset(self, observation: Any, info: Mapping[str, Any]) -> Label:
        """Return the label of an episode's first observation; no event if none is told."""
        if self._label_of is None:
            found = self._told(info)
            return NO_EVENT if found is None else found
        return NO_EVENT if self._of_step else as_label(self._label_of(observation))

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
        if self._of_step:
            return as_label(self._label_of(observation, action, following))
        return as_label(self._label_of(following))

    def _told(self, info: Mapping[str, Any]) -> Label | None:
        for key in INFO_KEYS:
            if key in info:
                return as_label(info[key])
        return None if self._method is None else as_label(self._method())


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


def _attribute(env: gym.Env[Any, Any], name: str) -> Any:
    try:
        return env.get_wrapper_attr(name)
    except AttributeError:
        return None
