"""Collecting: a Gymnasium environment and a policy → `TraceSet`."""

import copy
import math
from collections.abc import Callable
from typing import Any

import gymnasium as gym

from resolvent.errors import OptionError, TraceError, locating
from resolvent.traces.columns import CodedEpisodes, ColumnCoder
from resolvent.traces.live import Labels, Names
from resolvent.traces.rolling import rolling_world, time_limit
from resolvent.traces.symbols import Label, Symbol
from resolvent.traces.trace_set import TraceSet


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
    if policy is None and label_of is None and (world := rolling_world(env)) is not None:
        draws = _seeded_actions(env, seed).np_random
        return world.rollouts(episodes, seed, draws, max_steps, time_limit(env), progress)
    choose = policy or _random_policy(env, seed)
    labelled = Labels(env, label_of)
    names = Names(env, "observation"), Names(env, "action")
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
    labelled: Labels,
    names: tuple[Names, Names],
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
    space = _seeded_actions(env, seed)
    return lambda observation: space.sample()


def _seeded_actions(env: gym.Env[Any, Any], seed: int | None) -> gym.Space[Any]:
    # A copy, so that the environment's own space draws as if nobody had collected.
    space = copy.deepcopy(env.action_space)
    space.seed(seed)
    return space


def _finite(reward: Any) -> float:
    try:
        number = float(reward)
    except (TypeError, ValueError):
        raise TraceError(f"the reward is {reward!r}; rewards must be numbers") from None
    if not math.isfinite(number):
        raise TraceError(f"the reward is {number}; rewards must be finite")
    return number + 0.0  # one zero, not two
