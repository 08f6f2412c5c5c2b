"""Minari and back: collected by Minari, inferred from, written by Resolvent, read again.

Minari stores no sets, so an environment whose labels are sets spells them out in
its infos: as booleans by proposition, as here, or as text such as "door & key".
"""

import os
import tempfile
import warnings

import gymnasium as gym
import jax  # noqa: F401 -- Minari's collector needs it: pip install "minari[create]"
import minari

import resolvent as rs

EVENTS = ("key", "toilet", "sofa")


class LabelsAsBooleans(gym.Wrapper):
    """Turns a set of labels into {"key": False, "toilet": True, ...}."""

    def reset(self, **options):
        """Start an episode."""
        observation, info = self.env.reset(**options)
        return observation, spelled(info)

    def step(self, action):
        """Go on."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, reward, terminated, truncated, spelled(info)


def spelled(info):
    """Return an info that Minari can store, the same keys at every step."""
    return {"labels": {event: event in info["labels"] for event in EVENTS}}


with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
    os.environ["MINARI_DATASETS_PATH"] = folder  # your own datasets stay as they are
    warnings.simplefilter("ignore")  # Minari warns of each unknown: no author, no code, ...
    env = minari.DataCollector(LabelsAsBooleans(gym.make("resolvent/House-v0")), record_infos=True)
    env.action_space.seed(0)
    for _ in range(200):
        env.reset()
        while not any(env.step(env.action_space.sample())[2:4]):
            pass
    env.create_dataset("house/random-v0")
    env.close()

    traces = rs.read_traces("minari:house/random-v0")
    print(traces)
    pair = rs.infer(traces).machines
    print(f"inferred: TM {pair.transition.states} states, RM {pair.reward.states} states")

    traces.save("minari:house/again-v0")
    print(f"written and read again: {rs.read_traces('minari:house/again-v0') == traces}")
