"""Check what a Gymnasium environment returns, and translate it into symbols and labels of traces.

Input: an environment and its values. Output: symbols, labels and checked rewards.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias, TypeVar, runtime_checkable

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit

from resolvent._util.validation import quoted
from resolvent.errors import OptionError, ResolventError, TraceError
from resolvent.preprocess.labeling import LabelingFunction, as_labeling_function
from resolvent.preprocess.transform import Preprocessor
from resolvent.traces.schema import ACTION, OBSERVATION
from resolvent.traces.symbols import (
    INFO_KEYS,
    NO_EVENT,
    Label,
    LabelFunction,
    Symbol,
    as_label,
    as_symbol,
    checked_call,
    error_text,
)
from resolvent.traces.trace_set import TraceSet

AnyEnv: TypeAlias = gym.Env[Any, Any] | gym.vector.VectorEnv[Any, Any, Any]
Info: TypeAlias = Mapping[str, Any]

_Wrapper = TypeVar("_Wrapper", bound=gym.Wrapper[Any, Any, Any, Any] | gym.vector.VectorWrapper)

_LABEL_METHODS: Final = ("get_events", "labels")


class SymbolEncoder:
    """Translate observations or actions into symbols, and back.

    A symbol is the name that the environment gives to a number, or the value that `observation_fn`
    returns. `then` translates it further.
    """

    def __init__(
        self,
        env: AnyEnv | None,
        column: str,
        observation_fn: Callable[[Any], Any] | None = None,
        then: Callable[[Symbol], Symbol] | None = None,
    ) -> None:
        self._column, self._observation_fn, self._then = column, observation_fn, then
        self._space: gym.Space[Any] | None = getattr(env, f"{column}_space", None)
        self._names: Sequence[Symbol] | None = None
        if observation_fn is None:
            self._names = env_attribute(env, f"{column}_names")
        elif not callable(observation_fn):
            name = type(observation_fn).__name__
            raise OptionError(f"observation_fn is a {name}: give a function of an observation")

    def __call__(self, value: Any) -> Symbol:
        """Return the symbol of a value of the environment."""
        if self._observation_fn is None:
            symbol = as_symbol(value)
        else:
            symbol = checked_call("observation_fn", self._observation_fn, (value,), as_symbol)
        if self._names is not None and type(symbol) is int:
            if not 0 <= symbol < len(self._names):
                raise TraceError(
                    f"{self._column} {symbol} has no name: the environment's "
                    f"{self._column}_names are {len(self._names)}"
                )
            symbol = self._names[symbol]
        return symbol if self._then is None else self._then(symbol)

    def of_space(self, space: gym.Space[Any]) -> Sequence[Symbol] | None:
        """Return the symbols of all values of a space, or None if they cannot be listed."""
        if not isinstance(space, gym.spaces.Discrete):
            return None
        values = range(int(space.start), int(space.start + space.n))
        if self._observation_fn is not None or self._then is not None:
            return [self(value) for value in values]
        return values if self._names is None else self._names[values.start : values.stop]

    @property
    def names(self) -> tuple[Symbol, ...] | None:
        """The names of the numbers from 0 on, or None if the environment has no names."""
        return tuple(map(as_symbol, self._names)) if isinstance(self._names, Sequence) else None

    def value(self, symbol: Symbol) -> Any:
        """Return the environment's value of a symbol."""
        if self._names is not None and symbol in self._names:
            return tuple(self._names).index(symbol)
        return _value(symbol, self._space)


class LabelSource:
    """Find the label of each step: in infos, by a method of the environment, or by `labeling_fn`.

    `are_made` says that a function makes the labels, and `of_step` that they depend on more than
    the next observation.
    """

    def __init__(
        self, env: gym.Env[Any, Any] | None, labeling_fn: Callable[..., Any] | None
    ) -> None:
        method = None if env is None else label_method(env)
        self._method = None if method is None else env_attribute(env, method)
        if labeling_fn is reported_label and self._method is not None:
            labeling_fn = None
        self._function: LabelFunction | None = None
        if labeling_fn is not None:  # errors of `LabelsOfSymbols` need no call in front
            is_users = not isinstance(labeling_fn, LabelsOfSymbols)
            self._function = LabelFunction(labeling_fn, checked=is_users)
        self.are_made = self._function is not None
        self.of_step = self._function is not None and self._function.of_step

    def at_reset(self, observation: Any, info: Info) -> Label:
        """Return the label of an episode's first observation; no event if none is reported."""
        if self._function is not None:
            return self._function.at_reset(observation, info)
        label = self._reported(info)
        return NO_EVENT if label is None else label

    def after_step(
        self, observation: Any, action: Any, reward: Any, next_observation: Any, info: Info
    ) -> Label:
        """Return the label of the next observation."""
        if self._function is not None:
            return self._function.after_step(observation, action, reward, next_observation, info)
        label = self._reported(info)
        if label is None:
            raise TraceError(
                'the environment gives no label: pass labels="auto" (--labels auto) to have '
                'events discovered, or "observation", "action" or "action+observation" to make '
                "them of observations and actions, or labeling_fn=, or put a set of strings into "
                'info["labels"] at every step (the empty set for no event)'
            )
        return label

    def _reported(self, info: Info) -> Label | None:
        for key in INFO_KEYS:
            if key in info:
                return as_label(info[key])
        return None if self._method is None else as_label(self._method())


def reported_label(
    observation: Any, action: Any, reward: Any, next_observation: Any, info: Info
) -> Any:
    """Return the label in an info, or None: a `labeling_fn` for worlds without labels."""
    return next((info[key] for key in INFO_KEYS if key in info), None)


def reads_infos(labeling_fn: Callable[..., Any] | None) -> bool:
    """Return whether labels come from the infos of an environment, which is the default."""
    return labeling_fn is None or labeling_fn is reported_label


@dataclass(frozen=True)
class LabelsOfSymbols:
    """A `labeling_fn` that makes labels of observations and actions, by a `LabelingFunction`."""

    labeling: LabelingFunction
    observations: Callable[[Any], Symbol]
    actions: Callable[[Any], Symbol]

    def __call__(
        self, observation: Any, action: Any, reward: Any, next_observation: Any, info: Info
    ) -> Label:
        """Return the label after a step, or after a reset, which has no action."""
        symbol = self.observations(next_observation)
        if action is None:
            return self.labeling.at_reset(symbol)
        return self.labeling.after_step(self.actions(action), symbol)


class LivePreprocessor:
    """Translate an environment's values into the symbols and labels that machines read.

    `labeling_fn` makes labels; it is None if the environment reports them. The argument `labels`
    says how they are made if the machines do not.
    """

    def __init__(
        self,
        env: AnyEnv | None,
        preprocessor: Preprocessor,
        labels: str | LabelingFunction | None = None,
        labeling_fn: Callable[..., Any] | None = None,
        observation_fn: Callable[[Any], Any] | None = None,
    ) -> None:
        own, discretizer = preprocessor.labeling, preprocessor.discretize
        labeling = own if labels is None else as_labeling_function(labels, labeling_fn)
        reads = f"the machines make labels by themselves, of each {own.reads}"
        if not own.is_given and labeling != own:
            raise OptionError(f"{reads}: leave out labels")
        if labeling_fn is not None and not labeling.is_given:
            raise OptionError(f"{reads}: leave out labeling_fn")
        then = {} if discretizer is None else {discretizer.of: discretizer}
        self.observations = SymbolEncoder(env, OBSERVATION, observation_fn, then.get(OBSERVATION))
        self.actions = SymbolEncoder(env, ACTION, then=then.get(ACTION))
        self.labeling_fn = labeling_fn
        if not labeling.is_given:
            self.labeling_fn = LabelsOfSymbols(labeling, self.observations, self.actions)

    def label(self, action: Any, observation: Any, reported: Any = None) -> Any:
        """Return the label after an action (None at a reset); `reported` if it is not made."""
        if self.labeling_fn is None:
            return reported
        return self.labeling_fn(None, action, None, observation, {})


def label_method(env: gym.Env[Any, Any]) -> str | None:
    """Return the name of the environment's method that reports its label, if it has one."""
    return next((name for name in _LABEL_METHODS if callable(env_attribute(env, name))), None)


def env_attribute(env: Any, name: str) -> Any:
    """Return an attribute of an environment or of one inside it; None if there is none."""
    if isinstance(env, gym.vector.VectorEnv):
        return getattr(env.unwrapped, name, None)
    try:
        return env.get_wrapper_attr(name)
    except AttributeError:
        return None


def _value(symbol: Any, space: gym.Space[Any] | None) -> Any:
    """Undo `as_symbol` for a value of this space."""
    if isinstance(space, gym.spaces.Dict):
        return {key: _value(part, space[key]) for key, part in symbol}
    if isinstance(space, gym.spaces.Tuple):
        return tuple(_value(part, inner) for part, inner in zip(symbol, space, strict=True))
    if isinstance(symbol, tuple) and space is not None:
        return np.array(symbol, space.dtype)
    return symbol


def info_column(info: Info, name: str) -> Symbol:
    """Return the value of a trace column from an info."""
    if name not in info:
        keys = ", ".join(f'info["{key}"]' for key in info) or "nothing"
        raise TraceError(
            f'the environment gives no info["{name}"] after this step, but {keys}: '
            f"put it there at every step, or do not name it in columns"
        )
    try:
        return as_symbol(info[name])
    except TraceError as error:
        raise TraceError(f'info["{name}"]: {error}') from error


def wrapper_inside(env: AnyEnv, kind: type[_Wrapper]) -> _Wrapper | None:
    """Return the outermost wrapper of a kind around or inside an environment, None without one."""
    while isinstance(env, gym.Wrapper | gym.vector.VectorWrapper) and not isinstance(env, kind):
        env = env.env
    return env if isinstance(env, kind) else None


def check_env(env: Any, kind: type, caller: str, otherwise: str = "gym.make") -> None:
    """Raise `OptionError` if a value is no environment of a kind, saying what to use otherwise."""
    if not isinstance(env, kind):
        name = "gymnasium.Env" if kind is gym.Env else "gymnasium.vector.VectorEnv"
        raise OptionError(f"{caller} needs a {name}, not a {type(env).__name__}: use {otherwise}")


@contextmanager
def env_errors(method: str) -> Iterator[None]:
    """Turn any exception of an environment's method into a one-line `TraceError`."""
    try:
        yield
    except ResolventError:
        raise
    except Exception as error:
        raise TraceError(f"the environment's {method}() raised {error_text(error)}") from error


class GuardedEnv(gym.Wrapper[Any, Any, Any, Any]):
    """Turns an environment's mistakes into trace errors, which say where they happened."""

    def reset(self, **options: Any) -> Any:
        """Begin an episode."""
        with env_errors("reset"):
            return checked_reset(self.env.reset(**options))

    def step(self, action: Any) -> Any:
        """Take a step."""
        with env_errors("step"):
            return checked_step(self.env.step(action))


def checked_reset(returned: Any) -> tuple[Any, dict[str, Any]]:
    """Return the result of `reset` if it is an observation and an info."""
    _check_return("reset", "(observation, info)", returned, 2)
    return returned  # type: ignore[no-any-return]


def checked_step(returned: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
    """Return the result of `step` if it has five parts, an info last."""
    _check_return("step", "(observation, reward, terminated, truncated, info)", returned, 5)
    return returned  # type: ignore[no-any-return]


def checked_flag(flag: Any, name: str) -> bool:
    """Return `terminated` or `truncated` as a bool."""
    try:
        return bool(flag)
    except Exception as error:  # an array of several, or an object without a truth value
        raise TraceError(
            f"the environment's step() gives {name}={quoted(flag)}: give True or False"
        ) from error


def check_info(info: Any) -> None:
    """Raise `TraceError` for an info that is no mapping."""
    if not isinstance(info, Mapping):
        raise TraceError(
            f"the info is {quoted(info)}: it has to be a dict, {{}} where there is nothing"
        )


def _check_return(method: str, parts: str, returned: Any, count: int) -> None:
    if not isinstance(returned, tuple) or len(returned) != count:
        raise TraceError(
            f"the environment's {method}() has to return {parts}, not {quoted(returned)}"
        )
    check_info(returned[-1])


@runtime_checkable
class TabularEnv(Protocol):
    """An environment whose mechanics are tables, with a fast method to play whole episodes."""

    mechanics: Any
    """The tables: `next_state`, `reward` and `ends` by state and action; `observation_of` and
    `label_of` by state; `observations`, `labels`, `actions`, `starts`, and `draws`, the number of
    random numbers of a step."""

    rolls_out: bool
    """Whether `rollouts` gives the same as `step`; False for subclasses with their own."""

    state: int
    """The true state."""

    rollouts: Callable[..., TraceSet]
    """Plays episodes: see `World.rollouts`."""


TRANSPARENT: Final = (OrderEnforcing, PassiveEnvChecker, TimeLimit)  # observations and rewards stay


def tabular_env(env: gym.Env[Any, Any]) -> TabularEnv | None:
    """Return the tabular environment inside, if no wrapper changes observations."""
    while type(env) in TRANSPARENT:
        env = env.env  # type: ignore[attr-defined]
    return env if isinstance(env, TabularEnv) and env.rolls_out else None


def time_limit(env: gym.Env[Any, Any]) -> int | None:
    """Return the lowest limit that Gymnasium's `TimeLimit` sets around an environment."""
    limits = []
    while isinstance(env, gym.Wrapper):
        if isinstance(env, TimeLimit):
            limits.append(env._max_episode_steps)
        env = env.env
    return min(limits, default=None)
