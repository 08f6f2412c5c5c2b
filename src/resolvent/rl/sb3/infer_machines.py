"""A callback of Stable-Baselines3 that infers machines from a learner's episodes."""

from collections.abc import Mapping

import numpy as np
import torch
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper, VecNormalize

from resolvent.errors import OptionError
from resolvent.rl.sb3.online_machines import OnlineMachineWrapper, Slots


class InferMachines(BaseCallback):
    """Infer machines from a learner's episodes at regular intervals, and show them to it.

    A callback for PPO, DQN and similar learners in an `OnlineMachineWrapper`. Between two rollouts
    it updates the machines from all episodes so far. When they change, states that result from a
    split inherit the weights of the old state, and the steps in a replay buffer are relabeled by
    the new machines. (A buffer whose rows are not the steps themselves is emptied.)

    `every` is the number of steps between two updates; after `until` steps machines stay unchanged.
    The logger records the number of states as "machines/transition_states" and so on.

    >>> import torch
    >>> torch.set_num_threads(1)  # more would only wait for each other in so small a network
    >>> from stable_baselines3 import PPO
    >>> from stable_baselines3.common.env_util import make_vec_env
    >>> import gymnasium as gym
    >>> def house():
    ...     return gym.make("resolvent/House-v0", max_episode_steps=50)
    >>> envs = OnlineMachineWrapper(make_vec_env(house, n_envs=4, seed=0), most_states=4)
    >>> ppo = PPO("MlpPolicy", envs, n_steps=256, batch_size=256, seed=0, device="cpu")
    >>> _ = ppo.learn(2_000, callback=InferMachines(every=1_000))
    >>> envs.machines.transition.states, envs.machines.reward.states
    (2, 2)
    """

    def __init__(self, *, every: int = 2_000, until: int | None = None, verbose: int = 0) -> None:
        super().__init__(verbose)
        if every < 1:
            raise OptionError(f"every={every}: use at least 1")
        self.every, self.until = every, until
        self.changes: list[int] = []
        """The numbers of steps of the learner after which machines changed."""
        self._due = every

    def _on_training_start(self) -> None:
        self.envs = machines_inside(self.training_env)
        if isinstance(self.model, OffPolicyAlgorithm) and self.model.replay_buffer is not None:
            self.envs.remembers = self.model.replay_buffer.buffer_size
        # A learner that continues keeps its count of steps, and so does this.
        self._due = min(self._due, self.model.num_timesteps + self.every)

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        steps = self.model.num_timesteps
        if steps < self._due or (self.until is not None and steps > self.until):
            return
        self._due = steps + self.every
        changed = self.envs.infer()
        if self.envs.machines is not None:
            for name, machine in self.envs.machines.items():
                self.logger.record(f"machines/{name}_states", machine.states)
        if changed is not None:
            self.changes.append(steps)
            self._show(changed)

    def _show(self, changed: Mapping[str, Slots]) -> None:
        """Transfer weights and steps, and replace the learner's last observation."""
        transfer_weights(self.model.policy, self.envs, changed)
        if isinstance(self.model, OffPolicyAlgorithm) and self.model.replay_buffer is not None:
            relabel_steps(self.model.replay_buffer, self.envs)
        outermost, current = self.training_env, self.envs.current()
        if outermost is self.envs:
            self.model._last_obs = current
        elif isinstance(outermost, VecNormalize) and outermost.venv is self.envs:
            outermost.old_obs = current
            self.model._last_original_obs = current
            self.model._last_obs = outermost.normalize_obs(current)


def machines_inside(venv: VecEnv) -> OnlineMachineWrapper:
    """Return the `OnlineMachineWrapper` around or inside a vector environment."""
    inner: VecEnv = venv
    while isinstance(inner, VecEnvWrapper):
        if isinstance(inner, OnlineMachineWrapper):
            return inner
        inner = inner.venv
    raise OptionError(
        "InferMachines shows machines by an OnlineMachineWrapper: give the learner "
        "OnlineMachineWrapper(make_vec_env(...)) as its environment"
    )


def transfer_weights(
    policy: torch.nn.Module, envs: OnlineMachineWrapper, changed: Mapping[str, Slots]
) -> None:
    """Copy to each slot the weights of the slot that showed its state before.

    Only layers that read observations directly are changed.
    """
    width, size = int(np.prod(envs.observation_space.shape or (0,))), envs.shown.size
    columns = {}
    for number, name in enumerate(envs.shown.names):
        first = width - (len(envs.shown.names) - number) * size
        for slot, earlier in changed[name].changes.items() if name in changed else ():
            columns[first + slot] = first + earlier
    if not columns:
        return
    with torch.no_grad():
        for layers in policy.modules():
            if not isinstance(layers, torch.nn.Sequential) or not len(layers):
                continue
            layer = layers[0]
            if isinstance(layer, torch.nn.Linear) and layer.in_features == width:
                layer.weight[:, list(columns)] = layer.weight[:, list(columns.values())]


def relabel_steps(buffer: ReplayBuffer, envs: OnlineMachineWrapper) -> None:
    """Rewrite the machine states of the steps in a replay buffer, by the present machines.

    Its rows have to be the steps, one after the other; any other buffer is emptied.
    """
    if type(buffer) is not ReplayBuffer or buffer.optimize_memory_usage:
        buffer.reset()
        return
    size = buffer.buffer_size
    stored = size if buffer.full else buffer.pos
    for environment, first, columns in envs.remembered():
        ago = envs.steps - first - np.arange(len(columns) - 1)
        is_stored = ago <= stored
        rows, width = (buffer.pos - ago[is_stored]) % size, columns.shape[1]
        buffer.observations[rows, environment, -width:] = columns[:-1][is_stored]
        buffer.next_observations[rows, environment, -width:] = columns[1:][is_stored]
