"""How often a plan is called optimal and is not, in all built-in worlds and in random ones.

A random graph has two random machines: the state of one changes transitions, that of the other
rewards. A random office is a grid with a task: things to collect in order, plants that end
episodes, and maybe a door that one of the things opens. Value iteration on the hidden state
decides. Results are printed for each world, and counted.
"""

import argparse
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import solving
from solving import BUILT_IN, ByPlan, Truth

import resolvent as rs
from resolvent.rl.env import SymbolEncoder
from resolvent.traces.symbols import NO_EVENT, Label
from resolvent.worlds import TMaze
from resolvent.worlds.env import World
from resolvent.worlds.mechanics import Mechanics

LONGEST = 200
"""Episodes of random worlds are cut after so many steps."""


class Hidden(NamedTuple):
    """A place, and the states of the two machines."""

    place: int
    moved: int
    paid: int
    over: bool = False


class HiddenRules:
    """A random graph whose moves and pay depend on what its labels were before."""

    actions = ("a", "b", "c")

    def __init__(self, rng: np.random.Generator) -> None:
        self.places, kinds = int(rng.integers(4, 10)), int(rng.integers(2, 5))
        moving, paying = int(rng.integers(2, 5)), int(rng.integers(1, 4))
        ring = rng.permutation(self.places)
        usual = rng.integers(self.places, size=(self.places, 3))
        usual[ring, 0] = np.roll(ring, -1)  # every place can be reached
        self.following = np.repeat(usual[None], moving, axis=0)
        for state in range(1, moving):
            for _ in range(int(rng.integers(1, 4))):
                place, action = rng.integers(self.places), rng.integers(1, 3)
                self.following[state, place, action] = rng.integers(self.places)
        self.reward = np.zeros((paying, self.places, 3))
        self.ends = np.zeros((paying, self.places, 3), bool)
        for state in range(paying):
            for _ in range(int(rng.integers(1, 3))):
                place, action = rng.integers(self.places), rng.integers(1, 3)
                self.reward[state, place, action] = rng.integers(1, 5)
                self.ends[state, place, action] = rng.random() < 0.5
        self.label_of = np.where(
            rng.random(self.places) < 0.6, rng.integers(1, kinds + 1, self.places), 0
        )
        self.moves = _moves(rng, moving, kinds)
        self.pays = _moves(rng, paying, kinds)

    def starts(self) -> Sequence[Hidden]:
        """Begin in the first place."""
        return [Hidden(0, 0, 0)]

    def step(self, state: Hidden, action: int) -> tuple[Hidden, float, bool]:
        """Move, and read what is there."""
        place = int(self.following[state.moved, state.place, action])
        paid = float(self.reward[state.paid, state.place, action])
        over = bool(self.ends[state.paid, state.place, action])
        label = int(self.label_of[place])
        moved, pays = int(self.moves[state.moved, label]), int(self.pays[state.paid, label])
        return Hidden(place, moved, pays, over), paid, over

    def observation(self, state: Hidden) -> int:
        """Show the place."""
        return state.place

    def label(self, state: Hidden) -> Label:
        """Show what kind of place it is."""
        kind = int(self.label_of[state.place])
        return frozenset({f"kind {kind}"}) if kind else NO_EVENT

    def transition_memory(self, state: Hidden) -> int:
        """Return what moves depend on."""
        return state.moved

    def reward_memory(self, state: Hidden) -> int:
        """Return what pay depends on."""
        return state.paid


class OfficeRules(HiddenRules):
    """A random grid with an errand; `label_of` is where things are, and 0 is nothing."""

    actions = ("up", "right", "down", "left")

    def __init__(self, rng: np.random.Generator) -> None:
        height, width = int(rng.integers(4, 8)), int(rng.integers(4, 9))
        self.places = height * width
        walls = rng.random((self.places, 4)) < 0.12
        usual = np.array([self._neighbours(one, height, width) for one in range(self.places)])
        usual = np.where(walls, np.arange(self.places)[:, None], usual)
        kinds, plants = int(rng.integers(3, 7)), int(rng.integers(1, 6))
        cells = rng.permutation(self.places - 1)[: kinds + plants] + 1
        self.label_of = np.zeros(self.places, np.int64)
        self.label_of[cells[:kinds]] = np.arange(1, kinds + 1)
        self.label_of[cells[kinds:]] = kinds + 1
        errand = rng.integers(1, kinds + 1, int(rng.integers(1, 4)))
        self.pays = np.repeat(np.arange(len(errand) + 1)[:, None], kinds + 2, axis=1)
        self.pays[np.arange(len(errand)), errand] = np.arange(1, len(errand) + 1)
        if rng.random() < 0.3:  # something undoes what was done
            self.pays[:, int(rng.integers(1, kinds + 1))] = 0
        office = int(cells[int(rng.integers(kinds))])
        doors = int(rng.integers(0, 2))
        self.moves = np.zeros((doors + 1, kinds + 2), np.int64)
        self.following = np.repeat(usual[None], doors + 1, axis=0)
        if doors:
            self.moves[1], self.moves[:, int(rng.integers(1, kinds + 1))] = 1, 1
            shut = int(rng.integers(1, self.places))
            here = np.arange(self.places)[:, None]
            self.following[0] = np.where(self.following[0] == shut, here, self.following[0])
        shape = len(errand) + 1, self.places, 4
        self.reward, self.ends = np.zeros(shape), np.zeros(shape, bool)
        self.reward[-1] = (usual == office) & (usual != np.arange(self.places)[:, None])
        self.ends[:] = self.label_of[usual] == kinds + 1
        self.ends[-1] |= self.reward[-1] > 0

    @staticmethod
    def _neighbours(place: int, height: int, width: int) -> list[int]:
        row, column = divmod(place, width)
        around = ((row - 1, column), (row, column + 1), (row + 1, column), (row, column - 1))
        inside = [(0 <= r < height and 0 <= c < width) for r, c in around]
        return [r * width + c if ok else place for (r, c), ok in zip(around, inside, strict=True)]


def _moves(rng: np.random.Generator, states: int, labels: int) -> Any:
    """Return where labels lead: most change nothing, and each state is led to by one at least."""
    moves = np.repeat(np.arange(states)[:, None], labels + 1, axis=1)
    for state in range(1, states):
        moves[rng.integers(state), rng.integers(1, labels + 1)] = state
    for _ in range(states):
        moves[rng.integers(states), rng.integers(1, labels + 1)] = rng.integers(states)
    return moves


class HiddenWorld(World):
    """A random world as an environment."""

    def __init__(self, rules: HiddenRules) -> None:
        super().__init__(Mechanics.explore(rules))


def claim_of(
    make: Callable[[], gym.Env[Any, Any]], seed: int, budget: int, **options: Any
) -> dict[str, Any]:
    """Solve, and say what was claimed and whether it is so."""
    env = make()
    started = time.process_time()
    solved = rs.solve(env, seed=seed, budget=budget, **options)
    seconds = time.process_time() - started
    names = [SymbolEncoder(env, "action")(code) for code in range(int(env.action_space.n))]  # type: ignore[attr-defined]
    acting = ByPlan(solved.plan, names)
    truth = Truth(make())
    return {
        "claims": solved.guarantee.reason,
        "right": truth.holds(acting.begin, acting),
        "steps": solved.steps,
        "states": solved.states,
        "seconds": round(seconds, 2),
    }


def hidden_world(rules: type[HiddenRules], number: int) -> gym.Env[Any, Any]:
    """Return a random world by its number, with something to be had in it."""
    rng = np.random.default_rng(number)
    while True:
        world = HiddenWorld(rules(rng))
        if world.mechanics.optimal_values(0.95)[world.mechanics.starts].max() > 0:
            return gym.wrappers.TimeLimit(world, LONGEST)


def _long_maze() -> gym.Env[Any, Any]:
    return TMaze(100)


def main() -> None:
    """Solve them all, and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", nargs="*", default=[*BUILT_IN, "TMaze100"])
    parser.add_argument("--seeds", type=int, nargs=2, default=[10, 30], help="from, up to below")
    parser.add_argument("--graphs", type=int, nargs=2, default=[0, 200], help="random graphs")
    parser.add_argument("--offices", type=int, nargs=2, default=[0, 100], help="random offices")
    parser.add_argument("--budget", type=int, default=50_000)
    parser.add_argument("--gamma", type=float, default=0.95)
    options = parser.parse_args()
    solving.GAMMA = options.gamma
    jobs: list[tuple[str, Callable[[], gym.Env[Any, Any]], int]] = []
    for name in options.worlds:
        make = _long_maze if name == "TMaze100" else partial(gym.make, f"resolvent/{name}-v0")
        jobs += [(name, make, seed) for seed in range(*options.seeds)]
    for kind, rules in (("graphs", HiddenRules), ("offices", OfficeRules)):
        numbers = range(*getattr(options, kind))
        jobs += [
            (f"{kind} {result}", partial(hidden_world, rules, result), 0) for result in numbers
        ]
    counts, steps = Counter[str](), list[int]()
    for name, make, seed in jobs:
        result = claim_of(make, seed, options.budget, gamma=options.gamma)
        counts[f"{result['claims']}, {'right' if result['right'] else 'wrong'}"] += 1
        steps.append(result["steps"])
        print(name, seed, *result.values(), flush=True)
    print(dict(counts), "steps: median", int(np.median(steps)), "in all", sum(steps))


if __name__ == "__main__":
    main()
