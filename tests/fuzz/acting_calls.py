"""Public calls of those who act, draw or bring tables, with odd arguments."""

from functools import cache
from typing import Any

import gymnasium as gym
import numpy as np

import resolvent as rs
from fuzz.public_calls import call, found, house
from resolvent.worlds import House


@cache
def plan() -> rs.Plan:
    """Return a plan for the house."""
    return rs.plan(found(), house())


@cache
def learned() -> rs.rl.QTable:
    """Return what a few episodes in the house teach."""
    return rs.q_learning(House(), episodes=3)


@cache
def solved() -> rs.Solution:
    """Return the house, explored for a few steps."""
    return rs.solve(House(), budget=60)


def _two() -> gym.vector.SyncVectorEnv:
    return gym.vector.SyncVectorEnv([House, House])


def _wrapped(**given: Any) -> object:
    """Wrap an environment, and take a few steps in it."""
    env = rs.AugmentObservation(**given)
    env.reset(seed=0)
    return [env.step(0) for _ in range(3)]


def _wrapped_together(**given: Any) -> object:
    """Wrap a vector environment, and take a few steps in it."""
    envs = rs.wrappers.VectorAugmentObservation(**given)
    envs.reset(seed=0)
    return [envs.step(np.zeros(2, np.int64)) for _ in range(3)]


def _shaped(**given: Any) -> object:
    """Shape rewards, and take a few steps."""
    env = rs.wrappers.ShapeReward(**given)
    env.reset(seed=0)
    return [env.step(0) for _ in range(3)]


def _shaped_together(**given: Any) -> object:
    """Shape rewards of a vector environment, and take a few steps."""
    envs = rs.wrappers.VectorShapeReward(**given)
    envs.reset(seed=0)
    return [envs.step(np.zeros(2, np.int64)) for _ in range(3)]


def _explored(**given: Any) -> object:
    """Make an explorer, and take its first step."""
    explorer = rs.Explorer(**given)
    seen, info = House().reset(seed=0)
    return explorer.act(seen, info), explorer.guarantee()


def _machines_asked(**given: Any) -> object:
    """Ask all machines at once."""
    return found().machines.as_pair().predict_all(**given)


def _edges(**given: Any) -> object:
    """Walk along the edges of a reward machine."""
    machine = rs.machines.EdgeRewardMachine.from_pair(found().machines, house())
    return machine.step(given["state"], given["label"]), machine.has_ended(given["state"])


_LIVE: dict[str, Any] = {"labels": None, "labeling_fn": None, "observation_fn": None}

TARGETS = (
    call("AugmentObservation", _wrapped, lambda: {
        "env": House(), "machines": found(), "mode": "dict", "on_unseen": "stay",
        "knowledge": None, **_LIVE,
    }),
    call("VectorAugmentObservation", _wrapped_together, lambda: {
        "envs": _two(), "machines": found(), "mode": "dict", "on_unseen": "stay",
        "knowledge": False, **_LIVE,
    }),
    call("ShapeReward", _shaped, lambda: {
        "env": House(), "plan": plan(), "gamma": None, **_LIVE,
    }),
    call("VectorShapeReward", _shaped_together, lambda: {
        "envs": _two(), "plan": plan(), "gamma": None, **_LIVE,
    }),
    call("Explorer", _explored, lambda: {
        "env": House(), "labels": "auto", "labeling_fn": None, "observation_fn": None, "timing": None,
        "gamma": 0.95, "reward_range": None, "target": 0.0, "states": "found", "seed": 0,
    }),
    call("plan.run", lambda **given: plan().run(**given), lambda: {
        "env": House(), "episodes": 2, "seed": 0, "options": None, "columns": (), "max_steps": 20,
        "on_unseen": None, **_LIVE,
    }, ("episodes", "max_steps")),
    call("plan.action", lambda **given: plan().action(
        given["observation"], given["first"], given["second"]
    ), lambda: {"observation": "corridor", "first": 0, "second": 0}),
    call("evaluate", lambda **given: learned().evaluate(**given), lambda: {
        "env": House(), "episodes": 2, "seed": 0, "max_steps": 20,
    }, ("episodes", "max_steps")),
    call("report", rs.report, lambda: {
        "machines": found(), "traces": house(), "path": "out.html", "evidence": None,
        "policy": None, "returns": None, "draw_of": None,
    }),
    call("read_table", rs.read_table, lambda: {
        "source": house().to_arrow(), "episode": "episode", "order": None,
        "observation": "observation", "action": "action", "reward": "reward", "label": None,
        "outputs": (), "terminated": None, "truncated": None, "next_observation": None,
        "next_label": None, "final_observation": None, "label_separator": None,
        "delimiter": None, "missing": ("", "NA"),
    }),
    call("read_log", rs.read_log, lambda: {
        "source": house().to_arrow(), "episode": "episode", "order": None, "input": "action",
        "output": {"seen": "observation"}, "delimiter": None, "missing": ("", "NA"),
    }),
    call("drawing", lambda **given: (
        found().machines["reward"].to_text(most_outputs=given["most_outputs"]),
        found().machines["reward"].to_mealy_dot(complete=given["complete"]),
    ), lambda: {"most_outputs": 20, "complete": False}),
    call("predict_all", _machines_asked, lambda: {
        "observation": "corridor", "action": "up", "states": {"transition": 0, "reward": 0},
        "generalized": True,
    }),
    call("score", lambda **given: found().machines.score(**given), lambda: {
        "traces": house(), "on": "threads",
    }),
    call("edges", _edges, lambda: {
        "state": 0, "label": ["key"],
    }),
    call("resumed", lambda **given: rs.solve(House(), budget=90, **given), lambda: {
        "resume": solved(), "folder": None,
    }),
    call("solved.save", lambda **given: solved().save(**given), lambda: {"folder": "solved"}),
    call("concatenate", rs.TraceSet.concatenate, lambda: {
        "sets": [house(), house()], "names": None,
    }),
)  # fmt: skip
