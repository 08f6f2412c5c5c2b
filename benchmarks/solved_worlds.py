"""Memory tasks of other projects, each given to `rs.solve` with a budget: docs/solved-worlds.md.

Each row is kept in benchmarks/solved_worlds.json as soon as it is measured: `--missing` solves
only rows that are not kept, `--only TEXT` renews some rows, and `--page` only writes the page.
"""

import argparse
import json
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

import resolvent as rs
from resolvent.exploration.solution import Round
from resolvent.rl.env import SymbolEncoder

sys.path.insert(0, str(Path(__file__).parent / "foreign"))
from optima import GAMMA, best_of_cards, best_of_minigrid

PAGE = Path(__file__).parents[1] / "docs" / "solved-worlds.md"
KEPT = Path(__file__).with_suffix(".json")
EPISODES, LONGEST = 200, 500

HEAD = """\
# Memory tasks solved by exploration

`rs.solve` on environments that other people use to study memory, each as it is or as its row states,
with one seed, a budget of steps and no knowledge of the true machines. *Steps* is the number of steps
at the stop, *states* are those of the Transition Machine × the Reward Machine. *Return* is the mean
discounted return (γ 0.95) of the plan in 200 fresh episodes, next to that of the best policy that
sees the whole state, from the same starts: by value iteration on the true states of worlds of
Resolvent, by breadth-first search in MiniGrid, and by a rule for card games. *Stop* is the kind of
[stop reason](how-to/solve.md#read-the-result); `interrupted` rows reached their time
limit. *Seconds* are CPU seconds on a busy machine.

MiniGrid and POPGym draw a new layout or deal for each episode, more than could be memorized, so the
next observation is random. A row that names a number of layouts or deals has only these (deals with
different first cards); which of them it is has to be found out in each episode. Rows without such a
number are treated as stochastic, as their stop reason states.

<!-- Written by benchmarks/solved_worlds.py: run `make benchmark NAME=solved_worlds` instead. -->

| from | world | labels | steps | states | return, of the best | stop | seconds |
|---|---|---|--:|--:|---|---|--:|
"""

OPEN = {
    "Symbol": "the sign shows one of nine symbols; at the stop the machines were still too large, "
    "and the plan is far from the best one",
    "DoorKey 5x5, one layout": "the plan is the best one, but this is not verified: the key can be "
    "dropped anywhere, each of 157 observations is a label of its own, and machines that remember "
    "the place of the key have more and more states, in which most steps were never taken",
    "CountRecall, 2 deals": "at each of the 51 steps of a deal one of 27 numbers is right, and the "
    "budget is too small to try them",
}
"""Reasons why a world is not solved, for rows without the stop reason "optimal"."""


class Deals(gym.Wrapper[Any, Any, Any, Any]):
    """A card game in which one of a few deals comes up, each with another first card.

    Which one it is follows from the seed. Deals that begin alike would be random: nothing that
    was seen tells then what the second card is.
    """

    def __init__(self, env: gym.Env[Any, Any], deals: int) -> None:
        super().__init__(env)
        first: dict[Any, int] = {}
        for seed in range(1_000):
            first.setdefault(str(env.reset(seed=seed)[0]), seed)
        self.seeds, self.dealt = list(first.values())[:deals], 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Deal by the seed, or the next deal without one."""
        self.dealt = (self.dealt + 1 if seed is None else seed) % len(self.seeds)
        return self.env.reset(seed=self.seeds[self.dealt], options=options)


class Unlabelled(gym.Wrapper[Any, Any, Any, Any]):
    """A world whose labels are taken away."""

    def reset(self, **options: Any) -> Any:
        """Begin, and tell nothing beside what is seen."""
        return self.env.reset(**options)[0], {}

    def step(self, action: Any) -> Any:
        """Act, and tell nothing beside what is seen."""
        return *self.env.step(action)[:4], {}

    def get_wrapper_attr(self, name: str) -> Any:
        """Have no method that tells labels, either."""
        if name in ("labels", "get_events"):
            raise AttributeError(name)
        return super().get_wrapper_attr(name)


@dataclass(frozen=True)
class Case:
    """A world, and with how many steps to solve it."""

    origin: str
    name: str
    make: Callable[[], gym.Env[Any, Any]]
    budget: int
    best: Callable[[gym.Env[Any, Any], list[Any]], float] | None


@dataclass(frozen=True)
class Row:
    """What came of a world."""

    origin: str
    name: str
    labels: str
    steps: int
    states: str
    paid: float
    best: float | None
    said: str
    gap: float | None
    seconds: float
    earlier: bool = False
    """Whether exploring has changed since."""


def best_of_built_in(env: gym.Env[Any, Any], starts: list[Any]) -> float:
    """Value iteration over the true states, in the mean over these first observations."""
    tables = env.unwrapped.mechanics  # type: ignore[attr-defined]
    values, name = tables.optimal_values(GAMMA), SymbolEncoder(env, "observation")
    of: dict[Any, list[float]] = {}
    for start in tables.starts:
        of.setdefault(name(int(tables.observation_of[start])), []).append(float(values[start]))
    return float(np.mean([np.mean(of[start]) for start in starts]))


def best_of_autoencode(env: gym.Env[Any, Any], starts: list[Any]) -> float:
    """Name every card, once all have been shown."""
    cards = env.unwrapped.deck.num_cards  # type: ignore[attr-defined]
    return sum(GAMMA**step for step in range(cards - 1, 2 * cards - 1)) / cards


def built_in(name: str, budget: int, labelled: bool = True, **arguments: Any) -> Case:
    """Return a world that comes with Resolvent."""

    def make() -> gym.Env[Any, Any]:
        env = gym.make(f"resolvent/{name}-v0", **arguments)
        return env if labelled else Unlabelled(env)

    parameters = "".join(f", {key} {value}" for key, value in arguments.items())
    without = "" if labelled else ", its labels taken away"
    return Case("Resolvent", f"{name}{parameters}{without}", make, budget, best_of_built_in)


def minigrid(name: str, world: str, seeds: list[int], budget: int, **arguments: Any) -> Case:
    """Return a world of MiniGrid with a few layouts, in which being at the goal is worth 1."""

    def make() -> gym.Env[Any, Any]:
        import minigrid.wrappers

        env: gym.Env[Any, Any] = gym.make(f"MiniGrid-{world}-v0", **arguments)
        env = minigrid.wrappers.ReseedWrapper(env, seeds=seeds)
        return gym.wrappers.TransformReward(env, lambda reward: float(reward > 0))

    return Case("MiniGrid", name, make, budget, best_of_minigrid)


def popgym(name: str, entry_point: str, deals: int | None, budget: int, best: Any) -> Case:
    """Return a card game of POPGym, with a few deals or as it is."""

    def make() -> gym.Env[Any, Any]:
        from importlib import import_module

        module, _, kind = entry_point.partition(":")
        env = getattr(import_module(f"popgym.envs.{module}"), kind)()
        return env if deals is None else Deals(env, deals)

    dealt = ", as it is" if deals is None else f", {deals} deals"
    return Case("POPGym", f"{name}{dealt}", make, budget, best)


CASES = (
    built_in("House", 5_000),
    built_in("House", 5_000, labelled=False),
    built_in("TMaze", 5_000, length=10),
    built_in("TMaze", 5_000, labelled=False, length=10),
    built_in("TMaze", 5_000, length=100),
    built_in("PhaseGrid3", 5_000),
    built_in("OfficeCoffee", 10_000),
    built_in("OfficeMail", 10_000),
    built_in("OfficeBoth", 30_000),
    built_in("Cookie", 30_000),
    built_in("Symbol", 30_000),
    built_in("TwoKeys", 30_000),
    minigrid("DoorKey 5x5, one layout", "DoorKey-5x5", [0], 20_000),
    minigrid("Memory S7, two layouts", "MemoryS7", [34, 23], 20_000, agent_view_size=3),
    popgym("RepeatFirst", "repeat_first:RepeatFirstEasy", 2, 5_000, best_of_cards),
    popgym("Autoencode", "autoencode:AutoencodeEasy", 2, 5_000, best_of_autoencode),
    popgym("CountRecall", "count_recall:CountRecallEasy", 2, 5_000, None),
    popgym("RepeatFirst", "repeat_first:RepeatFirstEasy", None, 5_000, best_of_cards),
)


def measure(case: Case, seconds: float) -> Row:
    """Solve a world, and act in it by the plan."""
    started = time.process_time()

    def stop(now: Round) -> None:
        if time.process_time() - started > seconds:
            os.kill(os.getpid(), signal.SIGTERM)  # which keeps everything

    solved = rs.solve(case.make(), budget=case.budget, gamma=GAMMA, progress=stop)
    used = time.process_time() - started
    env = case.make()
    runs = solved.plan.run(env, episodes=EPISODES, seed=1, on_unseen="random", max_steps=LONGEST)
    starts = [trace.observations[0] for trace in runs.traces]
    sizes = solved.states
    return Row(
        case.origin,
        case.name,
        solved.machines.preprocessor.labeling.reads,
        solved.steps,
        " × ".join(str(sizes[kind]) for kind in ("transition", "reward") if kind in sizes),
        round(float(runs.discounted_returns.mean()), 4),
        None if case.best is None else round(case.best(env, starts), 4),
        solved.guarantee.reason,
        solved.guarantee.as_dict()["gap"],
        round(used, 1),
    )


def line(row: Row) -> str:
    """Return a row of the table."""
    paid = f"{row.paid:.4g}" if row.best is None else f"{row.paid:.4g} of {row.best:.4g}"
    cells = (
        *(row.origin, row.name, row.labels, f"{row.steps:,}", row.states, paid),
        *(row.said, f"{row.seconds:.1f}"),
    )
    return f"| {' | '.join(cells)} |"


def main() -> int:
    """Solve the worlds, keep each row, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", metavar="TEXT", default="", help="worlds whose names have this")
    parser.add_argument("--missing", action="store_true", help="worlds that were never solved")
    parser.add_argument("--seconds", type=float, default=120, help="the most that a row may use")
    parser.add_argument("--page", action="store_true", help="solve nothing, write the page")
    parser.add_argument("--kept", type=Path, default=KEPT)
    options = parser.parse_args()
    rows: dict[str, Row] = {}
    if options.kept.exists():
        stored = json.loads(options.kept.read_text())
        rows = {fields["name"]: Row(**fields) for fields in stored}
    for case in () if options.page else CASES:
        if options.only not in f"{case.origin} {case.name}" or (
            options.missing and case.name in rows
        ):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # environments warn of what they like
            rows[case.name] = measure(case, options.seconds)
        print(line(rows[case.name]), flush=True)
        stored = [asdict(rows[known.name]) for known in CASES if known.name in rows]
        options.kept.write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n")
        write_page(rows)
    if options.page:
        write_page(rows)
    return 0


def write_page(kept: dict[str, Row]) -> None:
    """Write the page from the rows that there are."""
    lines = [line(kept[one.name]) for one in CASES if one.name in kept]
    lines += [
        f"\n{one.name}: {OPEN[one.name]}."
        for one in CASES
        if one.name in kept and one.name in OPEN and kept[one.name].said != "optimal"
    ]
    missing = [f"{one.origin}'s {one.name}" for one in CASES if one.name not in kept]
    if missing:
        lines += ["", f"Not measured yet: {'; '.join(missing)}."]
    earlier = [one.name for one in CASES if one.name in kept and kept[one.name].earlier]
    if earlier:
        lines += ["", f"Measured before exploring changed last: {'; '.join(earlier)}."]
    PAGE.write_text(HEAD + "\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main())
