"""Choose actions in an environment, step by step, and learn from their results.

`solve` takes the same steps in a loop of its own; a user with another loop calls `act` and `learn`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import gymnasium as gym
import numpy as np

from resolvent._util.validation import check_arguments, check_at_least, quoted
from resolvent.errors import OptionError, TraceError, locating
from resolvent.exploration.buffer import TRUNCATED, Buffer
from resolvent.exploration.environment import Encoder
from resolvent.exploration.hypothesis import Hypothesis
from resolvent.exploration.learner import (
    FIRST_SEARCH,
    begin_episode,
    close_episode,
    update,
    verify_if_exhausted,
)
from resolvent.exploration.state import EpisodeState, LabelState, LearnerConfig, LearnerState
from resolvent.exploration.stopping import Guarantee, guarantee_of, is_done
from resolvent.exploration.tables import build_machines
from resolvent.exploration.tests import select_action
from resolvent.inference.options import InferenceOptions
from resolvent.machines import Machines
from resolvent.planning.plan import Plan, plan
from resolvent.preprocess.labeling import AS_RECORDED, LabelingFunction, as_labeling_function
from resolvent.preprocess.timing import LabelTiming
from resolvent.rl.env import AnyEnv, check_info, checked_step
from resolvent.traces import TraceSet

MAX_ENVIRONMENTS: Final = 1 << 16  # maximum number of episodes side by side


class Explorer:
    """Chooses actions in an environment, step by step, and learns from their results.

    `act` returns an action, and `learn` takes its result. If `act` returns None, no test is left in
    the episode: reset the environment and call it again. `done` is True when no test is left.

    With `which`, the number of an environment, several episodes are played at the same time; they
    share machines and model.

    >>> import gymnasium as gym, resolvent as rs
    >>> env = gym.make("resolvent/House-v0")
    >>> explorer = rs.Explorer(env, seed=0)
    >>> observation, info = env.reset(seed=0)
    >>> while not explorer.done:
    ...     action = explorer.act(observation, info)
    ...     if action is None:
    ...         observation, info = env.reset()
    ...         continue
    ...     observation, reward, terminated, truncated, info = env.step(action)
    ...     explorer.learn(action, observation, reward, terminated, truncated, info)
    ...     if terminated or truncated:
    ...         observation, info = env.reset()
    >>> explorer.plan().is_optimal, explorer.machines().transition.states
    (True, 2)
    """

    def __init__(
        self,
        env: AnyEnv,
        *,
        labels: str | LabelingFunction = "auto",
        labeling_fn: Callable[..., Any] | None = None,
        observation_fn: Callable[[Any], Any] | None = None,
        timing: LabelTiming | str | None = None,
        gamma: float = 0.95,
        reward_range: tuple[float, float] | None = None,
        target: float = 0.0,
        states: int | Literal["found"] = "found",
        seed: int = 0,
    ) -> None:
        if not isinstance(env, gym.Env | gym.vector.VectorEnv):
            raise OptionError(f"env is a {type(env).__name__}: pass a gymnasium.Env or VectorEnv")
        check_arguments(Explorer.__init__, locals(), leaving=["env"])
        max_states = None if states == "found" else int(states)
        check_at_least(1, states=max_states)
        check_at_least(0, seed=seed)
        if not 0 < gamma <= 1:
            raise OptionError(f"gamma={gamma}: use a number above 0, up to 1")
        if not target >= 0:
            raise OptionError(f"target={target}: use at least 0")
        self.encoder = Encoder(env, labeling_fn, observation_fn)
        self.changed = False
        is_auto = labels == "auto" and labeling_fn is None
        labeling = AS_RECORDED
        if labels != "auto":
            labeling = as_labeling_function(labels, labeling_fn, allow_auto=True)
        options = InferenceOptions(noise="none", timing=timing, seed=seed)  # type: ignore[arg-type]
        buffer = Buffer(self.encoder.symbols)
        may_lack_labels = is_auto and not self.encoder.has_label_method
        self.state = LearnerState(
            LearnerConfig(gamma, seed, reward_range, target, max_states),
            LabelState(labeling, is_auto, may_lack_labels, FIRST_SEARCH),
            buffer,
            Hypothesis(options, buffer, may_time=timing is None),
        )

    @property
    def steps(self) -> int:
        """Number of steps taken so far."""
        return self.state.steps

    @property
    def done(self) -> bool:
        """Whether no test is left."""
        return is_done(self.state)

    def act(self, observation: Any, info: Mapping[str, Any], which: int = 0) -> Any:
        """Return the next action, or None if the episode is of no more use: then reset.

        If no episode is open, one begins with this observation.
        """
        state, episode = self.state, self._episode(which)
        if not episode.is_open:
            with locating("reset"):
                check_info(info)
            begin_episode(state, episode, self.encoder.reset(state, which, (observation, info)))
        else:
            symbol = self.encoder.observation(observation)
            if state.buffer.observations.codes.get(symbol) != episode.recorded.observations[-1]:
                raise TraceError(
                    f"episode {state.buffer.episodes}: step {episode.length}: act() got another "
                    f"observation than the last step led to: pass every step to learn(), with "
                    f"truncated=True before a reset"
                )
        action = select_action(state, episode)
        if action is None:
            close_episode(state, episode)
            self._verify()
            return None
        return self.encoder.actions[action]

    def learn(self, action: Any, *step: Any, which: int = 0) -> None:
        """Learn from the result of an action, which may be another than `act` returned.

        `step` is what the environment's `step` returned: observation, reward, terminated,
        truncated and info. `changed` says then whether the machines had to change.

        Raises:
            ContradictoryTraces: if the environment is stochastic.
        """
        state, episode = self.state, self._episode(which)
        returned = checked_step(step)
        if not episode.is_open:
            raise OptionError("learn() before act(): first call act() with the results of reset()")
        code = self.encoder.action_code(action)
        if code is None:
            raise OptionError(f"action {quoted(action)} is not one of the environment's")
        self.changed = update(state, episode, self.encoder.step(state, episode, code, returned))
        self._verify()

    def truncate(self, which: int = 0) -> None:
        """End an episode although the environment did not."""
        episode = self._episode(which)
        if episode.is_open:
            close_episode(self.state, episode, TRUNCATED)
            self.state.truncated_episodes += 1

    def traces(self) -> TraceSet:
        """Return everything recorded; open episodes count as truncated."""
        return self.state.buffer.traces()

    def machines(self) -> Machines:
        """Return the machines that explain everything so far."""
        state, hypothesis = self.state, self.state.hypothesis
        if hypothesis.tables is None and state.steps:
            conflict = hypothesis.repair()
            if conflict is not None:
                raise conflict.error()
            state.rebuild()
        tables = state.present_model().tables.for_labels(len(state.buffer.labels))
        return build_machines(tables, state.buffer, hypothesis.options, state.labels.labeling)

    def plan(self) -> Plan:
        """Return the best plan by all steps so far."""
        config, traces = self.state.config, self.traces()
        return plan(self.machines(), traces, gamma=config.gamma, reward_range=config.reward_range)

    def guarantee(self) -> Guarantee:
        """Return the present guarantee."""
        return guarantee_of(self.state)

    def _verify(self) -> None:
        if self.state.conflict is None:
            verify_if_exhausted(self.state)
        if self.state.conflict is not None:
            raise self.state.conflict.error()

    def _episode(self, which: int) -> EpisodeState:
        """Return the state of an episode."""
        if not isinstance(which, int | np.integer) or not 0 <= which < MAX_ENVIRONMENTS:
            raise OptionError(
                f"which={quoted(which)}: use a number of an environment, from 0 to "
                f"{MAX_ENVIRONMENTS - 1:,}"
            )
        episodes = self.state.episodes
        while len(episodes) <= which:
            episodes.append(EpisodeState(len(episodes)))
        return episodes[which]
