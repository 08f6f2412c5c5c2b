"""How often the true machine comes out of noisy traces of random worlds, and how fast.

Draws worlds of the paper's appendix (25×25, TM 7, RM 2), walks through them at random, and
makes the record noisy: actions that slipped, observations replaced by random ones, labels
that are missed, false or swapped. A machine is right if it is isomorphic to the true one on
all moves that the traces read. --short takes three worlds, `--kind slip5` a single kind, and
--rewards also learns the Reward Machine. Where labels lie, all is left to `rs.infer`, and a
world is right if both machines are.
"""

import argparse
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import gymnasium as gym
import numpy as np

import resolvent as rs
from resolvent import _core
from resolvent.noise import Likely, most_likely, weigh
from resolvent.samples import Histories, LabelTiming, SampleSet, output_samples
from resolvent.traces.vocabulary import Vocabulary


@dataclass(frozen=True)
class Kind:
    """One kind of noise: shares of actions, observations, and labels."""

    steps: int
    slip: float = 0.0
    replaced: float = 0.0
    missed: float = 0.0
    false: float = 0.0
    swapped: float = 0.0

    @property
    def lies(self) -> bool:
        """Whether labels are noisy."""
        return bool(self.missed or self.false or self.swapped)


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
        (traces.rewards, traces.reward_codes),
        offsets=traces.offsets,
        terminated=traces.terminated,
        truncated=traces.truncated,
    )


def told(traces: rs.TraceSet, kind: Kind, random: np.random.Generator) -> np.ndarray:
    """The labels as they are recorded: an event may be missed or taken for another one."""
    true = traces.label_codes
    if not kind.lies:
        return true
    none = traces.labels.index(frozenset())
    events = np.array([code for code in range(len(traces.labels)) if code != none])
    drawn = random.random(len(true))
    another = (np.searchsorted(events, true) + random.integers(1, len(events), len(true))) % len(
        events
    )
    quiet = np.where(drawn < kind.false, random.choice(events, len(true)), none)
    loud = np.where(drawn < kind.missed + kind.swapped, events[another], true)
    loud = np.where(drawn < kind.missed, none, loud)
    return np.where(true == none, quiet, loud).astype(np.int32)


def codes_of_world(samples: SampleSet, table: tuple[tuple[int, ...], ...]) -> np.ndarray:
    """The true table by label codes; no event changes nothing."""
    columns = [
        [row[int(next(iter(label)))] if label else state for state, row in enumerate(table)]
        for label in samples.labels
    ]
    return np.array(columns, np.int32).T


def is_right(samples: SampleSet, truth: np.ndarray, found: np.ndarray) -> bool:
    """Walk both tables together along all that was read: states must pair up one to one."""
    beta, offsets = samples.beta.tolist(), samples.offsets.tolist()
    pairs = {(0, 0)}
    for first, last in itertools.pairwise(offsets):
        one = other = 0
        for label in beta[first:last]:
            if label >= 0:
                one, other = truth[one][label], found[other][label]
                pairs.add((int(one), int(other)))
    ones, others = zip(*pairs, strict=True)
    return len(pairs) == len(set(ones)) == len(set(others)) == len(found)


def with_states(traces: rs.TraceSet, samples: SampleSet, table: np.ndarray) -> SampleSet:
    """Samples of rewards, asked about pairs of the observation and the state of a machine."""
    moves = np.ascontiguousarray(np.maximum(table, 0), np.int32)
    states = _core.walk_states(moves.ravel(), moves.shape[1], samples.beta, samples.offsets)
    width = len(table)
    codes = traces.at_step(traces.observation_codes) * np.int32(width) + states
    pairs = Vocabulary((seen, state) for seen in traces.observations for state in range(width))
    histories = Histories.of(traces, LabelTiming.CURRENT)
    return output_samples(traces, histories, "reward", observed=(pairs, codes))


def try_worlds(
    kind: Kind, worlds: range, rewards: bool, learn: Callable[[SampleSet], Likely], details: bool
) -> str:
    """Try one kind of noise in several worlds; return how often the machine was right."""
    right, right_rewards, seconds, sizes = 0, 0, [], []
    for seed in worlds:
        env = gym.make("resolvent/RandomWorld-v0", world_seed=seed)
        grid = env.unwrapped.grid
        traces = noisy(whole_traces(env, kind.steps, seed), kind, seed)
        histories = Histories.of(traces, LabelTiming.CURRENT)
        samples = output_samples(traces, histories, "observation")
        truth = codes_of_world(samples, grid.tm_transitions)
        started = time.process_time()
        found = learn(samples)
        seconds.append(time.process_time() - started)
        correct = is_right(samples, truth, found.transitions)
        right += correct
        sizes.append(f"{found.states}{'' if correct else '!'}")
        if rewards:
            paid = with_states(traces, samples, found.transitions)
            reward = learn(paid)
            true_reward = codes_of_world(paid, grid.rm_transitions)
            right_rewards += is_right(paid, true_reward, reward.transitions)
            sizes[-1] += f"/{reward.states}"
        if details:
            true = weigh(samples, truth)
            odds = {size: round(value - found.log_evidence) for size, value in found.sizes.items()}
            print(
                f"  world {seed}: {sizes[-1]} states, {seconds[-1]:.1f} s, "
                f"noise {found.noise:.3f} (share {true.share:g}, strength {true.strength:g}), "
                f"evidence {found.log_evidence - true.log_evidence:+.1f} of the truth's, "
                f"by size {odds}",
                flush=True,
            )
    told = f"{right} of {len(worlds)} right"
    if rewards:
        told += f", rewards {right_rewards}"
    spent = f"{np.mean(seconds):.1f} s of processors, at most {max(seconds):.1f}"
    return f"{told}; {spent}; states {' '.join(sizes)}"


def moves_of(machine: rs.Machine, samples: SampleSet) -> np.ndarray:
    """The moves of a machine by the label codes of samples; unknown labels lead nowhere."""
    stays = np.arange(machine.states)
    columns = []
    for label in samples.labels:
        code = machine.labels.get(label)
        column = stays if code is None else machine.transitions[:, code]
        columns.append(np.where(column < 0, stays, column))
    return np.array(columns).T


def infer_worlds(kind: Kind, worlds: range, details: bool) -> str:
    """Leave worlds whose labels lie to `rs.infer`; return how often both machines were right."""
    right, seconds, sizes = 0, [], []
    for seed in worlds:
        env = gym.make("resolvent/RandomWorld-v0", world_seed=seed)
        grid = env.unwrapped.grid
        traces = whole_traces(env, kind.steps, seed)
        record = noisy(traces, kind, seed)
        samples = output_samples(traces, Histories.of(traces, LabelTiming.CURRENT), "observation")
        started = time.process_time()
        result = rs.infer(record, noise="auto")
        seconds.append(time.process_time() - started)
        found = result.machines
        correct = is_right(
            samples,
            codes_of_world(samples, grid.tm_transitions),
            moves_of(found.transition, samples),
        ) and is_right(
            samples, codes_of_world(samples, grid.rm_transitions), moves_of(found.reward, samples)
        )
        right += correct
        states = f"{found.transition.states}/{found.reward.states}"
        sizes.append(f"{states}{'' if correct else '!'}")
        if details:
            told = "; ".join(result.noise_text())
            print(f"  world {seed}: {sizes[-1]} states, {seconds[-1]:.1f} s, {told}", flush=True)
    spent = f"{np.mean(seconds):.1f} s of processors, at most {max(seconds):.1f}"
    return f"{right} of {len(worlds)} right; {spent}; states {' '.join(sizes)}"


def main() -> None:
    """Print a line for each kind of noise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="three worlds instead of ten")
    parser.add_argument("--kind", choices=KINDS, help="only this kind of noise")
    parser.add_argument("--first", type=int, default=0, help="the seed of the first world")
    parser.add_argument("--worlds", type=int, default=10, help="how many")
    parser.add_argument("--steps", type=int, help="instead of those of the kind")
    parser.add_argument("--effort", type=float, default=1.0)
    parser.add_argument("--rewards", action="store_true", help="the Reward Machine, too")
    parser.add_argument("--details", action="store_true", help="a line for each world")
    given = parser.parse_args()
    worlds = range(given.first, given.first + (3 if given.short else given.worlds))
    for name in [given.kind] if given.kind else KINDS:
        kind = replace(KINDS[name], steps=given.steps or KINDS[name].steps)
        if kind.lies:
            outcome = infer_worlds(kind, worlds, given.details)
        else:
            outcome = try_worlds(
                kind,
                worlds,
                given.rewards,
                lambda samples: most_likely(samples, effort=given.effort),
                given.details,
            )
        print(f"{name:10} {kind.steps:>8,} steps: {outcome}", flush=True)


if __name__ == "__main__":
    main()
