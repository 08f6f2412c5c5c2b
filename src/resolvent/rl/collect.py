"""Collect traces: a Gymnasium environment and a policy → `TraceSet`.

On workers, episodes are played in shards. Each shard has its own environment and a seed derived
from its number, so traces do not depend on the workers.
"""

import copy
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from dataclasses import dataclass, replace
from typing import Any, Final

import gymnasium as gym
import numpy as np

from resolvent._util.parallel import Workers, get_executor
from resolvent._util.ray import import_ray
from resolvent._util.validation import check_arguments
from resolvent.errors import OptionError
from resolvent.preprocess.labeling import LabelingFunction, as_labeling_function
from resolvent.rl.env import AnyEnv, reported_label
from resolvent.rl.make_env import NamedEnvironment, check_maker
from resolvent.rl.rollout import LabelPolicy, RolloutOptions, record_episodes
from resolvent.rl.vector_env import record_vector_episodes
from resolvent.traces.schema import check_column_names
from resolvent.traces.trace_set import TraceSet

EPISODES: Final = 16
"""Number of episodes of a shard. Another number would change the traces of every seed."""

_SEEDS: Final = 2**32
"""Number of seeds: some environments take no larger ones."""


def collect(
    env: AnyEnv | str | Callable[[], AnyEnv],
    *,
    episodes: int,
    seed: int | None = None,
    policy: Callable[[Any], Any] | None = None,
    labels: str | LabelingFunction = "given",
    labeling_fn: Callable[..., Any] | None = None,
    observation_fn: Callable[[Any], Any] | None = None,
    columns: Iterable[str] = (),
    max_steps: int | None = None,
    inner: bool | None = None,
    on: str | Workers | None = None,
    progress: Callable[[float], object] | None = None,
) -> TraceSet:
    """Play episodes in an environment and return their traces.

    `env` is an environment, its name, such as "resolvent/House-v0" or "module:Class", or a function
    that makes it. `policy` maps an observation to an action; without one, actions are random. The
    same seed gives the same traces if environment and policy are deterministic: the first reset
    gets the seed, and the random policy draws from another seed that follows from it. A policy with
    methods `begin(label)` and `read(label)`, such as that of an experiment, receives the label
    of every reset and every step.

    Labels are those in `info["labels"]`, `info["label"]` or `info["events"]`, or the return of
    the environment's `get_events()` or `labels()`; a reset without a label counts as no event. For
    an environment without labels, `labels="observation"`, `"action"` or `"action+observation"`
    makes them of observations and actions, and `labels="auto"` keeps those that are there, for
    `infer(traces, labels="auto")`. Or `labeling_fn` makes them: a function of `(observation)`; of
    `(observation, action, next_observation)`, where a reset counts as no event; or of
    `(observation, action, reward, next_observation, info)`, with None for the step at a reset.

    Traces hold an environment's `observation_names` and `action_names` instead of its integers, as
    "corridor" in the house's traces, or the names that `observation_fn(observation)` returns.
    `columns=["cost"]` also records `info["cost"]` after every step.

    With `inner`, an environment inside `AugmentObservation` is recorded without the wrapper's
    additions, and with the labels that the wrapper finds: such traces can be joined with others
    of that world. A plan's `policy_in` implies it.

    Give `max_steps` for an environment that may never end. `progress` is called with the share
    of finished episodes.

    A vector environment may have any autoreset mode; a policy then maps a batch of observations to
    a batch of actions. Trace k is episode k // n of its environment k % n, of n environments.

    `on="processes"` or `"ray"` (or `"threads"`, for environments that wait for something else)
    plays shards of 16 episodes side by side, each in an environment of its own. The traces are the
    same for any number of workers, but differ from those without `on`.

    >>> from resolvent.worlds import House
    >>> traces = collect(House(), episodes=20, seed=0)
    >>> len(traces), traces[0].observations[0], list(traces.labels)[0]
    (20, 'corridor', frozenset())
    """
    check_arguments(collect, locals(), leaving=["env", "columns"])
    if episodes < 1:
        raise OptionError(f"episodes={episodes}: collect at least one")
    if max_steps is not None and max_steps < 1:
        raise OptionError(f"max_steps={max_steps}: allow at least one step, or None for no limit")
    column_names = check_column_names(columns)
    labeling = LabelingFunction()
    if labels == "auto":
        labeling_fn = reported_label if labeling_fn is None else labeling_fn
    else:
        labeling = as_labeling_function(labels, labeling_fn, allow_auto=True)
    inner = getattr(policy, "acts_inside", False) if inner is None else inner
    options = RolloutOptions(
        policy, labeling_fn, labeling, observation_fn, column_names, max_steps, inner
    )
    if on is not None:
        return _collect_on_workers(env, options, episodes, seed, on, progress)
    with _opened(env) as opened:
        return _collect_here(opened, options, episodes, seed, progress)


@contextmanager
def _opened(env: AnyEnv | str | Callable[[], AnyEnv]) -> Iterator[AnyEnv]:
    """Yield an environment, or a new one by its name or function, which is closed afterwards."""
    if isinstance(env, gym.Env | gym.vector.VectorEnv):
        yield env
        return
    new_env = _maker(env)()
    if not isinstance(new_env, gym.Env | gym.vector.VectorEnv):
        raise OptionError(
            f"the function that makes the environment gave a {type(new_env).__name__}: it has to "
            f"return a gymnasium.Env or VectorEnv"
        )
    try:
        yield new_env
    finally:
        new_env.close()


def _maker(env: gym.Env[Any, Any] | str | Callable[[], AnyEnv]) -> Callable[[], AnyEnv]:
    """Return a function that makes or copies the environment."""
    if isinstance(env, gym.Env):
        return _Copies(env)
    if isinstance(env, str):
        return NamedEnvironment(env)
    if not callable(env):
        raise OptionError(
            f"collect needs a gymnasium.Env or VectorEnv, its name or a function that makes it, "
            f"not a {type(env).__name__}: use gym.make"
        )
    check_maker(env)
    return env


def _collect_here(
    env: AnyEnv,
    options: RolloutOptions,
    episodes: int,
    seed: int | None,
    progress: Callable[[float], object] | None,
) -> TraceSet:
    if not isinstance(env, gym.vector.VectorEnv):
        return record_episodes(env, options, range(episodes), seed, progress)
    if options.inner:
        raise OptionError("inner=True: collect from one environment, not from a VectorEnv")
    if isinstance(options.policy, LabelPolicy):
        raise OptionError("a policy that reads labels plays one environment, not a VectorEnv")
    return record_vector_episodes(env, options, episodes, seed, progress)


def _collect_on_workers(
    env: AnyEnv | str | Callable[[], AnyEnv],
    options: RolloutOptions,
    episodes: int,
    seed: int | None,
    on: str | Workers,
    progress: Callable[[float], object] | None,
) -> TraceSet:
    """Play shards of episodes on workers."""
    if isinstance(env, gym.vector.VectorEnv):
        name = on if isinstance(on, str) else on.name
        raise OptionError(
            f"on={name!r} is for single environments, of which each worker has its own: "
            f"give one of those in the {type(env).__name__}, its name, or leave out on"
        )
    make = _maker(env)
    if seed is None:
        seed = int(np.random.SeedSequence().generate_state(1)[0])
    elif seed < 0:
        raise OptionError(f"seed={seed}: use at least 0")
    shards = range(0, episodes, EPISODES)

    def report(done: int) -> None:
        if progress is not None:
            progress(done / len(shards))

    with get_executor(on) as workers:
        work = _Shard(make, options, episodes, seed, apart=workers.name != "threads")
        _check_copies(work, workers.name)
        return TraceSet.concatenate(workers.map(work, shards, called="collecting", report=report))


def seed_of_shard(seed: int, number: int) -> int:
    """Return the seed of a shard of episodes; it differs between shards.

    >>> seed_of_shard(0, 1) - seed_of_shard(0, 0)
    1
    """
    first = int(np.random.SeedSequence((seed, 2)).generate_state(1)[0])
    return (first + number) % _SEEDS


@dataclass(frozen=True)
class _Copies:
    """Make copies of an environment."""

    env: gym.Env[Any, Any]

    def __call__(self) -> gym.Env[Any, Any]:
        return copy.deepcopy(self.env)


@dataclass(frozen=True)
class _Shard:
    """Play the episodes of a shard, given the number of its first one."""

    make: Callable[[], Any]
    options: RolloutOptions
    episodes: int
    seed: int
    apart: bool

    def __call__(self, first: int) -> TraceSet:
        numbers = range(first, min(first + EPISODES, self.episodes))
        # Standard output belongs to the process that started the workers.
        with redirect_stdout(sys.stderr) if self.apart else nullcontext():
            env = self.make()
            if not isinstance(env, gym.Env):
                raise OptionError(
                    f"the function that makes the environment gave a {type(env).__name__}: "
                    f"with workers it has to return a gymnasium.Env"
                )
            try:
                options = replace(self.options, policy=copy.deepcopy(self.options.policy))
                seed = seed_of_shard(self.seed, first // EPISODES)
                return record_episodes(env, options, numbers, seed)
            finally:
                env.close()


def _check_copies(work: _Shard, where: str) -> None:
    """Raise `OptionError` for an object that cannot be copied for, or sent to, each shard."""
    copied: dict[str, object] = {"the policy": work.options.policy}
    if isinstance(work.make, _Copies):
        copied["the environment"] = work.make.env
    sent = {
        **copied,
        "labeling_fn": work.options.labeling_fn,
        "observation_fn": work.options.observation_fn,
    }
    if not isinstance(work.make, _Copies | NamedEnvironment):
        sent["the function that makes the environment"] = work.make
    # Ray sends functions by value, processes by name.
    pickler = import_ray("ray.cloudpickle") if where.startswith("ray") else pickle
    for name, value in sent.items():
        try:
            if where != "threads":
                pickler.dumps(value)
            elif name in copied:
                copy.deepcopy(value)
        except Exception as error:  # pickling raises whatever the objects inside do
            advice = "define it in a module, by a name of its own"
            if name == "the environment":
                advice = 'give its name, such as "module:Class", or a function that makes it'
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise OptionError(
                f"on={where!r}: {name} cannot be copied to where episodes are played "
                f"({reason}): {advice}"
            ) from error
