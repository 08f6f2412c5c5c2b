"""Many environments + a plan → the same environments, with rewards shaped by the plan."""

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from resolvent.arguments import check_arguments
from resolvent.control.planning.plans import Plan
from resolvent.control.planning.situations import that_matter
from resolvent.control.shaping.potential import By, Potential
from resolvent.control.shaping.shape_reward import checked_gamma, checked_plan
from resolvent.control.wrapping.fitting import check_fit
from resolvent.control.wrapping.vector_augment_observation import VectorAugmentObservation
from resolvent.control.wrapping.vector_memory import VectorMemory
from resolvent.errors import OptionError
from resolvent.senses.live import LiveSenses
from resolvent.traces.labelling import Labelling
from resolvent.traces.live.vector_naming import VectorEpisodes, one_environment, split

Floats = NDArray[np.float64]


class VectorShapeReward(gym.vector.VectorWrapper):
    """`ShapeReward` for a vector environment, whichever way it resets by itself.

    It follows the machines by itself: put `VectorAugmentObservation` around it, not inside.
    `infos["unshaped_reward"]` holds what the environments paid.

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
        labels: str | Labelling | None = None,
        label_of: Callable[..., Any] | None = None,
        name_of: Callable[[Any], Any] | None = None,
    ) -> None:
        if not isinstance(envs, gym.vector.VectorEnv):
            raise OptionError(
                f"envs is a {type(envs).__name__}: give a gymnasium.vector.VectorEnv, "
                "or use ShapeReward for one environment"
            )
        check_arguments(
            VectorShapeReward.__init__, locals(), leaving=["envs", "plan", "by", "label_of"]
        )
        _refuse_augmented(envs)
        super().__init__(envs)
        self.plan = checked_plan(plan)
        self.gamma = checked_gamma(plan.gamma if gamma is None else gamma)
        self.potential = Potential.of_plan(plan, by=by)
        machines = that_matter(plan.machines)
        if machines.doubt:
            raise OptionError(
                f"labels do not tell the states ({machines.doubt}): wrap each environment in "
                "ShapeReward before they are put together"
            )
        with one_environment(envs) as env:
            live = LiveSenses(env, plan.machines.senses, labels, label_of, name_of)
            check_fit(machines, live, envs.single_observation_space, envs.single_action_space)
        self._observations = live.observations
        self._memory = VectorMemory(machines, envs.num_envs)
        self._episodes = VectorEpisodes(envs, live.label_of)
        self._all = np.ones(envs.num_envs, bool)
        self._promised: Floats = np.zeros(envs.num_envs)

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin episodes in all environments, or in those of `options["reset_mask"]`."""
        # Looked up before the reset, which takes it out of the options.
        mask = (options or {}).get("reset_mask", self._all)
        observations, infos = self.env.reset(seed=seed, options=options)
        self._memory.reset(self._episodes.reset(observations, infos, mask), mask)
        self._promised = np.where(mask, self._promise(self._split(observations)), self._promised)
        return observations, infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Take a step in all environments, and be paid for what it leads to as well."""
        observations, rewards, terminations, truncations, infos = self.env.step(actions)
        step = self._episodes.step(actions, observations, rewards, terminations, truncations, infos)
        started, stepped = step.started, step.stepped
        seen = self._split(observations)
        led_to = list(seen)
        if started.any() and self._episodes.mode is AutoresetMode.SAME_STEP:
            for number, last in self._episodes.final_observations(started, infos).items():
                led_to[number] = last
        self._memory.step(step.labels, stepped, terminations)
        promise = np.where(terminations, 0.0, self._promise(led_to))
        paid = rewards + self.gamma * promise - self._promised
        self._promised = promise
        if started.any():
            self._memory.reset(step.first_labels, started)
            self._promised = np.where(started, self._promise(seen), promise)
        infos = {**infos, "unshaped_reward": rewards.copy(), "_unshaped_reward": stepped.copy()}
        shaped = np.where(stepped, paid, rewards)
        return observations, shaped, terminations, truncations, infos

    def _promise(self, observations: Sequence[Any]) -> Floats:
        each = zip(observations, *(column.tolist() for column in self._memory.values), strict=True)
        return np.array(
            [self.potential.at(self._observations(seen), states) for seen, *states in each]
        )

    def _split(self, observations: Any) -> list[Any]:
        return split(self.env.observation_space, observations)


def _refuse_augmented(envs: gym.vector.VectorEnv[Any, Any, Any]) -> None:
    inner = envs
    while isinstance(inner, gym.vector.VectorWrapper):
        if isinstance(inner, VectorAugmentObservation):
            raise OptionError(
                "VectorShapeReward goes inside of VectorAugmentObservation: wrap in it first"
            )
        inner = inner.env
