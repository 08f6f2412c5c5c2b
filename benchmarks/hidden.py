"""How often the true machine comes out of traces whose labels lie, if nothing else shows it.

Random worlds as in `benchmarks/noise.py`. Labels are missed, false or swapped; that they follow
from what is seen is not made use of, so that states have to be inferred. A machine is right if
it is isomorphic to the true one on all moves that true labels read.
"""

import argparse
import time
from dataclasses import replace

import gymnasium as gym
import numpy as np

from noise import codes_of_world, is_right, whole_traces
from resolvent.noise import fit_latent_machine
from resolvent.preprocess.samples import Histories, SampleSet, output_samples
from resolvent.preprocess.timing import LabelTiming
from resolvent.traces import NO_EVENT

KINDS = {
    "missed5": {"missed": 0.05},
    "false1": {"false": 0.01},
    "swapped2": {"swapped": 0.02},
}


def recorded(
    samples: SampleSet, seed: int, missed: float = 0.0, false: float = 0.0, swapped: float = 0.0
) -> SampleSet:
    """The samples with labels as they would have been recorded."""
    random = np.random.default_rng(seed)
    true, silence = samples.beta, samples.labels.code(NO_EVENT)
    events = [code for code in range(len(samples.labels)) if code != silence]
    place = np.zeros(max(events) + 1, np.int64)
    place[events] = np.arange(len(events))
    drawn, is_event = random.random(len(true)), (true >= 0) & (true != silence)
    turned = (place[np.maximum(true, 0)] + random.integers(1, len(events), len(true))) % len(events)
    shares = np.bincount(true[is_event], minlength=max(events) + 1)[events]
    any_event = random.choice(events, len(true), p=shares / shares.sum())
    told = np.where(is_event & (drawn < missed), silence, true)
    told = np.where(is_event & (drawn >= 1 - swapped), np.array(events)[turned], told)
    told = np.where((true == silence) & (drawn < false), any_event, told)
    histories = Histories(told.astype(np.int32), samples.offsets, samples.labels)
    return replace(samples, histories=histories)


def main() -> None:
    """Print a line for each world, and one for each kind of lies."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=KINDS, help="only this kind of lies")
    parser.add_argument("--first", type=int, default=0, help="the seed of the first world")
    parser.add_argument("--worlds", type=int, default=10, help="how many")
    parser.add_argument("--steps", type=int, default=400_000)
    given = parser.parse_args()
    rights: dict[str, int] = {}
    for seed in range(given.first, given.first + given.worlds):
        env = gym.make("resolvent/RandomWorld-v0", world_seed=seed)
        traces = whole_traces(env, given.steps, seed)
        true = output_samples(traces, Histories.of(traces, LabelTiming.CURRENT), "observation")
        table = codes_of_world(true, env.unwrapped.grid.tm_transitions)
        for name in [given.kind] if given.kind else KINDS:
            samples = recorded(true, seed, **KINDS[name])
            started = time.process_time()
            found = fit_latent_machine(samples)
            seconds = time.process_time() - started
            right = is_right(true, table, found.transitions)
            rights[name] = rights.get(name, 0) + right
            print(
                f"{name:9} world {seed}: {found.states} states, {'right' if right else 'wrong'}; "
                f"{found.label_noise}; {seconds:.1f} s of processors",
                flush=True,
            )
    for name, right in rights.items():
        print(f"{name:9} {given.steps:,} steps: {right} of {given.worlds} right", flush=True)


if __name__ == "__main__":
    main()
