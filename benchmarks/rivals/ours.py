"""Resolvent on the same worlds: `rs.solve`, and planning from random episodes."""

from collections.abc import Callable

import numpy as np
from evaluating import UNKNOWN, Acting, Codes, Curve, Setting

import resolvent as rs
from resolvent.planning.steps import acting_machines
from resolvent.rl.tracker import StateTracker


def solve(setting: Setting, seed: int, most: int) -> Curve:
    """Explore as `rs.solve` does, step by step, and evaluate its plan at checkpoints.

    Nobody tells it when labels are read. It goes on until it stops on its own, or its steps are
    spent, and not only until it has been good for a while.
    """
    env = setting.env()
    explorer = rs.Explorer(env, gamma=setting.gamma, seed=seed)
    curve = Curve(setting, most)
    begin = _planned(explorer.plan, setting)
    shown = env.reset(seed=seed)
    while explorer.steps < most and not explorer.done:
        action = explorer.act(*shown)
        if action is None:
            shown = env.reset()
            continue
        observation, reward, terminated, truncated, info = env.step(action)
        explorer.learn(action, observation, float(reward), terminated, truncated, info)
        shown = env.reset() if terminated or truncated else (observation, info)
        curve.look(explorer.steps, begin)
    curve.finish(explorer.steps, begin)
    return curve


def from_random(setting: Setting, seed: int, most: int) -> Curve:
    """Infer machines from more and more random episodes, and evaluate the plan of each."""
    env = setting.env()
    curve = Curve(setting, most)
    traces = rs.collect(env, episodes=16, seed=seed)
    while traces.steps < most:
        traces = rs.collect(env, episodes=2 * len(traces), seed=seed)
    episodes = 0
    while not curve.over(traces[:episodes].steps):
        # Whole episodes, as many as it takes to the next checkpoint.
        ends = traces.offsets[1:]
        episodes = max(episodes + 1, int(np.searchsorted(ends, min(curve.next, most))) + 1)
        some = traces[:episodes]

        def plan(some: rs.TraceSet = some) -> rs.Plan:
            found = rs.infer(some, timing=setting.world.timing, noise="none")
            return rs.plan(found, some, gamma=setting.gamma)

        curve.look(some.steps, _planned(plan, setting))
    return curve


def _planned(make: Callable[[], rs.Plan], setting: Setting) -> Callable[[int], Acting]:
    """Return how a plan acts; one that cannot be made yet knows nothing."""

    def begin(count: int) -> Acting:
        try:
            return _ByPlan(make(), setting, count)
        except rs.ResolventError:
            return lambda seen, labels, before: np.full(count, UNKNOWN)

    return begin


class _ByPlan:
    """Episodes side by side, in which a plan acts by the states of its machines."""

    def __init__(self, plan: rs.Plan, setting: Setting, count: int) -> None:
        self.plan, self.tables = plan, setting.tables
        machines = acting_machines(plan.machines)
        self.memories = [StateTracker(machines) for _ in range(count)]
        self.numbers = {name: code for code, name in enumerate(setting.tables.actions)}

    def __call__(self, seen: Codes, labels: Codes, before: Codes) -> Codes:
        return np.array(
            [
                self._one(memory, *step)
                for memory, *step in zip(
                    self.memories, seen.tolist(), labels.tolist(), before.tolist(), strict=True
                )
            ]
        )

    def _one(self, memory: StateTracker, seen: int, label: int, before: int) -> int:
        if before == UNKNOWN:
            memory.reset(self.tables.labels[label])
        else:
            memory.step(self.tables.labels[label])
        if memory.unseen:
            return UNKNOWN
        here = self.plan.model.find(self.tables.observations[seen], *memory.values)
        if here is None:
            return UNKNOWN
        return self.numbers[self.plan.model.actions[int(self.plan.policy[here])]]
