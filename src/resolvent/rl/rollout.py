"""Play episodes in environments, and record them as traces.

Input: an environment and an actor or a policy. Output: a `TraceSet`, or the actor's result.
`play_episode` is the only step loop over single environments, and `record_vector_episodes` that
over vector environments.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode

from resolvent._util.validation import check_at_least, quoted
from resolvent.errors import OptionError, TraceError, located, locating
from resolvent.preprocess.labeling import LabelingFunction
from resolvent.rl.env import (
    AnyEnv,
    Info,
    LabelsOfSymbols,
    LabelSource,
    SymbolEncoder,
    checked_flag,
    checked_reset,
    checked_step,
    info_column,
    reads_infos,
    tabular_env,
    time_limit,
)
from resolvent.rl.vector_env import (
    Infos,
    Mask,
    VectorEnv,
    VectorLabels,
    VectorReturn,
    check_single_resets,
    numbers_in,
    one_environment,
    split,
)
from resolvent.traces.columns import EpisodeBuilder
from resolvent.traces.schema import ACTION, LABEL, OBSERVATION, REWARD
from resolvent.traces.symbols import Label, as_label, finite_reward
from resolvent.traces.trace_set import TraceSet

Step: TypeAlias = tuple[Any, Any, Any, Any, dict[str, Any]]
"""The return of an environment's step: observation, reward, terminated, truncated, info."""
Episode: TypeAlias = dict[str, list[Any]]  # the columns of an episode while it is played


class Actor(Protocol):
    """Chooses the actions of an episode, and observes its steps."""

    def begin(self, observation: Any, info: dict[str, Any]) -> None:
        """Observe the return of a reset."""

    def act(self, observation: Any) -> Any:
        """Return the next action."""

    def observe(self, observation: Any, action: Any, step: Step) -> None:
        """Observe the step that an action made from an observation."""


def play_episode(
    env: gym.Env[Any, Any],
    actor: Actor,
    *,
    seed: int | None = None,
    max_steps: int | None = None,
    **reset_options: Any,
) -> tuple[bool, bool]:
    """Play one episode of at most `max_steps`; return whether it terminated and was truncated."""
    observation, info = checked_reset(env.reset(seed=seed, **reset_options))
    actor.begin(observation, info)
    steps = 0
    terminated = truncated = False
    while not (terminated or truncated):
        action = actor.act(observation)
        try:
            step = checked_step(env.step(action))
            terminated = checked_flag(step[2], "terminated")
            truncated = checked_flag(step[3], "truncated")
        except TraceError as error:
            raise located(f"step {steps}", error) from error
        actor.observe(observation, action, step)
        observation = step[0]
        steps += 1
        truncated = truncated or (steps == max_steps and not terminated)
    return terminated, truncated


def random_actions(env: AnyEnv, seed: int | None) -> gym.Space[Any]:
    """Return a copy of the action space, seeded apart from the environment.

    The environment's reset gets `seed` itself. If both drew the same numbers, random actions would
    be correlated with the environment's transitions.
    """
    space = copy.deepcopy(env.action_space)
    if not isinstance(space, gym.Space):
        raise OptionError(
            f"the environment's action_space is {quoted(space)}: it has to be a gymnasium space"
        )
    check_at_least(0, seed=seed)
    if seed is not None:
        seed = int(np.random.SeedSequence((seed, 1)).generate_state(1)[0])
    space.seed(seed)
    return space


def random_policy(env: AnyEnv, seed: int | None) -> Callable[[Any], Any]:
    """Return a policy that draws its actions from `random_actions`."""
    space = random_actions(env, seed)
    return lambda observation: space.sample()


class StepEncoder:
    """Translates the values of an environment into the columns of episodes.

    `columns` are the names of further columns, which infos have. `labeling_fn` makes labels; it is
    None if environments report them.
    """

    def __init__(
        self,
        env: AnyEnv,
        observation_fn: Callable[[Any], Any] | None,
        columns: Sequence[str] = (),
        labeling: LabelingFunction | None = None,
        labeling_fn: Callable[..., Any] | None = None,
    ) -> None:
        self.observations = SymbolEncoder(env, OBSERVATION, observation_fn)
        self.actions, self.columns = SymbolEncoder(env, ACTION), columns
        self.labeling_fn = labeling_fn
        if labeling is not None and not labeling.is_given:
            self.labeling_fn = LabelsOfSymbols(labeling, self.observations, self.actions)

    def begin(self, observation: Any, label: Any) -> Episode:
        """Return a new episode, which begins with an observation and its label."""
        first: Episode = {OBSERVATION: [self.observations(observation)], LABEL: [as_label(label)]}
        return {**first, **{name: [] for name in (ACTION, REWARD, *self.columns)}}

    def step(
        self, episode: Episode, action: Any, reward: Any, observation: Any, label: Any, info: Info
    ) -> None:
        """Append a step with what it led to, or nothing if a value is invalid."""
        row = {
            ACTION: self.actions(action),
            REWARD: finite_reward(reward),
            OBSERVATION: self.observations(observation),
            LABEL: as_label(label),
            **{name: info_column(info, name) for name in self.columns},
        }
        for name, value in row.items():
            episode[name].append(value)


class Recorder:
    """Records episodes as they are played; with `inner`, those inside `recordable_inside`."""

    def __init__(
        self,
        env: gym.Env[Any, Any],
        labeling_fn: Callable[..., Any] | None = None,
        columns: Sequence[str] = (),
        *,
        labeling: LabelingFunction | None = None,
        observation_fn: Callable[[Any], Any] | None = None,
        inner: bool = False,
    ) -> None:
        self._wrapper: Any = None
        if inner:
            self._wrapper = recordable_inside(env)
            env, observation_fn = self._wrapper.env, observation_fn or self._wrapper.observation_fn
            labeling_fn = labeling_fn or self._wrapper.labeling_fn
        self._encoder = StepEncoder(env, observation_fn, columns, labeling, labeling_fn)
        self._labels = LabelSource(env, self._encoder.labeling_fn)
        self._finished = EpisodeBuilder()
        self._observation: Any = None
        self._episode: Episode = {ACTION: []}

    def begin(self, observation: Any, info: Info) -> Label:
        """Record the return of a reset; return the label of the first observation."""
        self._observation = observation = self._to_record(observation)
        with locating("reset"):
            label = self._labels.at_reset(observation, info)
            self._episode = self._encoder.begin(observation, label)
        return label

    def step(self, action: Any, next_observation: Any, reward: Any, info: Info) -> Label:
        """Record an action and the return of the step; return the label it led to."""
        before, observation = self._observation, self._to_record(next_observation)
        with locating(f"step {len(self._episode[ACTION])}"):
            label = self._labels.after_step(before, action, reward, observation, info)
            self._encoder.step(self._episode, action, reward, observation, label, info)
        self._observation = observation
        return label

    def end(self, *, terminated: bool, truncated: bool) -> None:
        """Close the episode."""
        self._finished.add(self._episode, terminated=bool(terminated), truncated=bool(truncated))
        self._episode = {ACTION: []}

    def truncate(self) -> None:
        """Close an episode whose last step failed, without that step; do nothing after a reset."""
        if self._episode[ACTION]:
            self.end(terminated=False, truncated=True)

    def trace_set(self) -> TraceSet:
        """Return all closed episodes."""
        return TraceSet.from_episodes(self._finished)

    def _to_record(self, observation: Any) -> Any:
        return observation if self._wrapper is None else self._wrapper.inner_observation


def recordable_inside(env: gym.Env[Any, Any]) -> gym.Wrapper[Any, Any, Any, Any]:
    """Return the wrapper, from inside any others, that adds to the observations.

    It has `inner_observation`, the last one that it received, and `labeling_fn` and
    `observation_fn`, by which it finds labels and names.
    """
    while isinstance(env, gym.Wrapper):
        if hasattr(type(env), "inner_observation"):
            return env
        env = env.env
    raise OptionError(
        "inner=True: no wrapper adds to the observations of the environment: "
        "wrap it in AugmentObservation, or leave out inner"
    )


@runtime_checkable
class LabelPolicy(Protocol):
    """A policy that also reads labels."""

    def begin(self, label: Label) -> None:
        """Read the label of a reset."""

    def read(self, label: Label) -> None:
        """Read the label of a step."""


class _RecordingActor:
    """Follow a policy, and record the episodes."""

    def __init__(self, policy: Callable[[Any], Any], recorder: Recorder) -> None:
        self.act = policy
        self._recorder = recorder
        self._label_policy = policy if isinstance(policy, LabelPolicy) else None

    def begin(self, observation: Any, info: dict[str, Any]) -> None:
        label = self._recorder.begin(observation, info)
        if self._label_policy is not None:
            self._label_policy.begin(label)

    def observe(self, observation: Any, action: Any, step: Step) -> None:
        next_observation, reward, _, _, info = step
        label = self._recorder.step(action, next_observation, reward, info)
        if self._label_policy is not None:
            self._label_policy.read(label)


@dataclass(frozen=True)
class RolloutOptions:
    """The options of `collect` except the number of episodes and the workers."""

    policy: Callable[[Any], Any] | None
    labeling_fn: Callable[..., Any] | None
    labeling: LabelingFunction
    observation_fn: Callable[[Any], Any] | None
    columns: tuple[str, ...]
    max_steps: int | None
    inner: bool


def record_episodes(
    env: gym.Env[Any, Any],
    options: RolloutOptions,
    numbers: range,
    seed: int | None,
    progress: Callable[[float], object] | None = None,
) -> TraceSet:
    """Play and record one episode for each number, which errors name."""
    has_functions = options.policy is not None or options.observation_fn is not None
    needs_steps = has_functions or options.inner or options.columns
    world = None if needs_steps or not reads_infos(options.labeling_fn) else tabular_env(env)
    if world is not None:  # its own rollouts are the same, and faster; they have no infos
        draws = random_actions(env, seed).np_random
        limits = options.max_steps, time_limit(env)
        played = world.rollouts(len(numbers), seed, draws, *limits, progress)
        return options.labeling.transform(played)
    recorder = Recorder(
        env,
        options.labeling_fn,
        options.columns,
        labeling=options.labeling,
        observation_fn=options.observation_fn,
        inner=options.inner,
    )
    actor = _RecordingActor(options.policy or random_policy(env, seed), recorder)
    return record(
        env, actor, recorder, numbers, seed=seed, progress=progress, max_steps=options.max_steps
    )


def record(
    env: gym.Env[Any, Any],
    actor: Actor,
    recorder: Recorder,
    numbers: range,
    *,
    seed: int | None,
    progress: Callable[[float], object] | None,
    max_steps: int | Callable[[], int] | None = None,
    **options: Any,
) -> TraceSet:
    """Play an episode for each number with an actor that feeds a recorder; return the traces.

    The seed goes to the first reset; further options are those of `play_episode`. `max_steps` may
    be a function that returns the limit of the next episode, or 0 to play no more.
    """
    for done, number in enumerate(numbers):
        options["max_steps"] = max_steps() if callable(max_steps) else max_steps
        if options["max_steps"] == 0:
            break
        with locating(f"episode {number}"):
            first_seed = seed if done == 0 else None
            terminated, truncated = play_episode(env, actor, seed=first_seed, **options)
            recorder.end(terminated=terminated, truncated=truncated)
        if progress is not None:
            progress((done + 1) / len(numbers))
    return recorder.trace_set()


def record_vector_episodes(
    envs: VectorEnv,
    options: RolloutOptions,
    episodes: int,
    seed: int | None,
    progress: Callable[[float], object] | None = None,
) -> TraceSet:
    """Play and record episodes in all environments side by side.

    Trace k is episode k // n of environment k % n, where n is the number of environments: the
    episodes that end first would be biased towards short ones.
    """
    if options.max_steps is not None:
        check_single_resets(envs, "max_steps cannot truncate episodes")
    policy = options.policy or random_policy(envs, seed)
    recorder = _VectorRecorder(envs, options, episodes)
    observations, infos = envs.reset(seed=seed)
    recorder.begin(observations, infos, np.ones(envs.num_envs, bool))
    reported = 0
    while recorder.finished < episodes:
        actions = policy(observations)
        returned = envs.step(actions)
        observations, to_reset = returned[0], recorder.step(actions, returned)
        if to_reset.any() and recorder.finished < episodes:
            # The environment may change the mask and the options, so it gets copies.
            observations, infos = envs.reset(options={"reset_mask": to_reset.copy()})
            recorder.begin(observations, infos, to_reset)
        while progress is not None and reported < recorder.finished:
            reported += 1
            progress(reported / episodes)
    return recorder.trace_set()


class _VectorRecorder:
    """Record the episodes of all environments."""

    def __init__(self, envs: VectorEnv, options: RolloutOptions, episodes: int) -> None:
        sources = options.columns, options.labeling, options.labeling_fn
        with one_environment(envs) as env:
            self._encoder = StepEncoder(env, options.observation_fn, *sources)
        self.finished = 0
        self._envs, self._options, self._wanted = envs, options, episodes
        self._labels = VectorLabels(envs, self._encoder.labeling_fn, self._location)
        self._running: list[Episode | None] = [None] * envs.num_envs
        self._numbers = list(range(envs.num_envs))  # of the present or next traces
        self._recorded = EpisodeBuilder()
        self._order: list[int] = []  # the number of each recorded trace

    def begin(self, observations: Any, infos: Infos, mask: Mask) -> None:
        """Record the return of a reset of the masked environments."""
        labels = self._labels.reset(observations, infos, mask)
        self._begin(mask, observations, labels)

    def step(self, actions: Any, returned: VectorReturn) -> Mask:
        """Record the return of a step; return which environments the caller must reset."""
        observations, rewards, terminations, truncations, infos = returned
        step = self._labels.step(actions, returned)
        episodes, ended = self._labels.episodes, terminations | truncations
        reached = episodes.reached(observations, infos)
        each_action = split(self._envs.action_space, actions)
        to_reset = ended & (episodes.mode is AutoresetMode.DISABLED)
        for number in numbers_in(step.stepped):
            episode = self._running[number]
            if episode is None:
                continue
            with locating(self._location(number)):
                info = episodes.info_after_step(number, infos) if self._options.columns else {}
                action, reward, label = each_action[number], rewards[number], step.labels[number]
                self._encoder.step(episode, action, reward, reached[number], label, info)
            at_limit = len(episode[ACTION]) == self._options.max_steps and not ended[number]
            to_reset[number] |= at_limit
            if ended[number] or at_limit:
                self._end(number, bool(terminations[number]), bool(truncations[number]) or at_limit)
        self._begin(step.started, observations, step.first_labels)
        return to_reset

    def trace_set(self) -> TraceSet:
        """Return the wanted episodes in their order."""
        return TraceSet.from_episodes(self._recorded).take(np.argsort(self._order))

    def _begin(self, mask: Mask, observations: Any, labels: Sequence[Any]) -> None:
        each = split(self._envs.observation_space, observations)
        for number in numbers_in(mask):
            self._running[number] = None
            if self._numbers[number] < self._wanted:
                with locating(self._location(number)):
                    self._running[number] = self._encoder.begin(each[number], labels[number])

    def _end(self, number: int, terminated: bool, truncated: bool) -> None:
        episode, self._running[number] = self._running[number], None
        if episode is not None:
            with locating(self._location(number)):
                self._recorded.add(episode, terminated=terminated, truncated=truncated)
            self._order.append(self._numbers[number])
            self._numbers[number] += self._envs.num_envs
            self.finished += 1

    def _location(self, number: int) -> str:
        episode = self._running[number]
        step = "" if episode is None else f": step {len(episode[ACTION])}"
        return f"episode {self._numbers[number]} (environment {number}){step}"
