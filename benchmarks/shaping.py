"""Steps until learners act optimally, with machines, counterfactual steps and shaped rewards.

In the house and in a T-maze, every learner starts untrained and continues until its greedy policy
is optimal from every start, twice in a row, or until its steps are spent. Given machines come from
random episodes whose steps are named in the heading and do not count; with `InferMachines`
everything is inferred from the learner's own episodes, and all steps count. Prints a table in
Markdown: the median over the seeds, and the range.
"""

import argparse
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecEnv

import resolvent as rs
from resolvent.rl.sb3 import (
    CounterfactualReplayBuffer,
    InferMachines,
    OnlineMachineWrapper,
)

GAMMA = 0.95
EPISODE = 60
STARTS = 8
"""Seeds of resets that are played when a policy is looked at: they begin at every start."""

WORLDS: dict[str, tuple[dict[str, Any], str]] = {
    "house": ({"id": "resolvent/House-v0"}, "current"),
    "T-maze, corridor of 5": ({"id": "resolvent/TMaze-v0", "length": 5}, "current-with-initial"),
}
"""How each world is made, and when its labels are read."""
SMALL: dict[str, Any] = {
    "gamma": GAMMA,
    "policy_kwargs": {"net_arch": [32]},
    "device": "cpu",
}
OF_PPO: dict[str, Any] = {
    "n_steps": 64,
    "batch_size": 128,
    "n_epochs": 8,
    "learning_rate": 3e-3,
    "ent_coef": 0.02,
    **SMALL,
}
OF_DQN: dict[str, Any] = {
    "learning_rate": 2e-3,
    "buffer_size": 50_000,
    "learning_starts": 200,
    "batch_size": 64,
    "train_freq": 4,
    "target_update_interval": 200,
    "exploration_fraction": 0.3,
    "exploration_final_eps": 0.1,
    **SMALL,
}


class Checking(BaseCallback):
    """Stops a learner once its greedy policy is optimal twice in a row, and notes when it was."""

    def __init__(self, optimum: dict[int, float], envs: VecEnv, every: int) -> None:
        super().__init__()
        self.optimum, self.envs, self.every = optimum, envs, every
        self.reached: int | None = None
        self._due, self._first = every, 0

    def _on_step(self) -> bool:
        if self.num_timesteps < self._due:
            return True
        self._due += self.every
        if not all(self._paid(seed) >= best - 1e-6 for seed, best in self.optimum.items()):
            self._first = 0
            return True
        if self._first:
            self.reached = self._first
            return False
        self._first = self.num_timesteps
        return True

    def _paid(self, seed: int) -> float:
        """Return what a greedy episode pays, discounted; shaped rewards count as unshaped."""
        self.envs.seed(seed)
        shown, paid, weight = self.envs.reset(), 0.0, 1.0
        for _ in range(EPISODE):
            action, _ = self.model.predict(shown, deterministic=True)
            shown, rewards, dones, infos = self.envs.step(action)
            paid += weight * float(infos[0].get("unshaped_reward", rewards[0]))
            weight *= GAMMA
            if dones[0]:
                break
        return paid


@dataclass(frozen=True)
class Setting:
    """A world, what random episodes in it tell, and what is best there."""

    options: dict[str, Any]
    timing: str
    plan: rs.Plan
    optimum: dict[int, float]

    @classmethod
    def of(cls, options: dict[str, Any], timing: str, episodes: int) -> "Setting":
        """Infer machines from random episodes."""
        env = _made(options)
        world = env.unwrapped
        traces = rs.collect(env, episodes=episodes, seed=0)
        print(f"{traces.steps:,} random steps for machines that are given", flush=True)
        best = world.mechanics.optimal_values(GAMMA)
        optimum = {}
        for seed in range(STARTS):
            env.reset(seed=seed)
            optimum[seed] = float(best[world.state])
        plan = rs.plan(rs.infer(traces, timing=timing), traces, gamma=GAMMA)
        return cls(options, timing, plan, optimum)

    def env(self, *, machines: bool, shaped: bool = False) -> gym.Env[Any, Any]:
        """Make an environment as a learner sees it."""
        env = _made(self.options)
        if machines:
            env = rs.AugmentObservation(env, self.plan.machines, mode="flatten")
        return rs.wrappers.ShapeReward(env, self.plan) if shaped else env


def _made(options: dict[str, Any]) -> gym.Env[Any, Any]:
    return gym.make(**options, max_episode_steps=EPISODE)


def ppo(setting: Setting, seed: int, most: int, *, machines: str, shaped: bool) -> int | None:
    """Return the steps that PPO took."""
    make = partial(setting.env, machines=machines == "given", shaped=shaped)
    envs: Any = make_vec_env(make, n_envs=8, seed=seed)
    look: Any = make_vec_env(make, n_envs=1, seed=seed)
    return _learned(PPO, OF_PPO, envs, look, setting, seed, most, machines)


def dqn(
    setting: Setting, seed: int, most: int, *, machines: str, shaped: bool, imagines: bool
) -> int | None:
    """Return the steps that DQN took."""
    make = partial(setting.env, machines=machines == "given", shaped=shaped)
    envs: Any = make_vec_env(make, n_envs=1, seed=seed)
    look: Any = make_vec_env(make, n_envs=1, seed=seed)
    options = dict(OF_DQN)
    if imagines:
        options["replay_buffer_class"] = CounterfactualReplayBuffer
        options["replay_buffer_kwargs"] = {"env": make(), "plan": setting.plan}
    return _learned(DQN, options, envs, look, setting, seed, most, machines)


def _learned(
    learner: Any,
    options: dict[str, Any],
    envs: Any,
    look: Any,
    setting: Setting,
    seed: int,
    most: int,
    machines: str,
) -> int | None:
    callbacks: list[BaseCallback] = []
    if machines == "inferred":
        envs = OnlineMachineWrapper(envs, most_states=4, timing=setting.timing)
        look = envs.around(look)
        callbacks.append(InferMachines(every=1_000))
    checking = Checking(setting.optimum, look, every=256)
    model = learner("MlpPolicy", envs, seed=seed, **options)
    model.learn(most, callback=CallbackList([*callbacks, checking]))
    return checking.reached


def tabular(setting: Setting, seed: int, most: int, **options: Any) -> int | None:
    """Return the steps that Q-learning took, by its exact evaluations."""
    env = setting.env(machines=False)
    wrapped = rs.AugmentObservation(env, setting.plan.machines)
    best = env.unwrapped.mechanics
    optimum = float(best.optimal_values(GAMMA)[best.starts].mean())
    if options.get("counterfactual"):
        options["model"] = setting.plan.model
    if options.get("shaping") == "plan":
        options["shaping"] = setting.plan
    elif options.get("shaping"):
        options["model"] = setting.plan.model
    found = rs.q_learning(
        wrapped, episodes=most // 10, seed=seed, gamma=GAMMA, evaluate_every=1, **options
    )
    good = np.array([one.value >= optimum - 1e-6 for one in found.evaluations])
    twice = np.flatnonzero(good[:-1] & good[1:])
    return found.evaluations[int(twice[0])].steps if len(twice) else None


Learner = Callable[[Setting, int, int], int | None]
LEARNERS: dict[str, Learner] = {
    "PPO, observation": partial(ppo, machines="none", shaped=False),
    "PPO, InferMachines": partial(ppo, machines="inferred", shaped=False),
    "PPO, machines given": partial(ppo, machines="given", shaped=False),
    "PPO, machines given, ShapeReward": partial(ppo, machines="given", shaped=True),
    "DQN, observation": partial(dqn, machines="none", shaped=False, imagines=False),
    "DQN, InferMachines": partial(dqn, machines="inferred", shaped=False, imagines=False),
    "DQN, machines given": partial(dqn, machines="given", shaped=False, imagines=False),
    "DQN, machines given, counterfactual": partial(
        dqn, machines="given", shaped=False, imagines=True
    ),
    "DQN, machines given, ShapeReward": partial(dqn, machines="given", shaped=True, imagines=False),
    "Q-learning, machines given": tabular,
    "Q-learning, counterfactual": partial(tabular, counterfactual=True),
    "Q-learning, shaping by states": partial(tabular, shaping=True),
    "Q-learning, shaping by plan": partial(tabular, shaping="plan"),
}


def cell(runs: list[int | None], most: int) -> str:
    """Write the median and the range, and how many got there if not all did."""
    reached = [run for run in runs if run is not None]
    if not reached:
        return f"never in {most:,}"
    text = f"{statistics.median(reached):,.0f} ({min(reached):,} to {max(reached):,})"
    return text if len(reached) == len(runs) else f"{text}; {len(reached)} of {len(runs)}"


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=20_000, help="that a learner may take")
    parser.add_argument("--episodes", type=int, default=200, help="at random, for given machines")
    parser.add_argument("--world", default="", help="worlds whose names hold this")
    parser.add_argument("--only", help="learners whose names hold this")
    options = parser.parse_args()
    torch.set_num_threads(1)
    settings = {
        name: Setting.of(*world, options.episodes)
        for name, world in WORLDS.items()
        if options.world in name
    }
    print(f"\n{options.seeds} seeds: median steps until optimal, and the range\n")
    print(f"| learner | {' | '.join(settings)} |\n|---|{'---:|' * len(settings)}", flush=True)
    for name, learner in LEARNERS.items():
        if options.only and options.only not in name:
            continue
        runs = (
            [learner(setting, seed, options.steps) for seed in range(options.seeds)]
            for setting in settings.values()
        )
        cells = [cell(results, options.steps) for results in runs]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
