"""Q-learning with and without the machines in the paper's 25×25 world: returns and values.

Machines are inferred from random traces of each world. Every learner has the paper's schedule (α
0.1, γ 0.95, ε from 0.3 down to 0.01) unless its row differs, and episodes are truncated after
2,000 steps. The value of a greedy policy is exact: the mean discounted return over all starts, as
a share of that of the best policy on the true state. The paper's measure is shown, too: the total
reward of the last 100 of 1,500 episodes, exploration included, as a share of that policy's.
`--quick` takes one world.
"""

import argparse
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np

import resolvent as rs
from resolvent.planning.model import Model
from resolvent.worlds.mechanics import Mechanics

PAPER = 1_500
GAMMA = 0.95
MAX_STEPS = 2_000
TRACES = 1_000


@dataclass(frozen=True)
class Learner:
    """One row of the table."""

    name: str
    view: str = "machines"
    options: dict[str, Any] = field(default_factory=dict)


BOTH = {"counterfactual": True, "shaping": True}
LEARNERS = (
    Learner("observation", "raw"),
    Learner("last 4 observations", "stacked"),
    Learner("machines"),
    Learner("machines, values begin at 1", options={"initial_value": 1.0}),
    Learner("machines, counterfactual", options={"counterfactual": True}),
    Learner(
        "machines, counterfactual, values begin at 1",
        options={"counterfactual": True, "initial_value": 1.0},
    ),
    Learner("machines, shaping", options={"shaping": True}),
    Learner("machines, both", options=BOTH),
    Learner("machines, ε 0.3 throughout", options={"epsilon_decay": 1.0}),
    Learner("machines, α 1", options={"alpha": 1.0}),
    Learner("machines, both, α 1", options={**BOTH, "alpha": 1.0}),
    Learner("machines, both, α 1, ε 0.01", options={**BOTH, "alpha": 1.0, "epsilon": 0.01}),
)


@dataclass(frozen=True)
class Run:
    """The result of one learner with one seed in one world; None if it was not reached."""

    total_in_paper: float
    length_in_paper: float
    share_in_paper: float
    share: float
    episodes_to_99: int | None
    steps_to_95: int | None


class Setting:
    """A world, its machines and their model, from random traces."""

    def __init__(self, world_seed: int) -> None:
        self.env = gym.make("resolvent/RandomWorld-v0", world_seed=world_seed)
        tables = self.env.unwrapped.mechanics
        self.optimum = float(tables.optimal_values(GAMMA)[tables.starts].mean())
        self.total = total_reward(tables)
        traces = rs.collect(self.env, episodes=TRACES, seed=world_seed)
        self.pair = rs.infer(traces).machines
        self.model = Model.of(self.pair, traces)
        print(
            f"world {world_seed}: {tables.states:,} true states, TM {self.pair.transition.states} "
            f"and RM {self.pair.reward.states} states from {traces.steps:,} random steps; "
            f"optimum {self.optimum:.4f}",
            flush=True,
        )

    def learn(self, learner: Learner, seed: int, episodes: int, **more: Any) -> rs.rl.QTable:
        """Train a learner."""
        env = self.env
        if learner.view == "machines":
            env = rs.AugmentObservation(env, self.pair)
        elif learner.view == "stacked":
            env = gym.wrappers.FrameStackObservation(env, 4)
        needs_model = learner.options.get("counterfactual") or learner.options.get("shaping")
        return rs.q_learning(
            env,
            seed=seed,
            episodes=episodes,
            max_steps=MAX_STEPS,
            gamma=GAMMA,
            model=self.model if needs_model else None,
            **learner.options,
            **more,
        )

    def run(self, learner: Learner, seed: int, episodes: int, every: int) -> Run:
        """Train a learner, and evaluate its policy at times."""
        learned = self.learn(learner, seed, episodes, evaluate_every=every)
        shares = np.array([evaluation.value for evaluation in learned.evaluations]) / self.optimum
        in_paper = int(
            np.flatnonzero([evaluation.episode == PAPER for evaluation in learned.evaluations])[0]
        )
        near = np.flatnonzero(shares >= 0.99)
        fair = np.flatnonzero(shares >= 0.95)
        last = slice(PAPER - 100, PAPER)
        return Run(
            float(learned.curve.returns[last].mean()) / self.total,
            float(learned.curve.steps[last].mean()),
            float(shares[in_paper]),
            float(shares[-1]),
            learned.evaluations[near[0]].episode if len(near) else None,
            learned.evaluations[fair[0]].steps if len(fair) else None,
        )


def total_reward(tables: Mechanics) -> float:
    """Return the undiscounted return of the best policy, averaged over the starts."""
    ahead = np.where(tables.ends, 0.0, GAMMA) * tables.optimal_values(GAMMA)[tables.next_state]
    best = (tables.reward + ahead).argmax(axis=1)
    total, state = 0.0, tables.starts
    while len(state):
        total += float(tables.reward[state, best[state]].sum())
        going_on = state[~tables.ends[state, best[state]]]
        state = tables.next_state[going_on, best[going_on]]
    return total / len(tables.starts)


def cells(runs: list[Run], episodes: int) -> Iterator[str]:
    """Write one row of the table."""
    for name in ("total_in_paper", "share_in_paper", "share"):
        shares = [getattr(run, name) for run in runs]
        text = f"{statistics.mean(shares):.1%} ± {statistics.pstdev(shares):.1%}"
        if name == "total_in_paper":
            text += f", {statistics.mean(run.length_in_paper for run in runs):,.0f} steps"
        yield text
    yield reached([run.episodes_to_99 for run in runs])
    yield reached([run.steps_to_95 for run in runs])


def reached(episodes: list[int | None]) -> str:
    """Write the mean over the runs that reached something."""
    numbers = [number for number in episodes if number is not None]
    if not numbers:
        return "never"
    text = f"{statistics.mean(numbers):,.0f} ± {statistics.pstdev(numbers):,.0f}"
    return text if len(numbers) == len(episodes) else f"{text} ({len(numbers)} of {len(episodes)})"


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--episodes", type=int, default=30_000, help="to go on for")
    parser.add_argument("--every", type=int, default=50, help="episodes between two evaluations")
    parser.add_argument("--quick", action="store_true", help="one world, three seeds")
    options = parser.parse_args()
    if options.quick:
        options.worlds, options.seeds, options.episodes = 1, 3, 3_000
    if PAPER % options.every or options.episodes < PAPER:
        parser.error(f"--every must divide {PAPER}, and --episodes be at least that")
    settings = [Setting(number) for number in range(options.worlds)]
    header = ["observed by the learner", f"total reward, last 100 of {PAPER:,} episodes"]
    header += [f"value after {PAPER:,} episodes", f"after {options.episodes:,}"]
    header += ["episodes until within 1%", "steps to 95%"]
    print(f"\n{options.worlds} worlds × {options.seeds} seeds, mean ± standard deviation\n")
    print(f"| {' | '.join(header)} |\n|---|{'---:|' * 5}", flush=True)
    for learner in LEARNERS:
        runs = [
            setting.run(learner, seed, options.episodes, options.every)
            for setting in settings
            for seed in range(options.seeds)
        ]
        row = cells(runs, options.episodes)
        print(f"| {learner.name} | {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
