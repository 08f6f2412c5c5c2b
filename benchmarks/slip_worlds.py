"""Worlds with slipping actions: the machines from random walks, and the value of their plans.

Each action slips with probability 5% unless the row differs, as the cookie, two-keys and symbol worlds were published.
Machines are inferred from random steps with default options, and a plan is made from the same
steps. Its value is exact: the expected discounted return (γ 0.95) over all starts, by value
iteration over true states and machine states, as a share of the optimum. Where chance hides
something, that optimum uses unavailable knowledge; so the value of the best policy on the
observation and on everything that can be remembered is shown, too, as is the plan's own prediction with its bounds. `--short` takes a tenth of the
steps, `--world Cookie` a single world.

Where random walks are hardly ever rewarded, rounds follow: each walks by the last plan, three
steps in ten at random, and infers and plans again from all steps so far.
"""

import argparse
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np
from no_labels import past_the_plants

import resolvent as rs
from resolvent.errors import ResolventError
from resolvent.worlds import World

GAMMA = 0.95
AT_RANDOM = 0.3
"""Of the steps in a round: what the plan does not know yet is met by leaving it."""


@dataclass(frozen=True)
class Setting:
    """A world, how many random steps are taken in it, and how many rounds by plans follow."""

    world: str
    steps: int
    options: dict[str, Any] = field(default_factory=dict)
    rounds: int = 0
    slip: float = 0.05

    @property
    def name(self) -> str:
        """What the table calls it."""
        slip = "" if self.slip == Setting.slip else f", {self.slip:.0%} slip"
        return self.world + (", published" if self.options else "") + slip


SETTINGS = (
    Setting("House", 20_000),
    Setting("TMaze", 20_000),
    Setting("PhaseGrid5", 100_000),
    Setting("OfficeCoffee", 200_000),
    Setting("OfficeMail", 200_000, rounds=2),
    Setting("OfficeBoth", 200_000, rounds=2),
    Setting("OfficePatrol", 200_000, rounds=2),
    Setting("TwoKeys", 400_000),
    Setting("Cookie", 600_000),
    Setting("TwoKeys", 600_000, {"published": True}),
    Setting("Cookie", 1_000_000, {"published": True}),
    Setting("Symbol", 400_000, rounds=1),
    Setting("RandomWorld", 50_000),
    Setting("RandomWorld", 200_000, slip=0.2),
)


def walks(env: gym.Env, steps: int, seed: int) -> rs.TraceSet:
    """Random walks, past the plants where there are any."""
    world = env.unwrapped
    policy = past_the_plants(env, seed) if "plant" in str(world.mechanics.labels) else None
    traces = rs.collect(env, episodes=1, seed=seed, policy=policy)
    while traces.steps < steps:
        length = traces.steps / len(traces)
        episodes = max(1, int((steps - traces.steps) / length))
        seed += 1_000
        traces += rs.collect(env, episodes=min(episodes, len(traces)), seed=seed, policy=policy)
    return traces


def walks_by(plan: rs.Plan, env: gym.Env, steps: int, seed: int) -> rs.TraceSet:
    """Walks by a plan, now and then a step at random; also where the plan knows nothing."""
    wrapped, draw = rs.AugmentObservation(env, plan.machines), random.Random(seed)
    planned = plan.policy_in(wrapped)
    actions = range(int(env.action_space.start), int(env.action_space.start + env.action_space.n))

    def policy(seen: Any) -> Any:
        if draw.random() >= AT_RANDOM:
            try:
                return planned(seen)
            except ResolventError:
                pass
        return draw.choice(actions)

    traces = None
    while traces is None or traces.steps < steps:
        batch = rs.collect(wrapped, episodes=100, seed=seed, policy=policy, inner=True)
        traces, seed = batch if traces is None else traces + batch, seed + 1
    return traces


def worth(world: World, machines: rs.MachinePair, plan: rs.Plan) -> float:
    """The expected return of a plan from all starts; it acts at random where it knows nothing."""
    tables, pair = world.mechanics, (machines.transition, machines.reward)
    labels = [tables.labels[code] for code in tables.label_of]
    reads_first = machines.timing.first == 0

    def read(states: tuple[int, ...], state: int) -> tuple[int, ...]:
        return tuple(
            stepped(machine, at, labels[state]) for machine, at in zip(pair, states, strict=True)
        )

    begin = (0,) * len(pair)
    number: dict[tuple[int, tuple[int, ...]], int] = {}
    starts = [
        (state, read(begin, state) if reads_first else begin) for state in tables.starts.tolist()
    ]
    queue = list(dict.fromkeys(starts))
    number.update({pair: place for place, pair in enumerate(queue)})
    following, states_of_rows = [], []
    for state, states in queue:
        targets = []
        for move in range(tables.next_state.shape[1]):
            target = int(tables.next_state[state, move])
            after = (target, states if tables.ends[state, move] else read(states, target))
            if not tables.ends[state, move] and after not in number:
                number[after] = len(queue)
                queue.append(after)
            targets.append(number.get(after, 0))
        following.append(targets)
        states_of_rows.append(state)
    probabilities = np.array([chosen(world, plan, state, states) for state, states in queue])
    rows = np.array(states_of_rows)
    going_on = np.where(tables.ends[rows], 0.0, GAMMA)
    ahead, values = np.array(following), np.zeros(len(queue))
    while True:
        by_action = tables.expected(tables.reward[rows] + going_on * values[ahead])
        improved = (probabilities * by_action).sum(axis=1)
        if np.abs(improved - values).max() < 1e-12:
            return float(np.mean([improved[number[start]] for start in starts]))
        values = improved


def knowable(world: World) -> float:
    """What the best policy is worth that knows the observation and what can be remembered.

    True states that look the same to it are as likely as a random walk finds them.
    """
    tables = world.mechanics
    live = slice(tables.live)
    keys = np.stack([tables.observation_of, tables.transition_memory, tables.reward_memory])
    _, group = np.unique(keys, axis=1, return_inverse=True)
    group = group.ravel()
    goes_on = ~tables.ends[live]
    met, begin = np.zeros(tables.states), np.bincount(tables.starts, minlength=tables.states)
    for _ in range(2_000):
        ahead = np.repeat(met[live, None] / goes_on.shape[1], goes_on.shape[1], axis=1) * goes_on
        met = begin + np.bincount(
            tables.next_state[live].ravel(), weights=0.99 * ahead.ravel(), minlength=tables.states
        )
    share = met[live] / np.bincount(group[live], weights=met[live])[group[live]]
    going_on = np.where(tables.ends[live], 0.0, GAMMA)
    values = np.zeros(group.max() + 1)
    while True:
        ahead = going_on * values[group[tables.next_state[live]]]
        by_action = share[:, None] * tables.expected(tables.reward[live] + ahead)
        mixed = np.zeros((len(values), by_action.shape[1]))
        np.add.at(mixed, group[live], by_action)
        improved = mixed.max(axis=1)
        if np.abs(improved - values).max() < 1e-12:
            return float(improved[group[tables.starts]].mean())
        values = improved


def stepped(machine: Any, state: int, label: Any) -> int:
    """Where a label leads; it stays where that was never seen."""
    target = machine.step(state, label)
    return target if isinstance(target, int) else state


def chosen(world: World, plan: rs.Plan, state: int, states: tuple[int, ...]) -> np.ndarray:
    """Which action the plan takes, as probabilities."""
    actions = world.action_names
    observation = world.observation_names[int(world.mechanics.observation_of[state])]
    try:
        action = plan.action(observation, *states)
    except ResolventError:
        return np.full(len(actions), 1 / len(actions))
    return np.eye(len(actions))[actions.index(str(action))]


def rows_of(setting: Setting, steps: int, seed: int) -> Iterator[str]:
    """Lines of the table: for random walks, and for each round after them."""
    env = gym.make(f"resolvent/{setting.world}-v0", slip=setting.slip, **setting.options)
    world = env.unwrapped
    truth, best = world.machines(), knowable(world)
    optimum = float(world.mechanics.optimal_values(GAMMA)[world.mechanics.starts].mean())
    traces = walks(env, steps, seed)
    for number in range(setting.rounds + 1):
        started = time.process_time()
        machines = rs.infer(traces, timing=world.timing).machines
        seconds = time.process_time() - started
        plan = rs.plan(machines, traces, gamma=GAMMA)
        value = worth(world, machines, plan)
        bounds = plan.as_dict()
        promised = f"{plan.value:.4f} ({bounds['at_least']:.3g} to {bounds['at_most']:.3g})"
        sizes = [f"{pair.transition.states}, {pair.reward.states}" for pair in (machines, truth)]
        name = setting.name + (f", round {number}" if number else "")
        yield (
            f"| {name} | {traces.steps:,} | {sizes[0]} | {sizes[1]} | {optimum:.4f} "
            f"| {value / optimum:.1%} | {best / optimum:.1%} | {promised} | {seconds:.1f} |"
        )
        if number < setting.rounds:
            traces += walks_by(plan, env, steps // 4, seed + 100_000 * (number + 1))


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="a tenth of the steps")
    parser.add_argument("--world", help="only this world")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(
        "| world | steps | TM, RM | true | optimum | plan, of it | best with memory, of it "
        "| predicted value (bounds) | seconds |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for setting in SETTINGS:
        if options.world in (None, setting.world):
            steps = setting.steps // 10 if options.short else setting.steps
            for row in rows_of(setting, steps, options.seed):
                print(row, flush=True)


if __name__ == "__main__":
    main()
