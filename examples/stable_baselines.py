"""Train PPO of Stable-Baselines3 with and without the memory of the house.

PPO is trained twice with the same settings: on the room alone, and on the room
and the states of the inferred machines. Ten seconds on one core; needs
`pip install "resolvent[stable-baselines]"`.
"""

import gymnasium as gym
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

import resolvent as rs

STEPS = 10_240
SMALL = {"n_steps": 64, "batch_size": 128, "gamma": 0.95, "learning_rate": 3e-3, "ent_coef": 0.02}
MAX_EPISODE_STEPS = 50


def house() -> gym.Env:
    """Make the house, in which the agent sees only its room."""
    return gym.make("resolvent/House-v0", max_episode_steps=MAX_EPISODE_STEPS)


def main() -> None:
    """Train with and without memory, and evaluate both."""
    torch.set_num_threads(1)
    traces = rs.collect(house(), episodes=500, seed=0)
    machines = rs.infer(traces).machines
    print(f"inferred from {traces.steps:,} random steps:")
    print(f"  a Transition Machine of {machines.transition.states} states (is the key taken?)")
    print(f"  a Reward Machine of {machines.reward.states} states (was the toilet visited?)")

    def with_memory() -> gym.Env:
        return rs.AugmentObservation(house(), machines, mode="multidiscrete")

    for name, make_env in (("room only", house), ("room and memory", with_memory)):
        envs = make_vec_env(make_env, n_envs=8, seed=0)
        model = PPO("MlpPolicy", envs, seed=0, **SMALL).learn(STEPS)
        print(f"\n{name}, after {STEPS:,} steps of PPO: {describe_episode(model, make_env())}")


def describe_episode(model: PPO, env: gym.Env) -> str:
    """Return the actions and the return of one greedy episode."""
    observation, _ = env.reset()
    actions, total_reward, is_over = [], 0.0, False
    while not is_over:
        action = int(model.predict(observation, deterministic=True)[0])
        actions.append(env.get_wrapper_attr("action_names")[action])
        observation, reward, terminated, truncated, _ = env.step(action)
        total_reward, is_over = total_reward + reward, terminated or truncated
    path = ", ".join(actions[:8]) + (", …" if len(actions) > 8 else "")
    return f"return {total_reward:g} in {len(actions)} steps\n  {path}"


if __name__ == "__main__":
    main()
