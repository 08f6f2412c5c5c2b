"""Networks as the alternative: with memory, or with the last few steps as input.

Recurrent PPO of sb3-contrib, and PPO and DQN of Stable-Baselines3 on the last few steps. All get
the inputs of the machines as numbers 0 and 1: the observation, the present events, and the
previous action.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from evaluating import Acting, Codes, Curve, Setting
from gymnasium import spaces
from numpy.typing import NDArray
from sb3_contrib import RecurrentPPO
from sb3_contrib.ppo_recurrent import MlpLstmPolicy
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv

SIDE_BY_SIDE = 8
"""Episodes that are played at once; the steps of all of them count."""

Shown = NDArray[np.float32]


class View:
    """What was seen and done in the last few steps, as rows of 0 and 1; zeros before a start."""

    def __init__(self, setting: Setting, stack: int) -> None:
        tables = setting.tables
        events = sorted(frozenset[str]().union(*tables.labels))
        self.stack, self.actions = stack, len(tables.actions)
        self.seen = np.eye(len(tables.observations), dtype=np.float32)
        self.events = np.array(
            [[event in label for event in events] for label in tables.labels], np.float32
        ).reshape(len(tables.labels), len(events))
        self.done = np.vstack([np.eye(self.actions), np.zeros(self.actions)]).astype(np.float32)
        self.width = self.seen.shape[1] + self.events.shape[1] + self.actions

    def empty(self, count: int) -> Shown:
        """Return rows for so many episodes that have not begun."""
        return np.zeros((count, self.stack, self.width), np.float32)

    def push(self, rows: Shown, seen: Codes, labels: Codes, before: Codes) -> None:
        """Put what is seen now behind what was seen before; the oldest is forgotten."""
        rows[:, :-1] = rows[:, 1:]
        one = (self.seen[seen], self.events[labels], self.done[before])
        np.concatenate(one, axis=1, out=rows[:, -1])


class WholeSequences(MlpLstmPolicy):
    """The recurrent policy of sb3-contrib, which goes through a sequence in one call.

    As it is, it calls the network once for each step as soon as an episode begins anywhere;
    but sequences are cut where episodes begin, so that only their first step ever does. The
    answers are the same, in a fraction of the time.
    """

    @staticmethod
    def _process_sequence(
        features: torch.Tensor, lstm_states: Any, episode_starts: torch.Tensor, lstm: Any
    ) -> Any:
        begins = episode_starts.reshape(lstm_states[0].shape[1], -1)
        if not begins[:, 1:].any():
            kept = (1.0 - begins[:, 0]).view(1, -1, 1)
            lstm_states = (kept * lstm_states[0], kept * lstm_states[1])
            episode_starts = torch.zeros_like(episode_starts)
        return MlpLstmPolicy._process_sequence(features, lstm_states, episode_starts, lstm)


class Tables(VecEnv):
    """Episodes of one world side by side, all steps at once on its tables."""

    def __init__(self, setting: Setting, view: View, count: int, seed: int) -> None:
        self.setting, self.view, self.tables = setting, view, setting.tables
        self.random = np.random.default_rng(seed)
        self.rows, self.age = view.empty(count), np.zeros(count, np.int64)
        self.state = np.zeros(count, np.int64)
        shown = spaces.Box(0, 1, (view.stack * view.width,), np.float32)
        super().__init__(count, shown, spaces.Discrete(view.actions))

    def reset(self) -> Shown:
        self._begin(np.arange(self.num_envs))
        return self._shown()

    def step_async(self, actions: Codes) -> None:
        self._chosen = actions

    def step_wait(self) -> tuple[Shown, NDArray[np.float32], NDArray[np.bool_], list[Any]]:
        tables, chosen = self.tables, self._chosen
        reward = tables.reward[self.state, chosen].astype(np.float32)
        ended = tables.ends[self.state, chosen]
        self.state = tables.next_state[self.state, chosen].astype(np.int64)
        self.age += 1
        cut = (self.age >= self.setting.limit) & ~ended
        done = ended | cut
        seen, labels = tables.observation_of[self.state], tables.label_of[self.state]
        self.view.push(self.rows, seen, labels, chosen)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        over = np.flatnonzero(done)
        if len(over):
            last = self._shown()
            for place in over.tolist():
                infos[place] = {
                    "terminal_observation": last[place],
                    "TimeLimit.truncated": bool(cut[place]),
                }
            self._begin(over)
        return self._shown(), reward, done, infos

    def _begin(self, which: Codes) -> None:
        self.age[which] = 0
        self.state[which] = self.random.choice(self.setting.starts, len(which))
        rows = self.view.empty(len(which))
        state, before = self.state[which], np.full(len(which), -1)
        self.view.push(rows, self.tables.observation_of[state], self.tables.label_of[state], before)
        self.rows[which] = rows

    def _shown(self) -> Shown:
        return self.rows.reshape(self.num_envs, -1).copy()

    def close(self) -> None:
        """Hold nothing that has to be closed."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self, attr_name, None)] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise NotImplementedError

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **more: Any) -> Any:
        raise NotImplementedError

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * self.num_envs


@dataclass(frozen=True)
class Net:
    """A learner of Stable-Baselines3: which, how many steps it sees at once, its parameters."""

    learner: Any
    policy: Any
    stack: int
    options: dict[str, Any]

    def __call__(self, setting: Setting, seed: int, most: int) -> Curve:
        """Train it, and evaluate its greedy policy at checkpoints."""
        torch.set_num_threads(1)
        view = View(setting, self.stack)
        envs = Tables(setting, view, SIDE_BY_SIDE, seed)
        model = self.learner(
            self.policy, envs, seed=seed, gamma=setting.gamma, device="cpu", **self.options
        )
        curve = Curve(setting, most)
        model.learn(most, callback=_Looking(curve, view))
        return curve


class _Looking(BaseCallback):
    """Judges a model whenever it has learned and a checkpoint is due, and stops it when over."""

    def __init__(self, curve: Curve, view: View) -> None:
        super().__init__()
        self.curve, self.view = curve, view
        self._over = False

    def _look(self) -> None:
        if self.num_timesteps and not self._over:
            begin = greedy(self.model, self.view)
            self._over = self.curve.look(self.num_timesteps, begin)

    def _on_rollout_start(self) -> None:
        self._look()

    def _on_training_end(self) -> None:
        self._look()

    def _on_step(self) -> bool:
        return not self._over


def greedy(model: Any, view: View) -> Callable[[int], Acting]:
    """Return how a model acts when it leaves nothing to chance."""

    def begin(count: int) -> Acting:
        rows = view.empty(count)
        state: Any = None
        first = np.ones(count, bool)

        def act(seen: Codes, labels: Codes, before: Codes) -> Codes:
            nonlocal state, first
            view.push(rows, seen, labels, before)
            chosen, state = model.predict(
                rows.reshape(count, -1), state=state, episode_start=first, deterministic=True
            )
            first = np.zeros(count, bool)
            return np.asarray(chosen, np.int64)

        return act

    return begin


OF_PPO: dict[str, Any] = {
    "n_steps": 128,
    "batch_size": 512,
    "n_epochs": 5,
    "learning_rate": 3e-3,
    "gae_lambda": 0.95,
    "ent_coef": 0.01,
}
OF_DQN: dict[str, Any] = {
    "learning_rate": 1e-3,
    "buffer_size": 100_000,
    "learning_starts": 500,
    "batch_size": 64,
    "train_freq": 1,
    "gradient_steps": 1,
    "target_update_interval": 500,
    "exploration_fraction": 0.3,
    "exploration_final_eps": 0.1,
}
LSTM = {"lstm_hidden_size": 64, "net_arch": [64]}


def recurrent(stack: int = 1, **more: Any) -> Net:
    """Return PPO with a recurrent network."""
    return Net(RecurrentPPO, WholeSequences, stack, {**OF_PPO, "policy_kwargs": LSTM, **more})


def stacked_ppo(stack: int, **more: Any) -> Net:
    """Return PPO that sees the last few steps."""
    return Net(PPO, "MlpPolicy", stack, {**OF_PPO, "policy_kwargs": {"net_arch": [64]}, **more})


def stacked_dqn(stack: int, **more: Any) -> Net:
    """Return DQN that sees the last few steps."""
    return Net(DQN, "MlpPolicy", stack, {**OF_DQN, "policy_kwargs": {"net_arch": [64]}, **more})
