"""What `solve` states of a plan, beside what the plan is worth: values, intervals, bounds, claims.

The worlds are random ones that nothing was tuned on: deterministic graphs with hidden memory,
Markov decision processes, mazes whose places look alike, and POMDPs with noisy sightings. The
worth of a plan is its mean discounted return in thousands of further episodes, the optimum that
of value iteration on the hidden state (above what is possible where the state stays hidden).
"""

import argparse
import importlib
import json
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import gymnasium as gym
import numpy as np
from claims import HiddenRules, hidden_world
from numpy.typing import NDArray

import resolvent as rs
from resolvent.viz.curves import import_matplotlib

Numbers = NDArray[np.float64]
PICTURE: Final = Path(__file__).parents[1] / "docs" / "pictures" / "values.svg"
STYLE: Final = {"svg.hashsalt": "resolvent", "svg.fonttype": "path", "font.size": 9.0}
GAMMA: Final = 0.95
FIRST: Final = 70_000
"""Number of the first world; benchmarks of other purposes have those below."""
LONGEST: Final = 200
"""Maximum length of an episode: what comes later is worth a 28,000th."""


class TableWorld(gym.Env[int, int]):
    """A POMDP by its tables: transitions and rewards by state and action, sightings by state."""

    def __init__(self, rng: np.random.Generator, kind: str) -> None:
        self.states, self.actions = int(rng.integers(4, 9)), int(rng.integers(2, 5))
        shape = self.states, self.actions, self.states
        self.transition = np.zeros(shape)
        for state, action in np.ndindex(shape[:2]):
            ahead = rng.dirichlet(np.full(self.states, 0.3))
            if kind == "aliased":
                ahead = np.eye(self.states)[rng.integers(self.states)]
            self.transition[state, action] = ahead
        self.start = np.full(self.states, 1 / self.states)
        seen = self.states if kind == "observed" else int(rng.integers(2, self.states))
        of_state = np.append(np.arange(seen), rng.integers(seen, size=self.states - seen))
        blur = rng.uniform(0.05, 0.3) if kind == "noisy" else 0.0
        self.sighting = (1 - blur) * np.eye(seen)[of_state] + blur / seen
        self.reward = np.where(rng.random(shape[:2]) < 0.3, rng.integers(-2, 6, shape[:2]), 0.0)
        self.ends = np.where(rng.random(shape[:2]) < 0.2, 1.0, 0.0)
        self.observation_space = gym.spaces.Discrete(seen)
        self.action_space = gym.spaces.Discrete(self.actions)

    def optimum(self) -> float:
        """Return the value of the best policy that sees the state."""
        value: Numbers = np.zeros(self.states)
        for _ in range(1_000):
            ahead = self.transition @ value * (1 - self.ends)
            value = (self.reward + GAMMA * ahead).max(axis=1)
        return float(self.start @ value)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        """Draw a state."""
        super().reset(seed=seed)
        self.state = self._draw(self.start)
        return self._draw(self.sighting[self.state]), {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Pay, move and show."""
        paid, ends = self.reward[self.state, action], bool(self.ends[self.state, action])
        self.state = self._draw(self.transition[self.state, action])
        return self._draw(self.sighting[self.state]), float(paid), ends, False, {}

    def _draw(self, share: Numbers) -> int:
        return int(np.searchsorted(share.cumsum(), self.np_random.random() * share.sum(), "right"))


def table_world(kind: str, number: int) -> gym.Env[Any, Any]:
    """Return a random POMDP by its number, with something to be had in it."""
    rng = np.random.default_rng(number)
    while True:
        world = TableWorld(rng, kind)
        if world.optimum() > 0.1:
            return gym.wrappers.TimeLimit(world, LONGEST)


def optimum_of(env: gym.Env[Any, Any]) -> float:
    """Return the value of the best policy that sees the hidden state."""
    plain: Any = env.unwrapped
    if isinstance(plain, TableWorld):
        return plain.optimum()
    return float(plain.mechanics.optimal_values(GAMMA)[plain.mechanics.starts].mean())


KINDS: Final[dict[str, Callable[[int], gym.Env[Any, Any]]]] = {
    "graphs": partial(hidden_world, HiddenRules),
    "observed": partial(table_world, "observed"),
    "aliased": partial(table_world, "aliased"),
    "noisy": partial(table_world, "noisy"),
}


def measure(kind: str, number: int, seed: int, budget: int, episodes: int) -> dict[str, Any]:
    """Solve a world; return what is stated and what is so."""
    env, started = KINDS[kind](number), time.process_time()
    solution = rs.solve(env, seed=seed, budget=budget, gamma=GAMMA)
    seconds = time.process_time() - started
    runs = solution.plan.run(
        env, episodes=episodes, seed=12_345, max_steps=LONGEST, on_unseen="random"
    )
    worth, paid = runs.discounted_returns, solution.paid
    return {
        "kind": kind,
        "world": number,
        "seed": seed,
        "claim": solution.guarantee.reason,
        "value": solution.value,
        "bound": solution.bound if np.isfinite(solution.bound) else None,
        "paid": None if paid is None else paid.as_dict(),
        "worth": float(worth.mean()),
        "error": float(worth.std() / np.sqrt(len(worth))),
        "optimum": optimum_of(env),
        "seconds": round(seconds, 1),
    }


def count(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return how often the statements hold, up to two standard errors of the worth."""
    counts = Counter[str]()
    for row in rows:
        slack = 2 * row["error"] + GAMMA**LONGEST * max(100.0, abs(row["optimum"]))
        if row["paid"] is not None:
            counts["intervals"] += 1
            inside = row["paid"]["low"] - slack <= row["worth"] <= row["paid"]["high"] + slack
            counts["intervals that hold"] += inside
        if row["bound"] is not None and row["kind"] in ("graphs", "observed"):
            counts["bounds"] += 1
            counts["bounds that hold"] += row["optimum"] <= row["value"] + row["bound"] + slack
        if row["claim"] == "optimal":
            counts["optimal"] += 1
            counts["optimal, and is not"] += row["worth"] < row["optimum"] - slack
    scale = np.array([max(abs(row["optimum"]), 0.1) for row in rows])
    for name, key in (("value", "value"), ("worth", "worth")):
        share = np.array([row[key] for row in rows]) / scale
        counts[f"median {name} of the optimum"] = round(float(np.median(share)), 3)  # type: ignore[assignment]
    off = np.array([row["value"] - row["worth"] for row in rows]) / scale
    counts["mean of value − worth"] = round(float(off.mean()), 3)  # type: ignore[assignment]
    return dict(counts)


def draw(rows: list[dict[str, Any]]) -> None:
    """Draw what was paid and what the model states over what the plan is worth."""
    matplotlib = import_matplotlib()
    with matplotlib.rc_context(STYLE):
        figure = importlib.import_module("matplotlib.figure").Figure((8, 4.2), layout="constrained")
        left, right = figure.subplots(1, 2, sharex=True, sharey=True)
        for kind, color in zip(KINDS, ("#0072B2", "#009E73", "#D55E00", "#CC79A7"), strict=True):
            some = [row for row in rows if row["kind"] == kind and row["paid"] is not None]
            scale = np.array([max(abs(row["optimum"]), 0.1) for row in some])
            worth, value = (
                np.array([row[key] for row in some]) / scale for key in ("worth", "value")
            )
            mean, low, high = (
                np.array([row["paid"][key] for row in some]) / scale
                for key in ("mean", "low", "high")
            )
            span = np.abs(np.stack([mean - low, high - mean]))
            style = {"fmt": "o", "markersize": 3, "color": color, "label": kind, "alpha": 0.7}
            left.errorbar(worth, mean, yerr=span, elinewidth=0.7, **style)
            right.errorbar(worth, value, **style)
        for axes, name in ((left, "what was paid, 95% interval"), (right, "the model's value")):
            axes.plot([-2, 2], [-2, 2], color="0.7", linewidth=1, zorder=0)
            axes.set(title=name, xlim=(-1, 1.3), ylim=(-1, 1.3), aspect="equal")
            axes.set_xlabel("worth of the plan (optimum = 1)")
            axes.grid(color="0.9", linewidth=0.8)
        left.legend(loc="lower right")
        figure.savefig(PICTURE, format="svg", metadata={"Date": None})


def main() -> None:
    """Solve all worlds with all seeds; print counts by kind, and draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=8, help="of each kind")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=FIRST, help="number of the first world")
    parser.add_argument("--budget", type=int, default=5_000)
    parser.add_argument("--episodes", type=int, default=2_000, help="that show the worth")
    parser.add_argument("--kinds", nargs="*", default=[*KINDS])
    parser.add_argument("--output", type=Path, help="a JSON file for all results")
    parser.add_argument("--draw", action="store_true", help="docs/pictures/values.svg")
    options = parser.parse_args()
    rows = list[dict[str, Any]]()
    for kind in options.kinds:
        for number in range(options.first, options.first + options.worlds):
            for seed in range(options.seeds):
                rows.append(measure(kind, number, seed, options.budget, options.episodes))
                print(json.dumps(rows[-1]), flush=True)
        print(kind, count([row for row in rows if row["kind"] == kind]), flush=True)
    print("all", count(rows))
    if options.output is not None:
        options.output.write_text(json.dumps(rows, indent=0) + "\n", encoding="utf-8")
    if options.draw:
        draw(rows)


if __name__ == "__main__":
    main()
