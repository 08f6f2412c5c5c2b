"""Steps until the plan is truly optimal from every start: exploring on purpose, beside random.

"Truly" is judged by value iteration on the hidden state, which neither of them sees. For
random collection it is the smallest number of episodes, by bisection, whose machines and plan
are optimal. What was measured is kept in a JSON file, and a page is made of it.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from solving_page import page

import resolvent as rs
from resolvent.exploration.run import SolveRun
from resolvent.planning.deterministic import solve
from resolvent.planning.steps import acting_machines
from resolvent.rl.env import SymbolEncoder
from resolvent.rl.tracker import StateTracker
from resolvent.worlds import RandomWorld, TMaze

GAMMA = 0.95
BUILT_IN = (
    *("House", "HouseInterference", "PhaseGrid3", "PhaseGrid4", "PhaseGrid5"),
    *("OfficeCoffee", "OfficeMail", "OfficeBoth", "OfficePatrol", "Cookie", "TwoKeys", "TMaze"),
)
FORGOTTEN = 1e-11
"""What comes later than this share of the value is left out where a plan goes round and round."""


class Truth:
    """What is truly best, and whether a way to act is."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        self.world: Any = env.unwrapped
        tables = self.world.mechanics
        self.best = tables.optimal_values(GAMMA)
        self.starts = np.unique(tables.starts).tolist()
        name = SymbolEncoder(env, "observation")
        self.observations = [name(code) for code in range(len(tables.observations))]

    def holds(self, begin: Callable[[Any, Any], Any], act: Callable[..., Any]) -> bool:
        """Whether a way to act is optimal from every start."""
        return all(self._optimal(start, begin, act) for start in self.starts)

    def _optimal(self, start: int, begin: Callable[..., Any], act: Callable[..., Any]) -> bool:
        tables, state, paid, weight = self.world.mechanics, start, 0.0, 1.0
        seen, label = self._shown(state)
        memory = begin(seen, label)
        while weight > FORGOTTEN:
            action = act(memory, seen)
            if action is None:
                return False
            paid += weight * tables.reward[state, action]
            weight *= GAMMA
            if tables.ends[state, action]:
                break
            state = int(tables.following[state, action])
            seen, label = self._shown(state)
            memory = act.step(memory, label)  # type: ignore[attr-defined]
        return bool(abs(paid - self.best[start]) <= 1e-9 * max(1.0, abs(self.best[start])))

    def _shown(self, state: int) -> tuple[Any, Any]:
        tables = self.world.mechanics
        label = tables.labels[int(tables.label_of[state])]
        return self.observations[int(tables.observation_of[state])], label


class ByKnowledge:
    """What an explorer would do now, by what it knows."""

    def __init__(self, explorer: rs.Explorer) -> None:
        self.model, self.log = explorer.state.model, explorer.state.buffer
        if self.model is not None:
            following, reward, known = self.model.arrays()
            least = self.model.least
            worst = min(least, least / (1 - GAMMA))  # what a step nobody has taken may come to
            self.policy = solve(following, np.where(known, reward, worst), GAMMA).policy

    def begin(self, seen: Any, label: Any) -> Any:
        known = self.model
        if known is None:
            return None
        first = self.log.labels.codes.get(label, -2)
        reads = known.first + known.lag == 0
        return (
            None
            if reads and first < 0
            else known.next_states([0] * len(known.sizes), first if reads else -1)
        )

    def step(self, states: Any, label: Any) -> Any:
        code = self.log.labels.codes.get(label, -2)
        return None if states is None or code < 0 else self.model.next_states(states, code)

    def __call__(self, states: Any, seen: Any) -> int | None:
        code = self.log.observations.codes.get(seen)
        row = None if states is None else self.model.rows.get((code, *states))
        return None if row is None else int(self.policy[row])


class ByPlan:
    """What a plan does."""

    def __init__(self, plan: rs.Plan, actions: list[Any]) -> None:
        self.plan, self.machines = plan, acting_machines(plan.machines)
        self.numbers = {action: number for number, action in enumerate(actions)}

    def begin(self, seen: Any, label: Any) -> StateTracker:
        memory = StateTracker(self.machines)
        memory.reset(label)
        return memory

    def step(self, memory: StateTracker, label: Any) -> StateTracker:
        memory.step(label)
        return memory

    def __call__(self, memory: StateTracker, seen: Any) -> int | None:
        if memory.unseen:
            return None
        here = self.plan.model.situation(seen, *memory.values)
        if here is None:
            return None
        return self.numbers[self.plan.model.actions[int(self.plan.policy[here])]]


class _Enough(Exception):  # noqa: N818
    """The plan has been optimal for long enough."""


def explored(
    env: gym.Env[Any, Any], truth: Truth, budget: int, seed: int, patience: float | None = None
) -> dict[str, Any]:
    """Solve, and look now and then whether it is truly optimal by then.

    With patience, it is not waited until exploring stops, but for so many times the steps.
    """
    explorer = rs.Explorer(env, gamma=GAMMA, seed=seed)
    solving = SolveRun(
        env,
        explorer,
        budget,
        None if env.spec and env.spec.max_episode_steps else 2_000,
        None,
        None,
    )
    since: int | None = None
    first: int | None = None
    look = {"next": 0, "judging": 0.0, "at": time.process_time()}
    rounds: list[float] = []
    after = solving.after_step

    def judged(changed: bool) -> None:
        nonlocal since, first
        after(changed)
        now = time.process_time()
        rounds.append(now - look["at"])
        if explorer.steps >= look["next"]:
            look["next"] = max(explorer.steps + 5, int(1.03 * explorer.steps))
            acting = ByKnowledge(explorer)
            if not truth.holds(acting.begin, acting):
                since = None
            elif since is None:
                since = explorer.steps
                first = first or since
            look["judging"] += time.process_time() - now
            if patience and since is not None and explorer.steps > patience * since:
                raise _Enough
        look["at"] = time.process_time()

    solving.after_step = judged  # type: ignore[method-assign]
    began = time.process_time()
    try:
        solved = solving.run()
        claims, stopped = str(solved.statement.kind), explorer.steps
        acting = ByPlan(solved.plan, list(explorer.state.buffer.actions))
        right = truth.holds(acting.begin, acting)
        since = since or explorer.steps  # optimal since the last look, if at all
    except _Enough:
        claims, stopped, right = "not waited for", None, True
    seconds = time.process_time() - began - look["judging"]
    return {
        "optimal_first": first,
        "optimal_since": since if right else None,
        "steps": explorer.steps,
        "stopped_at": stopped if claims != "budget" else None,
        "claims": claims,
        "right": right,
        "states": explorer.sizes,
        "seconds": round(seconds, 2),
        "round": [round(float(one), 4) for one in np.quantile(rounds, [0.5, 0.99, 1.0])],
    }


def at_random(env: gym.Env[Any, Any], truth: Truth, most: int, seed: int) -> int | None:
    """Return the fewest random steps whose plan is truly optimal; None if that many are not."""
    timing = str(truth.world.timing)
    actions = [SymbolEncoder(env, "action")(code) for code in range(int(env.action_space.n))]  # type: ignore[attr-defined]
    traces = rs.collect(env, episodes=64, seed=seed)
    while not _is_right(traces, timing, truth, actions):
        if traces.steps >= most:
            return None
        traces = rs.collect(env, episodes=2 * len(traces), seed=seed)
    low, high = 0, len(traces)
    while high - low > max(1, high // 50):
        middle = (low + high) // 2
        if _is_right(traces[:middle], timing, truth, actions):
            high = middle
        else:
            low = middle
    return traces[:high].steps


def _is_right(traces: rs.TraceSet, timing: str, truth: Truth, actions: list[Any]) -> bool:
    try:
        plan = rs.plan(rs.infer(traces, timing=timing, noise="none"), traces, gamma=GAMMA)
    except rs.ResolventError:
        return False
    acting = ByPlan(plan, actions)
    return truth.holds(acting.begin, acting)


def main() -> None:
    """Measure what the file does not hold yet, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", nargs="*", default=[*BUILT_IN, "TMaze100"])
    parser.add_argument("--random-worlds", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=3, help="for the built-in worlds")
    parser.add_argument("--random-world-seeds", type=int, default=1)
    parser.add_argument("--budget", type=int, default=200_000)
    parser.add_argument("--patience", type=float, help="for random worlds: see `explored`")
    parser.add_argument("--most-random", type=int, default=600_000)
    parser.add_argument("--renew", action="store_true", help="explore again")
    parser.add_argument("--only", choices=["explored", "random"], help="one of the two")
    parser.add_argument("-o", type=Path, default=Path("benchmarks/solving.json"))
    parser.add_argument("--page", type=Path, default=Path("docs/solving.md"))
    asked = parser.parse_args()
    known = json.loads(asked.o.read_text()) if asked.o.exists() else {}
    jobs = [(name, seed) for name in asked.worlds for seed in range(asked.seeds)]
    jobs += [
        (f"RandomWorld {number}", seed)
        for number in range(asked.random_worlds)
        for seed in range(asked.random_world_seeds)
    ]
    for name, seed in jobs:
        of_world = known.setdefault(name, {"explored": {}, "random": {}})
        make, key = _maker(name), str(seed)
        truth = Truth(make())
        if asked.only != "explored" and key not in of_world["random"]:
            steps = at_random(make(), truth, asked.most_random, seed)
            of_world["random"][key] = {"steps": steps, "most": asked.most_random}
        if asked.only != "random" and (asked.renew or key not in of_world["explored"]):
            patience = asked.patience if name.startswith("RandomWorld") else None
            of_world["explored"][key] = explored(make(), truth, asked.budget, seed, patience)
        print(name, seed, of_world["explored"].get(key), of_world["random"].get(key), flush=True)
        asked.o.write_text(json.dumps(known, indent=1) + "\n")
    asked.page.write_text(page(known, f"{asked.budget:,}"))


def _maker(name: str) -> Callable[[], gym.Env[Any, Any]]:
    if name == "TMaze100":
        return lambda: TMaze(100)
    if name.startswith("RandomWorld"):
        return lambda: RandomWorld(world_seed=int(name.split()[1]))
    return lambda: gym.make(f"resolvent/{name}-v0")


if __name__ == "__main__":
    main()
