"""Machines ↔ one versioned JSON file.

What is in the file is checked before any of it is used: a file that was cut
short, edited badly or written by another version gives a `ModelError` that says
so, never a crash later on.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType
from numpy.typing import NDArray

from resolvent._util.files import atomic_write, read_content
from resolvent._util.validation import check_arguments, check_limit, check_table, telling_of_memory
from resolvent.errors import ModelError, OptionError, OutOfMemory, TooLarge, TraceError
from resolvent.machines.asking import spread_rows
from resolvent.machines.columns import is_among
from resolvent.machines.files import layout as layout
from resolvent.machines.files import layout_v1 as layout_v1
from resolvent.machines.files.stored_doubt import doubt_in, stored_doubt
from resolvent.machines.files.stored_rivals import rivals_in, stored_rivals
from resolvent.machines.files.stored_senses import senses_in, stored_senses
from resolvent.machines.files.stored_spread import MOST_TIMES, spread_in, stored_spread
from resolvent.machines.machine import Machine, machine_class
from resolvent.machines.machine_set import Machines, machines_of
from resolvent.machines.merge_log import decisions_of_columns, log_columns
from resolvent.machines.support import Support
from resolvent.machines.termination import Situation, Termination
from resolvent.traces.symbols import as_symbol, ordered_propositions
from resolvent.traces.vocabulary import Codes, Vocabulary

FORMAT = "resolvent-machines"
VERSION = 2

_ASKED_BYTES = 24
"""What a pair of a state and a constant question takes while a file is read. Sets of states are
shared, so that a small file can name very many."""

_CELL_BYTES = 12
"""What each label takes in each state: where it leads, and how often it did."""

_Numbers = NDArray[np.int64]


def save(machines: Machines, path: str | Path) -> None:
    """Write machines to a JSON file, whole or not at all."""
    check_arguments(save, locals())
    with atomic_write(path) as file:
        file.write(encode(machines))


def encode(machines: Machines) -> bytes:
    """Return the file that `save` writes; the same machines give the same bytes."""
    decisions = {
        kind: layout.Decisions(*log_columns(one, one.decisions))
        for kind, one in machines.items()
        if one.decisions is not None
    }
    content = layout.File(
        format=FORMAT,
        version=VERSION,
        timing=machines.timing,
        machines=[
            layout.Machine(
                one.predicts,
                one.supplemented,
                one.digits,
                _tables(one),
                _asked(one),
                stored_spread(one),
            )
            for one in machines.values()
        ],
        termination=layout.Termination(
            ends=_situations(machines, machines.termination.ends),
            ambiguous=_situations(machines, machines.termination.ambiguous),
        ),
        support={
            kind: _support(one, one.support)
            for kind, one in machines.items()
            if one.support is not None
        },
        decisions=decisions or UNSET,
        senses=stored_senses(machines.senses),
        doubt=stored_doubt(machines.doubt),
        provenance=machines.provenance,
    )
    return _in_lines(content)


def load(path: str | Path) -> Machines:
    """Read machines from a file that `Machines.save` wrote.

    A Transition Machine and a Reward Machine without others come as a `MachinePair`.

    Raises:
        ModelError: when the file is missing, cut short, of a later version, or
            not consistent in itself.
    """
    check_arguments(load, locals())
    with telling_of_memory(f"{path} was read"):
        return decode(read_content(path), str(path))


def decode(data: bytes, source: str = "machines") -> Machines:
    """Return the machines that `encode` turned into bytes; `source` names them in errors."""
    if not data.strip():
        raise ModelError(f"{source} is empty: write it with `resolvent infer TRACES -o FILE`")
    try:
        header = layout.Header()
        if data.lstrip().startswith(b"{"):  # anything else is some other file
            header = msgspec.json.decode(data, type=layout.Header)
    except msgspec.ValidationError:
        header = layout.Header()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ModelError(
            f"{source} is not valid JSON, perhaps it was cut short or holds traces: {error}; "
            f"infer it again"
        ) from error
    if header.format != FORMAT:
        raise ModelError(
            f'{source} is not a machine file: it lacks "format": "{FORMAT}"; '
            f"write one with `resolvent infer TRACES -o FILE`"
        )
    if header.version not in (layout_v1.VERSION, VERSION):
        raise ModelError(
            f"{source} has format version {header.version}, this Resolvent reads versions "
            f"{layout_v1.VERSION} and {VERSION}; infer it again or use the Resolvent that wrote it"
        )
    try:
        return _machines(_content(data, header.version))
    except OutOfMemory:
        raise
    except TooLarge as error:
        raise TooLarge(f"{source}: {error}") from error
    except (
        msgspec.ValidationError,
        ValueError,
        OverflowError,
        RecursionError,
        ModelError,
        OptionError,
        TraceError,
    ) as error:
        raise ModelError(f"{source} is damaged: {error}; infer it again") from error


def _content(data: bytes, version: int) -> layout.File:
    if version == layout_v1.VERSION:
        return layout_v1.as_today(msgspec.json.decode(data, type=layout_v1.File))
    return msgspec.json.decode(data, type=layout.File)


def _tables(machine: Machine) -> layout.Tables:
    actions = len(machine.actions)
    state, label = np.nonzero(machine.transitions >= 0)
    return layout.Tables(
        states=machine.states,
        labels=cast("list[list[str]]", list(map(ordered_propositions, machine.labels))),
        observations=list(machine.observations),
        actions=list(machine.actions),
        outputs=list(machine.outputs),
        trivial=list(machine.trivial),
        transitions=_rows(state, label, machine.transitions[state, label]),
        by_state=_rows(
            machine.output_state, *np.divmod(machine.output_question, actions), machine.output_value
        ),
        constant=_rows(*np.divmod(machine.constant_question, actions), machine.constant_value),
    )


def _asked(machine: Machine) -> layout.Asked | UnsetType:
    if not len(machine.asked_state):
        return UNSET
    states_of: dict[int, list[int]] = {one: [] for one in machine.constant_question.tolist()}
    columns = (machine.asked_state.tolist(), machine.asked_question.tolist())
    for state, question in zip(*columns, strict=True):
        states_of[question].append(state)
    numbers: dict[tuple[int, ...], int] = {}
    rows = [numbers.setdefault(tuple(states), len(numbers)) for states in states_of.values()]
    return layout.Asked(sets=[list(states) for states in numbers], rows=rows)


def _support(machine: Machine, support: Support) -> layout.Support:
    known = np.nonzero(machine.transitions >= 0)
    return layout.Support(
        transitions=support.transitions[known].tolist(),
        by_state=support.outputs.tolist(),
        constant=support.constants.tolist(),
        asked=support.asked.tolist() or UNSET,
        rivals=stored_rivals(machine, support.rivals),
    )


def _situations(machines: Machines, situations: Iterable[Situation]) -> list[list[int]]:
    """Return situations in codes, observation and action in those of the first machine.

    That one is not supplemented, and so knows observations as they are.
    """
    first = machines.machines[0]
    return sorted(
        [first.observations.code(observation), *states, first.actions.code(action)]
        for observation, *states, action in situations
    )


def _rows(*columns: NDArray[Any]) -> list[Any]:
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _in_lines(content: layout.File) -> bytes:
    """Encode with each entry that may be long on a line of its own."""
    lines = []
    for key, value in _entries(content):
        if key == "machines":
            each = (_object(_entries(one), b"  ", "tables") for one in value)
            told = b"[" + b", ".join(each) + b"]"
        elif key in ("support", "decisions"):
            told = _object(value.items(), b"  ")
        else:
            told = msgspec.json.encode(value)
        lines.append(msgspec.json.encode(key) + b": " + told)
    return b"{\n" + b",\n".join(lines) + b"\n}\n"


def _entries(struct: msgspec.Struct) -> list[tuple[str, Any]]:
    """Return what a struct holds and a file says."""
    named = ((name, getattr(struct, name)) for name in struct.__struct_fields__)
    return [(name, value) for name, value in named if value is not UNSET]


def _object(entries: Iterable[tuple[str, Any]], indent: bytes, within: str = "") -> bytes:
    """Encode an object with a line for each entry, and for each in the entry named `within`."""
    lines = []
    for name, value in entries:
        inner = name == within
        told = _object(_entries(value), indent + b"  ") if inner else msgspec.json.encode(value)
        lines.append(indent + msgspec.json.encode(name) + b": " + told)
    return b"{\n" + b",\n".join(lines) + b"\n" + indent[2:] + b"}" if lines else b"{}"


def _machines(content: layout.File) -> Machines:
    log = {} if isinstance(content.decisions, UnsetType) else content.decisions
    found = [_machine(one, content.support, log) for one in content.machines]
    kinds = [one.kind for one in found]
    machines = machines_of(found, content.timing, provenance=content.provenance)
    if list(machines) != kinds:
        raise ValueError(f"the machines are not in their order, {', '.join(machines)}")
    for section, named in (("support", content.support), ("decisions", log)):
        if unknown := [name for name in named if name not in machines]:
            raise ValueError(f"{section} tells of a machine {unknown[0]!r} that is not there")
    termination = Termination(
        _named_situations(machines, content.termination.ends, "ends"),
        _named_situations(machines, content.termination.ambiguous, "ambiguous"),
    )
    return machines.replacing(
        termination=termination,
        senses=senses_in(content.senses),
        doubt=doubt_in(content.doubt, machines),
    )


def _named_situations(machines: Machines, rows: list[list[int]], name: str) -> frozenset[Situation]:
    first, *_ = machines.values()
    sizes = [len(first.observations), *(one.states for one in machines.values())]
    columns = _columns(rows, (*sizes, len(first.actions)), name)
    return frozenset(
        (first.observations[seen], *states, first.actions[done])
        for seen, *states, done in zip(*(column.tolist() for column in columns), strict=True)
    )


def _machine(
    described: layout.Machine,
    support: dict[str, layout.Support],
    log: dict[str, layout.Decisions],
) -> Machine:
    tables, called = described.tables, f"the machine that predicts {described.predicts!r}"
    if tables.states < 1:
        raise ValueError(f"{called} has no state")
    if tables.states > len(tables.transitions) + 1:  # before tables of that size are made
        raise ValueError(f"{called} has more states than its transitions reach")
    for alphabet in ("labels", "observations", "actions", "outputs"):
        if not getattr(tables, alphabet):
            raise ValueError(f"{called} has no {alphabet}")
    check_limit("labels", len(tables.labels), f"{called} reads {len(tables.labels):,} labels,")
    check_table(tables.states, len(tables.labels), _CELL_BYTES, f"{called}: states by labels")
    labels = Vocabulary(frozenset(label) for label in tables.labels)
    observations = Vocabulary(map(as_symbol, tables.observations))
    actions = Vocabulary(map(as_symbol, tables.actions))
    outputs = Vocabulary(map(as_symbol, tables.outputs))
    n, no, na = tables.states, len(observations), len(actions)
    if any(not 0 <= code < len(labels) for code in tables.trivial):
        raise ValueError("trivial names a label that does not exist")

    transitions = np.full((n, len(labels)), -1, np.int32)
    source, label, target = _columns(tables.transitions, (n, len(labels), n), "transitions")
    transitions[source, label] = target
    state, seen, done, value = _columns(tables.by_state, (n, no, na, len(outputs)), "by_state")
    fixed_seen, fixed_done, fixed_value = _columns(
        tables.constant, (no, na, len(outputs)), "constant"
    )
    question = seen * na + done
    fixed_question = fixed_seen * na + fixed_done
    _rising(source * len(labels) + label, "transitions")
    _rising(state * (no * na) + question, "by_state")
    _rising(fixed_question, "constant")
    asked_state, asked_question = _where_asked(described.asked, fixed_question, n)
    machine = machine_class(described.predicts)(
        labels=labels,
        observations=observations,
        actions=actions,
        outputs=outputs,
        transitions=transitions,
        trivial=tuple(tables.trivial),
        output_state=state.astype(np.int32),
        output_question=question,
        output_value=value.astype(np.int32),
        constant_question=fixed_question,
        constant_value=fixed_value.astype(np.int32),
        asked_state=asked_state,
        asked_question=asked_question,
        predicts=described.predicts,
        supplemented=described.supplemented,
        digits=described.digits,
    )
    machine = replace(machine, spread=spread_in(described.spread, machine))
    if is_among(fixed_question, question).any():
        raise ValueError("a constant answer depends on the state as well")
    if machine.kind == "reward" and not all(isinstance(one, float) for one in outputs):
        raise ValueError("the reward machine has an output that is not a number with a point")
    if unreachable := n - len(machine.reachable()):
        raise ValueError(f"{unreachable} states of the {machine.kind} machine cannot be reached")
    if np.any(transitions[:, tables.trivial] != np.arange(n, dtype=np.int32)[:, None]):
        raise ValueError("a trivial label changes a state")
    if machine.kind in support:
        machine = replace(machine, support=_counted(machine, support[machine.kind]))
    if machine.kind in log:
        one = log[machine.kind]
        decisions = decisions_of_columns(machine, one.transitions, one.agreeing, one.folded)
        machine = replace(machine, decisions=decisions)
    return machine


def _where_asked(
    asked: layout.Asked | UnsetType, questions: _Numbers, states: int
) -> tuple[Codes, _Numbers]:
    """Return the states and constant questions that were asked in them, sorted by both."""
    if isinstance(asked, UnsetType):
        return np.empty(0, np.int32), np.empty(0, np.int64)
    if len(asked.rows) != len(questions):
        raise ValueError("asked does not fit the constant answers")
    if list(dict.fromkeys(asked.rows)) != list(range(len(asked.sets))):
        raise ValueError("asked names its sets in another order than they have")
    for one in asked.sets:
        (column,) = _columns([(state,) for state in one], (states,), "asked")
        _rising(column, "asked")
    sizes = np.array([len(one) for one in asked.sets], np.int64)[asked.rows]
    check_table(int(sizes.sum()), 1, _ASKED_BYTES, "asked: the pairs of a state and a question")
    state = np.array([state for row in asked.rows for state in asked.sets[row]], np.int32)
    question = np.repeat(questions, sizes)
    order = np.argsort(state, kind="stable")  # within a state, questions stay in their order
    return state[order], question[order]


def _counted(machine: Machine, counts: layout.Support) -> Support:
    known = np.nonzero(machine.transitions >= 0)
    asked = [] if isinstance(counts.asked, UnsetType) else counts.asked
    if (len(counts.transitions), len(counts.by_state), len(counts.constant)) != (
        len(known[0]),
        len(machine.output_value),
        len(machine.constant_value),
    ) or len(asked) not in (0, len(machine.asked_state)):
        raise ValueError("support does not fit the tables")
    every = [*counts.transitions, *counts.by_state, *counts.constant, *asked]
    if every and not 0 <= min(every) <= max(every) <= MOST_TIMES:
        raise ValueError(f"support holds a count that is not from 0 to {MOST_TIMES:,}")
    spread = machine.spread
    several = spread_rows(machine)
    if not np.array_equal(np.array(counts.by_state)[several[spread.starts]], spread.totals):
        raise ValueError("support does not fit the spread")
    table = np.zeros(machine.transitions.shape, np.int64)
    table[known] = counts.transitions
    columns = (counts.by_state, counts.constant, asked)
    by_state, constant, by_state_asked = (np.array(column, np.int64) for column in columns)
    rivals = rivals_in(counts.rivals, machine)
    return Support(table, by_state, constant, by_state_asked, rivals)


def _columns(
    rows: Sequence[Sequence[int]], sizes: tuple[int, ...], name: str
) -> tuple[NDArray[np.int64], ...]:
    """Turn rows into columns, each checked to lie below its size."""
    if any(len(row) != len(sizes) for row in rows):
        raise ValueError(f"{name} has a row of another length than {len(sizes)}")
    table = np.array(rows, np.int64).reshape(len(rows), len(sizes))
    if np.any(table < 0) or np.any(table >= np.array(sizes)):
        raise ValueError(f"{name} holds a number out of range")
    return tuple(table.T)


def _rising(keys: NDArray[np.int64], name: str) -> None:
    if np.any(np.diff(keys) <= 0):
        raise ValueError(f"{name} is not sorted or has an entry twice")
