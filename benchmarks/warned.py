"""How often wrong machines carry a warning, and right ones, when there is too little data.

Random problems: Mealy machines, DFAs that answer once at the end of a word, and grids with a hidden
Transition and Reward Machine, of 2 to 12 states and a few of up to 64, with 2 to 6 labels and 5 to
2,000 traces (log-uniform); in half of them one output or reward is rare. A machine is wrong if it
mispredicts, or does not know, at least 1% of those steps of fresh traces whose output varies with
the past, or a tenth of those with a rare output (at most a tenth of the outputs of its query).
`--named` runs a craft world and large DFAs instead. Thresholds were chosen with seeds below 1,000;
`--first 100000` is a bank that had no part in that.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

import resolvent as rs
from resolvent.replay.replaying import states_at_steps
from resolvent.replay.steps import step_queries

WRONG = 0.01
"""Share of mispredicted steps from which a machine is wrong."""

WRONG_IF_RARE = 0.1
"""The same share of steps with a rare output."""

RARE = 0.1
"""Share of the outputs of a query up to which one of them is rare."""

FRESH = 400
"""Number of fresh traces."""

UNRELATED = ("constant-reward", "one-long-log")
"""Warnings about traces, which say nothing about machines."""


@dataclass(frozen=True)
class Problem:
    """Traces of a random system, and how to record fresh ones."""

    name: str
    states: int
    record: Callable[[int, int], rs.TraceSet]  # number of traces, seed
    traces: int
    outputs: tuple[str, ...] | None = None


class Row(NamedTuple):
    """The states and errors of the machines of one problem, and their warnings."""

    name: str
    states: int
    traces: int
    inferred: tuple[int, ...]
    error: float
    rare_error: float
    warnings: tuple[str, ...]
    seconds: float

    @property
    def is_wrong(self) -> bool:
        """Whether some machine is wrong."""
        return self.error >= WRONG or self.rare_error >= WRONG_IF_RARE

    @property
    def is_warned(self) -> bool:
        """Whether a warning says that machines may be wrong."""
        return any(kind not in UNRELATED for kind in self.warnings)

    def __str__(self) -> str:
        sizes = ", ".join(map(str, self.inferred))
        return (
            f"{self.name:<13} {self.states:>3} states, {self.traces:>5} traces: {sizes:>7} inferred, "
            f"{self.error:6.2%} wrong, {self.rare_error:4.0%} if rare, {self.seconds:5.2f} CPU s "
            f"{' '.join(self.warnings)}"
        )


def drawn_tables(
    rng: np.random.Generator, states: int, labels: int, sparse: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Draw targets and outputs [state, label]; sparse outputs are 1 in one or two places."""
    while True:
        targets = rng.integers(0, states, (states, labels))
        stays = rng.random((states, labels)) < rng.choice([0.0, 0.3, 0.6])
        targets = np.where(stays, np.arange(states)[:, None], targets)
        outputs = rng.integers(0, rng.integers(2, 5), (states, labels))
        if sparse:
            outputs = np.zeros_like(outputs)
            for _ in range(rng.integers(1, 3)):
                outputs[rng.integers(states), rng.integers(labels)] = 1
        if is_minimal(targets, outputs):
            return targets, outputs


def is_minimal(targets: np.ndarray, outputs: np.ndarray) -> bool:
    """Return whether all states are reached from the first, and no two are equivalent."""
    reached, queue = {0}, [0]
    for state in queue:
        for target in targets[state].tolist():
            if target not in reached:
                reached.add(target)
                queue.append(target)
    if len(reached) < len(targets):
        return False
    blocks = np.zeros(len(targets), np.int64)
    while True:
        rows = np.column_stack([blocks, outputs, blocks[targets]])
        finer = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
        if finer.max() == blocks.max():
            return bool(finer.max() == len(targets) - 1)
        blocks = finer


def mealy(rng: np.random.Generator, states: int, labels: int, sparse: bool) -> Problem:
    """Draw a Mealy machine, recorded in a log of inputs and outputs."""
    targets, outputs = drawn_tables(rng, states, labels, sparse)
    length = int(rng.integers(5, 41))

    def record(number: int, seed: int) -> rs.TraceSet:
        random = np.random.default_rng(seed)
        traces = []
        for _ in range(number):
            word = random.integers(0, labels, random.integers(max(length // 2, 1), length + 1))
            state, answers = 0, []
            for letter in word:
                answers.append(f"o{outputs[state, letter]}")
                state = targets[state, letter]
            inputs = [f"i{letter}" for letter in word]
            silent = [0] * (len(word) + 1)
            traces.append(rs.Trace(silent, [None, *inputs], inputs, columns={"output": answers}))
        return rs.TraceSet(traces)

    return Problem("mealy", states, record, 0, ("output",))


def dfa(
    rng: np.random.Generator, states: int, labels: int, sparse: bool, length: int | None = None
) -> Problem:
    """Draw a DFA, whose answer is recorded once, at the end of a word."""
    while True:
        targets = rng.integers(0, states, (states, labels))
        accepts = rng.random(states) < 0.5
        if sparse:
            accepts = np.arange(states) == rng.integers(states)
        if accepts.any() and not accepts.all() and is_minimal(targets, accepts[:, None]):
            break
    length = length or int(rng.integers(4, 17))

    def record(number: int, seed: int) -> rs.TraceSet:
        random = np.random.default_rng(seed)
        traces = []
        for _ in range(number):
            word = random.integers(0, labels, random.integers(0, length + 1))
            state = 0
            for letter in word:
                state = targets[state, letter]
            actions = ["read"] * len(word) + ["ask"]
            answers = ["nothing"] * len(word) + ["yes" if accepts[state] else "no"]
            names = [None, *(f"i{letter}" for letter in word), None]
            silent = [0] * len(names)
            traces.append(rs.Trace(silent, names, actions, columns={"output": answers}))
        return rs.TraceSet(traces)

    return Problem("dfa", states, record, 0, ("output",))


MOVES = ((0, 1), (1, 0), (0, -1), (-1, 0))


def grid(rng: np.random.Generator, states: int, labels: int, sparse: bool) -> Problem:
    """Draw a grid whose passages depend on a hidden state, with a reward machine over labels."""
    size = int(rng.integers(3, 7))
    labels = min(labels, size * size // 2)
    tm_states = int(rng.integers(1, min(states, 6) + 1))
    tm_targets = rng.integers(0, tm_states, (tm_states, labels))
    blocked = rng.random((tm_states, size, size)) < 0.25
    rewards_of, sizes = np.zeros(0), size * size
    targets, rewards_of = drawn_tables(rng, states, labels, sparse) if states > 1 else (None, None)
    cells = rng.choice(sizes, labels, replace=False)
    label_at = {int(cell): number for number, cell in enumerate(cells)}
    start = int(rng.choice([cell for cell in range(sizes) if cell not in label_at]))
    blocked[:, start // size, start % size] = False
    for cell in cells:
        blocked[:, cell // size, cell % size] = False
    ends = bool(rng.random() < 0.5)
    length = int(rng.integers(15, 61))

    def record(number: int, seed: int) -> rs.TraceSet:
        random = np.random.default_rng(seed)
        traces = []
        for _ in range(number):
            cell, q, u = start, 0, 0
            seen, read, actions, rewards, over = [cell], [None], [], [], False
            for action in random.integers(0, 4, length).tolist():
                x, y = cell // size + MOVES[action][0], cell % size + MOVES[action][1]
                if 0 <= x < size and 0 <= y < size and not blocked[q, x, y]:
                    cell = x * size + y
                label = label_at.get(cell)
                reward = 0.0
                if label is not None:
                    reward = float(rewards_of[u, label])
                    q, u = int(tm_targets[q, label]), int(targets[u, label])
                seen.append(cell)
                read.append(None if label is None else f"l{label}")
                actions.append(action)
                rewards.append(reward)
                if ends and sparse and reward:
                    over = True
                    break
            traces.append(rs.Trace(seen, read, actions, rewards, terminated=over))
        return rs.TraceSet(traces)

    return Problem("grid", states, record, 0)


OBJECTS = ("wood", "grass", "iron", "gem", "toolshed", "workbench", "factory")


def craft(rng: np.random.Generator, task: int, traces: int, rewarded: int) -> Problem:
    """Draw a craft world: objects on a map, and a reward once some are visited in order.

    Of the recorded traces `rewarded` finish the task; fresh ones are as they come.
    """
    size, length = 9, 100
    cells = rng.permutation(size * size).tolist()
    label_at = {cell: OBJECTS[at % len(OBJECTS)] for at, cell in enumerate(cells[:14])}
    start, order = cells[-1], rng.permutation(OBJECTS)[:task].tolist()

    def episode(random: np.random.Generator) -> rs.Trace:
        cell, done = start, 0
        seen, read, actions, rewards = [cell], [None], [], []
        for action in random.integers(0, 4, length).tolist():
            x, y = cell // size + MOVES[action][0], cell % size + MOVES[action][1]
            if 0 <= x < size and 0 <= y < size:
                cell = x * size + y
            label = label_at.get(cell)
            done += label == order[done]
            seen.append(cell)
            read.append(label)
            actions.append(action)
            rewards.append(float(done == task))
            if done == task:
                break
        return rs.Trace(seen, read, actions, rewards, terminated=done == task)

    def record(number: int, seed: int) -> rs.TraceSet:
        random, finished, others = np.random.default_rng(seed), [], []
        if number == FRESH:
            return rs.TraceSet([episode(random) for _ in range(number)])
        while len(finished) < rewarded or len(others) < number - rewarded:
            trace = episode(random)
            (finished if trace.terminated else others).append(trace)
        mixed = finished[:rewarded] + others[: number - rewarded]
        return rs.TraceSet([mixed[at] for at in random.permutation(number)])

    return Problem("craft world", task, record, traces)


def named_problems() -> Iterator[tuple[int, Problem]]:
    """Yield craft worlds with 40 rewarded traces, and DFAs of 64 states from 1,521 words."""
    for seed in range(6):
        rng = np.random.default_rng([seed, 7])
        yield seed, craft(rng, 3 + seed % 3, (399, 800)[seed % 2], 40)
    for seed in range(3):
        large = dfa(np.random.default_rng([seed, 8]), 64, 2, sparse=False, length=15)
        yield seed, replace(large, name="large dfa", traces=1_521)


KINDS = (mealy, dfa, grid)


def problem(seed: int) -> Problem:
    """Draw a problem of the bank."""
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    states, labels = int(rng.integers(2, 13)), int(rng.integers(2, 7))
    if kind is not grid and rng.random() < 0.05:
        states = int(rng.integers(24, 65))
    sparse = bool(rng.random() < 0.5)
    drawn = kind(rng, states, labels, sparse)
    traces = int(np.exp(rng.uniform(np.log(5), np.log(2_000))))
    name = f"{drawn.name}{' sparse' if sparse else ''}"
    return Problem(name, states, drawn.record, traces, drawn.outputs)


def errors_of(machines: rs.Machines, fresh: rs.TraceSet) -> tuple[float, float]:
    """Return the largest share of mispredicted steps, of those that vary and of rare ones."""
    shares, rare_shares = [0.0], [0.0]
    states = states_at_steps(machines, fresh)
    for steps in step_queries(machines, fresh, states).values():
        query = fresh.at_step(fresh.observation_codes) * len(fresh.actions) + fresh.action_codes
        values, codes = fresh.column(steps.machine.predicts)
        counts = np.zeros((query.max() + 1, len(values)), np.int64)
        np.add.at(counts, (query, codes), 1)
        varies = (counts > 0).sum(1)[query] > 1
        rare = varies & (counts[query, codes] <= RARE * counts.sum(1)[query])
        is_wrong = steps.predicted != steps.outputs
        shares += [float(is_wrong[varies].mean())] if varies.any() else []
        rare_shares += [float(is_wrong[rare].mean())] if rare.any() else []
    return max(shares), max(rare_shares)


def row(drawn: Problem, seed: int) -> Row:
    """Infer the machines of a problem, and compare them with fresh traces."""
    traces = drawn.record(drawn.traces, seed)
    fresh = drawn.record(FRESH, 2**32 + seed)
    started = time.process_time()
    result = rs.infer(traces, outputs=drawn.outputs)
    seconds = time.process_time() - started
    kinds = tuple(dict.fromkeys(note.kind for note in result.warnings))
    sizes = tuple(machine.states for machine in result.machines.values())
    errors = errors_of(result.machines, fresh)
    return Row(drawn.name, drawn.states, drawn.traces, sizes, *errors, kinds, seconds)


def summary(rows: list[Row]) -> str:
    """Return how many wrong and right machines carry a warning."""
    lines = []
    for kind, is_wrong in (("wrong", True), ("right", False)):
        those = [row for row in rows if row.is_wrong is is_wrong]
        warned = sum(row.is_warned for row in those)
        share = warned / max(len(those), 1)
        lines.append(f"{kind}: {warned} of {len(those)} carry a warning ({share:.1%})")
    return "\n".join(lines)


def main() -> None:
    """Print the rows that are silently wrong or needlessly warned of, and the shares."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="seed of the first problem")
    parser.add_argument("--named", action="store_true", help="craft worlds and large DFAs")
    parser.add_argument("--all", action="store_true", help="print all rows")
    options = parser.parse_args()
    rows, started = [], time.process_time()
    seeds = range(options.first, options.first + options.problems)
    problems = named_problems() if options.named else ((seed, problem(seed)) for seed in seeds)
    for seed, drawn in problems:
        rows.append(row(drawn, seed))
        if options.all or options.named or rows[-1].is_warned is not rows[-1].is_wrong:
            print(seed, rows[-1], flush=True)
    print(summary(rows))
    print(
        f"{time.process_time() - started:.0f} CPU s, of inference {sum(r.seconds for r in rows):.0f} s"
    )


if __name__ == "__main__":
    main()
