"""Steps until the plan is optimal from every start: `rs.solve` beside random exploration.

Value iteration on the hidden states, which neither sees, decides whether a plan is optimal. For
random exploration, bisection finds the smallest number of episodes whose machines and plan are
optimal. Measurements are kept in a JSON file, from which the page is written.
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
from resolvent.exploration.environment import EnvironmentId, EpisodePlayer
from resolvent.exploration.solve import SolveRun, explore
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
            state = int(tables.next_state[state, action])
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
            least = self.model.least
            worst = min(least, least / (1 - GAMMA))  # of a step that was never taken
            self.policy = self.model.known_steps(GAMMA).solve(worst).policy

    def begin(self, seen: Any, label: Any) -> Any:
        model = self.model
        if model is None:
            return None
        first = self.log.labels.codes.get(label, -2)
        return None if model.reads_first_label and first < 0 else model.first_states(first)

    def step(self, states: Any, label: Any) -> Any:
        code = self.log.labels.codes.get(label, -2)
        return None if states is None or code < 0 else self.model.machines.next_states(states, code)

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
        row = self.plan.model.find(seen, *memory.values)
        if row is None:
            return None
        return self.numbers[self.plan.model.actions[int(self.plan.policy[row])]]


class _Enough(Exception):  # noqa: N818
    """The plan has been optimal for long enough."""


def explored(
    env: gym.Env[Any, Any], truth: Truth, budget: int, seed: int, patience: float | None = None
) -> dict[str, Any]:
    """Solve, and look now and then whether it is truly optimal by then.

    With patience, it is not waited until exploring stops, but for so many times the steps.
    """
    explorer = rs.Explorer(env, gamma=GAMMA, seed=seed)
    player = EpisodePlayer(env, explorer.state, explorer.encoder, None)
    run = SolveRun(explorer, player, EnvironmentId.of(env), budget)
    since: int | None = None
    first: int | None = None
    look = {"next": 0, "evaluating": 0.0, "at": time.process_time()}
    rounds: list[float] = []
    after = run.after_step

    def evaluated(**options: bool) -> None:
        nonlocal since, first
        after(**options)
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
            look["evaluating"] += time.process_time() - now
            if patience and since is not None and explorer.steps > patience * since:
                raise _Enough
        look["at"] = time.process_time()

    run.after_step = evaluated  # type: ignore[method-assign]
    started = time.process_time()
    try:
        solved = explore(run)
        claims, stopped = str(solved.guarantee.reason), explorer.steps
        acting = ByPlan(solved.plan, list(explorer.state.buffer.actions))
        right = truth.holds(acting.begin, acting)
        since = since or explorer.steps  # optimal since the last look, if at all
    except _Enough:
        claims, stopped, right = "not waited for", None, True
    seconds = time.process_time() - started - look["evaluating"]
    return {
        "optimal_first": first,
        "optimal_since": since if right else None,
        "steps": explorer.steps,
        "stopped_at": stopped if claims != "budget" else None,
        "claims": claims,
        "right": right,
        "states": explorer.state.sizes,
        "seconds": round(seconds, 2),
        "round": [round(float(quantile), 4) for quantile in np.quantile(rounds, [0.5, 0.99, 1.0])],
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
    options = parser.parse_args()
    results = json.loads(options.o.read_text()) if options.o.exists() else {}
    jobs = [(name, seed) for name in options.worlds for seed in range(options.seeds)]
    jobs += [
        (f"RandomWorld {number}", seed)
        for number in range(options.random_worlds)
        for seed in range(options.random_world_seeds)
    ]
    for name, seed in jobs:
        of_world = results.setdefault(name, {"explored": {}, "random": {}})
        make, key = _maker(name), str(seed)
        truth = Truth(make())
        if options.only != "explored" and key not in of_world["random"]:
            steps = at_random(make(), truth, options.most_random, seed)
            of_world["random"][key] = {"steps": steps, "most": options.most_random}
        if options.only != "random" and (options.renew or key not in of_world["explored"]):
            patience = options.patience if name.startswith("RandomWorld") else None
            of_world["explored"][key] = explored(make(), truth, options.budget, seed, patience)
        print(name, seed, of_world["explored"].get(key), of_world["random"].get(key), flush=True)
        options.o.write_text(json.dumps(results, indent=1) + "\n")
    options.page.write_text(page(results, f"{options.budget:,}"))


def _maker(name: str) -> Callable[[], gym.Env[Any, Any]]:
    if name == "TMaze100":
        return lambda: TMaze(100)
    if name.startswith("RandomWorld"):
        return lambda: RandomWorld(world_seed=int(name.split()[1]))
    return lambda: gym.make(f"resolvent/{name}-v0")


if __name__ == "__main__":
    main()
