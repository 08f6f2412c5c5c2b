"""Read a Minari dataset, infer machines from it, and write a Minari dataset.

Minari stores no sets, so labels go into the infos as text, "door & key" for two
and "" for none, or as booleans by proposition. Minari's own DataCollector records
such an environment in the same way, with record_infos=True.
"""

import os
import tempfile
import warnings

import gymnasium as gym
import minari
from minari.data_collector import EpisodeBuffer

import resolvent as rs


def record_episode(env):
    """Return an episode of random actions as Minari stores it."""
    observation, info = env.reset()
    observations, labels = [observation], [" & ".join(info["labels"])]
    actions, rewards, terminations, truncations = [], [], [], []
    while not (terminations and (terminations[-1] or truncations[-1])):
        actions.append(env.action_space.sample())
        observation, reward, terminated, truncated, info = env.step(actions[-1])
        observations.append(observation)
        labels.append(" & ".join(info["labels"]))
        rewards.append(reward)
        terminations.append(terminated)
        truncations.append(truncated)
    return EpisodeBuffer(
        observations=observations,
        actions=actions,
        rewards=rewards,
        terminations=terminations,
        truncations=truncations,
        infos={"labels": labels},
    )


with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
    os.environ["MINARI_DATASETS_PATH"] = folder  # leaves your own datasets untouched
    warnings.simplefilter("ignore")  # Minari warns of missing metadata: author, code, ...
    env = gym.make("resolvent/House-v0")
    env.action_space.seed(0)
    minari.create_dataset_from_buffers(
        "house/random-v0", [record_episode(env) for _ in range(200)], env
    )

    traces = rs.read_traces("minari:house/random-v0")
    print(traces)
    machines = rs.infer(traces).machines
    tm_states, rm_states = machines.transition.states, machines.reward.states
    print(f"inferred: TM {tm_states} states, RM {rm_states} states")

    traces.save("minari:house/again-v0")
    print(f"written and read again: {rs.read_traces('minari:house/again-v0') == traces}")
