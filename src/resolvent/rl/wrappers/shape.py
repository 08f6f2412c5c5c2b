"""Shape rewards by the values of a plan: `ShapeReward` and its vector form."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from resolvent._util.validation import check_arguments
from resolvent.errors import ModelError, OptionError
from resolvent.machines import Machines
from resolvent.planning.plan import Plan
from resolvent.planning.steps import acting_machines
from resolvent.preprocess.labeling import LabelingFunction
from resolvent.rl.env import (
    AnyEnv,
    LabelSource,
    LivePreprocessor,
    checked_reset,
    checked_step,
    finite_reward,
)
from resolvent.rl.potential import By, Potential
from resolvent.rl.tracker import BeliefTracker, StateTracker, VectorStateTracker
from resolvent.rl.vector_env import VectorEpisodes, one_environment, split
from resolvent.rl.wrappers.augment import (
    AugmentObservation,
    VectorAugmentObservation,
    augmented_inside,
)
from resolvent.rl.wrappers.core import check_fit

Floats = NDArray[np.float64]

UNSHAPED: Final = "unshaped_reward"
"""Key of the environment's own reward in infos."""


class ShapeReward(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Add γ·Φ(next) − Φ(here) to each reward, where Φ is the value that a plan gives a state.

    So a learner sees at each step whether it was a good one. The best policy stays the best, in
    any environment and however wrong the plan is: along an episode the added terms sum to
    −Φ(start) (Ng, Harada and Russell 1999).

    An episode that terminates ends with Φ = 0. A truncated one ends with the Φ of its last
    state: a learner that bootstraps there (as Stable-Baselines3 does) learns the same values as
    without shaping. An augmented state that the plan does not know gets the mean Φ of those with
    the same machine states, or of all, if there are none.

    With by="situation" Φ is the plan's value of each augmented state, with "states" the value
    of the machines' states, whatever is observed: less informative, and more robust. `gamma` is
    that of the learner, by default the plan's.

    Put it around `AugmentObservation` with the plan's machines, or around the environment
    itself, for recurrent learners: then it finds labels by `labels`, `label_of` and `name_of`.
    `info["unshaped_reward"]` is the reward of the environment. Collect traces
    without this wrapper.

    >>> import gymnasium as gym, resolvent as rs
    >>> env = gym.make("resolvent/House-v0")
    >>> traces = rs.collect(env, episodes=200, seed=0)
    >>> shaped = ShapeReward(env, rs.plan(rs.infer(traces), traces))
    >>> _ = shaped.reset()
    >>> round(shaped.step(2)[1], 4), round(shaped.step(4)[1], 4)  # to the key; sit there
    (0.0, -0.0407)
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        plan: Plan,
        *,
        by: By = "situation",
        gamma: float | None = None,
        labels: str | LabelingFunction | None = None,
        label_of: Callable[..., Any] | None = None,
        name_of: Callable[[Any], Any] | None = None,
    ) -> None:
        if not isinstance(env, gym.Env):
            raise OptionError(
                f"env is a {type(env).__name__}: give a gymnasium.Env, "
                "or use VectorShapeReward for a VectorEnv"
            )
        check_arguments(ShapeReward.__init__, locals(), leaving=["env", "plan", "by", "label_of"])
        gym.utils.RecordConstructorArgs.__init__(
            self,
            plan=plan,
            by=by,
            gamma=gamma,
            labels=labels,
            label_of=label_of,
            name_of=name_of,
            _disable_deepcopy=True,
        )
        gym.Wrapper.__init__(self, env)
        self.plan, self.gamma = plan, _shaping_gamma(plan, gamma)
        self.potential = Potential.of_plan(plan, by=by)
        augmented = augmented_inside(env)
        self._state: _AugmentedState | _TrackedState
        if augmented is None:
            self._state = _TrackedState(env, plan, labels, label_of, name_of)
        else:
            if not (labels is None and label_of is None and name_of is None):
                raise OptionError(
                    "AugmentObservation inside finds the labels already: leave out labels, "
                    "label_of and name_of"
                )
            self._state = _AugmentedState(augmented, plan)
        self._potential_here = 0.0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        observation, info = checked_reset(self.env.reset(seed=seed, options=options))
        self._state.reset(observation, info)
        self._potential_here = self.potential.at(*self._state.situation)
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take a step, and shape its reward."""
        observation, reward, terminated, truncated, info = checked_step(self.env.step(action))
        self._state.step(action, observation, reward, terminated, info)
        ahead = 0.0 if terminated else self.potential.at(*self._state.situation)
        shaped = finite_reward(reward) + self.gamma * ahead - self._potential_here
        self._potential_here = ahead
        return observation, shaped, terminated, truncated, {**info, UNSHAPED: reward}


def shaped_inside(env: gym.Env[Any, Any]) -> ShapeReward | None:
    """Return the `ShapeReward` around or inside an environment, None without one."""
    while isinstance(env, gym.Wrapper) and not isinstance(env, ShapeReward):
        env = env.env
    return env if isinstance(env, ShapeReward) else None


class VectorShapeReward(gym.vector.VectorWrapper):
    """`ShapeReward` for a vector environment, in any autoreset mode.

    It tracks the machines itself: put `VectorAugmentObservation` around it, not inside.
    `infos["unshaped_reward"]` holds the rewards of the environments.

    >>> import gymnasium as gym, resolvent as rs
    >>> house = gym.make("resolvent/House-v0")
    >>> traces = rs.collect(house, episodes=200, seed=0)
    >>> envs = gym.make_vec("resolvent/House-v0", num_envs=2, vectorization_mode="sync")
    >>> shaped = VectorShapeReward(envs, rs.plan(rs.infer(traces), traces))
    >>> _ = shaped.reset()
    >>> shaped.step([2, 4])[1].round(4).tolist()  # to the key; sit where there is no chair
    [0.0, -0.0387]
    """

    def __init__(
        self,
        envs: gym.vector.VectorEnv[Any, Any, Any],
        plan: Plan,
        *,
        by: By = "situation",
        gamma: float | None = None,
        labels: str | LabelingFunction | None = None,
        label_of: Callable[..., Any] | None = None,
        name_of: Callable[[Any], Any] | None = None,
    ) -> None:
        if not isinstance(envs, gym.vector.VectorEnv):
            raise OptionError(
                f"envs is a {type(envs).__name__}: give a gymnasium.vector.VectorEnv, "
                "or use ShapeReward for one environment"
            )
        judged = ["envs", "plan", "by", "label_of"]
        check_arguments(VectorShapeReward.__init__, locals(), leaving=judged)
        _check_not_augmented(envs)
        super().__init__(envs)
        self.plan, self.gamma = plan, _shaping_gamma(plan, gamma)
        self.potential = Potential.of_plan(plan, by=by)
        spaces = envs.single_observation_space, envs.single_action_space
        with one_environment(envs) as env:
            machines, live = _fitting(plan, env, spaces, labels, label_of, name_of)
        if machines.doubt:
            raise OptionError(
                f"labels do not tell the states ({machines.doubt}): wrap each environment in "
                "ShapeReward before they are put together"
            )
        self._symbol = live.observations
        self._memory = VectorStateTracker(machines, envs.num_envs)
        self._episodes = VectorEpisodes(envs, live.label_of)
        self._all = np.ones(envs.num_envs, bool)
        self._potentials: Floats = np.zeros(envs.num_envs)

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin episodes in all environments, or in those of `options["reset_mask"]`."""
        # Looked up before the reset, which removes it from the options.
        mask = (options or {}).get("reset_mask", self._all)
        observations, infos = self.env.reset(seed=seed, options=options)
        self._memory.reset(self._episodes.reset(observations, infos, mask), mask)
        self._potentials = np.where(mask, self._at(self._split(observations)), self._potentials)
        return observations, infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Take a step in all environments, and shape the rewards."""
        observations, rewards, terminations, truncations, infos = self.env.step(actions)
        step = self._episodes.step(actions, observations, rewards, terminations, truncations, infos)
        started, stepped = step.started, step.stepped
        returned = self._split(observations)
        reached = self._episodes.reached(returned, started, infos)
        self._memory.step(step.labels, stepped, terminations)
        ahead = np.where(terminations, 0.0, self._at(reached))
        shaped = rewards + self.gamma * ahead - self._potentials
        self._potentials = ahead
        if started.any():
            self._memory.reset(step.first_labels, started)
            self._potentials = np.where(started, self._at(returned), ahead)
        infos = {**infos, UNSHAPED: rewards.copy(), f"_{UNSHAPED}": stepped.copy()}
        shaped = np.where(stepped, shaped, rewards)
        return observations, shaped, terminations, truncations, infos

    def _at(self, observations: Sequence[Any]) -> Floats:
        """Return the potential of each environment's augmented state."""
        each = zip(observations, *(column.tolist() for column in self._memory.values), strict=True)
        return np.array(
            [self.potential.at(self._symbol(observation), states) for observation, *states in each]
        )

    def _split(self, observations: Any) -> list[Any]:
        return split(self.env.observation_space, observations)


class _AugmentedState:
    """The augmented state, by the `AugmentObservation` inside."""

    def __init__(self, augmented: AugmentObservation, plan: Plan) -> None:
        names = list(augmented.machines)
        for name in plan.model.states:
            if name not in names or augmented.machines[name] != plan.machines[name]:
                raise ModelError(
                    f"AugmentObservation inside shows another {name} machine than the plan's: "
                    "wrap with plan.machines"
                )
        self._augmented = augmented
        self._places = [1 + names.index(name) for name in plan.model.states]
        self._symbol = augmented.live.observations

    @property
    def situation(self) -> tuple[Any, tuple[int, ...]]:
        """The symbol of the observation, and the states."""
        state = self._augmented.situation
        return self._symbol(state[0]), tuple(state[place] for place in self._places)

    def reset(self, observation: Any, info: dict[str, Any]) -> None:
        """Do nothing: the wrapper inside was reset."""

    def step(
        self, action: Any, observation: Any, reward: Any, terminated: bool, info: dict[str, Any]
    ) -> None:
        """Do nothing: the wrapper inside took the step."""


class _TrackedState:
    """The augmented state, tracked by the plan's machines."""

    def __init__(
        self,
        env: gym.Env[Any, Any],
        plan: Plan,
        labels: str | LabelingFunction | None,
        label_of: Callable[..., Any] | None,
        name_of: Callable[[Any], Any] | None,
    ) -> None:
        spaces = env.observation_space, env.action_space
        machines, live = _fitting(plan, env, spaces, labels, label_of, name_of)
        self._symbol = live.observations
        self._belief = BeliefTracker(machines, live) if machines.doubt else None
        self._memory = self._belief or StateTracker(machines)
        self._labels = LabelSource(env, live.label_of)
        self._observation: Any = None

    @property
    def situation(self) -> tuple[Any, tuple[int, ...]]:
        """The symbol of the observation, and the states."""
        return self._symbol(self._observation), self._memory.values

    def reset(self, observation: Any, info: dict[str, Any]) -> None:
        """Begin an episode."""
        self._memory.reset(self._labels.at_reset(observation, info))
        self._observation = observation

    def step(
        self, action: Any, observation: Any, reward: Any, terminated: bool, info: dict[str, Any]
    ) -> None:
        """Read the label of a step."""
        before, self._observation = self._observation, observation
        label = self._labels.after_step(before, action, reward, observation, info)
        if self._belief is not None:
            self._belief.took(before, action, reward, observation, terminated)
        self._memory.step(label, terminated)


def _shaping_gamma(plan: Any, gamma: float | None) -> float:
    """Return the discount of the shaping, by default the plan's."""
    if not isinstance(plan, Plan):
        raise OptionError(f"plan is a {type(plan).__name__}: give what rs.plan returned")
    gamma = plan.gamma if gamma is None else gamma
    if not 0 < gamma <= 1:
        raise OptionError(f"gamma={gamma}: use a number above 0, up to 1")
    return gamma


def _fitting(
    plan: Plan,
    env: AnyEnv,
    spaces: tuple[gym.Space[Any], gym.Space[Any]],
    labels: str | LabelingFunction | None,
    label_of: Callable[..., Any] | None,
    name_of: Callable[[Any], Any] | None,
) -> tuple[Machines, LivePreprocessor]:
    """Return the plan's machines, which fit the environment, and the translation of its values."""
    live = LivePreprocessor(env, plan.machines.senses, labels, label_of, name_of)
    machines = acting_machines(plan.machines)
    check_fit(machines, live, *spaces)
    return machines, live


def _check_not_augmented(envs: gym.vector.VectorEnv[Any, Any, Any]) -> None:
    inner = envs
    while isinstance(inner, gym.vector.VectorWrapper):
        if isinstance(inner, VectorAugmentObservation):
            raise OptionError(
                "VectorShapeReward goes inside of VectorAugmentObservation: wrap in it first"
            )
        inner = inner.env
