"""Collecting: a Gymnasium environment and a policy → `TraceSet`."""

import copy
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium as gym

from resolvent.errors import OptionError, TraceError, locating
from resolvent.traces.columns import CodedEpisodes, ColumnCoder
from resolvent.traces.symbols import INFO_KEYS, NO_EVENT, Label, Symbol, as_label, as_symbol
from resolvent.traces.trace_set import TraceSet

_METHODS = ("get_events", "labels")


def collect(
    env: gym.Env[Any, Any],
    *,
    episodes: int,
    seed: int | None = None,
    policy: Callable[[Any], Any] | None = None,
    label_of: Callable[..., Any] | None = None,
    max_steps: int | None = None,
    progress: Callable[[float], object] | None = None,
) -> TraceSet:
    """Play episodes in an environment and return what was seen, done and paid.

    `policy` turns an observation into an action; without one, actions are drawn
    at random. The same seed gives the same traces if environment and policy are
    deterministic: the seed goes to the first reset and to the random policy.

    Labels are those of `label_of(observation)` if given, or of
    `label_of(observation, action, next_observation)` if it has three parameters;
    otherwise those in `info["labels"]`, `info["label"]` or `info["events"]`, or
    what the environment's `get_events()` or `labels()` returns. A reset that
    tells no label counts as no event.

    An environment with `observation_names` or `action_names` has its integers
    written as these names: that is how the house's traces say "corridor".

    Give `max_steps` for an environment that may never end. `progress` is called
    with the share of episodes done, after each.

    >>> from resolvent.environments import House
    >>> traces = collect(House(), episodes=20, seed=0)
    >>> len(traces), traces[0].observations[0], list(traces.labels)[0]
    (20, 'corridor', frozenset())
    """
    if not isinstance(env, gym.Env):
        raise OptionError(
            f"collect needs one gymnasium.Env, not a {type(env).__name__}: use gym.make"
        )
    if episodes < 1:
        raise OptionError(f"episodes={episodes}: collect at least one")
    if max_steps is not None and max_steps < 1:
        raise OptionError(f"max_steps={max_steps}: allow at least one step, or None for no limit")
    choose = policy or _random_policy(env, seed)
    labelled = _Labels(env, label_of)
    names = _Names(env, "observation"), _Names(env, "action")
    coder, played = ColumnCoder(), CodedEpisodes()
    for number in range(episodes):
        with locating(f"episode {number}"):
            first_seed = seed if number == 0 else None
            lists, ends = _episode(env, first_seed, choose, labelled, names, max_steps)
            played.add(*coder.code(*lists), terminated=ends[0], truncated=ends[1])
        if progress is not None:
            progress((number + 1) / episodes)
    return played.trace_set(coder.values())


_Lists = tuple[list[Symbol], list[Label], list[Symbol], list[float]]


def _episode(
    env: gym.Env[Any, Any],
    seed: int | None,
    choose: Callable[[Any], Any],
    labelled: "_Labels",
    names: "tuple[_Names, _Names]",
    max_steps: int | None,
) -> tuple[_Lists, tuple[bool, bool]]:
    observation_named, action_named = names
    observation, info = env.reset(seed=seed)
    with locating("reset"):
        observations = [observation_named(observation)]
        labels = [labelled.at_reset(observation, info)]
    actions: list[Symbol] = []
    rewards: list[float] = []
    terminated = truncated = False
    while not (terminated or truncated):
        action = choose(observation)
        following, reward, terminated, truncated, info = env.step(action)
        with locating(f"step {len(actions)}"):
            actions.append(action_named(action))
            rewards.append(_finite(reward))
            observations.append(observation_named(following))
            labels.append(labelled.after_step(observation, action, following, info))
        observation = following
        truncated = truncated or (len(actions) == max_steps and not terminated)
    return (observations, labels, actions, rewards), (bool(terminated), bool(truncated))


def _random_policy(env: gym.Env[Any, Any], seed: int | None) -> Callable[[Any], Any]:
    # A copy, so that the environment's own space draws as if nobody had collected.
    space = copy.deepcopy(env.action_space)
    space.seed(seed)
    return lambda observation: space.sample()


def _finite(reward: Any) -> float:
    try:
        number = float(reward)
    except (TypeError, ValueError):
        raise TraceError(f"the reward is {reward!r}; rewards must be numbers") from None
    if not math.isfinite(number):
        raise TraceError(f"the reward is {number}; rewards must be finite")
    return number + 0.0  # one zero, not two


class _Names:
    """Turns an observation or action into its symbol, by name where there are names."""

    def __init__(self, env: gym.Env[Any, Any], kind: str) -> None:
        self._kind = kind
        self._names: Sequence[str] | None = _attribute(env, f"{kind}_names")

    def __call__(self, value: Any) -> Symbol:
        symbol = as_symbol(value)
        if self._names is None or type(symbol) is not int:
            return symbol
        if not 0 <= symbol < len(self._names):
            raise TraceError(
                f"{self._kind} {symbol} has no name: the environment's "
                f"{self._kind}_names are {len(self._names)}"
            )
        return self._names[symbol]


class _Labels:
    """Finds the label of each step, wherever the environment or the caller gives it."""

    def __init__(self, env: gym.Env[Any, Any], label_of: Callable[..., Any] | None) -> None:
        self._label_of = label_of
        self._of_step = label_of is not None and _takes_step(label_of)
        methods = (_attribute(env, name) for name in _METHODS)
        self._method = next((method for method in methods if callable(method)), None)

    def at_reset(self, observation: Any, info: Mapping[str, Any]) -> Label:
        if self._label_of is None:
            found = self._told(info)
            return NO_EVENT if found is None else found
        return NO_EVENT if self._of_step else as_label(self._label_of(observation))

    def after_step(
        self, observation: Any, action: Any, following: Any, info: Mapping[str, Any]
    ) -> Label:
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


def _takes_step(label_of: Callable[..., Any]) -> bool:
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
