"""Infer the memory of MiniGrid's Memory from images and a labeling function.

The agent sees three by three cells. At the start a key or a ball lies beside it.
At the end of the hallway lie both; only walking to the matching one is rewarded.
The observations are the raw images, and the labels the objects in view.
"""

import gymnasium as gym
import numpy as np
from minigrid.core.constants import OBJECT_TO_IDX
from minigrid.wrappers import ReseedWrapper

import resolvent as rs

# Seeds also decide where the episode starts and which object lies on which side.
# These two seeds differ only in the cue.
KEY_FIRST, BALL_FIRST = 34, 23


def make():
    """Make MemoryS7 with alternating cues and a reward independent of the step number."""
    env = gym.make("MiniGrid-MemoryS7-v0", agent_view_size=3)
    env = ReseedWrapper(env, seeds=[KEY_FIRST, BALL_FIRST])
    return gym.wrappers.TransformReward(env, lambda reward: float(reward > 0))


def in_view(observation):
    """Return the label: the objects in view."""
    kinds = observation["image"][:, :, 0]
    return {name for name in ("key", "ball") if OBJECT_TO_IDX[name] in kinds}


def collect(episodes, seed):
    """Collect episodes of random turns and steps."""
    choose = np.random.default_rng(seed).choice

    def policy(_):
        return choose(3, p=[0.25, 0.25, 0.5])

    return rs.collect(make(), episodes=episodes, policy=policy, labeling_fn=in_view)


traces = collect(150, seed=0)
print(f"{len(traces)} episodes, {traces.steps:,} steps, {len(traces.observations)} images seen\n")

# The first image shows the cue, so its label must be read.
machines = rs.infer(traces, timing="current-with-initial").machines
print(machines.transition.to_text(most_outputs=0))

for answer in machines.reward.entries():
    if answer.output > 0:
        image, remembered = answer.observation
        side = {1: "right", 3: "left"}[dict(image)["direction"]]
        cue = next(iter(machines.transition.access_sequence(remembered)[0]))
        print(f"after the {cue}, turning {side} at the end is rewarded")

print("\non 50 fresh episodes:")
print(machines.score(collect(50, seed=1)))
