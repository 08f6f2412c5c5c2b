"""The cost of a round of exploration: learn from a step, update the hypothesis, choose the next.

In the house and in 25×25 worlds from the first step on; and in 25×25 worlds after 100,000 random
steps, where each transition of the machines in turn is made wrong, so that the next step
contradicts it: the hypothesis is then repaired, or inferred from scratch, and all counts and
values are recomputed. CPU milliseconds of all threads together.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import gymnasium as gym
import numpy as np

import resolvent as rs
from resolvent.exploration import hypothesis, tests
from resolvent.exploration import state as learner_state
from resolvent.exploration.empirical_model import UNKNOWN, EmpiricalModel
from resolvent.exploration.environment import EnvironmentId, EpisodePlayer
from resolvent.exploration.learner import begin_episode
from resolvent.exploration.solve import SolveRun, explore
from resolvent.exploration.tables import TransitionTables
from resolvent.exploration.tests import select_action
from resolvent.worlds import RandomWorld

PARTS = {
    "repairing": (hypothesis, "repaired"),
    "inferring": (hypothesis.Hypothesis, "_infer"),
    "model": (EmpiricalModel, "of_steps"),
    "value bounds": (learner_state, "value_bounds"),
    "choosing": (tests, "_most_useful"),
}
"""The parts of a round, and the functions that do them."""

MAX_WORD_LENGTH = 1_000
"""Random episodes are cut after so many steps."""


@dataclass
class Rounds:
    """The processor time of each round, and of its parts."""

    whole: list[float] = field(default_factory=list)
    parts: dict[str, list[float]] = field(default_factory=lambda: {part: [] for part in PARTS})
    _now: dict[str, float] = field(default_factory=dict)

    def end(self, seconds: float) -> None:
        """Note a round that is over."""
        self.whole.append(seconds)
        for part, times in self.parts.items():
            times.append(self._now.get(part, 0.0))
        self._now.clear()

    @contextmanager
    def one(self) -> Iterator[None]:
        """Time a round."""
        began = time.process_time()
        yield
        self.end(time.process_time() - began)

    @contextmanager
    def told_apart(self) -> Iterator[None]:
        """Time the parts of rounds."""
        originals = [(owner, name, getattr(owner, name)) for owner, name in PARTS.values()]
        for part, (owner, name, function) in zip(PARTS, originals, strict=True):
            setattr(owner, name, self._timed(part, function))
        try:
            yield
        finally:
            for owner, name, function in originals:
                setattr(owner, name, function)

    def _timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **options: Any) -> Any:
            started = time.process_time()
            try:
                return function(*arguments, **options)
            finally:
                spent = time.process_time() - started
                self._now[part] = self._now.get(part, 0.0) + spent

        return timed

    def row(self, name: str) -> str:
        """Return a row of the table: quantiles of the whole, and the most that each part took."""
        half, most, longest = np.quantile(self.whole, [0.5, 0.99, 1.0])
        seconds = [half, most, longest, *(max(times) for times in self.parts.values())]
        return (
            f"| {name} | {len(self.whole):,} | "
            + " | ".join(f"{1_000 * time:.1f}" if time else "" for time in seconds)
            + " |"
        )


def solved(env: gym.Env[Any, Any], budget: int, seed: int, rounds: Rounds) -> None:
    """Solve, and time each round."""
    explorer = rs.Explorer(env, seed=seed)
    player = EpisodePlayer(env, explorer.state, explorer.encoder, None)
    run = SolveRun(explorer, player, EnvironmentId.of(env), budget)
    after, began = run.after_step, time.process_time()

    def timed(**options: bool) -> None:
        nonlocal began
        after(**options)
        rounds.end(time.process_time() - began)
        began = time.process_time()

    run.after_step = timed  # type: ignore[method-assign]
    with rounds.told_apart():
        explore(run)


class Walk:
    """An explorer that is shown random steps."""

    def __init__(self, env: gym.Env[Any, Any], seed: int) -> None:
        self.env, self.explorer = env, rs.Explorer(env, seed=seed)
        self.draw = np.random.default_rng(seed)
        self.shown: Any = None
        self.cursor = self.explorer._episode(0)

    def step(self, rounds: Rounds | None = None, *, choose: bool = False) -> None:
        """Take a random step, and choose the next one if that is to be timed as well."""
        explorer, cursor = self.explorer, self.cursor
        if not cursor.is_open:
            shown = self.env.reset(seed=None if explorer.steps else 0)
            begin_episode(explorer.state, cursor, explorer.encoder.reset(explorer.state, 0, shown))
        action = self.draw.integers(self.env.action_space.n)  # type: ignore[attr-defined]
        observation, reward, *ended, info = self.env.step(action)
        with (rounds or Rounds()).one():
            explorer.learn(action, observation, reward, *ended, info)
            if choose and cursor.is_open:
                select_action(explorer.state, cursor)
        if cursor.length >= MAX_WORD_LENGTH:
            explorer.truncate()

    def surprised(self, tables: TransitionTables, thorough_at: int, rounds: Rounds) -> None:
        """Take a step with these machines believed in, which it shows to be wrong."""
        held = self.explorer.state.hypothesis
        held.tables, held.thorough_at = tables, thorough_at
        if not self.cursor.is_open:
            self.step()
        self.cursor.row = UNKNOWN
        self.step(rounds, choose=True)


def wrong_moves(tables: TransitionTables) -> Iterator[TransitionTables]:
    """Return machines with one move each that leads elsewhere."""
    for place, moves in enumerate(tables.transitions):
        for state, label in zip(*np.nonzero(moves >= 0), strict=True):
            tables_with_error = [table.copy() for table in tables.transitions]
            tables_with_error[place][state, label] = (moves[state, label] + 1) % len(moves)
            yield replace(tables, transitions=tuple(tables_with_error))


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=4, help="so many 25×25 worlds")
    parser.add_argument("--seeds", type=int, default=3, help="for the house")
    parser.add_argument("--steps", type=int, default=27_000, help="to solve a 25×25 world for")
    parser.add_argument("--behind", type=int, default=100_000, help="random steps")
    options = parser.parse_args()
    print("| rounds | how many | 0.5 | 0.99 | longest | " + " | ".join(PARTS) + " |")
    print("|---|" + "---:|" * (4 + len(PARTS)))
    rounds = Rounds()
    for seed in range(options.seeds):
        solved(gym.make("resolvent/House-v0"), 100_000, seed, rounds)
    print(rounds.row("the house"), flush=True)
    for world in range(options.worlds):
        rounds, name = Rounds(), f"25×25 world {world}"
        solved(RandomWorld(world_seed=world), options.steps, 0, rounds)
        print(rounds.row(f"{name}, {options.steps:,} steps"), flush=True)
    for world in range(options.worlds):
        name, walk = f"25×25 world {world}", Walk(RandomWorld(world_seed=world), 0)
        on_the_way, repaired, inferred = Rounds(), Rounds(), Rounds()
        with on_the_way.told_apart():
            while walk.explorer.steps < options.behind:
                walk.step(on_the_way)
        print(on_the_way.row(f"{name}, {options.behind:,} random steps"), flush=True)
        believed = walk.explorer.state.hypothesis.tables
        assert believed is not None
        with repaired.told_apart():
            for wrong in wrong_moves(believed):
                walk.surprised(wrong, 2 * walk.explorer.steps, repaired)
        print(repaired.row(f"{name}, then each move wrong once: mended"), flush=True)
        with inferred.told_apart():
            for wrong in wrong_moves(believed):
                walk.surprised(wrong, 0, inferred)
        print(inferred.row(f"{name}, then each move wrong once: inferred"), flush=True)


if __name__ == "__main__":
    main()
