"""Play episodes in one environment, or in several side by side, and encode their steps.

Input: codes of actions by the number of the environment. Output: resets and steps in the symbols
and labels of a learner.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

import gymnasium as gym
import numpy as np

from resolvent.errors import TraceError, located, locating
from resolvent.exploration.environment import (
    has_limit,
    list_actions,
    make_runner,
    member_of,
    spaces_of,
)
from resolvent.exploration.learner import EncodedReset, EncodedStep
from resolvent.exploration.relabel import OBSERVATIONS, set_labels
from resolvent.exploration.state import EpisodeState, LearnerState
from resolvent.planning.deterministic import overflow_error
from resolvent.rl.env import AnyEnv, LabelSource, SymbolEncoder, finite_reward, label_method
from resolvent.rl.rollout import Step
from resolvent.traces.symbols import INFO_KEYS, Symbol

MAX_EPISODE_STEPS: Final = 2_000
"""Maximum length of an episode in an environment without a limit."""

HUGE_REWARD: Final = 1e100
"""Absolute value up to which rewards can always be added up."""


class Encoder:
    """Translates what environments return into symbols and labels for a learner.

    `actions` are all actions by their codes, and `symbols` their symbols. `has_label_method` says
    that the environment reports labels by a method.
    """

    def __init__(
        self,
        env: AnyEnv,
        labeling_fn: Callable[..., Any] | None = None,
        observation_fn: Callable[[Any], Any] | None = None,
    ) -> None:
        self.labeling_fn, self.observation_fn = labeling_fn, observation_fn
        with member_of(env) as single:
            self._observations = SymbolEncoder(single, "observation", observation_fn)
            self._action_names = SymbolEncoder(single, "action")
            self.has_label_method = isinstance(single, gym.Env) and label_method(single) is not None
        self._labels = LabelSource(env if isinstance(env, gym.Env) else None, labeling_fn)
        self.actions = list_actions(spaces_of(env)[0])
        self.symbols = [self._action_names(action) for action in self.actions]
        self._codes = {symbol: code for code, symbol in enumerate(self.symbols)}
        self._last: dict[int, Any] = {}

    def action_code(self, action: Any) -> int | None:
        """Return the code of an action; None if the environment has none like it."""
        return self._codes.get(self._action_names(action))

    def observation(self, observation: Any) -> Symbol:
        """Return the symbol of an observation."""
        with locating("the observation"):
            return self._observations(observation)

    def reset(
        self, state: LearnerState, index: int, observation: Any, info: Mapping[str, Any]
    ) -> EncodedReset:
        """Encode the return of an environment's reset."""
        self._last[index], label = observation, None
        with locating(f"episode {state.buffer.episodes}"):
            symbol = self.observation(observation)
            if state.labels.labeling.is_given:
                with locating("reset"):
                    label = self._labels.at_reset(observation, info)
        return EncodedReset(symbol, label)

    def step(
        self, state: LearnerState, episode: EpisodeState, action: int, step: Step
    ) -> EncodedStep:
        """Encode the return of an environment's step; if it is invalid, nothing is learned."""
        (observation, reward, terminated, truncated, info), label = step, None
        try:
            if state.labels.undecided:  # the first step shows whether the environment has labels
                state.labels.undecided = False
                if not any(key in info for key in INFO_KEYS):
                    set_labels(state, OBSERVATIONS)
            number, symbol = finite_reward(reward), self.observation(observation)
            if state.labels.labeling.is_given:
                label = self._labels.after_step(
                    self._last[episode.index], self.actions[action], reward, observation, info
                )
            if abs(number) > HUGE_REWARD:
                error = overflow_error(abs(number), state.config.gamma, state.steps + 1)
                if error is not None:
                    raise TraceError(error)
        except TraceError as error:
            name = f"episode {state.buffer.episodes}"
            if len(state.episodes) > 1:
                name = f"environment {episode.index}"
            raise located(f"{name}: step {episode.length}", error) from error
        self._last[episode.index] = observation
        return EncodedStep(action, number, symbol, label, terminated, truncated)


class EpisodePlayer:
    """Plays episodes for a learner, each with a seed derived from its number.

    `resets` counts all resets, and `reset_of` is the number of the last one of each environment.
    """

    def __init__(
        self, env: AnyEnv, state: LearnerState, encoder: Encoder, max_steps: int | None = None
    ) -> None:
        self.runner, self.state, self.encoder = make_runner(env), state, encoder
        self.limit = max_steps or (None if has_limit(env) else MAX_EPISODE_STEPS)
        self.resets = 0
        self.reset_of = [0] * self.runner.count
        state.episodes = [EpisodeState(index) for index in range(self.runner.count)]

    def begin(self, indices: Iterable[int]) -> dict[int, EncodedReset]:
        """Begin the next episodes of some environments, each with a new seed."""
        indices = list(indices)
        for index in indices:
            self.reset_of[index] = self.resets
            self.resets += 1
        return self.repeat(indices)

    def repeat(self, indices: Iterable[int]) -> dict[int, EncodedReset]:
        """Begin the last episodes of some environments again."""
        seeds = {}
        for index in indices:
            entropy = self.state.config.seed, self.reset_of[index]
            seeds[index] = int(np.random.SeedSequence(entropy).generate_state(1)[0]) >> 1
        if not seeds:
            return {}
        with locating(f"episode {self.state.buffer.episodes}"):
            shown = self.runner.reset(seeds)
        return {
            index: self.encoder.reset(self.state, index, *shown[index]) for index in sorted(shown)
        }

    def step(self, actions: list[int]) -> list[EncodedStep]:
        """Take a step in every environment, and truncate episodes at the limit."""
        return [
            replace(step, truncated=True) if episode.length + 1 == self.limit else step
            for episode, step in zip(self.state.episodes, self.take(actions), strict=True)
        ]

    def take(self, actions: list[int]) -> list[EncodedStep]:
        """Take a step in every environment; all are encoded or none is."""
        state, encoder = self.state, self.encoder
        try:
            steps = self.runner.step([encoder.actions[action] for action in actions])
        except TraceError as error:
            where = f"episode {state.buffer.episodes}: step {state.episodes[0].length}"
            raise located(where, error) from error
        return [
            encoder.step(state, episode, action, step)
            for episode, action, step in zip(state.episodes, actions, steps, strict=True)
        ]
