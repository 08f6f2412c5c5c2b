"""Shape rewards by potentials: `ShapeReward`, its vector form, and `Potential`."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Final, TypedDict, Unpack

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from resolvent._util.records import ByValue
from resolvent._util.validation import check_arguments
from resolvent.errors import ModelError, OptionError
from resolvent.machines.augmented_state import AugmentedState
from resolvent.planning.model import Model
from resolvent.planning.plan import Plan
from resolvent.planning.steps import acting_machines
from resolvent.preprocess.labeling import LabelingFunction
from resolvent.rl.augment import AugmentObservation, VectorAugmentObservation
from resolvent.rl.env import (
    LivePreprocessor,
    check_env,
    checked_reset,
    checked_step,
    wrapper_inside,
)
from resolvent.rl.tracker import EpisodeStates, VectorEpisodeStates, VectorStateTracker, tracker_of
from resolvent.rl.vector_env import one_environment, split
from resolvent.traces.symbols import Symbol, finite_reward

Floats = NDArray[np.float64]
UNSHAPED: Final = "unshaped_reward"  # key of the environment's own reward in infos
_TOLERANCE: Final = 1e-9  # largest change of a value at which value iteration stops


class LabelOptions(TypedDict, total=False):
    """Sources of labels and names of observations, as for `AugmentObservation`."""

    labels: str | LabelingFunction | None
    labeling_fn: Callable[..., Any] | None
    observation_fn: Callable[[Any], Any] | None


@dataclass(frozen=True, eq=False)
class Potential(ByValue):
    """The potential of each augmented state of a model.

    `of_augmented_state` has an entry for each augmented state of the model. `of_states` has an axis
    for each machine: it holds the potentials of augmented states that the model does not know.
    """

    model: Model
    of_augmented_state: NDArray[np.float64]
    of_states: NDArray[np.float64]

    @classmethod
    def of_plan(cls, plan: Plan) -> "Potential":
        """Return the values of a plan as a potential.

        An augmented state that the plan does not know has the mean potential of those with the
        same machine states, or of all if there are none.
        """
        model = plan.model
        sizes = tuple(plan.machines[name].states for name in model.states)
        values = plan.values
        if not np.isfinite(values).all():
            raise OptionError(
                "the plan's value is infinite in some augmented states: "
                "plan with gamma below 1, or with a reward_range"
            )
        joint = np.ravel_multi_index(tuple(model.states.values()), sizes)
        count = np.bincount(joint, minlength=prod(sizes))
        total = np.bincount(joint, values, prod(sizes))
        mean = np.where(count > 0, total / np.maximum(count, 1), values.mean())
        return cls(model, values, mean.reshape(sizes))

    def at(self, observation: Symbol, *states: int) -> float:
        """Return the potential of an augmented state, known or not."""
        number = self.model.find(observation, *states)
        return float(self.of_states[states]) if number is None else self._values[number]

    @cached_property
    def _values(self) -> Any:
        return self.of_augmented_state.tolist()


def values_of_states(model: Model, sizes: tuple[int, ...], gamma: float) -> NDArray[np.float64]:
    """Return the value of the machines' states: value iteration over the machines.

    The value of an augmented state is that of the best known path to the end or to other machine
    states, which have the mean value of their augmented states. So a transition takes its number
    of steps, not one. Random transitions are replaced by their likeliest outcome, since any
    potential keeps the optimum.
    """
    joint = np.ravel_multi_index(tuple(model.states.values()), sizes)
    size = prod(sizes)
    count = np.maximum(np.bincount(joint, minlength=size), 1)
    goes_on = model.known & ~model.ends
    target = np.where(goes_on, model.next_state, 0)
    stays = joint[target] == joint[:, None]
    discount = np.where(goes_on, gamma, 0.0)
    reward = np.where(model.known, model.reward, -np.inf)
    is_lost = ~model.known.any(axis=1)
    of_states, values = np.zeros(size), np.zeros(len(model))
    while True:
        ahead = np.where(stays, values[target], of_states[joint[target]])
        improved = (reward + discount * ahead).max(axis=1)
        improved[is_lost] = 0.0
        change = np.abs(improved - values).max(initial=0.0)
        values, of_states = improved, np.bincount(joint, improved, size) / count
        if change <= _TOLERANCE:
            return of_states.reshape(sizes)


class ShapeReward(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Add γ·Φ(next) − Φ(here) to each reward, where Φ is the value that a plan gives a state.

    So each reward shows whether the step was good. The optimal policy is the same in any
    environment, even if the plan is wrong: along an episode the added terms sum to −Φ(start)
    (Ng, Harada and Russell 1999).

    An episode that terminates ends with Φ = 0, a truncated one with the Φ of its last state: a
    learner that bootstraps there (as Stable-Baselines3 does) learns the same values as without
    shaping. An augmented state that the plan does not know gets the mean Φ of those with the same
    machine states, or of all if there are none.

    `gamma` is that of the learner, by default the plan's.

    Put it around `AugmentObservation` with the plan's machines, or around the environment itself,
    for recurrent learners: then it finds labels by `labels`, `labeling_fn` and `observation_fn`.
    `info["unshaped_reward"]` is the reward of the environment. Collect traces without this wrapper.

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
        gamma: float | None = None,
        **label_options: Unpack[LabelOptions],
    ) -> None:
        check_env(env, gym.Env, "ShapeReward", "VectorShapeReward")
        check_arguments(ShapeReward.__init__, locals(), leaving=["env", "plan"])
        gym.utils.RecordConstructorArgs.__init__(
            self, plan=plan, gamma=gamma, **label_options, _disable_deepcopy=True
        )
        gym.Wrapper.__init__(self, env)
        self.plan, self.gamma = plan, _shaping_gamma(plan, gamma)
        self.potential = Potential.of_plan(plan)
        augmented = wrapper_inside(env, AugmentObservation)
        self._tracks = augmented is None
        if augmented is None:
            machines = acting_machines(plan.machines)
            live = LivePreprocessor(env, plan.machines.preprocessor, **label_options)
            self._episode = EpisodeStates(env, machines, live, tracker_of(machines, live))
        elif any(value is not None for value in label_options.values()):
            raise OptionError(
                "AugmentObservation inside finds the labels already: leave out labels, "
                "labeling_fn and observation_fn"
            )
        else:
            machines = augmented.machines
            for name in plan.model.states:
                if name not in machines or machines[name] != plan.machines[name]:
                    raise ModelError(
                        f"AugmentObservation inside shows another {name} machine than the plan's: "
                        "wrap with plan.machines"
                    )
            self._episode = augmented.episode
        self._potential_here = 0.0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        observation, info = checked_reset(self.env.reset(seed=seed, options=options))
        if self._tracks:
            self._episode.reset(observation, info)
        self._potential_here = self.potential.at(*self.augmented_state)
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take a step, and shape its reward."""
        observation, reward, terminated, truncated, info = checked_step(self.env.step(action))
        if self._tracks:
            self._episode.step(action, observation, reward, terminated, info)
        ahead = 0.0 if terminated else self.potential.at(*self.augmented_state)
        shaped = finite_reward(reward) + self.gamma * ahead - self._potential_here
        self._potential_here = ahead
        return observation, shaped, terminated, truncated, {**info, UNSHAPED: reward}

    @property
    def augmented_state(self) -> AugmentedState:
        """The symbol of the last observation and the states of the plan's machines."""
        return self._episode.augmented_state(self.plan.model.states)


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
        gamma: float | None = None,
        **label_options: Unpack[LabelOptions],
    ) -> None:
        check_env(
            envs, gym.vector.VectorEnv, "VectorShapeReward", "ShapeReward for one environment"
        )
        check_arguments(VectorShapeReward.__init__, locals(), leaving=["envs", "plan"])
        if wrapper_inside(envs, VectorAugmentObservation) is not None:
            raise OptionError(
                "VectorShapeReward goes inside of VectorAugmentObservation: wrap in it first"
            )
        super().__init__(envs)
        self.plan, self.gamma = plan, _shaping_gamma(plan, gamma)
        self.potential = Potential.of_plan(plan)
        machines = acting_machines(plan.machines)
        with one_environment(envs) as env:
            live = LivePreprocessor(env, plan.machines.preprocessor, **label_options)
        if machines.state_uncertainty:
            raise OptionError(
                f"labels do not determine the states ({machines.state_uncertainty}): wrap each "
                "environment in ShapeReward before they are put together"
            )
        self._tracker = VectorStateTracker(machines, envs.num_envs)
        self._states = VectorEpisodeStates(envs, machines, live, self._tracker)
        self._potentials: Floats = np.zeros(envs.num_envs)

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin episodes in all environments, or in those of `options["reset_mask"]`."""
        observations, infos, mask = self._states.reset(seed, options)
        self._potentials = np.where(mask, self._potential_at(observations), self._potentials)
        return observations, infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Take a step in all environments, and shape the rewards."""
        returned = self.env.step(actions)
        observations, rewards, terminations, truncations, infos = returned
        step = self._states.step(actions, returned)
        reached = self._states.labels.episodes.reached(observations, infos)
        ahead = np.where(terminations, 0.0, self._potential_at(reached))
        shaped = rewards + self.gamma * ahead - self._potentials
        self._potentials = ahead
        if step.begins:
            self._states.begin(step)
            self._potentials = np.where(step.started, self._potential_at(observations), ahead)
        infos = {**infos, UNSHAPED: rewards.copy(), f"_{UNSHAPED}": step.stepped.copy()}
        shaped = np.where(step.stepped, shaped, rewards)
        return observations, shaped, terminations, truncations, infos

    def _potential_at(self, observations: Any) -> Floats:
        """Return the potential of each environment's augmented state, given a batch or a list."""
        if not isinstance(observations, list):
            observations = split(self.env.observation_space, observations)
        symbols = map(self._states.live.observations, observations)
        columns = (column.tolist() for column in self._tracker.values)
        return np.array(
            [self.potential.at(*state) for state in zip(symbols, *columns, strict=True)]
        )


def _shaping_gamma(plan: Any, gamma: float | None) -> float:
    """Return the discount of the shaping, by default the plan's."""
    if not isinstance(plan, Plan):
        raise OptionError(f"plan is a {type(plan).__name__}: give what rs.plan returned")
    gamma = plan.gamma if gamma is None else gamma
    if not 0 < gamma <= 1:
        raise OptionError(f"gamma={gamma}: use a number above 0, up to 1")
    return gamma
