"""The number of random steps until the true machines are inferred, by strategy.

Random worlds of the paper's appendix (sizes 9 to 25, TM 3 to 20 states, RM 2 to 6, 3 to 8 labels;
among them ten 25×25 worlds with TM 7). Each method gets more and more traces; the result is the
first number of steps from which both machines are isomorphic to the true ones. `--quick` takes a
few worlds.
"""

import argparse
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import resolvent as rs

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from worlds import World, random_world

STEPS = (5_000, 10_000, 15_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000)
METHODS = ("rpni", "edsm", "auto", "search", "exact")
TIME_LIMIT = 60.0
LEAST = {"exact": 10_000}  # with less there is little to prove, and it takes all the time there is


@dataclass(frozen=True)
class Setting:
    """One world."""

    seed: int
    size: int = 25
    labels: int = 5
    tm_states: int = 7
    rm_states: int = 3  # with the terminal one, as the paper counts

    def __str__(self) -> str:
        return (
            f"{self.size}×{self.size} TM {self.tm_states} RM {self.rm_states - 1} "
            f"labels {self.labels} seed {self.seed}"
        )

    def world(self) -> World:
        """Draw it."""
        return random_world(
            self.seed, self.size, self.labels, self.tm_states, rm_states=self.rm_states
        )


PAPER = tuple(Setting(seed) for seed in range(10))
OTHERS = (
    Setting(100, size=9, labels=3, tm_states=3),
    Setting(101, size=9, labels=3, tm_states=5, rm_states=4),
    Setting(102, size=9, labels=4, tm_states=4, rm_states=4),
    Setting(103, size=11, labels=4, tm_states=6),
    Setting(104, size=13, labels=5, tm_states=5, rm_states=5),
    Setting(105, size=15, labels=6, tm_states=8),
    Setting(106, size=15, labels=4, tm_states=10, rm_states=4),
    Setting(107, size=17, labels=5, tm_states=12),
    Setting(108, size=19, labels=8, tm_states=9, rm_states=5),
    Setting(109, size=21, labels=7, tm_states=14, rm_states=6),
    Setting(110, size=25, labels=6, tm_states=15, rm_states=4),
    Setting(111, size=25, labels=8, tm_states=20, rm_states=7),
)


def recovered(world: World, pair: rs.MachinePair, moves: tuple[set, set]) -> bool:
    """Whether both machines are the true ones, on all moves that the world ever takes."""
    tables = (world.tm_transitions, world.rm_transitions[: world.terminal])
    machines = (pair.transition, pair.reward)
    sizes = (len(world.tm_transitions), world.terminal)
    return all(
        machine.states == size and is_renamed(machine, table, read)
        for machine, table, read, size in zip(machines, tables, moves, sizes, strict=True)
    )


def is_renamed(machine: rs.Machine, table: tuple[tuple[int, ...], ...], moves: set) -> bool:
    """Walk the true table and the machine together along the moves that are ever taken."""
    partner, queue = {0: 0}, [0]
    for state in queue:
        for label, target in enumerate(table[state]):
            if (state, label) not in moves:
                continue
            successor = machine.step(partner[state], {str(label)})
            if successor is rs.UNSEEN:
                return False
            if target not in partner:
                partner[target] = successor
                queue.append(target)
            elif partner[target] != successor:
                return False
    return sorted(partner.values()) == list(range(machine.states))


def moves_taken(world: World, traces: rs.TraceSet) -> tuple[set, set]:
    """The true (state, label) pairs that long random walks ever read."""
    codes = np.array([int(next(iter(label))) if label else -1 for label in traces.labels])
    read = codes[traces.label_codes]
    tm, rm = np.array(world.tm_transitions), np.array(world.rm_transitions)
    moves: tuple[set, set] = (set(), set())
    offsets = traces.offsets
    for number in range(len(traces)):
        q = u = 0
        start = int(offsets[number]) + number
        # The last label is not read: the episode is over. Nor is the first.
        for label in read[start + 1 : start + int(offsets[number + 1] - offsets[number])]:
            if label >= 0:
                moves[0].add((q, int(label)))
                moves[1].add((u, int(label)))
                q, u = int(tm[q, label]), int(rm[u, label])
    return moves


def whole_traces(traces: rs.TraceSet, steps: int) -> rs.TraceSet:
    """The first traces that have at least so many steps together."""
    return traces[: int(np.searchsorted(traces.offsets, steps))]


def steps_needed(
    setting: Setting, methods: tuple[str, ...], most: int, right: dict[str, dict[int, int]]
) -> dict[str, tuple[int | None, float]]:
    """Give each method more and more traces of one world until it finds the machines."""
    world = setting.world()
    traces = world.rollouts(500, seed=1)
    episodes = int(500 * min(most, max(STEPS)) / traces.steps * 1.2) + 50
    traces = world.rollouts(episodes, seed=1)
    moves = moves_taken(world, whole_traces(traces, min(250_000, traces.steps)))
    needed: dict[str, tuple[int | None, float]] = {}
    for method in methods:
        needed[method] = (None, 0.0)
        for steps in STEPS:
            if steps > most or steps > traces.steps:
                break
            if steps < LEAST.get(method, 0):
                continue
            part = whole_traces(traces, steps)
            started = time.perf_counter()
            result = rs.infer(part, strategy=method, time_limit=TIME_LIMIT)
            seconds = time.perf_counter() - started
            if recovered(world, result.machines, moves):
                needed[method] = (part.steps, seconds)
                for level in STEPS:
                    if level >= steps:
                        right[method][level] += 1
                break
    return needed


def main() -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--most", type=int, default=1_000_000, help="steps to go up to")
    parser.add_argument("--quick", action="store_true", help="three of the worlds")
    options = parser.parse_args()
    methods = tuple(options.methods.split(","))
    settings = (PAPER[:2] + OTHERS[:1]) if options.quick else PAPER + OTHERS
    rows, rights = [], {name: {m: dict.fromkeys(STEPS, 0) for m in methods} for name in "po"}
    print(f"{'steps needed (seconds of that run)':<44}" + "".join(f"{m:>20}" for m in methods))
    for setting in settings:
        right = rights["p" if setting in PAPER else "o"]
        needed = steps_needed(setting, methods, options.most, right)
        rows.append((setting, needed))
        cells = (f"{n:,} ({s:.1f})" if n else "not found" for n, s in needed.values())
        print(f"{setting!s:<44}" + "".join(f"{cell:>20}" for cell in cells), flush=True)
    print()
    for name in ("median", "worst"):
        cells = []
        for method in methods:
            steps = [needed[method][0] or float("inf") for _, needed in rows]
            value = statistics.median(steps) if name == "median" else max(steps)
            cells.append("not found" if value == float("inf") else f"{value:,.0f}")
        print(f"{name:<44}" + "".join(f"{cell:>20}" for cell in cells))
    if "rpni" in methods and len(methods) > 1:
        best = min(methods[1:], key=lambda m: statistics.median(_steps(rows, m)))
        # Where rpni did not get there it needs more than the most that it was given.
        shares = [
            (needed[best][0] or float("inf")) / (needed["rpni"][0] or options.most)
            for _, needed in rows
        ]
        print(f"\n{best} needs {statistics.median(shares):.3f} of the steps rpni needs (median)")
    paper = sum(setting in PAPER for setting in settings)
    print(f"\nright in so many of the {paper} worlds of 25×25 with TM 7, by steps\n")
    print(f"{'':<12}" + "".join(f"{level:>11,}" for level in STEPS if level <= options.most))
    for method in methods:
        counts = (rights["p"][method][level] for level in STEPS if level <= options.most)
        print(f"{method:<12}" + "".join(f"{count:>11}" for count in counts))


def _steps(rows: list, method: str) -> list[float]:
    return [needed[method][0] or float("inf") for _, needed in rows]


if __name__ == "__main__":
    main()
