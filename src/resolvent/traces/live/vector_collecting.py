"""Collecting from many environments at once: a vector environment and a policy → `TraceSet`."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from resolvent.errors import locating
from resolvent.traces.column_names import ACTION, LABEL, OBSERVATION, REWARD
from resolvent.traces.columns import CodedEpisodes, ColumnCoder
from resolvent.traces.labelling import Labelling
from resolvent.traces.live.naming import MadeOf, Names, finite_reward, told_column
from resolvent.traces.live.vector_naming import (
    Infos,
    Mask,
    VectorEnv,
    VectorEpisodes,
    check_single_resets,
    one_environment,
    split,
)
from resolvent.traces.symbols import Label, Symbol, as_label
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes


def collect_from_vector(
    envs: VectorEnv,
    choose: Callable[[Any], Any],
    *,
    episodes: int,
    seed: int | None = None,
    label_of: Callable[..., Any] | None = None,
    labelling: Labelling | None = None,
    name_of: Callable[[Any], Any] | None = None,
    columns: Sequence[str] = (),
    max_steps: int | None = None,
    progress: Callable[[float], object] | None = None,
) -> TraceSet:
    """Play episodes in all environments side by side, as `collect` does in one.

    Which episodes are returned is settled before the first is played: trace k is
    episode k // n of environment k % n, where there are n. To return those that
    end first would favour short ones.

    >>> import gymnasium as gym
    >>> envs = gym.make_vec("resolvent/House-v0", num_envs=2, vectorization_mode="sync")
    >>> traces = collect_from_vector(envs, lambda rooms: [3, 4], episodes=2, max_steps=5)
    >>> [trace.actions for trace in traces]
    [('right', 'right', 'right', 'right', 'right'), ('sit', 'sit', 'sit', 'sit', 'sit')]
    """
    if max_steps is not None:
        check_single_resets(envs, "max_steps cannot cut episodes")
    with one_environment(envs) as env:
        names = Names(env, "observation", name_of), Names(env, "action")
    if labelling is not None and not labelling.is_given:
        label_of = MadeOf(labelling, *names)
    plays = _Plays(envs, episodes, names, label_of, columns, max_steps)
    observations, infos = envs.reset(seed=seed)
    plays.begin(observations, infos, np.ones(envs.num_envs, bool))
    told = 0
    while plays.finished < episodes:
        actions = choose(observations)
        observations, *outcome = envs.step(actions)
        to_reset = plays.step(actions, observations, *outcome)
        if to_reset.any() and plays.finished < episodes:
            # A copy, and options of its own: both are the environment's to change.
            observations, infos = envs.reset(options={"reset_mask": to_reset.copy()})
            plays.begin(observations, infos, to_reset)
        while progress is not None and told < plays.finished:
            told += 1
            progress(told / episodes)
    return plays.trace_set()


class _Play:
    """What one environment has played: the episode that goes on, and those wanted of it."""

    def __init__(self, wanted: int, columns: Sequence[str]) -> None:
        self.wanted = wanted
        self.episodes: list[tuple[dict[str, Codes], bool, bool]] = []
        self._columns = columns
        self.begin_with([], [])

    @property
    def goes_on(self) -> bool:
        return len(self.episodes) < self.wanted

    def begin_with(self, observations: list[Symbol], labels: list[Label]) -> None:
        self.observations, self.labels = observations, labels
        self.actions: list[Symbol] = []
        self.rewards: list[float] = []
        self.further: dict[str, list[Symbol]] = {name: [] for name in self._columns}

    def end(self, coder: ColumnCoder, terminated: bool, truncated: bool) -> None:
        codes = coder.code(
            {
                OBSERVATION: self.observations,
                LABEL: self.labels,
                ACTION: self.actions,
                REWARD: self.rewards,
                **self.further,
            }
        )
        self.episodes.append((codes, terminated, truncated))
        self.begin_with([], [])


class _Plays:
    """What all environments have played."""

    def __init__(
        self,
        envs: VectorEnv,
        episodes: int,
        names: tuple[Names, Names],
        label_of: Callable[..., Any] | None,
        columns: Sequence[str],
        max_steps: int | None,
    ) -> None:
        count = envs.num_envs
        self.finished = 0
        self._envs = envs
        self._max_steps = max_steps
        self._plays = [
            _Play(len(range(number, episodes, count)), columns) for number in range(count)
        ]
        self._order = [(number % count, number // count) for number in range(episodes)]
        self._coder = ColumnCoder()
        self._live = VectorEpisodes(envs, label_of, self._place)
        self._observation_named, self._action_named = names

    def begin(self, observations: Any, infos: Infos, mask: Mask) -> None:
        """Take what a reset of the masked environments gave."""
        self._begin(mask, self._split(observations), self._live.reset(observations, infos, mask))

    def step(
        self,
        actions: Any,
        observations: Any,
        rewards: Any,
        terminations: Mask,
        truncations: Mask,
        infos: Infos,
    ) -> Mask:
        """Take what a step gave; return which environments the caller must reset."""
        step = self._live.step(actions, observations, rewards, terminations, truncations, infos)
        ended = terminations | truncations
        seen = self._split(observations)
        led_to = list(seen)
        if self._live.mode is AutoresetMode.SAME_STEP and ended.any():
            for number, observation in self._live.final_observations(ended, infos).items():
                led_to[number] = observation
        done = split(self._envs.action_space, actions)
        to_reset = ended & (self._live.mode is AutoresetMode.DISABLED)
        for number in np.flatnonzero(step.stepped).tolist():
            play = self._plays[number]
            if not play.goes_on:
                continue
            with locating(self._place(number)):
                play.actions.append(self._action_named(done[number]))
                play.rewards.append(finite_reward(rewards[number]))
                play.observations.append(self._observation_named(led_to[number]))
                play.labels.append(as_label(step.labels[number]))
                if play.further:
                    info = self._live.info_after_step(number, infos)
                    for name, values in play.further.items():
                        values.append(told_column(info, name))
            cut = len(play.actions) == self._max_steps and not ended[number]
            to_reset[number] |= cut
            if ended[number] or cut:
                self._end(number, bool(terminations[number]), bool(truncations[number]) or cut)
        self._begin(step.started, seen, step.first_labels)
        return to_reset

    def trace_set(self) -> TraceSet:
        """Return the wanted episodes in their order."""
        played = CodedEpisodes()
        for number, episode in self._order:
            codes, terminated, truncated = self._plays[number].episodes[episode]
            played.add(codes, terminated=terminated, truncated=truncated)
        return played.trace_set(self._coder.values())

    def _begin(self, mask: Mask, observations: list[Any], labels: Any) -> None:
        for number in np.flatnonzero(mask).tolist():
            with locating(self._place(number)):
                self._plays[number].begin_with(
                    [self._observation_named(observations[number])], [as_label(labels[number])]
                )

    def _end(self, number: int, terminated: bool, truncated: bool) -> None:
        with locating(self._place(number, step=False)):
            self._plays[number].end(self._coder, terminated, truncated)
        self.finished += 1

    def _place(self, number: int, step: bool = True) -> str:
        play = self._plays[number]
        episode = len(play.episodes) * len(self._plays) + number
        at = f": step {len(play.actions)}" if step and play.observations else ""
        return f"episode {episode} (environment {number}){at}"

    def _split(self, observations: Any) -> list[Any]:
        return split(self._envs.observation_space, observations)
