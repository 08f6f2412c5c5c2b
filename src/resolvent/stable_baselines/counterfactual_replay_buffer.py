"""A replay buffer for DQN that also holds what would have happened in other states of machines."""

from collections import deque
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.buffers import ReplayBuffer

from resolvent.control.learning.imagined import (
    ENDS,
    GOES_ON,
    UNKNOWN,
    ImaginedSteps,
    shown_situations,
    shown_values,
)
from resolvent.control.planning.model import Model
from resolvent.control.planning.plans import Plan
from resolvent.control.shaping.shape_reward import UNSHAPED, ShapeReward, shaped_inside
from resolvent.control.wrapping.augment_observation import AugmentObservation, augmented_inside
from resolvent.errors import OptionError


class CounterfactualReplayBuffer(ReplayBuffer):
    """Holds for each step also what its action does in every other state of the machines.

    The machines say where the action leads under the same observation in another state, and
    what it pays. So one step in the world teaches as much as several (Toro Icarte, Klassen,
    Valenzano and McIlraith 2022). What the model does not know is left out, never guessed.

    The environment of the learner is inside `AugmentObservation`, in mode "flatten",
    "multidiscrete" or "discrete". `env` is one such environment, to look at, and `plan` a
    plan, or a `Model`, of the same machines. A buffer holds as many more steps as it imagines,
    so choose `buffer_size` and `batch_size` larger. Where `env` is inside `ShapeReward`, as the
    learner's then is, imagined steps are paid as it would pay them.

    >>> import gymnasium as gym, resolvent as rs
    >>> from stable_baselines3 import DQN
    >>> house = gym.make("resolvent/House-v0", max_episode_steps=50)
    >>> traces = rs.collect(house, episodes=200, seed=0)
    >>> plan = rs.plan(rs.infer(traces), traces)
    >>> env = rs.AugmentObservation(house, plan.machines, mode="flatten")
    >>> kind, kept = CounterfactualReplayBuffer, {"env": env, "plan": plan}
    >>> imagines = {"replay_buffer_class": kind, "replay_buffer_kwargs": kept}
    >>> small = {"buffer_size": 10_000, "learning_starts": 1_000, "device": "cpu", "seed": 0}
    >>> dqn = DQN("MlpPolicy", env, **imagines, **small)
    >>> dqn.learn(100).replay_buffer.imagined > 50
    True
    """

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        device: Any = "auto",
        n_envs: int = 1,
        optimize_memory_usage: bool = False,
        handle_timeout_termination: bool = True,
        *,
        env: Any = None,
        plan: Plan | Model | None = None,
    ) -> None:
        augmented = _checked(env, observation_space, optimize_memory_usage)
        if not isinstance(plan, Plan | Model):
            raise OptionError(
                f"plan is a {type(plan).__name__}: give what rs.plan returned, as "
                'replay_buffer_kwargs={"env": env, "plan": plan}'
            )
        super().__init__(
            buffer_size,
            observation_space,
            action_space,
            device,
            n_envs=n_envs,
            handle_timeout_termination=handle_timeout_termination,
        )
        model = plan.model if isinstance(plan, Plan) else plan
        steps = ImaginedSteps.of(augmented.env, model)
        self._following, self._outcome = steps.following, steps.outcome
        shaped = shaped_inside(env)
        self._shaped = shaped is not None
        self._reward = steps.reward if shaped is None else _as_shaped(steps, model, shaped)
        encoded = [augmented.encode(*one) for one in shown_situations(augmented, model)]
        self._shown = np.array(encoded, observation_space.dtype).reshape(-1, *self.obs_shape)
        self._among = _among(model)
        self._first_action = int(getattr(action_space, "start", 0))
        self._observation_of = self._codes(augmented, model)
        self._waiting: deque[tuple[int, int]] = deque()
        self.imagined = 0
        """How many of the steps that were ever put here were imagined."""

    def add(
        self,
        obs: NDArray[Any],
        next_obs: NDArray[Any],
        action: NDArray[Any],
        reward: NDArray[Any],
        done: NDArray[Any],
        infos: list[dict[str, Any]],
    ) -> None:
        """Put in the steps of all environments, and those that they let imagine."""
        if any(UNSHAPED in info for info in infos) is not self._shaped:
            raise OptionError(
                "of the learner's environment and the one given as env, ShapeReward is around one "
                "alone: imagined steps would be paid otherwise than those that are taken"
            )
        super().add(obs, next_obs, action, reward, done, infos)
        each = zip(
            np.reshape(obs, (self.n_envs, *self.obs_shape)).astype(self._shown.dtype),
            np.reshape(action, self.n_envs).tolist(),
            strict=True,
        )
        for shown, number in each:
            real = self._observation_of.get(shown.tobytes())
            if real is not None:
                done_there = int(number) - self._first_action
                self._waiting.extend(self._imaginable(*real, done_there))
        # A row of the buffer has a step for each environment.
        while len(self._waiting) >= self.n_envs:
            self._add_imagined([self._waiting.popleft() for _ in range(self.n_envs)])

    def _imaginable(self, observation: int, situation: int, action: int) -> list[tuple[int, int]]:
        """Return the other situations under this observation in which the action is known."""
        return [
            (other, action)
            for other in self._among[observation]
            if other != situation and self._outcome[other, action] != UNKNOWN
        ]

    def _add_imagined(self, steps: list[tuple[int, int]]) -> None:
        situation, action = np.array(steps).T
        ends = self._outcome[situation, action] == ENDS
        following = np.where(ends, situation, self._following[situation, action])
        super().add(
            self._shown[situation],
            self._shown[following],
            action + self._first_action,
            self._reward[situation, action],
            ends,
            [{}] * self.n_envs,
        )
        self.imagined += self.n_envs

    def _codes(self, augmented: AugmentObservation, model: Model) -> dict[bytes, tuple[int, int]]:
        """Return the observation and the situation behind all that may be shown.

        The situation is −1 where the model does not know it: then all others are imagined.
        """
        found = {}
        sizes = [machine.states for machine in augmented.machines.values()]
        for code, value in enumerate(shown_values(augmented, model)):
            for states in np.ndindex(*sizes):
                shown = np.array(augmented.encode(value, *states), self._shown.dtype)
                found[shown.tobytes()] = (code, -1)
        for number, (code, shown) in enumerate(
            zip(model.observation.tolist(), self._shown, strict=True)
        ):
            found[shown.tobytes()] = (code, number)
        return found


def _as_shaped(steps: ImaginedSteps, model: Model, shaped: ShapeReward) -> NDArray[np.float64]:
    """Return what imagined steps are paid where a wrapper shapes rewards."""
    if list(shaped.plan.model.states) != list(model.states):
        raise OptionError("ShapeReward has a plan by other machines: give both the same plan")
    named = map(model.named, range(len(model)))
    worth = np.array([shaped.potential.at(observation, states) for observation, *states in named])
    ahead = np.where(steps.outcome == GOES_ON, worth[steps.following], 0.0)
    paid: NDArray[np.float64] = steps.reward + shaped.gamma * ahead - worth[:, None]
    return paid


def _among(model: Model) -> list[list[int]]:
    among: list[list[int]] = [[] for _ in model.observations]
    for number, code in enumerate(model.observation.tolist()):
        among[code].append(number)
    return among


def _checked(env: Any, space: spaces.Space[Any], optimize_memory_usage: bool) -> AugmentObservation:
    if env is None:
        raise OptionError(
            'env is missing: give replay_buffer_kwargs={"env": env, "plan": plan}, with an '
            "environment inside AugmentObservation"
        )
    augmented = augmented_inside(env)
    if augmented is None:
        raise OptionError(f"{env} does not show the machines: wrap it in AugmentObservation")
    if isinstance(space, spaces.Dict):
        raise OptionError(
            'imagined steps are kept in arrays: use AugmentObservation(mode="flatten")'
        )
    if augmented.observation_space != space:
        raise OptionError(
            f"the learner sees {space}, and env shows {augmented.observation_space}: give an "
            "environment as the learner's, with nothing around AugmentObservation that "
            "changes what it shows"
        )
    if augmented.name_of is not None or augmented.machines.senses.discretise is not None:
        raise OptionError(
            "steps cannot be imagined where observations have other names than what is shown "
            "(name_of, discretise)"
        )
    if optimize_memory_usage:
        raise OptionError("optimize_memory_usage has no place for imagined steps: leave it out")
    return augmented
