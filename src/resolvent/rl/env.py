"""Translate between a Gymnasium environment and the symbols and labels of traces.

Input: an environment and its values. Output: symbols, labels and checked rewards.
"""

import math
import reprlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit

from resolvent._util.validation import shown
from resolvent.errors import OptionError, ResolventError, TraceError
from resolvent.preprocess.labeling import LabelingFunction, as_labeling_function
from resolvent.preprocess.transform import Preprocessor
from resolvent.traces.label_function import LabelFunction, raised_text
from resolvent.traces.symbols import INFO_KEYS, NO_EVENT, Label, Symbol, as_label, as_symbol
from resolvent.traces.trace_set import TraceSet

AnyEnv: TypeAlias = gym.Env[Any, Any] | gym.vector.VectorEnv[Any, Any, Any]
Info: TypeAlias = Mapping[str, Any]

_LABEL_METHODS: Final = ("get_events", "labels")

_RETURNS: Final = {
    "reset": "(observation, info)",
    "step": "(observation, reward, terminated, truncated, info)",
}


class SymbolEncoder:
    """Translate observations or actions into symbols, and back.

    A symbol is the name that the environment gives to a number, or the value that `name_of`
    returns. `then` translates it further.
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
            self._names = env_attribute(env, f"{kind}_names")
        elif not callable(name_of):
            raise OptionError(
                f"name_of is a {type(name_of).__name__}: give a function of an observation"
            )

    def __call__(self, value: Any) -> Symbol:
        """Return the symbol of a value of the environment."""
        symbol = self._symbol(value)
        return symbol if self._then is None else self._then(symbol)

    def _symbol(self, value: Any) -> Symbol:
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
            raise TraceError(f"{call} {raised_text(error)}") from error
        try:
            return as_symbol(name)
        except TraceError as error:
            raise TraceError(f"{call} gave {reprlib.repr(name)}: {error}") from error

    def of_space(self, space: gym.Space[Any]) -> Sequence[Symbol] | None:
        """Return the symbols of all values of a space, or None if they cannot be listed."""
        if not isinstance(space, gym.spaces.Discrete):
            return None
        values = range(int(space.start), int(space.start + space.n))
        if self._name_of is not None or self._then is not None:
            return [self(value) for value in values]
        return values if self._names is None else self._names[values.start : values.stop]

    @property
    def listed(self) -> tuple[Symbol, ...] | None:
        """The names of the numbers from 0 on, or None if the environment has no names."""
        return tuple(map(as_symbol, self._names)) if isinstance(self._names, Sequence) else None

    def value(self, symbol: Symbol) -> Any:
        """Return the environment's value of a symbol."""
        if self._names is not None and symbol in self._names:
            return tuple(self._names).index(symbol)
        return _value(symbol, self._space)


class LabelSource:
    """Find the label of each step: in infos, by a method of the environment, or by `label_of`.

    `reads` names the parameters of `label_of`; it is empty without one.
    """

    def __init__(self, env: gym.Env[Any, Any] | None, label_of: Callable[..., Any] | None) -> None:
        method = None if env is None else label_method(env)
        self._method = None if method is None else env_attribute(env, method)
        if label_of is reported_label and self._method is not None:
            label_of = None
        self._function: LabelFunction | None = None
        if label_of is not None:  # errors of `MadeOf` are ours, and say enough
            self._function = LabelFunction(
                label_of, checked=not isinstance(label_of, LabelsOfSymbols)
            )
        self.reads = () if self._function is None else self._function.reads

    @property
    def are_made(self) -> bool:
        """Whether a function makes the labels, not the environment."""
        return self._function is not None

    @property
    def of_step(self) -> bool:
        """Whether labels depend on more than the next observation."""
        return len(self.reads) > 1

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
                'events found, or "observation", "action" or "action+observation" to make '
                "them of what is seen and done, or label_of=, or put a set of strings into "
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
    """Return the label in an info, or None: a `label_of` for worlds without labels."""
    return next((info[key] for key in INFO_KEYS if key in info), None)


class LabelsOfSymbols:
    """Make labels of observations and actions, as a `LabelingFunction` says; a `label_of`."""

    def __init__(
        self,
        labelling: LabelingFunction,
        observations: Callable[[Any], Symbol],
        actions: Callable[[Any], Symbol],
    ) -> None:
        self._labelling = labelling
        self._observations, self._actions = observations, actions

    def __call__(
        self, observation: Any, action: Any, reward: Any, next_observation: Any, info: Info
    ) -> Label:
        """Return the label after a step, or after a reset, which has no action."""
        if action is None:
            return self._labelling.at_reset(self._observations(next_observation))
        return self._labelling.after_step(
            self._actions(action), self._observations(next_observation)
        )


class LivePreprocessor:
    """Translate an environment's values into the symbols and labels that machines read.

    `observations` and `actions` translate values. `label_of` makes labels; it is None if the
    environment reports them. `labels` says how labels are made, if the machines do not.

    >>> from resolvent.worlds import House
    >>> live = LivePreprocessor(House(), Preprocessor(LabelingFunction("observation")))
    >>> live.observations(0), sorted(live.label_of(None, None, None, 0, {}))
    ('corridor', ['corridor'])
    """

    def __init__(
        self,
        env: AnyEnv,
        senses: Preprocessor,
        labels: str | LabelingFunction | None = None,
        label_of: Callable[..., Any] | None = None,
        name_of: Callable[[Any], Any] | None = None,
    ) -> None:
        labelling = senses.labelling if labels is None else as_labeling_function(labels, label_of)
        if not senses.labelling.is_given and labelling != senses.labelling:
            raise OptionError(
                f"the machines make labels by themselves, of each {senses.labelling.reads}: "
                f"leave out labels"
            )
        if label_of is not None and not labelling.is_given:
            raise OptionError(
                f"the machines make labels by themselves, of each {labelling.reads}: "
                f"leave out label_of"
            )
        then = {} if senses.discretise is None else {senses.discretise.of: senses.discretise}
        self.observations = SymbolEncoder(env, "observation", name_of, then.get("observation"))
        self.actions = SymbolEncoder(env, "action", then=then.get("action"))
        self.label_of = label_of
        if not labelling.is_given:
            self.label_of = LabelsOfSymbols(labelling, self.observations, self.actions)


def finite_reward(reward: Any) -> float:
    """Return a reward as a finite float."""
    try:
        number = float(reward)
    except (TypeError, ValueError, OverflowError):
        raise TraceError(f"the reward is {shown(reward)}; rewards must be numbers") from None
    if not math.isfinite(number):
        raise TraceError(f"the reward is {number}; rewards must be finite")
    return number + 0.0  # one zero, not two


def info_column(info: Info, name: str) -> Symbol:
    """Return the value of a trace column from an info.

    >>> info_column({"labels": (), "cost": np.int64(3)}, "cost")
    3
    """
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


@contextmanager
def env_errors(method: str) -> Iterator[None]:
    """Turn any exception of an environment's method into a one-line `TraceError`."""
    try:
        yield
    except ResolventError:
        raise
    except Exception as error:
        raised = f"{type(error).__name__}: {error}".removesuffix(": ")
        raise TraceError(f"the environment's {method}() raised {raised}") from error


def checked_reset(returned: Any) -> tuple[Any, dict[str, Any]]:
    """Return the result of `reset` if it is an observation and an info.

    >>> checked_reset(3)
    Traceback (most recent call last):
    resolvent.errors.TraceError: the environment's reset() has to return (observation, info), not 3
    """
    observation, info = _checked_parts(returned, "reset", 2)
    return observation, info


def checked_step(returned: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
    """Return the result of `step` if it has five parts, an info last."""
    observation, reward, terminated, truncated, info = _checked_parts(returned, "step", 5)
    return observation, reward, terminated, truncated, info


def checked_flag(flag: Any, name: str) -> bool:
    """Return `terminated` or `truncated` as a bool.

    >>> checked_flag(1, "terminated")
    True
    """
    try:
        return bool(flag)
    except Exception as error:  # an array of several, or an object without a truth value
        raise TraceError(
            f"the environment's step() gives {name}={shown(flag)}: give True or False"
        ) from error


def check_info(info: Any) -> None:
    """Raise `TraceError` for an info that is no mapping.

    >>> check_info(None)
    Traceback (most recent call last):
    resolvent.errors.TraceError: the info is None: it has to be a dict, {} where there is nothing
    """
    if not isinstance(info, Mapping):
        raise TraceError(
            f"the info is {shown(info)}: it has to be a dict, {{}} where there is nothing"
        )


def _checked_parts(returned: Any, method: str, count: int) -> tuple[Any, ...]:
    if not isinstance(returned, tuple) or len(returned) != count:
        raise TraceError(
            f"the environment's {method}() has to return {_RETURNS[method]}, not {shown(returned)}"
        )
    check_info(returned[-1])
    return returned


def _value(symbol: Any, space: gym.Space[Any] | None) -> Any:
    """Undo `as_symbol` for a value of this space."""
    if isinstance(space, gym.spaces.Dict):
        return {key: _value(part, space[key]) for key, part in symbol}
    if isinstance(space, gym.spaces.Tuple):
        return tuple(_value(part, inner) for part, inner in zip(symbol, space, strict=True))
    if isinstance(symbol, tuple) and space is not None:
        return np.array(symbol, space.dtype)
    return symbol


@runtime_checkable
class TabularEnv(Protocol):
    """An environment whose mechanics are tables, with a fast method to play whole episodes."""

    mechanics: Any
    """The tables: `following`, `reward` and `ends` by state and action; `observation_of` and
    `label_of` by state; `observations`, `labels`, `actions`, `starts`, and `draws`, the number of
    random numbers of a step."""

    @property
    def rolls_out(self) -> bool:
        """Whether `rollouts` gives the same as `step`; False for subclasses with their own."""

    @property
    def state(self) -> int:
        """The true state."""

    def rollouts(
        self,
        episodes: int,
        seed: int | None,
        actions: np.random.Generator,
        max_steps: int | None,
        time_limit: int | None,
        progress: Callable[[float], object] | None,
    ) -> TraceSet:
        """Return the traces that resets and steps with these random numbers would give.

        An episode that terminates in step `time_limit` counts as truncated, too, as in Gymnasium;
        in step `max_steps` it does not.
        """


def tabular_env(env: gym.Env[Any, Any]) -> TabularEnv | None:
    """Return the tabular environment inside, if no wrapper changes observations."""
    while type(env) in (OrderEnforcing, PassiveEnvChecker, TimeLimit):
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
