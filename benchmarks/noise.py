"""How often the true machines are inferred from noisy traces of random worlds, and how fast.

Takes random walks in worlds of the paper's appendix (25×25, TM 7, RM 2), and adds noise to the
record: slipped actions, replaced observations, missed, false or swapped labels, varying or wrong
rewards. `rs.infer` gets no hint. A machine is correct if it is isomorphic to the true one on all
transitions that the traces read. `--short` takes three worlds, `--kind slip5` a single kind of
noise.
"""

import argparse
import itertools
import time
from dataclasses import dataclass, replace

import gymnasium as gym
import numpy as np

import resolvent as rs
from resolvent.inference.summary import noise_lines
from resolvent.preprocess.samples import Histories, SampleSet, output_samples
from resolvent.preprocess.timing import LabelTiming


@dataclass(frozen=True)
class Kind:
    """One kind of noise: shares of actions, observations, labels and rewards.

    `gaussian` is the standard deviation of what is added to rewards, as a share of the
    smallest difference between two of them; `flipped` the share of other rewards.
    """

    steps: int
    slip: float = 0.0
    replaced: float = 0.0
    missed: float = 0.0
    false: float = 0.0
    swapped: float = 0.0
    gaussian: float = 0.0
    flipped: float = 0.0

    @property
    def is_clean(self) -> bool:
        """Whether there is no noise: then it is looked for all the same."""
        return self == Kind(self.steps)


STATED = rs.Noise(outcomes=True)
KINDS = {
    "none": Kind(25_000),
    "slip5": Kind(50_000, slip=0.05),
    "slip20": Kind(200_000, slip=0.2),
    "replaced5": Kind(200_000, replaced=0.05),
    "missed5": Kind(400_000, missed=0.05),
    "swapped2": Kind(400_000, swapped=0.02),
    "false1": Kind(400_000, false=0.01),
    "lies": Kind(400_000, missed=0.05, swapped=0.02, false=0.01),
    "lies-slip5": Kind(400_000, slip=0.05, missed=0.05, swapped=0.02, false=0.01),
    "gauss": Kind(100_000, gaussian=0.5),
    "flip5": Kind(100_000, flipped=0.05),
}


def whole_traces(world: gym.Env, steps: int, seed: int) -> rs.TraceSet:
    """Random traces that have at least so many steps together."""
    traces = rs.collect(world, episodes=steps // 150, seed=seed)
    while traces.steps < steps:
        seed += 1_000
        traces += rs.collect(world, episodes=steps // 500 + 1, seed=seed)
    return traces[: int(np.searchsorted(traces.offsets, steps))]


def noisy(traces: rs.TraceSet, kind: Kind, seed: int) -> rs.TraceSet:
    """The traces as they would have been recorded.

    Where an action slips a random one is carried out, and recorded is the one intended. All
    are drawn evenly, so it is the same to replace the recorded one.
    """
    random = np.random.default_rng(seed)

    def replaced(codes: np.ndarray, values: int, share: float) -> np.ndarray:
        drawn = random.integers(0, values, len(codes))
        return np.where(random.random(len(codes)) < share, drawn, codes).astype(np.int32)

    seen = replaced(traces.observation_codes, len(traces.observations), kind.replaced)
    return rs.TraceSet.from_columns(
        (traces.observations, seen),
        (traces.labels, told(traces, kind, random)),
        (traces.actions, replaced(traces.action_codes, len(traces.actions), kind.slip)),
        paid(traces, kind, random),
        offsets=traces.offsets,
        terminated=traces.terminated,
        truncated=traces.truncated,
    )


def told(traces: rs.TraceSet, kind: Kind, random: np.random.Generator) -> np.ndarray:
    """The labels as they are recorded: an event may be missed or taken for another one."""
    true = traces.label_codes
    if not (kind.missed or kind.false or kind.swapped):
        return true
    none = traces.labels.index(frozenset())
    events = np.array([code for code in range(len(traces.labels)) if code != none])
    drawn = random.random(len(true))
    another = np.searchsorted(events, true) + random.integers(1, len(events), len(true))
    quiet = np.where(drawn < kind.false, random.choice(events, len(true)), none)
    loud = np.where(drawn < kind.missed + kind.swapped, events[another % len(events)], true)
    loud = np.where(drawn < kind.missed, none, loud)
    return np.where(true == none, quiet, loud).astype(np.int32)


def paid(
    traces: rs.TraceSet, kind: Kind, random: np.random.Generator
) -> tuple[list[float], np.ndarray]:
    """The rewards as they would have been recorded, as values and codes."""
    values, codes = np.array(traces.rewards), traces.reward_codes
    if kind.flipped:
        others = (codes + random.integers(1, len(values), len(codes))) % len(values)
        codes = np.where(random.random(len(codes)) < kind.flipped, others, codes)
    elif kind.gaussian:
        sigma = kind.gaussian * np.diff(values).min()
        values, codes = np.unique(
            values[codes] + random.normal(0, sigma, len(codes)), return_inverse=True
        )
    return values.tolist(), codes.astype(np.int32)


def codes_of_world(samples: SampleSet, table: tuple[tuple[int, ...], ...]) -> np.ndarray:
    """The true table by label codes; no event changes nothing."""
    columns = [
        [row[int(next(iter(label)))] if label else state for state, row in enumerate(table)]
        for label in samples.labels
    ]
    return np.array(columns, np.int32).T


def moves_of(machine: rs.Machine, samples: SampleSet) -> np.ndarray:
    """The moves of a machine by the label codes of samples; where it knows none, it stays."""
    stays = np.arange(machine.states)
    columns = []
    for label in samples.labels:
        code = machine.labels.get(label)
        column = stays if code is None else machine.transitions[:, code]
        columns.append(np.where(column < 0, stays, column))
    return np.array(columns).T


def is_right(samples: SampleSet, truth: np.ndarray, table: np.ndarray) -> bool:
    """Walk both tables together along all that was read: states must pair up one to one."""
    beta, offsets = samples.beta.tolist(), samples.offsets.tolist()
    pairs = {(0, 0)}
    for first, last in itertools.pairwise(offsets):
        true_state = state = 0
        for label in beta[first:last]:
            if label >= 0:
                true_state, state = truth[true_state][label], table[state][label]
                pairs.add((int(true_state), int(state)))
    true_states, states = zip(*pairs, strict=True)
    return len(pairs) == len(set(true_states)) == len(set(states)) == len(table)


def try_worlds(kind: Kind, worlds: range, effort: float, details: bool) -> str:
    """Try one kind of noise in several worlds; return how often each machine was right."""
    right = {"transition": 0, "reward": 0}
    spent, waited, sizes = [], [], []
    for seed in worlds:
        env = gym.make("resolvent/RandomWorld-v0", world_seed=seed)
        grid = env.unwrapped.grid
        traces = whole_traces(env, kind.steps, seed)
        record = noisy(traces, kind, seed)
        samples = output_samples(traces, Histories.of(traces, LabelTiming.CURRENT), "observation")
        cpu, wall = time.process_time(), time.perf_counter()
        result = rs.infer(
            record,
            noise=STATED if kind.is_clean else "auto",
            options=rs.InferenceOptions(effort=effort),
        )
        spent.append(time.process_time() - cpu)
        waited.append(time.perf_counter() - wall)
        size = ""
        tables = {"transition": grid.tm_transitions, "reward": grid.rm_transitions}
        for name, table in tables.items():
            machine = result.machines[name]
            truth = codes_of_world(samples, table)
            correct = is_right(samples, truth, moves_of(machine, samples))
            right[name] += correct
            size += f"/{machine.states}{'' if correct else '!'}"
        sizes.append(size[1:])
        if details:
            said = "; ".join(noise_lines(result))
            print(f"  world {seed}: {sizes[-1]} states, {spent[-1]:.1f} s, {said}", flush=True)
    return (
        f"TM {right['transition']} and RM {right['reward']} of {len(worlds)} right; "
        f"{np.mean(spent):.1f} s of processors, at most {max(spent):.1f} "
        f"(on the clock {max(waited):.1f}); states {' '.join(sizes)}"
    )


def main() -> None:
    """Print a line for each kind of noise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="three worlds instead of ten")
    parser.add_argument("--kind", choices=KINDS, help="only this kind of noise")
    parser.add_argument("--first", type=int, default=0, help="the seed of the first world")
    parser.add_argument("--worlds", type=int, default=10, help="how many")
    parser.add_argument("--steps", type=int, help="instead of what each kind takes")
    parser.add_argument("--effort", type=float, default=1.0)
    parser.add_argument("--details", action="store_true", help="a line for each world")
    options = parser.parse_args()
    worlds = range(options.first, options.first + (3 if options.short else options.worlds))
    for name in [options.kind] if options.kind else KINDS:
        kind = replace(KINDS[name], steps=options.steps or KINDS[name].steps)
        outcome = try_worlds(kind, worlds, options.effort, options.details)
        print(f"{name:10} {kind.steps:>8,} steps: {outcome}", flush=True)


if __name__ == "__main__":
    main()
