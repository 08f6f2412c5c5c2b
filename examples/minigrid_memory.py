"""MiniGrid's Memory: what the start room shows tells which way to turn at the end.

The agent sees three by three cells. At the start a key or a ball lies beside it;
at the end of the hallway lie both, and only walking to the matching one pays.
Resolvent gets the raw images and, as labels, which objects are in view.
"""

import gymnasium as gym
import numpy as np
from minigrid.core.constants import OBJECT_TO_IDX
from minigrid.wrappers import ReseedWrapper

import resolvent as rs

# Every seed makes another world: the objects at the end may be swapped, and the
# start lies anywhere in the hallway. These two differ in nothing but the cue, so
# that what was seen first decides everything that follows.
KEY_FIRST, BALL_FIRST = 34, 23


def make():
    """MemoryS7, with the cue alternating and a reward that does not depend on haste."""
    env = gym.make("MiniGrid-MemoryS7-v0", agent_view_size=3)
    env = ReseedWrapper(env, seeds=[KEY_FIRST, BALL_FIRST])
    return gym.wrappers.TransformReward(env, lambda reward: float(reward > 0))


def in_view(observation):
    """Label: the objects that an image shows."""
    kinds = observation["image"][:, :, 0]
    return {name for name in ("key", "ball") if OBJECT_TO_IDX[name] in kinds}


def collect(episodes, seed):
    """Turn and walk at random."""
    choose = np.random.default_rng(seed).choice

    def policy(_):
        return choose(3, p=[0.25, 0.25, 0.5])

    return rs.collect(make(), episodes=episodes, policy=policy, label_of=in_view)


traces = collect(150, seed=0)
print(f"{len(traces)} episodes, {traces.steps:,} steps, {len(traces.observations)} images seen\n")

# The first image shows the cue already, so its label must be read.
pair = rs.infer(traces, timing="current-with-initial").machines
print(pair.transition.to_text(most_outputs=0))

for answer in pair.reward.answers():
    if answer.output > 0:
        image, remembered = answer.observation
        way = {1: "right", 3: "left"}[dict(image)["direction"]]
        cue = next(iter(pair.transition.history(remembered)[0]))
        print(f"whoever remembers the {cue} is paid for turning {way} at the end")

print("\non 50 fresh episodes:")
print(pair.score(collect(50, seed=1)))
