"""Choose actions in an environment, step by step, and learn from their results.

`solve` is a loop around an `Explorer`; a user with a loop of their own calls `act` and `learn`.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Literal

import gymnasium as gym
import numpy as np

from resolvent._util.validation import check_arguments, shown
from resolvent.errors import ModelError, OptionError, TraceError, locating
from resolvent.exploration.buffer import TRUNCATED, Buffer
from resolvent.exploration.build_machines import build_machines
from resolvent.exploration.environment import list_actions, spaces_of
from resolvent.exploration.hypothesis import Hypothesis
from resolvent.exploration.learner import (
    Change,
    EncodedStep,
    begin_episode,
    close_episode,
    update,
    verify,
)
from resolvent.exploration.relabel import FIRST_SEARCH, OBSERVATIONS, set_labels
from resolvent.exploration.state import EpisodeState, LabelState, LearnerConfig, LearnerState
from resolvent.exploration.stopping import Kind, Statement, is_done, statement_of
from resolvent.exploration.tests import select_action
from resolvent.exploration.values import ValueBounds, mean_value
from resolvent.inference.options import InferenceOptions
from resolvent.machines import Machines
from resolvent.planning.plan import Plan, plan
from resolvent.planning.value_bounds import too_large_to_add_up
from resolvent.preprocess.labeling import AS_RECORDED, LabelingFunction, as_labeling_function
from resolvent.preprocess.timing import LabelTiming
from resolvent.rl.env import (
    AnyEnv,
    LabelsOfSymbols,
    LabelSource,
    SymbolEncoder,
    check_info,
    checked_flag,
    finite_reward,
    label_method,
)
from resolvent.rl.vector_env import one_environment
from resolvent.traces import TraceSet
from resolvent.traces.symbols import INFO_KEYS, Symbol

MAX_ENVIRONMENTS: Final = 1 << 16
"""Maximum number of episodes side by side."""


class Explorer:
    """Chooses actions in an environment, step by step, and learns from their results.

    Ask `act` for an action and pass its result to `learn`. If `act` returns None, the episode is of
    no more use: reset the environment, and ask again. `done` is True when no test is left, and
    `statement()` gives the guarantee.

    With `which`, several episodes are played side by side, as in a vector environment; they share
    machines and model.

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
    >>> explorer.plan().is_optimal, {kind: one.states for kind, one in explorer.machines().items()}
    (True, {'transition': 2, 'reward': 2})
    """

    def __init__(
        self,
        env: AnyEnv,
        *,
        labels: str | LabelingFunction = "auto",
        label_of: Callable[..., Any] | None = None,
        name_of: Callable[[Any], Any] | None = None,
        timing: LabelTiming | str | None = None,
        gamma: float = 0.95,
        reward_range: tuple[float, float] | None = None,
        target: float = 0.0,
        states: int | Literal["found"] = "found",
        seed: int = 0,
    ) -> None:
        if not isinstance(env, gym.Env | gym.vector.VectorEnv):
            raise OptionError(f"env is a {type(env).__name__}: give a gymnasium.Env or VectorEnv")
        check_arguments(Explorer.__init__, locals(), leaving=["env", "states"])
        _check_ranges(gamma, target, states, seed)
        with _single_environment(env) as single:
            self._observations = SymbolEncoder(single, "observation", name_of)
            self._action_names = SymbolEncoder(single, "action")
            has_labels = isinstance(single, gym.Env) and label_method(single) is not None
        self._actions = list_actions(spaces_of(env)[0])
        symbols = [self._action_names(action) for action in self._actions]
        self._action_codes = {symbol: code for code, symbol in enumerate(symbols)}
        self._env = env if isinstance(env, gym.Env) else None
        self._label_of = label_of
        self._labels: tuple[LabelingFunction, LabelSource] | None = None
        self._last: dict[int, Any] = {}
        self.changed = False
        is_auto = labels == "auto" and label_of is None
        labelling = (
            AS_RECORDED if labels == "auto" else as_labeling_function(labels, label_of, found=True)
        )
        options = InferenceOptions(noise="none", timing=timing, seed=seed)  # type: ignore[arg-type]
        buffer = Buffer(symbols)
        self.state = LearnerState(
            LearnerConfig(gamma, seed, reward_range, target, None if states == "found" else states),
            LabelState(labelling, is_auto, is_auto and not has_labels, FIRST_SEARCH),
            buffer,
            Hypothesis(options, buffer, may_time=timing is None),
            ValueBounds(gamma),
        )

    @property
    def gamma(self) -> float:
        """The discount."""
        return self.state.config.gamma

    @property
    def reward_range(self) -> tuple[float, float] | None:
        """The smallest and largest possible reward, if the user gave them."""
        return self.state.config.reward_range

    @property
    def seed(self) -> int:
        """The seed that all random choices follow from."""
        return self.state.config.seed

    @property
    def steps(self) -> int:
        """Number of steps taken so far."""
        return self.state.steps

    @property
    def episodes(self) -> int:
        """Number of closed episodes with a step."""
        return self.state.buffer.episodes

    @property
    def done(self) -> bool:
        """Whether no test is left."""
        return is_done(self.state)

    @property
    def after(self) -> str:
        """The purpose of the present test, in words."""
        return next((state.purpose for state in self.state.episodes if state.active), "")

    @property
    def sizes(self) -> dict[str, int]:
        """Number of states of each machine."""
        tables = self.state.hypothesis.tables
        return {} if tables is None else dict(zip(tables.names, tables.sizes, strict=True))

    def worth(self) -> tuple[float, float]:
        """Return the value of the plan, and the largest possible improvement."""
        self.state.refresh_bounds()
        return mean_value(self.state.model, self.state.values)

    def act(self, observation: Any, info: Mapping[str, Any], which: int = 0) -> Any:
        """Return the next action, or None if the episode is of no more use: then reset.

        If no episode is open, one begins with this observation.
        """
        action = self.select(observation, info, which)
        if action is None:
            self._verify_if_due()
        return action

    def select(self, observation: Any, info: Mapping[str, Any], which: int = 0) -> Any:
        """Return the next action as `act` does, but without verifying machines."""
        state, episode = self.state, self.episode(which)
        with locating(f"episode {self.episodes}"):
            symbol = self._symbol(observation)
            if not episode.active:
                with locating("reset"):
                    check_info(info)
                    label = self.labels.at_reset(observation, info)
                buffer = state.buffer
                begin_episode(state, episode, buffer.observations(symbol), buffer.labels(label))
            elif state.buffer.observations.codes.get(symbol) != episode.episode.observations[-1]:
                raise TraceError(
                    f"step {len(episode.episode)}: act() was shown another observation than the "
                    f"last step led to: tell learn() of every step, with truncated=True where "
                    f"the environment is reset"
                )
        self._last[which] = observation
        action = select_action(state, episode)
        if action is None:
            close_episode(state, episode)
            return None
        return self._actions[action]

    def learn(
        self,
        action: Any,
        observation: Any,
        reward: Any,
        terminated: bool,
        truncated: bool,
        info: Mapping[str, Any],
        which: int = 0,
    ) -> None:
        """Learn from the result of an action, which may be another than `act` returned.

        `changed` says then whether the machines had to change.

        Raises:
            ContradictoryTraces: when the world turns out to be random.
        """
        over = checked_flag(terminated, "terminated"), checked_flag(truncated, "truncated")
        step = self.encode(action, observation, reward, *over, info, which)
        self.changed = self.update(step, which) is not Change.NONE
        self._verify_if_due()

    def _verify_if_due(self) -> None:
        if self.state.exhausted and not self.state.verified:
            verify(self.state)

    def encode(
        self,
        action: Any,
        observation: Any,
        reward: Any,
        terminated: bool,
        truncated: bool,
        info: Mapping[str, Any],
        which: int,
    ) -> EncodedStep:
        """Return a step in symbols, or refuse it; nothing is learned."""
        episode = self.episode(which)
        if not episode.active:
            raise OptionError("learn() before act(): show act() what the environment's reset gave")
        where = f"episode {self.episodes}"
        if len(self.state.episodes) > 1:
            where = f"environment {which}"
        with locating(where), locating(f"step {len(episode.episode)}"):
            check_info(info)
            self._decide_on_labels(info)
            code = self._action_codes.get(self._action_names(action))
            if code is None:
                raise OptionError(f"action {shown(action)} is not one of the environment's")
            number, symbol = finite_reward(reward), self._symbol(observation)
            label = self.labels.after_step(self._last.get(which), action, reward, observation, info)
            complaint = too_large_to_add_up(abs(number), self.gamma, self.steps + 1)
            if complaint is not None:
                raise TraceError(complaint)
            return EncodedStep(code, number, symbol, label, terminated, truncated)

    def update(self, step: EncodedStep, which: int) -> Change:
        """Learn from a step."""
        return update(self.state, self.episode(which), step)

    def cut(self, which: int = 0) -> None:
        """Truncate an episode."""
        close_episode(self.state, self.episode(which), TRUNCATED)
        self.state.truncated_episodes += 1

    def action(self, code: int) -> Any:
        """Return the environment's action with a code."""
        return self._actions[code]

    @property
    def action_values(self) -> list[Any]:
        """All actions of the environment, by their codes."""
        return self._actions

    def is_last_observation(self, observation: Any, which: int = 0) -> bool:
        """Return whether this is the last observation of an episode, and go on from there."""
        self._last[which] = observation
        code = self.state.buffer.observations.codes.get(self._observations(observation))
        return code == self.episode(which).episode.observations[-1]

    def episode(self, which: int) -> EpisodeState:
        """Return the state of an episode."""
        if not isinstance(which, int | np.integer) or not 0 <= which < MAX_ENVIRONMENTS:
            raise OptionError(
                f"which={shown(which)}: number the episodes that are played side by side from 0 "
                f"on, up to {MAX_ENVIRONMENTS - 1:,}"
            )
        episodes = self.state.episodes
        while len(episodes) <= which:
            episodes.append(EpisodeState(len(episodes)))
        return episodes[which]

    @property
    def labels(self) -> LabelSource:
        """The present source of labels."""
        labelling = self.state.labels.labelling
        if self._labels is None or self._labels[0] is not labelling:
            label_of = self._label_of
            if not labelling.is_given:
                label_of = LabelsOfSymbols(labelling, self._observations, self._action_names)
            self._labels = labelling, LabelSource(self._env, label_of)
        return self._labels[1]

    def _symbol(self, observation: Any) -> Symbol:
        with locating("the observation"):
            return self._observations(observation)

    def _decide_on_labels(self, info: Mapping[str, Any]) -> None:
        """Make labels of observations if the first step shows that the environment has none."""
        if self.state.labels.undecided:
            self.state.labels.undecided = False
            if not any(key in info for key in INFO_KEYS):
                set_labels(self.state, OBSERVATIONS)

    def traces(self) -> TraceSet:
        """Return everything recorded; open episodes count as truncated."""
        return self.state.traces()

    def machines(self) -> Machines:
        """Return the machines that explain everything so far."""
        state = self.state
        if state.hypothesis.tables is None:
            if not self.steps:
                raise ModelError("nothing was seen yet: take at least one step")
            state.hypothesis.repair(state.open_episodes)
            state.rebuild()
        return build_machines(
            state.present_model().tables.for_labels(len(state.buffer.labels)),
            state.buffer,
            state.columns(),
            self.traces(),
            state.hypothesis.options,
            state.labels.labelling,
        )

    def plan(self) -> Plan:
        """Return the best plan by all steps so far."""
        return plan(
            self.machines(), self.traces(), gamma=self.gamma, reward_range=self.reward_range
        )

    def statement(self, kind: Kind | None = None, failure: str | None = None) -> Statement:
        """Return the present guarantee; `kind` is the reason to stop if tests are left."""
        return statement_of(self.state, kind, failure)


@contextmanager
def _single_environment(env: AnyEnv) -> Iterator[AnyEnv]:
    """Yield the environment itself, or one of a vector environment."""
    if isinstance(env, gym.Env):
        yield env
    else:
        with one_environment(env) as single:
            yield single


def _check_ranges(gamma: float, target: float, states: Any, seed: int) -> None:
    if not 0 < gamma <= 1:
        raise OptionError(f"gamma={gamma}: use a number above 0, up to 1")
    if not target >= 0:
        raise OptionError(f"target={target}: use a number from 0 on")
    if not (isinstance(states, str) and states == "found") and (
        not isinstance(states, int) or states < 1
    ):
        raise OptionError(f"states={shown(states)}: use 'found', or how many there are at most")
    if seed < 0:
        raise OptionError(f"seed={seed}: use at least 0")
