"""Collecting: a Gymnasium environment and a policy → `TraceSet`."""

from collections.abc import Callable, Iterable
from typing import Any

import gymnasium as gym

from resolvent.arguments import check_arguments
from resolvent.errors import OptionError
from resolvent.traces.column_names import check_column_names
from resolvent.traces.labelling import Labelling, as_labelling
from resolvent.traces.live.making import NamedEnvironment, check_maker
from resolvent.traces.live.naming import AnyEnv, told_if_any
from resolvent.traces.live.playing import Play, ReadingPolicy, random_policy
from resolvent.traces.live.spreading import play_side_by_side
from resolvent.traces.live.vector_collecting import collect_from_vector
from resolvent.traces.trace_set import TraceSet
from resolvent.workers import Workers


def collect(
    env: AnyEnv | str | Callable[[], AnyEnv],
    *,
    episodes: int,
    seed: int | None = None,
    policy: Callable[[Any], Any] | None = None,
    labels: str | Labelling = "given",
    label_of: Callable[..., Any] | None = None,
    name_of: Callable[[Any], Any] | None = None,
    columns: Iterable[str] = (),
    max_steps: int | None = None,
    inner: bool | None = None,
    on: str | Workers | None = None,
    progress: Callable[[float], object] | None = None,
) -> TraceSet:
    """Play episodes in an environment and return what was seen, done and paid.

    `policy` turns an observation into an action; without one, actions are drawn
    at random. The same seed gives the same traces if environment and policy are
    deterministic: the seed goes to the first reset, and the random policy draws by
    another that follows from it, so that its actions do not follow the environment's chance.
    A policy with methods `begin(label)` and `read(label)`, as that of an experiment has, is told
    the label of every reset and of every step.

    Labels are those in `info["labels"]`, `info["label"]` or `info["events"]`, or
    what the environment's `get_events()` or `labels()` returns. A reset that
    tells no label counts as no event. For an environment without any,
    `labels="observation"`, `"action"` or `"action+observation"` makes them of what is
    seen and done, and `labels="auto"` takes those it has and otherwise no event, for
    `infer(traces, labels="auto")`. Or `label_of` makes them: a function of
    `(observation)`; of `(observation, action, next_observation)`, which counts a reset as
    no event; or of `(observation, action, reward, next_observation, info)`, which is asked
    at a reset, too, with None for what is not there.

    An environment with `observation_names` or `action_names` has its integers
    written as these names: that is how the house's traces say "corridor". So it is
    with what `name_of(observation)` returns.

    `columns` names further columns of the traces: `columns=["cost"]` keeps
    `info["cost"]` after every step.

    With `inner`, an environment inside `AugmentObservation` is recorded without
    what the wrapper adds, labels as the wrapper finds them: such traces can be
    inferred from together with others of that world. A plan's `policy_in` asks for
    that by itself; any other policy has to be collected with `inner=True`.

    Give `max_steps` for an environment that may never end. `progress` is called
    with the share of episodes done, after each.

    `env` may be a vector environment, in any autoreset mode; a policy then turns
    a batch of observations into a batch of actions. `label_of` is still called
    for one environment at a time. Each environment contributes the same number
    of episodes, give or take one, however long they last: trace k is episode
    k // n of environment k % n, where there are n.

    `env` may also be a name, such as "resolvent/House-v0" or "module:Class", or a function
    that makes an environment. `on="processes"` or `"ray"` (or `"threads"`, for environments
    that wait for something else) has many play at once, a few episodes each: whoever plays
    makes an environment of its own, or copies the one given, and so it is with the policy.
    Each 16 episodes are seeded by their number, so that traces are the same for any number of
    workers, but others than without `on`.

    >>> from resolvent.environments import House
    >>> traces = collect(House(), episodes=20, seed=0)
    >>> len(traces), traces[0].observations[0], list(traces.labels)[0]
    (20, 'corridor', frozenset())
    """
    check_arguments(collect, locals(), leaving=["env", "columns"])
    if episodes < 1:
        raise OptionError(f"episodes={episodes}: collect at least one")
    if max_steps is not None and max_steps < 1:
        raise OptionError(f"max_steps={max_steps}: allow at least one step, or None for no limit")
    named = check_column_names(columns)
    if labels == "auto":
        labelling, label_of = Labelling(), label_of or told_if_any
    else:
        labelling = as_labelling(labels, label_of, found=True)
    if inner is None:
        inner = getattr(policy, "acts_inside", False)
    play = Play(policy, label_of, labelling, name_of, named, max_steps, inner)
    make = NamedEnvironment(env) if isinstance(env, str) else env
    check_maker(make)
    if on is not None:
        return play_side_by_side(make, play, episodes, seed, on, progress)
    if isinstance(make, gym.Env | gym.vector.VectorEnv):
        return _collected(make, play, episodes, seed, progress)
    if not callable(make):
        raise OptionError(
            f"collect needs a gymnasium.Env or VectorEnv, its name or a function that makes it, "
            f"not a {type(env).__name__}: use gym.make"
        )
    made = make()
    if not isinstance(made, gym.Env | gym.vector.VectorEnv):
        raise OptionError(
            f"the function that makes the environment gave a {type(made).__name__}: it has to "
            f"return a gymnasium.Env or VectorEnv"
        )
    try:
        return _collected(made, play, episodes, seed, progress)
    finally:
        made.close()


def _collected(
    env: AnyEnv,
    play: Play,
    episodes: int,
    seed: int | None,
    progress: Callable[[float], object] | None,
) -> TraceSet:
    if isinstance(env, gym.vector.VectorEnv):
        if play.inner:
            raise OptionError("inner=True: collect from one environment, not from a VectorEnv")
        if isinstance(play.policy, ReadingPolicy):
            raise OptionError("a policy that reads labels plays one environment, not a VectorEnv")
        return collect_from_vector(
            env,
            play.policy or random_policy(env, seed),
            episodes=episodes,
            seed=seed,
            label_of=play.label_of,
            labelling=play.labelling,
            name_of=play.name_of,
            columns=play.columns,
            max_steps=play.max_steps,
            progress=progress,
        )
    return play.episodes(env, range(episodes), seed, progress)
