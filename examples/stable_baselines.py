"""The house's memory, handed to Stable-Baselines3: collect, infer, wrap, learn.

The same PPO learns twice: seeing only the room it is in, and seeing the states
of the inferred machines beside it. Ten seconds on one core; needs
`pip install "resolvent[stable-baselines]"`.
"""

import gymnasium as gym
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

import resolvent as rs

STEPS = 10_240
SMALL = {"n_steps": 64, "batch_size": 128, "gamma": 0.95, "learning_rate": 3e-3, "ent_coef": 0.02}
MOST_STEPS = 50  # in an episode


def house() -> gym.Env:
    """Make the house as it is: the agent sees its room and nothing else."""
    return gym.make("resolvent/House-v0", max_episode_steps=MOST_STEPS)


def main() -> None:
    """Learn with and without memory, and let both show what they do."""
    torch.set_num_threads(1)
    traces = rs.collect(house(), episodes=500, seed=0)
    pair = rs.infer(traces).machines
    print(f"inferred from {traces.steps:,} random steps:")
    print(f"  a Transition Machine of {pair.transition.states} states (is the key taken?)")
    print(f"  a Reward Machine of {pair.reward.states} states (was the toilet visited?)")

    def with_memory() -> gym.Env:
        return rs.AugmentObservation(house(), pair, mode="multidiscrete")

    for name, made in (("room only", house), ("room and memory", with_memory)):
        envs = make_vec_env(made, n_envs=8, seed=0)
        model = PPO("MlpPolicy", envs, seed=0, **SMALL).learn(STEPS)
        print(f"\n{name}, after {STEPS:,} steps of PPO: {shown(model, made())}")


def shown(model: PPO, env: gym.Env) -> str:
    """Play one episode greedily and say how it went."""
    observation, _ = env.reset()
    done, paid, ended = [], 0.0, False
    while not ended:
        action = int(model.predict(observation, deterministic=True)[0])
        done.append(env.get_wrapper_attr("action_names")[action])
        observation, reward, terminated, truncated, _ = env.step(action)
        paid, ended = paid + reward, terminated or truncated
    way = ", ".join(done[:8]) + (", …" if len(done) > 8 else "")
    return f"paid {paid:g} in {len(done)} steps\n  {way}"


if __name__ == "__main__":
    main()
