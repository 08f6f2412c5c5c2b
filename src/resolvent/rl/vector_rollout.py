"""Play episodes in all environments of a vector environment, and record them as traces."""

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from resolvent.errors import locating
from resolvent.rl.env import LabelsOfSymbols, SymbolEncoder, finite_reward, info_column
from resolvent.rl.rollout import RolloutOptions, random_policy
from resolvent.rl.vector_env import (
    Infos,
    Mask,
    VectorEnv,
    VectorEpisodes,
    check_single_resets,
    one_environment,
    split,
)
from resolvent.traces.columns import ColumnEncoder, TraceSetBuilder
from resolvent.traces.schema import ACTION, LABEL, OBSERVATION, REWARD
from resolvent.traces.symbols import as_label
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes


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
        check_single_resets(envs, "max_steps cannot cut episodes")
    policy = options.policy or random_policy(envs, seed)
    recorder = _VectorRecorder(envs, options, episodes)
    observations, infos = envs.reset(seed=seed)
    recorder.begin(observations, infos, np.ones(envs.num_envs, bool))
    reported = 0
    while recorder.finished < episodes:
        actions = policy(observations)
        observations, *outcome = envs.step(actions)
        to_reset = recorder.step(actions, observations, *outcome)
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
        with one_environment(envs) as env:
            self._observations = SymbolEncoder(env, "observation", options.name_of)
            self._actions = SymbolEncoder(env, "action")
        label_of = options.label_of
        if not options.labelling.is_given:
            label_of = LabelsOfSymbols(options.labelling, self._observations, self._actions)
        count = envs.num_envs
        self.finished = 0
        self._envs = envs
        self._info_columns = options.columns
        self._max_steps = options.max_steps
        self._wanted = [len(range(number, episodes, count)) for number in range(count)]
        self._columns: list[dict[str, list[Any]]] = [{} for _ in range(count)]
        self._closed: list[list[tuple[dict[str, Codes], bool, bool]]] = [[] for _ in range(count)]
        self._order = [(number % count, number // count) for number in range(episodes)]
        self._coder = ColumnEncoder()
        self._episodes = VectorEpisodes(envs, label_of, self._place)

    def begin(self, observations: Any, infos: Infos, mask: Mask) -> None:
        """Record the return of a reset of the masked environments."""
        labels = self._episodes.reset(observations, infos, mask)
        self._begin(mask, self._split(observations), labels)

    def step(
        self,
        actions: Any,
        observations: Any,
        rewards: Any,
        terminations: Mask,
        truncations: Mask,
        infos: Infos,
    ) -> Mask:
        """Record the return of a step; return which environments the caller must reset."""
        step = self._episodes.step(actions, observations, rewards, terminations, truncations, infos)
        ended = terminations | truncations
        returned = self._split(observations)
        reached = self._episodes.reached(returned, ended, infos)
        each_action = split(self._envs.action_space, actions)
        to_reset = ended & (self._episodes.mode is AutoresetMode.DISABLED)
        for number in np.flatnonzero(step.stepped).tolist():
            if len(self._closed[number]) >= self._wanted[number]:
                continue
            columns = self._columns[number]
            with locating(self._place(number)):
                columns[ACTION].append(self._actions(each_action[number]))
                columns[REWARD].append(finite_reward(rewards[number]))
                columns[OBSERVATION].append(self._observations(reached[number]))
                columns[LABEL].append(as_label(step.labels[number]))
                if self._info_columns:
                    info = self._episodes.info_after_step(number, infos)
                    for name in self._info_columns:
                        columns[name].append(info_column(info, name))
            cut = len(columns[ACTION]) == self._max_steps and not ended[number]
            to_reset[number] |= cut
            if ended[number] or cut:
                self._end(number, bool(terminations[number]), bool(truncations[number]) or cut)
        self._begin(step.started, returned, step.first_labels)
        return to_reset

    def trace_set(self) -> TraceSet:
        """Return the wanted episodes in their order."""
        episodes = TraceSetBuilder()
        for number, episode in self._order:
            codes, terminated, truncated = self._closed[number][episode]
            episodes.add(codes, terminated=terminated, truncated=truncated)
        return episodes.trace_set(self._coder.values())

    def _begin(self, mask: Mask, observations: list[Any], labels: Any) -> None:
        for number in np.flatnonzero(mask).tolist():
            with locating(self._place(number)):
                self._columns[number] = {
                    OBSERVATION: [self._observations(observations[number])],
                    LABEL: [as_label(labels[number])],
                    ACTION: [],
                    REWARD: [],
                    **{name: [] for name in self._info_columns},
                }

    def _end(self, number: int, terminated: bool, truncated: bool) -> None:
        with locating(self._place(number, step=False)):
            codes = self._coder.code(self._columns[number])
        self._closed[number].append((codes, terminated, truncated))
        self._columns[number] = {}
        self.finished += 1

    def _place(self, number: int, step: bool = True) -> str:
        columns = self._columns[number]
        episode = len(self._closed[number]) * len(self._closed) + number
        at = f": step {len(columns[ACTION])}" if step and columns else ""
        return f"episode {episode} (environment {number}){at}"

    def _split(self, observations: Any) -> list[Any]:
        return split(self._envs.observation_space, observations)
