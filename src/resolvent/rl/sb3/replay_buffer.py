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
from resolvent.rl.augment import AugmentObservation
from resolvent.rl.env import wrapper_inside
from resolvent.rl.shape import UNSHAPED, ShapeReward
from resolvent.rl.tabular import ENDS, GOES_ON, UNKNOWN, CounterfactualSteps, VisibleModel


class CounterfactualReplayBuffer(ReplayBuffer):
    """Add to each step the outcomes of its action in every other state of the machines.

    The machines predict the next state and the reward of the action under the same observation in
    another state (Toro Icarte, Klassen, Valenzano and McIlraith 2022). Steps that the model does
    not know are omitted.

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
    >>> dqn.learn(100).replay_buffer.counterfactual_steps > 50
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
        model = VisibleModel(augmented, plan.model if isinstance(plan, Plan) else plan)
        self._steps = model.steps()
        shaped = wrapper_inside(env, ShapeReward)
        self._is_shaped = shaped is not None
        if shaped is not None:
            self._steps = self._steps._replace(reward=_shaped_reward(self._steps, model, shaped))
        encoded = [augmented.encode(*state) for state in model.augmented_states]
        self._encoded = np.array(encoded, observation_space.dtype).reshape(-1, *self.obs_shape)
        self._same_observation: list[list[int]] = [[] for _ in model.values]
        for number, code in enumerate(model.model.observation.tolist()):
            self._same_observation[code].append(number)
        self._codes = self._codes_of(model)
        self._first_action = int(getattr(action_space, "start", 0))
        self._waiting: deque[tuple[int, int]] = deque()
        self.counterfactual_steps = 0
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
        if any(UNSHAPED in info for info in infos) is not self._is_shaped:
            raise OptionError(
                "either the learner's environment or env is inside ShapeReward, but not both: "
                "counterfactual steps would have other rewards than real ones"
            )
        super().add(obs, next_obs, action, reward, done, infos)
        observations = np.reshape(obs, (self.n_envs, *self.obs_shape)).astype(self._encoded.dtype)
        actions = np.reshape(action, self.n_envs) - self._first_action
        for observation, number in zip(observations, actions.tolist(), strict=True):
            codes = self._codes.get(observation.tobytes())
            if codes is not None:
                self._waiting.extend(self._counterfactuals(*codes, int(number)))
        # A row of the buffer has a step for each environment.
        while len(self._waiting) >= self.n_envs:
            self._add_counterfactual([self._waiting.popleft() for _ in range(self.n_envs)])

    def _counterfactuals(self, observation: int, real: int, action: int) -> list[tuple[int, int]]:
        """Return the other augmented states with this observation where the action is known."""
        return [
            (state, action)
            for state in self._same_observation[observation]
            if state != real and self._steps.outcome[state, action] != UNKNOWN
        ]

    def _add_counterfactual(self, steps: list[tuple[int, int]]) -> None:
        state, action = np.array(steps).T
        ends = self._steps.outcome[state, action] == ENDS
        next_state = np.where(ends, state, self._steps.next_state[state, action])
        super().add(
            self._encoded[state],
            self._encoded[next_state],
            action + self._first_action,
            self._steps.reward[state, action],
            ends,
            [{}] * self.n_envs,
        )
        self.counterfactual_steps += self.n_envs

    def _codes_of(self, model: VisibleModel) -> dict[bytes, tuple[int, int]]:
        """Return the codes of observation and augmented state, by the bytes of their encoding.

        The second is −1 if the model does not know the augmented state: then all others are added.
        """
        codes = {}
        for code, value in enumerate(model.values):
            for states in np.ndindex(*model.sizes):
                encoded = np.array(model.augmented.encode(value, *states), self._encoded.dtype)
                codes[encoded.tobytes()] = code, -1
        for number, code in enumerate(model.model.observation.tolist()):
            codes[self._encoded[number].tobytes()] = code, number
        return codes


def _shaped_reward(
    steps: CounterfactualSteps, model: VisibleModel, shaped: ShapeReward
) -> NDArray[np.float64]:
    """Return the rewards of counterfactual steps as a wrapper shapes them."""
    if list(shaped.plan.model.states) != list(model.model.states):
        raise OptionError("ShapeReward has a plan by other machines: give both the same plan")
    states = map(model.model.augmented_state, range(len(model.model)))
    potential = np.array([shaped.potential.at(*state) for state in states])
    ahead = np.where(steps.outcome == GOES_ON, potential[steps.next_state], 0.0)
    reward: NDArray[np.float64] = steps.reward + shaped.gamma * ahead - potential[:, None]
    return reward


def _checked(env: Any, space: spaces.Space[Any], optimize_memory_usage: bool) -> AugmentObservation:
    if env is None:
        raise OptionError(
            'env is missing: give replay_buffer_kwargs={"env": env, "plan": plan}, with an '
            "environment inside AugmentObservation"
        )
    augmented = wrapper_inside(env, AugmentObservation)
    if augmented is None:
        raise OptionError(f"{env} does not show the machines: wrap it in AugmentObservation")
    if isinstance(space, spaces.Dict):
        raise OptionError(
            'counterfactual steps are stored in arrays: use AugmentObservation(mode="flatten")'
        )
    if augmented.observation_space != space:
        raise OptionError(
            f"the learner's observations are {space}, those of env {augmented.observation_space}: "
            "give an environment like the learner's, without wrappers around AugmentObservation "
            "that change observations"
        )
    discretizer = augmented.machines.preprocessor.discretize
    if augmented.observation_fn is not None or discretizer is not None:
        raise OptionError(
            "counterfactual steps need machines that read the environment's own observations: "
            "leave out observation_fn and discretize"
        )
    if optimize_memory_usage:
        raise OptionError(
            "optimize_memory_usage leaves no room for counterfactual steps: leave it out"
        )
    return augmented
