"""Random small machines are inferred, saved, loaded and replayed, and compared with the laws.

A batch is a few random machines that read the same labels: one predicts the next observation, one
the reward, the others further columns. Traces query all of them along words of labels. In a
complete batch the words distinguish all states, so each machine must be inferred state by state;
in any other the machines must explain the traces. A batch depends on its number only, and each law
is compared with a few lines of plain Python. Counts are kept in a file, from which a later run
continues.
"""

import argparse
import json
import multiprocessing
import os
import random
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import resolvent as rs
from resolvent._util.files import atomic_write
from resolvent.machines.io.json import decode, encode

sys.path[:0] = [str(Path(__file__).parent.parent / "tests" / part) for part in ("", "laws")]

from oracles import differ_at_once, is_minimal_target, smallest_machine, told_apart  # noqa: E402

from strategies import Target  # noqa: E402

LAWS = (
    "explains all traces",
    "has a perfect score",
    "is the true machine",
    "the same in any order and repeated",
    "updated is inferred at once",
    "saved and loaded to the byte",
    "answers as the file read back",
    "minimal as by comparing all pairs",
    "no machine is smaller",
)
COLUMNS = 14
"""How many further columns a batch has at most; each is a machine of its own."""
RESULTS = Path(__file__).parent / "small_machines.json"
Word = tuple[int, ...]


@dataclass
class Batch:
    """Machines, and the words along which they are asked.

    `targets` holds a machine for each column, by its name.
    """

    targets: dict[str, Target]
    words: tuple[Word, ...]
    complete: bool

    @cached_property
    def prefixes(self) -> list[tuple[int, int]]:
        """All that words begin with, each once: the place of what is one shorter, and a label.

        The first is the empty word, which is not listed.
        """
        place: dict[Word, int] = {(): 0}
        prefixes = []
        for word in self.words:
            for length in range(1, len(word) + 1):
                if word[:length] not in place:
                    place[word[:length]] = len(place)
                    prefixes.append((place[word[: length - 1]], word[length - 1]))
        return prefixes


def drawn(number: int) -> Batch:
    """Return the batch of that number."""
    draw = random.Random(number)
    complete, at_once = draw.random() < 0.75, draw.random() < 0.7
    labels = draw.randint(1, 3 if at_once else 2)
    queries = draw.randint(1, 3)
    names = ["observation", "reward", *(f"c{one:02}" for one in range(COLUMNS))]
    targets = {name: _target(draw, labels, queries, 5 if at_once else 3, at_once) for name in names}
    if not complete:
        words = {
            tuple(draw.choices(range(labels), k=draw.randint(1, 6)))
            for _ in range(draw.randint(1, 8))
        }
    elif at_once:
        words = {word for one in targets.values() for word in _edges(one, draw)}
    else:
        longest = 2 * max(len(one.step) for one in targets.values()) - 1
        words = set(product(range(labels), repeat=longest))
    if draw.random() < 0.5:  # a word that another one begins with says nothing new
        words = {w for w in words if not any(o != w and o[: len(w)] == w for o in words)}
    return Batch(targets, tuple(sorted(words)), complete)


def _target(draw: random.Random, labels: int, queries: int, states: int, at_once: bool) -> Target:
    """Return a random machine whose states all differ: in an answer, if `at_once`, or later."""
    while True:
        size, values = draw.randint(1, states), draw.randint(2, 3)
        step = tuple(tuple(draw.choices(range(size), k=labels)) for _ in range(size))
        answer = tuple(tuple(draw.choices(range(values), k=queries)) for _ in range(size))
        target = Target(step, answer)
        if is_minimal_target(target) and (differ_at_once(target) or not at_once):
            return target


def _edges(target: Target, draw: random.Random) -> Iterator[Word]:
    """Yield words that together read every label in every state."""
    way: dict[int, Word] = {0: ()}
    ahead = [0]
    for state in ahead:
        for label in target.labels:
            to = target.step[state][label]
            if to not in way:
                way[to] = (*way[state], label)
                ahead.append(to)
            yield (*way[state], label, *draw.choices(target.labels, k=draw.randint(0, 2)))


def traces_of(batch: Batch) -> rs.TraceSet:
    """Return traces that ask every query after every label of every word.

    A query is asked by looking, from where nothing is seen; then the agent looks away again,
    which costs a step with the answer 0.
    """
    first = next(iter(batch.targets.values()))
    per_label = 2 * len(first.alphas)
    read: list[int] = []
    actions: list[int] = []
    answers: dict[str, list[int]] = {name: [] for name in batch.targets}
    for word in batch.words:
        states = dict.fromkeys(batch.targets, 0)
        for label in (None, *word):
            read += [0 if label is None else label + 1] + [0] * (per_label - 1)
            actions += [code for alpha in first.alphas for code in (alpha + 1, 0)]
            for name, target in batch.targets.items():
                if label is not None:
                    states[name] = target.step[states[name]][label]
                told = target.answer[states[name]]
                answers[name] += [code for alpha in first.alphas for code in (told[alpha], 0)]
        read.append(0)
    lengths = [per_label * (len(word) + 1) for word in batch.words]
    offsets = np.cumsum([0, *lengths])
    seen = np.insert(np.array(answers.pop("observation")), offsets[:-1], 0)
    columns = {
        name: ([0.0, 1.0, 2.0] if name == "reward" else ["zero", "one", "two"], codes)
        for name, codes in answers.items()
    }
    return rs.TraceSet.from_columns(
        (["zero", "one", "two"], seen),
        ([frozenset(), *(frozenset({_label(one)}) for one in first.labels)], read),
        (["away", *(f"look {one}" for one in first.alphas)], actions),
        columns.pop("reward"),
        columns=columns,
        offsets=offsets,
        terminated=np.zeros(len(lengths), bool),
        truncated=np.ones(len(lengths), bool),
    )


def _label(code: int) -> str:
    return f"event {code}"


def check(number: int) -> dict[str, int]:
    """Put a batch through everything; return how many machines each law held for."""
    batch = drawn(number)
    held = dict.fromkeys(LAWS, 0)
    traces = traces_of(batch)
    names = list(batch.targets)
    strategy = ("auto", "edsm", "rpni", "search")[number // 4 % 4]
    options: dict[str, Any] = {
        "outputs": names,
        "strategy": strategy,
        "supplement": False,
        "noise": "none",
        "trivial": (),
    }
    result = rs.infer(traces, options=rs.InferenceOptions(**options))
    machines = result.machines
    found = {one.predicts: one for one in machines.values()}
    assert sorted(found) == sorted(names), "there is not a machine for each column"

    for name, target in batch.targets.items():
        _explains(found[name], target, batch, name)
    assert result.explains_all_traces, "the result says that it does not explain all"
    held["explains all traces"] += len(names)
    if number % 4 == 0:
        assert machines.score(traces).perfect, "the score is not perfect"
        held["has a perfect score"] += len(names)
    if batch.complete:
        for name, target in batch.targets.items():
            _is_the_truth(found[name], target, name)
        held["is the true machine"] += len(names)

    draw = random.Random(~number)
    order = [*range(len(traces)), *draw.choices(range(len(traces)), k=3)]
    draw.shuffle(order)
    again = rs.infer(traces.take(order), options=rs.InferenceOptions(**options)).machines
    assert encode(_bare(again)) == encode(_bare(machines)), "another order, another machine"
    held["the same in any order and repeated"] += len(names)

    if batch.complete and len(traces) > 1:
        cut = draw.randint(1, len(traces) - 1)
        updated = (
            rs.infer(traces[:cut], options=rs.InferenceOptions(**options))
            .update(traces[cut:])
            .machines
        )
        assert updated == machines, f"updated after {cut} traces it is another machine"
        held["updated is inferred at once"] += len(names)

    written = encode(machines)
    read = decode(written)
    assert encode(read) == written, "read and written again it has other bytes"
    assert read == machines, "the machines read back are others"
    held["saved and loaded to the byte"] += len(names)
    for name, one in found.items():
        twin = read[one.name]
        assert rs.is_isomorphic(one, twin), f"{name}: not isomorphic to what was read back"
        _explains(twin, batch.targets[name], batch, name)
        for any_machine in (one, _any_machine(one, draw)):
            assert any_machine.is_minimal() == _all_pairs_differ(any_machine), f"{name}: minimal"
    held["answers as the file read back"] += len(names)
    held["minimal as by comparing all pairs"] += 2 * len(names)
    if number % 15 == 0:
        held["no machine is smaller"] += _none_is_smaller(batch, traces, options, draw)
    return held


def _explains(machine: rs.Machine, target: Target, batch: Batch, name: str) -> None:
    """Walk along every word, and compare each answer with the target's."""
    looks = [f"look {alpha}" for alpha in target.alphas]
    values = (0.0, 1.0, 2.0) if name == "reward" else ("zero", "one", "two")
    labels = [frozenset({_label(one)}) for one in target.labels]
    state: list[Any] = [0]
    truth = [0]
    for before, label in batch.prefixes:
        state.append(machine.step(state[before], labels[label]))
        truth.append(target.step[truth[before]][label])
    for at, true in enumerate(truth):
        told = [machine.output(state[at], "zero", look) for look in looks]
        wanted = [values[one] for one in target.answer[true]]
        assert told == wanted, f"{name}: after prefix {at} {told!r}"


def _is_the_truth(machine: rs.Machine, target: Target, name: str) -> None:
    """Walk both together: the same states, one by one, and the same moves."""
    partner = {0: 0}
    ahead = [0]
    for state in ahead:
        for label in target.labels:
            to = target.step[state][label]
            its: Any = machine.step(partner[state], {_label(label)})
            if to not in partner:
                ahead.append(to)
            assert partner.setdefault(to, its) == its, f"{name}: state {state}, label {label}"
    assert sorted(partner.values()) == list(range(machine.states)), f"{name}: {partner}"


def _bare(machines: rs.Machines) -> rs.Machines:
    """Return machines without where they come from and how often each thing was seen."""
    return machines.replacing(
        *(replace(one, support=None) for one in machines.values()), provenance=None
    )


def _any_machine(machine: rs.Machine, draw: random.Random) -> rs.Machine:
    """Return a machine with the same labels and any moves and answers, known or not."""
    states = draw.randint(1, 5)
    moves = [
        [draw.randint(-1 if draw.random() < 0.2 else 0, states - 1) for _ in machine.labels]
        for _ in range(states)
    ]
    queries = range(len(machine.observations) * len(machine.actions))
    told = [
        (state, query, draw.randrange(min(2, len(machine.outputs))))
        for state in range(states)
        for query in queries[:2]
        if draw.random() < 0.8
    ]
    state, query, value = zip(*told, strict=True) if told else ((), (), ())
    return replace(
        machine,
        transitions=np.array(moves, np.int32).reshape(states, len(machine.labels)),
        output_state=np.array(state, np.int32),
        output_query=np.array(query, np.int64),
        output_value=np.array(value, np.int32),
        constant_query=np.zeros(0, np.int64),
        constant_value=np.zeros(0, np.int32),
        observed_constant_state=np.zeros(0, np.int32),
        observed_constant_query=np.zeros(0, np.int64),
        support=None,
        decisions=None,
    )


def _all_pairs_differ(machine: rs.Machine) -> bool:
    """Whether some word tells each two states apart, unseen being an answer: by walking pairs."""
    answers = [
        tuple(
            machine.output(state, seen, done)
            for seen in machine.observations
            for done in machine.actions
        )
        for state in range(machine.states)
    ]
    # The last state stands for an unseen move: it leads to itself and answers nothing.
    moves = [[to % (machine.states + 1) for to in row] for row in machine.transitions.tolist()]
    moves.append([machine.states] * len(machine.labels))
    target = Target(tuple(map(tuple, moves)), (*answers, ("nothing is reached",)))
    return all(
        told_apart(target, one, other) for one in range(machine.states) for other in range(one)
    )


def _none_is_smaller(
    batch: Batch, traces: rs.TraceSet, options: dict[str, Any], draw: random.Random
) -> int:
    """Compare machines that are proven smallest with all machines of up to three states."""
    labels = len(next(iter(batch.targets.values())).labels)
    if labels > 2:
        return 0
    chosen = draw.sample(sorted(batch.targets), 2)
    exact = rs.infer(
        traces, options=rs.InferenceOptions(**options | {"strategy": "exact", "outputs": chosen})
    )
    compared = 0
    for machine in exact.machines.values():
        target = batch.targets[machine.predicts]
        rows = [
            [
                (label if alpha == 0 else -1, alpha, target.answer[target.run(word[:at])][alpha])
                for at, label in enumerate((-1, *word))
                for alpha in target.alphas
            ]
            for word in batch.words
        ]
        if machine.states <= 3:
            smallest = smallest_machine(rows, labels, at_most=3)
            assert smallest == machine.states, f"{machine.predicts}: {smallest} states suffice"
            compared += 1
    return compared


# ---- counting --------------------------------------------------------------


@dataclass
class Counts:
    """What was done so far, over all runs; kept as JSON."""

    next_batch: int
    machines: int
    cpu_seconds: float
    held: dict[str, int]
    failures: list[dict[str, Any]]

    @classmethod
    def read(cls, path: Path) -> "Counts":
        if not path.exists():
            return cls(0, 0, 0.0, dict.fromkeys(LAWS, 0), [])
        return cls(**json.loads(path.read_text()))

    def write(self, path: Path) -> None:
        with atomic_write(path) as file:
            file.write((json.dumps(vars(self), indent=1) + "\n").encode())


def _checked(number: int) -> tuple[int, dict[str, int], float, str]:
    """Check one batch; return its number, what held, what it cost and what went wrong."""
    started = time.process_time()
    try:
        held, wrong = check(number), ""
    except Exception:  # whatever it is, it counts
        held, wrong = {}, traceback.format_exc()
    return number, held, time.process_time() - started, wrong


def run(path: Path, machines: int, processes: int, seconds: float) -> Counts:
    """Check batches from where the file stops until there are so many machines in all."""
    counts, started, written = Counts.read(path), time.monotonic(), time.monotonic()
    size = COLUMNS + 2
    wanted = range(
        counts.next_batch, counts.next_batch + max(0, machines - counts.machines) // size + 1
    )
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for number, held, cost, wrong in pool.imap(_checked, wanted, chunksize=8):
            counts.next_batch = number + 1
            counts.machines += size
            counts.cpu_seconds += cost
            for law, times in held.items():
                counts.held[law] += times
            if wrong:
                counts.failures.append({"batch": number, "error": wrong})
                print(f"batch {number}: {wrong}", flush=True)
            if time.monotonic() - written > 10:
                written = time.monotonic()
                counts.write(path)
            if counts.machines >= machines or time.monotonic() - started > seconds:
                pool.terminate()
                break
    counts.write(path)
    return counts


def main() -> None:
    """Check batches, or the one that is asked for again."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--machines", type=int, default=1_000_000, help="in all, earlier runs too")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="at most, of this run")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--batch", type=int, help="check this one alone")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.batch is not None:
        print(check(options.batch))
        return
    counts = run(options.output, options.machines, options.processes, options.seconds)
    rate = counts.machines / max(counts.cpu_seconds, 1e-9)
    print(f"{counts.machines:,} machines, {len(counts.failures)} failures, {rate:.0f} a CPU second")
    if counts.failures:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
