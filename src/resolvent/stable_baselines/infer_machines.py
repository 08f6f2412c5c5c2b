"""A learner of Stable-Baselines3 at work → machines inferred from what it does, and shown to it."""

from collections.abc import Mapping

import numpy as np
import torch
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper, VecNormalize

from resolvent.errors import OptionError
from resolvent.stable_baselines.growing_memory import GrowingMemory
from resolvent.stable_baselines.positions import Positions


class InferMachines(BaseCallback):
    """Infers machines from the episodes of a learner every so many steps, and shows them to it.

    A callback for PPO, DQN and their kin, whose environment is a `GrowingMemory`. Machines are
    updated, not inferred anew, between two rollouts. When they change, all that was learned is
    carried over: what a network made of a state goes on for the states that come of it, and the
    steps in a replay buffer are shown as the new machines see them. (A buffer whose rows are
    not the steps themselves is emptied.)

    `until` is the number of steps after which machines stay as they are. The logger is told
    the number of states as "machines/transition_states" and so on.

    >>> import torch
    >>> torch.set_num_threads(1)  # more would only wait for each other in so small a network
    >>> from stable_baselines3 import PPO
    >>> from stable_baselines3.common.env_util import make_vec_env
    >>> import gymnasium as gym
    >>> def house():
    ...     return gym.make("resolvent/House-v0", max_episode_steps=50)
    >>> envs = GrowingMemory(make_vec_env(house, n_envs=4, seed=0), most_states=4)
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
        """After how many steps of the learner machines changed."""
        self._due = every

    def _on_training_start(self) -> None:
        self.memory = memory_inside(self.training_env)
        if isinstance(self.model, OffPolicyAlgorithm) and self.model.replay_buffer is not None:
            self.memory.remembers = self.model.replay_buffer.buffer_size
        # A learner that goes on keeps its count, and so does this.
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
        """Carry over what was learned, and have the learner look again."""
        carry_weights(self.model.policy, self.memory, changed)
        if isinstance(self.model, OffPolicyAlgorithm) and self.model.replay_buffer is not None:
            show_anew(self.model.replay_buffer, self.memory)
        outermost, current = self.training_env, self.memory.current()
        if outermost is self.memory:
            self.model._last_obs = current
        elif isinstance(outermost, VecNormalize) and outermost.venv is self.memory:
            outermost.old_obs = current
            self.model._last_original_obs = current
            self.model._last_obs = outermost.normalize_obs(current)


def memory_inside(venv: VecEnv) -> GrowingMemory:
    """Return the wrapper that shows machines, from under any others."""
    inner: VecEnv = venv
    while isinstance(inner, VecEnvWrapper):
        if isinstance(inner, GrowingMemory):
            return inner
        inner = inner.venv
    raise OptionError(
        "InferMachines shows machines by a GrowingMemory: give the learner "
        "GrowingMemory(make_vec_env(...)) as its environment"
    )


def carry_weights(
    policy: torch.nn.Module, memory: GrowingMemory, changed: Mapping[str, Positions]
) -> None:
    """Let each place begin with the weights of the place at which its state was shown before.

    The weights are those of the layers that read observations as they are.
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


def show_anew(buffer: ReplayBuffer, memory: GrowingMemory) -> None:
    """Show the steps in a replay buffer as the machines of now see them.

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
        there = ago <= stored
        rows = (buffer.pos - ago[there]) % size
        shown = memory.rows(places)
        buffer.observations[rows, episode.environment, -width:] = shown[:-1][there]
        buffer.next_observations[rows, episode.environment, -width:] = shown[1:][there]
