"""A callback of Stable-Baselines3 that infers machines from a learner's episodes."""

from collections.abc import Mapping

import numpy as np
import torch
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper, VecNormalize

from resolvent.errors import OptionError
from resolvent.rl.sb3.online_machines import OnlineMachineWrapper
from resolvent.rl.sb3.positions import Positions


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
        self.memory = memory_inside(self.training_env)
        if isinstance(self.model, OffPolicyAlgorithm) and self.model.replay_buffer is not None:
            self.memory.remembers = self.model.replay_buffer.buffer_size
        # A learner that continues keeps its count of steps, and so does this.
        self._due = min(self._due, self.model.num_timesteps + self.every)

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        steps = self.model.num_timesteps
        if steps < self._due or (self.until is not None and steps > self.until):
            return
        self._due = steps + self.every
        changed = self.memory.infer()
        if self.memory.machines is not None:
            for kind, machine in self.memory.machines.items():
                self.logger.record(f"machines/{kind}_states", machine.states)
        if changed is not None:
            self.changes.append(steps)
            self._show(changed)

    def _show(self, changed: Mapping[str, Positions]) -> None:
        """Transfer weights and steps, and replace the learner's last observation."""
        transfer_weights(self.model.policy, self.memory, changed)
        if isinstance(self.model, OffPolicyAlgorithm) and self.model.replay_buffer is not None:
            relabel_steps(self.model.replay_buffer, self.memory)
        outermost, current = self.training_env, self.memory.current()
        if outermost is self.memory:
            self.model._last_obs = current
        elif isinstance(outermost, VecNormalize) and outermost.venv is self.memory:
            outermost.old_obs = current
            self.model._last_original_obs = current
            self.model._last_obs = outermost.normalize_obs(current)


def memory_inside(venv: VecEnv) -> OnlineMachineWrapper:
    """Return the `OnlineMachineWrapper` around or inside a vector environment."""
    inner: VecEnv = venv
    while isinstance(inner, VecEnvWrapper):
        if isinstance(inner, OnlineMachineWrapper):
            return inner
        inner = inner.venv
    raise OptionError(
        "InferMachines shows machines by a GrowingMemory: give the learner "
        "GrowingMemory(make_vec_env(...)) as its environment"
    )


def transfer_weights(
    policy: torch.nn.Module, memory: OnlineMachineWrapper, changed: Mapping[str, Positions]
) -> None:
    """Copy to each position the weights of the position that showed its state before.

    Only layers that read observations directly are changed.
    """
    width = int(np.prod(memory.observation_space.shape or (0,)))
    first = width - len(memory.shown.kinds) * memory.shown.places
    columns = {
        first + at * memory.shown.places + place: first + at * memory.shown.places + earlier
        for at, kind in enumerate(memory.shown.kinds)
        if kind in changed
        for place, earlier in changed[kind].moves.items()
    }
    if not columns:
        return
    with torch.no_grad():
        for layers in policy.modules():
            if not isinstance(layers, torch.nn.Sequential) or not len(layers):
                continue
            layer = layers[0]
            if isinstance(layer, torch.nn.Linear) and layer.in_features == width:
                layer.weight[:, list(columns)] = layer.weight[:, list(columns.values())]


def relabel_steps(buffer: ReplayBuffer, memory: OnlineMachineWrapper) -> None:
    """Rewrite the machine states of the steps in a replay buffer, by the present machines.

    Its rows have to be the steps, one after the other; any other buffer is emptied.
    """
    if type(buffer) is not ReplayBuffer or buffer.optimize_memory_usage:
        buffer.reset()
        return
    size = buffer.buffer_size
    stored = size if buffer.full else buffer.pos
    width = len(memory.shown.kinds) * memory.shown.places
    for episode, places in memory.remembered():
        ago = memory.steps - episode.first - np.arange(len(episode))
        is_stored = ago <= stored
        rows = (buffer.pos - ago[is_stored]) % size
        columns = memory.rows(places)
        buffer.observations[rows, episode.environment, -width:] = columns[:-1][is_stored]
        buffer.next_observations[rows, episode.environment, -width:] = columns[1:][is_stored]
