"""Random Mealy machines of 10 to 1,000 states: how fast they are found, and whether exactly.

Draws machines with 10 inputs and 2 to 10 outputs, and random walks through them that start
anew after 50 to 100 steps: 300 steps for each input of each state. An input is both the
action and the label that is read after it; the output is the column to predict. --peers runs
AALpy's general state merging on the same walks, up to 30 states: from there on it may take
hours. Run with `make benchmark-mealy`.
"""

import argparse
import itertools
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

import resolvent as rs

STATES = (10, 30, 100, 300, 1_000)
INPUTS = 10
STEPS_PER_MOVE = 300
LARGEST_FOR_PEERS = 30


@dataclass(frozen=True)
class Mealy:
    """A Mealy machine in which every state can be reached and no two are the same."""

    moves: np.ndarray
    outputs: np.ndarray

    @classmethod
    def drawn(cls, states: int, seed: int, *, inputs: int = INPUTS, idle: int = 0) -> "Mealy":
        """Draw a machine whose last `idle` inputs change no state."""
        random = np.random.default_rng(seed)
        while True:
            values = int(random.integers(2, 11))
            moves = random.integers(0, states, (states, inputs), dtype=np.int32)
            moves[:, inputs - idle :] = np.arange(states, dtype=np.int32)[:, None]
            outputs = random.integers(0, values, (states, inputs), dtype=np.int32)
            machine = cls(moves, outputs)
            if machine.is_minimal():
                return machine

    def is_minimal(self) -> bool:
        """Whether all states are reached from the first, and all differ."""
        reached = np.zeros(len(self.moves), bool)
        reached[0] = True
        while not reached[self.moves[reached]].all():
            reached[self.moves[reached]] = True
        if not reached.all():
            return False
        _, blocks = np.unique(self.outputs, axis=0, return_inverse=True)
        while True:
            finer = np.column_stack([blocks, blocks[self.moves]])
            _, split = np.unique(finer, axis=0, return_inverse=True)
            if split.max() == blocks.max():
                return bool(split.max() == len(self.moves) - 1)
            blocks = split

    def walks(self, steps: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the inputs and outputs of random walks, and where each walk begins."""
        random = np.random.default_rng(seed)
        lengths = random.integers(50, 101, steps // 75)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        given = random.integers(0, self.moves.shape[1], offsets[-1], dtype=np.int32)
        told = np.empty_like(given)
        state = np.zeros(len(lengths), np.int32)
        for step in range(int(lengths.max())):
            going = np.flatnonzero(lengths > step)
            rows = offsets[going] + step
            told[rows] = self.outputs[state[going], given[rows]]
            state[going] = self.moves[state[going], given[rows]]
        return given, told, offsets

    def traces(self, steps: int, seed: int) -> rs.TraceSet:
        """Walk through the machine at random, and return what is seen of it."""
        given, told, offsets = self.walks(steps, seed)
        inputs, walks = self.moves.shape[1], len(offsets) - 1
        names = [f"i{one}" for one in range(inputs)]
        labels = [frozenset(), *(frozenset({name}) for name in names)]
        read = np.insert(given + 1, offsets[:-1], 0)  # before the first input there is none
        return rs.TraceSet.from_columns(
            (["system"], np.zeros(len(read), np.int32)),
            (labels, read.astype(np.int32)),
            (names, given),
            columns={"output": ([f"o{one}" for one in range(self.outputs.max() + 1)], told)},
            offsets=offsets,
            terminated=np.zeros(walks, bool),
            truncated=np.ones(walks, bool),
        )

    def is_found(self, machine: rs.Machine) -> bool:
        """Whether a machine has the same states, moves and outputs."""
        if machine.states != len(self.moves):
            return False
        inputs = range(self.moves.shape[1])
        codes = [machine.labels.index(frozenset({f"i{one}"})) for one in inputs]
        same = np.full(len(self.moves), -1)
        same[0] = 0
        ahead = [0]
        for state in ahead:
            for one, code in enumerate(codes):
                true, found = self.moves[state, one], machine.transitions[same[state], code]
                if same[true] < 0:
                    same[true] = found
                    ahead.append(int(true))
                if same[true] != found:
                    return False
        return len(set(same.tolist())) == len(same)


def timed(traces: rs.TraceSet, **options: Any) -> tuple[rs.InferenceResult, float, float]:
    """Infer, and return the result and what it took: CPU seconds and seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = rs.infer(traces, outputs=["output"], **options)
    return result, time.process_time() - cpu, time.perf_counter() - wall


def aalpy_seconds(machine: Mealy, steps: int, seed: int) -> float:
    """Return the CPU seconds that AALpy's state merging takes for the same walks."""
    from aalpy.learning_algs.general_passive.GeneralizedStateMerging import run_GSM

    given, told, offsets = machine.walks(steps, seed)
    data = [
        list(zip(given[begin:end].tolist(), told[begin:end].tolist(), strict=True))
        for begin, end in itertools.pairwise(offsets.tolist())
    ]
    started = time.process_time()
    run_GSM(data, output_behavior="mealy", transition_behavior="deterministic")
    return time.process_time() - started


def scaling(sizes: list[int], seeds: int, peers: bool, options: dict[str, Any]) -> None:
    """Print how long machines of growing size take."""
    timed(Mealy.drawn(10, 0).traces(1_000, 0))  # what is imported late is imported now
    print(f"{'states':>7}{'steps':>11}{'exact':>7}{'CPU s':>9}{'seconds':>9}", end="")
    print(f"{'AALpy':>9}{'ratio':>8}" if peers else "")
    for states in sizes:
        steps = STEPS_PER_MOVE * states * INPUTS
        cpu, wall, exact, theirs = [], [], 0, []
        for seed in range(seeds):
            machine = Mealy.drawn(states, seed)
            result, *seconds = timed(machine.traces(steps, seed), **options)
            cpu.append(seconds[0])
            wall.append(seconds[1])
            exact += machine.is_found(result.machines["output"])
            if peers and states <= LARGEST_FOR_PEERS:
                theirs.append(aalpy_seconds(machine, steps, seed))
        ours = np.median(cpu)
        beside = f"{np.median(theirs):>9.2f}{np.median(theirs) / ours:>8.0f}" if theirs else ""
        print(
            f"{states:>7}{steps:>11,}{exact:>5}/{seeds}{ours:>9.2f}{np.median(wall):>9.2f}{beside}",
            flush=True,
        )


def idle_labels(options: dict[str, Any]) -> None:
    """Print what judging labels costs where most of them change nothing."""
    machine = Mealy.drawn(20, 0, inputs=100, idle=90)
    traces = machine.traces(300_000, 0)
    times = {}
    choices: tuple[Any, ...] = ([], "auto")
    for trivial in choices:
        result, times[str(trivial)], _ = timed(traces, **{**options, "trivial": trivial})
        found = machine.is_found(result.machines["output"])
        print(f"100 labels, 90 idle, {trivial=}: {times[str(trivial)]:.2f} CPU s, {found=}")
    print(f"judging makes it {times['auto'] / times['[]']:.2f} times as long")


def million(options: dict[str, Any]) -> None:
    """Print how long a million steps of a machine of 50 states take."""
    machine = Mealy.drawn(50, 0)
    result, cpu, wall = timed(machine.traces(1_000_000, 0), **options)
    found = machine.is_found(result.machines["output"])
    print(f"1,000,000 steps of 50 states: {cpu:.2f} CPU s, {wall:.2f} s, {found=}")


def main() -> None:
    """Run all parts, or the one asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--states", type=int, nargs="*", default=list(STATES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--part", choices=["scaling", "million", "idle"])
    parser.add_argument("--peers", action="store_true", help="AALpy as well")
    parser.add_argument("--strategy", help="other than the default")
    parser.add_argument("--all-at-once", action="store_true", help="with refine=False")
    chosen = parser.parse_args()
    options: dict[str, Any] = {"strategy": chosen.strategy} if chosen.strategy else {}
    if chosen.all_at_once:
        options["refine"] = False
    if chosen.part in (None, "scaling"):
        scaling(chosen.states, chosen.seeds, chosen.peers, options)
    if chosen.part in (None, "million"):
        million(options)
    if chosen.part in (None, "idle"):
        idle_labels(options)


if __name__ == "__main__":
    main()
