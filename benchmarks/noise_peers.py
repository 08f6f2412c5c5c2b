"""Resolvent beside AALpy's ALERGIA and GSM and an input-output HMM, on the same noisy traces.

For each world and method: the number of states, whether their transitions are the true ones, the
log-loss of fresh traces (the mean of −ln p over all steps; an unpredicted step costs the logarithm
of the number of observations), and CPU seconds. Peers get every advantage: the hidden Markov model
the true number of states, several restarts and the best smoothing for the fresh traces, ALERGIA
the latter. Methods that exceed `--limit` seconds are left out; `--short` takes one random world
and a tenth of the time.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import gymnasium as gym
import numpy as np
from noise_io_hmm import Fit, fit, log_loss
from noise_merging import Akaike, Hoeffding, alergia, chances, merged
from numpy.typing import NDArray

import resolvent as rs
from noise import KINDS, Kind, is_right, noisy, whole_traces
from resolvent.errors import TimeLimitReached
from resolvent.paper.baselines.outcome import Clock
from resolvent.preprocess.reduction import remove_trivial
from resolvent.preprocess.samples import Histories, SampleSet, output_samples
from resolvent.preprocess.timing import LabelTiming
from resolvent.traces import NO_EVENT

Table = NDArray[np.int32]
WORLDS = {
    "house, 5% slip": Kind(9_000, slip=0.05),
    "house, 5% replaced": Kind(9_000, replaced=0.05),
    "25×25, 5% slip": KINDS["slip5"],
    "25×25, 5% replaced": KINDS["replaced5"],
}
MANY_PLACES, FEW_STEPS = 100, 3_000
SMOOTHING = (0.001, 0.01, 0.1, 1.0, 10.0)


@dataclass(frozen=True)
class World:
    """Noisy traces of a world to learn from, fresh ones, and its true moves."""

    known: rs.TraceSet
    fresh: rs.TraceSet
    truth: rs.Machine

    @classmethod
    def drawn(cls, kind: str, seed: int) -> "World":
        """Walk through the house, or a random world, that has a kind of noise."""
        if kind.startswith("house"):
            env = gym.make("resolvent/House-v0")
        else:
            env = gym.make("resolvent/RandomWorld-v0", world_seed=seed)
        noise = WORLDS[kind]
        both = noisy(whole_traces(env, noise.steps * 6 // 5, seed), noise, seed)
        until = int(np.searchsorted(both.offsets, noise.steps))
        return cls(both[:until], both[until:], env.unwrapped.machines().transition)

    @property
    def samples(self) -> SampleSet:
        """What is to be learned."""
        return asked(self.known)

    @property
    def true_table(self) -> Table:
        """The true moves by label; a label that ends episodes moves nothing."""
        rows = [
            [self.truth.step(state, label) if label else state for label in self.known.labels]
            for state in range(self.truth.states)
        ]
        moves = [
            [state if after is rs.UNSEEN else after for after in row]
            for state, row in enumerate(rows)
        ]
        return np.array(moves, np.int32)


@dataclass(frozen=True)
class Outcome:
    """What a method came to: its states, if they are right, and what fresh steps cost."""

    states: int
    right: bool | None
    log_loss: float


def asked(traces: rs.TraceSet) -> SampleSet:
    """Return the samples of a Transition Machine, in which "no event" moves nothing."""
    silence = [code for code, label in enumerate(traces.labels) if label == NO_EVENT]
    histories = remove_trivial(Histories.of(traces, LabelTiming.CURRENT), silence)
    return replace(
        output_samples(traces, Histories.of(traces, LabelTiming.CURRENT), "observation"),
        histories=histories,
    )


def resolvent(world: World, clock: Clock) -> Outcome:
    """Infer as a user would."""
    result = rs.infer(world.known, outputs=["observation"], noise="auto", time_limit=clock.left)
    machine = result.machines.transition
    labels, states = world.known.labels, range(machine.states)
    steps = [[machine.step(state, label) for label in labels] for state in states]
    table = [[-1 if after is rs.UNSEEN else after for after in row] for row in steps]
    return outcome_of(world, np.array(table, np.int32))


def state_merging(rule: type[Hoeffding] | type[Akaike], world: World, clock: Clock) -> Outcome:
    """Merge label histories."""
    return outcome_of(world, merged(world.samples, rule, clock))


def hidden_markov(restarts: int, world: World, clock: Clock) -> Outcome:
    """Fit as many hidden states as there truly are; for its table, take the likeliest moves."""
    model = fit(world.samples, world.truth.states, restarts, 0, clock)
    return outcome_of(world, model.table, model)


def true_machine(world: World, clock: Clock) -> Outcome:
    """Learn nothing: the moves are known, and what the states answer is counted."""
    return outcome_of(world, world.true_table)


def outcome_of(world: World, table: Table, model: Fit | None = None) -> Outcome:
    """Say if a table of moves is the true one, and what fresh steps cost by it or by its model."""
    table = table.copy()
    if (silence := world.known.labels.get(NO_EVENT)) is not None:
        table[:, silence] = np.arange(len(table))
    samples = world.samples
    both = asked(world.known + world.fresh)
    cut = len(samples.alpha)
    learned, fresh = rows_of(both, 0, cut), rows_of(both, cut, len(both.alpha))
    model = model or Fit.certain(table, learned)
    losses = [log_loss(model, learned, fresh, lent) for lent in SMOOTHING]
    return Outcome(len(table), is_right(samples, world.true_table, table), min(losses))


def rows_of(samples: SampleSet, first: int, last: int) -> SampleSet:
    """Return the rows of some of the traces, in the codes of all."""
    histories = samples.histories
    inside = (histories.offsets >= first) & (histories.offsets <= last)
    part = replace(
        histories, beta=histories.beta[first:last], offsets=histories.offsets[inside] - first
    )
    return replace(
        samples,
        alpha=samples.alpha[first:last],
        output=samples.output[first:last],
        histories=part,
    )


def markov_decisions(world: World, clock: Clock) -> Outcome:
    """Learn place and memory together; there is no one machine that would be right.

    Of many places it gets few steps: 10,000 take it more than 200 seconds.
    """
    traces = world.known
    if len(traces.observations) > MANY_PLACES:
        traces = traces[: int(np.searchsorted(traces.offsets, FEW_STEPS))]
    process = alergia(traces, clock)
    outputs = len(world.known.observations)
    probabilities = chances(process, world.fresh)
    losses = [-np.log((1 - odd) * probabilities + odd / outputs).mean() for odd in SMOOTHING[:3]]
    return Outcome(len(process.states), None, float(min(losses)))


Method = Callable[[World, Clock], Outcome]


def methods(restarts: int) -> dict[str, Method]:
    """Return the methods by name."""
    return {
        "the true moves": true_machine,
        "Resolvent": resolvent,
        "GSM, Hoeffding": partial(state_merging, Hoeffding),
        "GSM, Akaike": partial(state_merging, Akaike),
        "IO-HMM, EM": partial(hidden_markov, restarts),
        "ALERGIA, MDP": markov_decisions,
    }


def main() -> None:
    """Print a row for each world and method."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", type=int, default=3, help="how many of each kind")
    parser.add_argument("--limit", type=float, default=300, help="seconds for a method and world")
    parser.add_argument("--restarts", type=int, default=10, help="beginnings of the HMM")
    parser.add_argument("--world", default="", help="only those whose names have this in them")
    parser.add_argument("--method", default="", help="only those whose names have this in them")
    parser.add_argument("--short", action="store_true", help="one world, a tenth of the time")
    options = parser.parse_args()
    worlds, limit = (1, options.limit / 10) if options.short else (options.worlds, options.limit)
    print("| world | method | states | right | log-loss of fresh steps | CPU seconds |")
    print("|---|---|---|--:|--:|--:|")
    for kind in (name for name in WORLDS if options.world in name):
        drawn = [World.drawn(kind, seed) for seed in range(worlds)]
        for name, method in methods(options.restarts).items():
            if options.method in name:
                print(f"| {kind} | {name} | {tried(method, drawn, limit)} |", flush=True)


def tried(method: Method, worlds: list[World], limit: float) -> str:
    """Try a method on several worlds; return the cells of its row."""
    outcomes, seconds = [], []
    for world in worlds:
        started = time.process_time()
        try:
            outcomes.append(method(world, Clock(limit)))
        except TimeLimitReached:
            return f"– | – | – | more than {limit:g}"
        seconds.append(time.process_time() - started)
    states = " ".join(str(outcome.states) for outcome in outcomes)
    known = [outcome.right for outcome in outcomes if outcome.right is not None]
    right = f"{sum(known)} of {len(known)}" if known else "–"
    costs = np.mean([outcome.log_loss for outcome in outcomes])
    return f"{states} | {right} | {costs:.3f} | {np.mean(seconds):.1f}"


if __name__ == "__main__":
    main()
