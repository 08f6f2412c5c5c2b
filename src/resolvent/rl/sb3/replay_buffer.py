"""A replay buffer for DQN that also holds counterfactual steps in other machine states."""

from collections import deque
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.buffers import ReplayBuffer

from resolvent.errors import OptionError
from resolvent.planning.model import Model
from resolvent.planning.plan import Plan
from resolvent.rl.counterfactual import (
    ENDS,
    GOES_ON,
    UNKNOWN,
    CounterfactualSteps,
    inner_situations,
    inner_values,
)
from resolvent.rl.wrappers.augment import AugmentObservation, augmented_inside
from resolvent.rl.wrappers.shape import UNSHAPED, ShapeReward, shaped_inside


class CounterfactualReplayBuffer(ReplayBuffer):
    """Add to each step the outcomes of its action in every other state of the machines.

    The machines predict the next state and the reward of the action under the same observation in
    another state (Toro Icarte, Klassen, Valenzano and McIlraith 2022). Steps that the model does
    not know are left out, never guessed.

    The learner's environment is inside `AugmentObservation`, in mode "flatten", "multidiscrete"
    or "discrete". `env` is one such environment, to look at, and `plan` a plan, or a `Model`, of
    the same machines. Counterfactual steps take room in the buffer, so choose `buffer_size` and
    `batch_size` larger. If `env` is inside `ShapeReward`, as the learner's then is,
    counterfactual rewards are shaped, too.

    >>> import gymnasium as gym, resolvent as rs
    >>> from stable_baselines3 import DQN
    >>> house = gym.make("resolvent/House-v0", max_episode_steps=50)
    >>> traces = rs.collect(house, episodes=200, seed=0)
    >>> plan = rs.plan(rs.infer(traces), traces)
    >>> env = rs.AugmentObservation(house, plan.machines, mode="flatten")
    >>> buffer = {
    ...     "replay_buffer_class": CounterfactualReplayBuffer,
    ...     "replay_buffer_kwargs": {"env": env, "plan": plan},
    ... }
    >>> small = {"buffer_size": 10_000, "learning_starts": 1_000, "device": "cpu", "seed": 0}
    >>> dqn = DQN("MlpPolicy", env, **buffer, **small)
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
        steps = CounterfactualSteps.of(augmented.env, model)
        self._following, self._outcome = steps.following, steps.outcome
        shaped = shaped_inside(env)
        self._shaped = shaped is not None
        self._reward = steps.reward if shaped is None else _shaped_reward(steps, model, shaped)
        situations = inner_situations(augmented, model)
        encoded = [augmented.encode(*situation) for situation in situations]
        self._shown = np.array(encoded, observation_space.dtype).reshape(-1, *self.obs_shape)
        self._situations_of = _by_observation(model)
        self._first_action = int(getattr(action_space, "start", 0))
        self._place_of = self._places(augmented, model)
        self._waiting: deque[tuple[int, int]] = deque()
        self.imagined = 0
        """Number of counterfactual steps added so far."""

    def add(
        self,
        obs: NDArray[Any],
        next_obs: NDArray[Any],
        action: NDArray[Any],
        reward: NDArray[Any],
        done: NDArray[Any],
        infos: list[dict[str, Any]],
    ) -> None:
        """Add the steps of all environments, and their counterfactual steps."""
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
        for observed, number in each:
            place = self._place_of.get(observed.tobytes())
            if place is not None:
                self._waiting.extend(
                    self._counterfactuals(*place, int(number) - self._first_action)
                )
        # A row of the buffer has a step for each environment.
        while len(self._waiting) >= self.n_envs:
            self._add_counterfactual([self._waiting.popleft() for _ in range(self.n_envs)])

    def _counterfactuals(
        self, observation: int, situation: int, action: int
    ) -> list[tuple[int, int]]:
        """Return the other situations with this observation where the action is known."""
        return [
            (counterfactual, action)
            for counterfactual in self._situations_of[observation]
            if counterfactual != situation and self._outcome[counterfactual, action] != UNKNOWN
        ]

    def _add_counterfactual(self, steps: list[tuple[int, int]]) -> None:
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

    def _places(self, augmented: AugmentObservation, model: Model) -> dict[bytes, tuple[int, int]]:
        """Return the codes of observation and situation, by the bytes of an augmented observation.

        The situation is −1 if the model does not know it: then all others are added.
        """
        places = {}
        sizes = [machine.states for machine in augmented.machines.values()]
        for code, value in enumerate(inner_values(augmented, model)):
            for states in np.ndindex(*sizes):
                encoded = np.array(augmented.encode(value, *states), self._shown.dtype)
                places[encoded.tobytes()] = (code, -1)
        for number, (code, encoded) in enumerate(
            zip(model.observation.tolist(), self._shown, strict=True)
        ):
            places[encoded.tobytes()] = (code, number)
        return places


def _shaped_reward(
    steps: CounterfactualSteps, model: Model, shaped: ShapeReward
) -> NDArray[np.float64]:
    """Return the rewards of counterfactual steps as a wrapper shapes them."""
    if list(shaped.plan.model.states) != list(model.states):
        raise OptionError("ShapeReward has a plan by other machines: give both the same plan")
    named = map(model.named, range(len(model)))
    potential = np.array([shaped.potential.at(symbol, states) for symbol, *states in named])
    ahead = np.where(steps.outcome == GOES_ON, potential[steps.following], 0.0)
    reward: NDArray[np.float64] = steps.reward + shaped.gamma * ahead - potential[:, None]
    return reward


def _by_observation(model: Model) -> list[list[int]]:
    """Return the situations of each observation."""
    by_code: list[list[int]] = [[] for _ in model.observations]
    for number, code in enumerate(model.observation.tolist()):
        by_code[code].append(number)
    return by_code


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
