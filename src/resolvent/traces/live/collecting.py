"""Collecting: a Gymnasium environment and a policy → `TraceSet`."""

from collections.abc import Callable, Iterable
from typing import Any

import gymnasium as gym

from resolvent.errors import OptionError, locating
from resolvent.traces.column_names import check_column_names
from resolvent.traces.labelling import Labelling, as_labelling
from resolvent.traces.live.naming import AnyEnv, told_if_any
from resolvent.traces.live.random_actions import random_actions
from resolvent.traces.live.recording import Recorder
from resolvent.traces.live.rolling import rolling_world, time_limit
from resolvent.traces.live.vector_collecting import collect_from_vector
from resolvent.traces.trace_set import TraceSet


def collect(
    env: AnyEnv,
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
    progress: Callable[[float], object] | None = None,
) -> TraceSet:
    """Play episodes in an environment and return what was seen, done and paid.

    `policy` turns an observation into an action; without one, actions are drawn
    at random. The same seed gives the same traces if environment and policy are
    deterministic: the seed goes to the first reset, and the random policy draws by
    another that follows from it, so that its actions do not follow the environment's chance.

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

    >>> from resolvent.environments import House
    >>> traces = collect(House(), episodes=20, seed=0)
    >>> len(traces), traces[0].observations[0], list(traces.labels)[0]
    (20, 'corridor', frozenset())
    """
    if not isinstance(env, gym.Env | gym.vector.VectorEnv):
        raise OptionError(
            f"collect needs a gymnasium.Env or VectorEnv, not a {type(env).__name__}: use gym.make"
        )
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
    if isinstance(env, gym.vector.VectorEnv):
        if inner:
            raise OptionError("inner=True: collect from one environment, not from a VectorEnv")
        return collect_from_vector(
            env,
            policy or _random_policy(env, seed),
            episodes=episodes,
            seed=seed,
            label_of=label_of,
            labelling=labelling,
            name_of=name_of,
            columns=named,
            max_steps=max_steps,
            progress=progress,
        )
    plain = policy is None and name_of is None and label_of in (None, told_if_any) and not inner
    rolls_out = plain and not named  # the core has no infos
    if rolls_out and (world := rolling_world(env)) is not None:
        draws = random_actions(env, seed).np_random
        played = world.rollouts(episodes, seed, draws, max_steps, time_limit(env), progress)
        return labelling.on(played)
    choose = policy or _random_policy(env, seed)
    recorder = Recorder(env, label_of, named, labelling=labelling, name_of=name_of, inner=inner)
    for number in range(episodes):
        with locating(f"episode {number}"):
            _play(env, seed if number == 0 else None, choose, recorder, max_steps)
        if progress is not None:
            progress((number + 1) / episodes)
    return recorder.trace_set()


def _play(
    env: gym.Env[Any, Any],
    seed: int | None,
    choose: Callable[[Any], Any],
    recorder: Recorder,
    max_steps: int | None,
) -> None:
    """Play one episode into the recorder."""
    observation, info = env.reset(seed=seed)
    recorder.begin(observation, info)
    taken = 0
    terminated = truncated = False
    while not (terminated or truncated):
        action = choose(observation)
        observation, reward, terminated, truncated, info = env.step(action)
        recorder.step(action, observation, reward, info)
        taken += 1
        truncated = truncated or (taken == max_steps and not terminated)
    recorder.end(terminated=terminated, truncated=truncated)


def _random_policy(env: AnyEnv, seed: int | None) -> Callable[[Any], Any]:
    space = random_actions(env, seed)
    return lambda observation: space.sample()
