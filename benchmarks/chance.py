"""The true value of plans from noisy traces, beside the best value on the true hidden states.

Worlds as in `noise.py` (25×25, TM 7, RM 2) with slipping actions; machines are inferred with
noise="auto", and the plan is evaluated on the world's own tables. FrozenLake likewise. Values are
discounted by 0.95; seconds are CPU seconds.
"""

import argparse
import time

import gymnasium as gym
import numpy as np

import resolvent as rs
from noise import Kind, noisy, whole_traces

GAMMA = 0.95


def true_values(following, reward, end, slip, policy=None):
    """Sweep over the true hidden states: what the best policy, or this one, is worth."""
    states = np.arange(len(following))
    value = np.zeros(max(len(following), int(following.max()) + 1))
    for _ in range(5_000):
        worth = reward + GAMMA * np.where(following >= end, 0.0, value[following])
        worth = (1 - slip) * worth + slip * worth.mean(axis=1, keepdims=True)
        new = worth.max(axis=1) if policy is None else worth[states, policy]
        moved = np.abs(new - value[: len(new)]).max()
        value[: len(new)] = new
        if moved < 1e-12:
            break
    return value


def numbered_as_in_the_world(machine, table):
    """The world's number of each state of a machine, by a history that leads there."""
    states = []
    for state in range(machine.states):
        number = 0
        for label in machine.history(state):
            number = table[number][int(next(iter(label)))] if label else number
        states.append(number)
    return states


def try_world(seed, steps, slip):
    """Infer, plan, and return (best, true worth of the plan, its value, bounds, seconds, text)."""
    env = gym.make("resolvent/RandomWorld-v0", world_seed=seed)
    grid, names = env.unwrapped.grid, env.unwrapped.action_names
    traces = noisy(whole_traces(env, steps, seed), Kind(0, slip=slip), seed)
    machines = rs.infer(traces, noise="auto").machines
    started = time.process_time()
    plan = rs.plan(machines, traces, gamma=GAMMA)
    seconds = time.process_time() - started
    cells, inner = len(grid.label_at), len(grid.tm_transitions)
    outer = numbered_as_in_the_world(machines.reward, grid.rm_transitions)
    own = numbered_as_in_the_world(machines.transition, grid.tm_transitions)
    model = plan.model
    place = np.array(
        [
            (outer[u] * inner + own[q]) * cells + int(o)
            for o, q, u in map(model.named, range(len(model)))
        ]
    )
    following, reward = grid.tables.following, grid.tables.reward
    policy = np.zeros(len(following), int)
    policy[place] = [names.index(model.actions[int(action)]) for action in plan.policy]
    end = grid.terminal * inner * cells

    def at_starts(values):
        return float(np.average(values[place[model.starts]], weights=model.start_counts))

    best = at_starts(true_values(following, reward, end, slip))
    worth = at_starts(true_values(following, reward, end, slip, policy))
    sizes = "/".join(str(machine.states) for machine in machines.values())
    return best, worth, plan, seconds, f"states {sizes}, {len(model):,} situations"


def report(name, best, worth, plan, seconds, more):
    """Print one line."""
    low, high = plan.as_dict()["at_least"], plan.as_dict()["at_most"]
    print(
        f"{name}: best {best:.4f}, plan truly {worth:.4f} ({worth / best:.1%}), it says "
        f"{plan.value:.4f} ({low:.3g} to {high:.3g}); planned in {seconds:.2f} s; {more}",
        flush=True,
    )


def frozen_lake(episodes):
    """The same for FrozenLake, whose table of chances it gives itself."""
    env = gym.make("FrozenLake-v1")
    lake = env.unwrapped.P
    sample = rs.collect(env, episodes=500, seed=0, labels="observation")
    result = rs.infer(sample, labels="observation", noise="auto")
    traces = rs.collect(env, episodes=episodes, seed=1, labels="observation")
    started = time.process_time()
    plan = rs.plan(result, traces, gamma=GAMMA)
    seconds = time.process_time() - started
    policy = np.zeros(len(lake), int)
    for z in range(len(plan.model)):
        policy[plan.model.named(z)[0]] = plan.model.actions[int(plan.policy[z])]

    def sweep(chosen):
        value = np.zeros(len(lake))
        for _ in range(3_000):
            value = np.array(
                [
                    max(
                        sum(p * (r + GAMMA * value[t] * (not over)) for p, t, r, over in step)
                        for action, step in actions.items()
                        if chosen is None or action == chosen[state]
                    )
                    for state, actions in lake.items()
                ]
            )
        return float(value[0])

    report(
        f"FrozenLake, {traces.steps:,} steps",
        sweep(None),
        sweep(policy),
        plan,
        seconds,
        f"{len(plan.model)} situations",
    )


def main():
    """Try all that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=3)
    parser.add_argument("--steps", type=int, nargs="+", default=[50_000, 200_000])
    parser.add_argument("--slip", type=float, nargs="+", default=[0.05, 0.2])
    parser.add_argument("--lake", type=int, nargs="*", default=[2_000, 10_000])
    options = parser.parse_args()
    for episodes in options.lake:
        frozen_lake(episodes)
    for slip in options.slip:
        for steps in options.steps:
            for seed in range(options.worlds):
                name = f"world {seed}, {slip:.0%} slip, {steps:,} steps"
                report(name, *try_world(seed, steps, slip))


if __name__ == "__main__":
    main()
