"""Collect traces: a Gymnasium environment, or its name, and a policy → `TraceSet`.

On workers, episodes are played in shards. Each shard has its own environment and a seed derived
from its number, so traces do not depend on the workers.
"""

import copy
import importlib
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, redirect_stdout
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import gymnasium as gym
import numpy as np

from resolvent._util.parallel import Workers, get_executor
from resolvent._util.ray import import_ray
from resolvent._util.text import listed
from resolvent._util.validation import check_arguments, check_at_least, needs_arguments, quoted
from resolvent.errors import OptionError, ResolventError
from resolvent.preprocess.labeling import LabelingFunction, as_labeling_function
from resolvent.rl.env import AnyEnv, GuardedEnv, reported_label
from resolvent.rl.rollout import (
    LabelPolicy,
    RolloutOptions,
    record_episodes,
    record_vector_episodes,
)
from resolvent.traces.schema import check_column_names
from resolvent.traces.symbols import error_text
from resolvent.traces.trace_set import TraceSet

EPISODES: Final = 16  # of a shard; another number would change the traces of every seed
_SEEDS: Final = 2**32  # number of seeds: some environments take no larger ones
_WANTED: Final = "name a class of environments (gymnasium.Env) or a function that returns one"


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
    check_at_least(1, episodes=episodes, max_steps=max_steps)
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
    with opened_environment(env, "collect") as opened:
        if not isinstance(opened, gym.vector.VectorEnv):
            return record_episodes(opened, options, range(episodes), seed, progress)
        if inner:
            raise OptionError("inner=True: collect from one environment, not from a VectorEnv")
        if isinstance(policy, LabelPolicy):
            raise OptionError("a policy that reads labels plays one environment, not a VectorEnv")
        return record_vector_episodes(opened, options, episodes, seed, progress)


# --- Environments by name, function or copy -------------------------------------------------------


@contextmanager
def opened_environment(env: AnyEnv | str | Callable[[], AnyEnv], caller: str) -> Iterator[AnyEnv]:
    """Yield an environment, or a new one by its name or function, which is closed afterwards."""
    if isinstance(env, gym.Env | gym.vector.VectorEnv):
        yield env
        return
    new_env = _maker(env, caller)()
    if not isinstance(new_env, gym.Env | gym.vector.VectorEnv):
        raise _not_an_environment(new_env, "it has to return a gymnasium.Env or VectorEnv")
    with closing(new_env):
        yield new_env


def _maker(
    env: gym.Env[Any, Any] | str | Callable[[], AnyEnv], caller: str
) -> Callable[[], AnyEnv]:
    """Return a function that makes or copies the environment."""
    if isinstance(env, gym.Env):
        return partial(copy.deepcopy, env)
    if isinstance(env, str):
        return NamedEnvironment(env)
    if not callable(env):
        raise OptionError(
            f"{caller} needs a gymnasium.Env or VectorEnv, its name or a function that makes it, "
            f"not a {type(env).__name__}: use gym.make"
        )
    if needs_arguments(env):
        raise OptionError(
            f"{quoted(env)} needs arguments: give a function without parameters that makes the "
            "environment"
        )
    return env


def _not_an_environment(made: Any, remedy: str) -> OptionError:
    return OptionError(
        f"the function that makes the environment gave a {type(made).__name__}: {remedy}"
    )


@dataclass(frozen=True)
class NamedEnvironment:
    """Make the environment with an id, or named module:id or module:Class, in any process.

    The modules in `imports` are imported first, so that they can register environments.
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    imports: Sequence[str] = ()

    def __call__(self) -> gym.Env[Any, Any]:
        """Return a new environment."""
        for module in self.imports:
            _import(module, f"--import {module}")
        module, colon, name = self.name.partition(":")
        if not colon:
            hint = "with --import MODULE if a module registers it, or module:Class"
            return self._make(partial(gym.make, self.name), hint)
        if not (module and name):
            missing = "a class after" if module else "a module before"
            raise OptionError(f"environment '{self.name}': name {missing} the colon")
        imported = _import(module, f"environment '{self.name}'")
        maker = getattr(imported, name, None)
        if maker is None:
            return self._make(partial(gym.make, name), _classes_hint(imported))
        if isinstance(maker, type) and not issubclass(maker, gym.Env):
            raise OptionError(
                f"environment '{self.name}' is a class, but no gymnasium.Env: "
                f"derive it from gymnasium.Env, or {_WANTED}"
            )
        if not callable(maker):
            raise OptionError(f"environment '{self.name}' is a {type(maker).__name__}: {_WANTED}")
        return self._make(maker)

    def _make(self, maker: Callable[..., Any], hint: str = "") -> gym.Env[Any, Any]:
        """Call a maker, and guard an environment that is not ours."""
        try:
            env = maker(**self.arguments)
        except ResolventError:
            raise
        except Exception as error:
            if isinstance(error, gym.error.Error) and hint:
                raise OptionError(
                    f"cannot make environment '{self.name}': {str(error).rstrip('.')} "
                    f"(give a Gymnasium id such as resolvent/House-v0, {hint})"
                ) from error
            passed = f" with {', '.join(self.arguments)}" if self.arguments else ""
            raise OptionError(
                f"cannot make environment '{self.name}'{passed}: {error_text(error)} "
                f"(give its arguments by --set NAME=VALUE)"
            ) from error
        if not isinstance(env, gym.Env):
            raise OptionError(f"environment '{self.name}' gave a {type(env).__name__}: {_WANTED}")
        is_ours = type(env.unwrapped).__module__.startswith("resolvent.")
        return env if is_ours else GuardedEnv(env)


def _import(module: str, purpose: str) -> ModuleType:
    if module.endswith(".py"):
        name = ".".join(part for part in Path(module).with_suffix("").parts if part.strip("./"))
        raise OptionError(f"{purpose}: {module} is a file: write {name}, the module's name")
    if "" not in sys.path:
        sys.path.insert(0, "")  # a module beside the user counts, as with `python -m`
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise OptionError(
                f"{purpose}: module '{module}' needs '{error.name}', which is not installed"
            ) from error
        raise OptionError(
            f"{purpose}: cannot import module '{module}': give the name of a module that is "
            f"installed or in this folder, such as my_world"
        ) from error
    except (Exception, SystemExit) as error:
        raise OptionError(
            f"{purpose}: cannot import module '{module}', which raised {error_text(error)}"
        ) from error


def _classes_hint(module: ModuleType) -> str:
    classes = [
        name
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, gym.Env) and value is not gym.Env
    ]
    listing = listed(classes[:5]) if classes else "no class of environments"
    return f"or module:Class; '{module.__name__}' has {listing}"


# --- Shards of episodes on workers ----------------------------------------------------------------


def _collect_on_workers(
    env: AnyEnv | str | Callable[[], AnyEnv],
    options: RolloutOptions,
    episodes: int,
    seed: int | None,
    on: str | Workers,
    progress: Callable[[float], object] | None,
) -> TraceSet:
    if isinstance(env, gym.vector.VectorEnv):
        name = on if isinstance(on, str) else on.name
        raise OptionError(
            f"on={name!r} is for single environments, of which each worker has its own: "
            f"give one of those in the {type(env).__name__}, its name, or leave out on"
        )
    check_at_least(0, seed=seed)
    if seed is None:
        seed = int(np.random.SeedSequence().generate_state(1)[0])
    shards = range(0, episodes, EPISODES)

    def report(done: int) -> None:
        if progress is not None:
            progress(done / len(shards))

    with get_executor(on) as workers:
        work = _Shard(_maker(env, "collect"), options, episodes, seed, workers.name != "threads")
        _check_copies(env, work, workers.name)
        return TraceSet.concatenate(workers.map(work, shards, called="collecting", report=report))


def seed_of_shard(seed: int, number: int) -> int:
    """Return the seed of a shard of episodes; it differs between shards."""
    first = int(np.random.SeedSequence((seed, 2)).generate_state(1)[0])
    return (first + number) % _SEEDS


@dataclass(frozen=True)
class _Shard:
    """Play the episodes of a shard, given the number of its first one."""

    make: Callable[[], Any]
    options: RolloutOptions
    episodes: int
    seed: int
    is_apart: bool
    """Whether workers are other processes: standard output belongs to the one that started them."""

    def __call__(self, first: int) -> TraceSet:
        numbers = range(first, min(first + EPISODES, self.episodes))
        with redirect_stdout(sys.stderr) if self.is_apart else nullcontext():
            env = self.make()
            if not isinstance(env, gym.Env):
                raise _not_an_environment(env, "with workers it has to return a gymnasium.Env")
            with closing(env):
                options = replace(self.options, policy=copy.deepcopy(self.options.policy))
                seed = seed_of_shard(self.seed, first // EPISODES)
                return record_episodes(env, options, numbers, seed)


def _check_copies(env: Any, work: _Shard, where: str) -> None:
    """Raise `OptionError` for an object that cannot be copied for, or sent to, each shard."""
    copied: dict[str, object] = {"the policy": work.options.policy}
    sent = {name: getattr(work.options, name) for name in ("labeling_fn", "observation_fn")}
    if isinstance(env, gym.Env):
        copied["the environment"] = env
    else:
        sent["the function that makes the environment"] = work.make
    # Ray sends functions by value, processes by name.
    pickler = import_ray("ray.cloudpickle") if where.startswith("ray") else pickle
    copies = copy.deepcopy if where == "threads" else pickler.dumps
    for name, value in (copied if where == "threads" else copied | sent).items():
        try:
            copies(value)
        except Exception as error:  # copying raises whatever the objects inside do
            advice = "define it in a module, by a name of its own"
            if name == "the environment":
                advice = 'give its name, such as "module:Class", or a function that makes it'
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise OptionError(
                f"on={where!r}: {name} cannot be copied to where episodes are played "
                f"({reason}): {advice}"
            ) from error
