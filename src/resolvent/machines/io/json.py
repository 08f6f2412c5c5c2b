"""Machines ↔ one versioned JSON file.

Everything in a file is checked before any of it is used: a file that was cut short, damaged or
written by another version raises a `ModelError`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType
from numpy.typing import NDArray

from resolvent._util.files import atomic_write, read_content
from resolvent._util.validation import (
    check_arguments,
    check_limit,
    check_table,
    telling_of_memory,
)
from resolvent.errors import ModelError, OptionError, OutOfMemory, TooLarge, TraceError
from resolvent.machines.counts import OutputCounts, Support
from resolvent.machines.io import schema
from resolvent.machines.io.schema import doubt_in, senses_in, stored_doubt, stored_senses
from resolvent.machines.knowledge import MergeDecision
from resolvent.machines.machine import Machine, machine_class
from resolvent.machines.machine_set import Machines, machines_of
from resolvent.machines.situations import Termination
from resolvent.machines.tables import is_member
from resolvent.machines.uncertainty import AlternativeTransitions
from resolvent.traces.symbols import as_symbol, ordered_propositions
from resolvent.traces.vocabulary import Codes, Vocabulary

FORMAT = "resolvent-machines"
VERSION = 2

_ASKED_BYTES = 24
"""Bytes for each pair of a state and a constant query while a file is read."""

_CELL_BYTES = 12
"""Bytes for each transition table entry: its target and its count."""

_MAX_COUNT = 1 << 40
"""Largest count of one output: sums of such counts fit into 64 bits."""

_ODDS_DECIMALS = 3
"""Decimals of the log odds of alternative transitions."""

_Numbers = NDArray[np.int64]


def save(machines: Machines, path: str | Path) -> None:
    """Write machines to a JSON file, whole or not at all."""
    check_arguments(save, locals())
    with atomic_write(path) as file:
        file.write(encode(machines))


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


def encode(machines: Machines) -> bytes:
    """Return the bytes that `save` writes; the same machines give the same bytes."""
    content = schema.File(
        format=FORMAT,
        version=VERSION,
        timing=machines.timing,
        machines=[
            schema.Machine(
                machine.predicts,
                machine.supplemented,
                machine.digits,
                _stored_tables(machine),
                _observed_sets(machine),
                _stored_spread(machine),
            )
            for machine in machines.values()
        ],
        termination=schema.Termination(
            *(
                _stored_situations(machines, situations)
                for situations in (machines.termination.ends, machines.termination.ambiguous)
            )
        ),
        support={
            name: _stored_support(machine, machine.support)
            for name, machine in machines.items()
            if machine.support is not None
        },
        decisions={
            name: _stored_decisions(machine, machine.decisions)
            for name, machine in machines.items()
            if machine.decisions is not None
        }
        or UNSET,
        senses=stored_senses(machines.senses),
        doubt=stored_doubt(machines.doubt),
        provenance=machines.provenance,
    )
    return _in_lines(content)


def decode(data: bytes, source: str = "machines") -> Machines:
    """Return the machines that `encode` turned into bytes; `source` names them in errors."""
    if not data.strip():
        raise ModelError(f"{source} is empty: write it with `resolvent infer TRACES -o FILE`")
    header = schema.Header()
    try:
        if data.lstrip().startswith(b"{"):  # anything else is some other file
            header = msgspec.json.decode(data, type=schema.Header)
    except msgspec.ValidationError:
        pass
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
    if header.version != VERSION:
        raise ModelError(
            f"{source} has format version {header.version}, this Resolvent reads version "
            f"{VERSION}; infer it again or use the Resolvent that wrote it"
        )
    try:
        return _machines(msgspec.json.decode(data, type=schema.File))
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


def _in_lines(content: schema.File) -> bytes:
    """Encode with each entry that may be long on a separate line."""
    lines = []
    for name, value in _entries(content):
        if name == "machines":
            objects = (_object(_entries(machine), b"  ", "tables") for machine in value)
            encoded = b"[" + b", ".join(objects) + b"]"
        elif name in ("support", "decisions"):
            encoded = _object(value.items(), b"  ")
        else:
            encoded = msgspec.json.encode(value)
        lines.append(msgspec.json.encode(name) + b": " + encoded)
    return b"{\n" + b",\n".join(lines) + b"\n}\n"


def _entries(struct: msgspec.Struct) -> list[tuple[str, Any]]:
    """Return the fields of a struct that are set."""
    fields = ((name, getattr(struct, name)) for name in struct.__struct_fields__)
    return [(name, value) for name, value in fields if value is not UNSET]


def _object(entries: Iterable[tuple[str, Any]], indent: bytes, nested: str = "") -> bytes:
    """Encode an object with a line for each entry, and for each in the entry named `nested`."""
    lines = []
    for name, value in entries:
        is_nested = name == nested
        encoded = (
            _object(_entries(value), indent + b"  ") if is_nested else msgspec.json.encode(value)
        )
        lines.append(indent + msgspec.json.encode(name) + b": " + encoded)
    return b"{\n" + b",\n".join(lines) + b"\n" + indent[2:] + b"}" if lines else b"{}"


def _rows(*columns: NDArray[Any]) -> list[Any]:
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _stored_tables(machine: Machine) -> schema.Tables:
    actions = len(machine.actions)
    state, label = np.nonzero(machine.transitions >= 0)
    return schema.Tables(
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


def _observed_sets(machine: Machine) -> schema.Asked | UnsetType:
    if not len(machine.asked_state):
        return UNSET
    states_of: dict[int, list[int]] = {query: [] for query in machine.constant_question.tolist()}
    for state, query in _rows(machine.asked_state, machine.asked_question):
        states_of[query].append(state)
    numbers: dict[tuple[int, ...], int] = {}
    rows = [numbers.setdefault(tuple(states), len(numbers)) for states in states_of.values()]
    return schema.Asked(sets=[list(states) for states in numbers], rows=rows)


def _stored_spread(machine: Machine) -> list[tuple[int, int, int]] | UnsetType:
    spread = machine.spread
    return _rows(machine.spread_rows, spread.value, spread.count) if len(spread) else UNSET


def _stored_support(machine: Machine, support: Support) -> schema.Support:
    is_known = machine.transitions >= 0
    alternatives: list[tuple[int, int, float]] = []
    if support.rivals is not None:
        target = support.rivals.target[is_known]
        log_odds = np.round(support.rivals.log_odds[is_known], _ODDS_DECIMALS)
        row = np.flatnonzero(target >= 0)
        alternatives = _rows(row, target[row], log_odds[row])
    return schema.Support(
        transitions=support.transitions[is_known].tolist(),
        by_state=support.outputs.tolist(),
        constant=support.constants.tolist(),
        asked=support.asked.tolist() or UNSET,
        rivals=alternatives or UNSET,
    )


def _stored_decisions(machine: Machine, decisions: Sequence[MergeDecision]) -> schema.Decisions:
    number = np.cumsum(machine.transitions.ravel() >= 0) - 1
    width = len(machine.labels)
    cell = [step.source * width + machine.labels.code(step.label) for step in decisions]
    return schema.Decisions(
        transitions=number[np.array(cell, np.int64)].tolist(),
        agreeing=[decision.agreeing for decision in decisions],
        folded=[decision.folded for decision in decisions],
    )


def _stored_situations(
    machines: Machines, situations: Iterable[tuple[Any, ...]]
) -> list[list[int]]:
    """Return situations as codes; observation and action in those of the first machine.

    That machine is not supplemented, so its observations are the recorded ones.
    """
    first = machines.machines[0]
    return sorted(
        [first.observations.code(observation), *states, first.actions.code(action)]
        for observation, *states, action in situations
    )


def _machines(content: schema.File) -> Machines:
    decisions = {} if isinstance(content.decisions, UnsetType) else content.decisions
    stored = [_machine(machine, content.support, decisions) for machine in content.machines]
    machines = machines_of(stored, content.timing, provenance=content.provenance)
    if list(machines) != [machine.kind for machine in stored]:
        raise ValueError(f"the machines are not in their order, {', '.join(machines)}")
    sections: dict[str, Mapping[str, Any]] = {"support": content.support, "decisions": decisions}
    for section, entries in sections.items():
        if unknown := [name for name in entries if name not in machines]:
            raise ValueError(f"{section} tells of a machine {unknown[0]!r} that is not there")
    return machines.replacing(
        termination=Termination(
            _situations(machines, content.termination.ends, "ends"),
            _situations(machines, content.termination.ambiguous, "ambiguous"),
        ),
        senses=senses_in(content.senses),
        doubt=doubt_in(content.doubt, machines),
    )


def _machine(
    stored: schema.Machine,
    support: Mapping[str, schema.Support],
    decisions: Mapping[str, schema.Decisions],
) -> Machine:
    tables, name = stored.tables, f"the machine that predicts {stored.predicts!r}"
    n = tables.states
    if n < 1:
        raise ValueError(f"{name} has no state")
    if n > len(tables.transitions) + 1:  # before tables of that size are made
        raise ValueError(f"{name} has more states than its transitions reach")
    for alphabet in ("labels", "observations", "actions", "outputs"):
        if not getattr(tables, alphabet):
            raise ValueError(f"{name} has no {alphabet}")
    check_limit("labels", len(tables.labels), f"{name} reads {len(tables.labels):,} labels,")
    check_table(n, len(tables.labels), _CELL_BYTES, f"{name}: states by labels")
    labels = Vocabulary(frozenset(label) for label in tables.labels)
    observations, actions, outputs = (
        Vocabulary(map(as_symbol, symbols))
        for symbols in (tables.observations, tables.actions, tables.outputs)
    )
    n_labels, n_observations, n_actions = len(labels), len(observations), len(actions)
    if any(not 0 <= code < n_labels for code in tables.trivial):
        raise ValueError("trivial names a label that does not exist")

    transitions = np.full((n, n_labels), -1, np.int32)
    source, label, target = _columns(tables.transitions, (n, n_labels, n), "transitions")
    transitions[source, label] = target
    state, observation, action, value = _columns(
        tables.by_state, (n, n_observations, n_actions, len(outputs)), "by_state"
    )
    query = observation * n_actions + action
    observation, action, constant_value = _columns(
        tables.constant, (n_observations, n_actions, len(outputs)), "constant"
    )
    constant = observation * n_actions + action
    _check_rising(source * n_labels + label, "transitions")
    _check_rising(state * (n_observations * n_actions) + query, "by_state")
    _check_rising(constant, "constant")
    observed_state, observed_query = _observed_pairs(stored.asked, constant, n)
    machine = machine_class(stored.predicts)(
        labels=labels,
        observations=observations,
        actions=actions,
        outputs=outputs,
        transitions=transitions,
        trivial=tuple(tables.trivial),
        output_state=state.astype(np.int32),
        output_question=query,
        output_value=value.astype(np.int32),
        constant_question=constant,
        constant_value=constant_value.astype(np.int32),
        asked_state=observed_state,
        asked_question=observed_query,
        predicts=stored.predicts,
        supplemented=stored.supplemented,
        digits=stored.digits,
    )
    if not isinstance(stored.spread, UnsetType):
        machine = replace(machine, spread=_spread(stored.spread, machine))
    if is_member(constant, query).any():
        raise ValueError("a constant answer depends on the state as well")
    if machine.kind == "reward" and not all(isinstance(output, float) for output in outputs):
        raise ValueError("the reward machine has an output that is not a number with a point")
    if unreachable := n - len(machine.reachable()):
        raise ValueError(f"{unreachable} states of the {machine.kind} machine cannot be reached")
    if np.any(transitions[:, tables.trivial] != np.arange(n, dtype=np.int32)[:, None]):
        raise ValueError("a trivial label changes a state")
    if machine.kind in support:
        machine = replace(machine, support=_support(machine, support[machine.kind]))
    if machine.kind in decisions:
        machine = replace(machine, decisions=_decisions(machine, decisions[machine.kind]))
    return machine


def _observed_pairs(
    stored: schema.Asked | UnsetType, queries: _Numbers, states: int
) -> tuple[Codes, _Numbers]:
    """Return the states and the constant queries observed in them, sorted by both."""
    if isinstance(stored, UnsetType):
        return np.empty(0, np.int32), np.empty(0, np.int64)
    if len(stored.rows) != len(queries):
        raise ValueError("asked does not fit the constant answers")
    if list(dict.fromkeys(stored.rows)) != list(range(len(stored.sets))):
        raise ValueError("asked names its sets in another order than they have")
    for members in stored.sets:
        (column,) = _columns([(state,) for state in members], (states,), "asked")
        _check_rising(column, "asked")
    sizes = np.array([len(members) for members in stored.sets], np.int64)[stored.rows]
    check_table(int(sizes.sum()), 1, _ASKED_BYTES, "asked: the pairs of a state and a question")
    state = np.array([state for row in stored.rows for state in stored.sets[row]], np.int32)
    order = np.argsort(state, kind="stable")  # within a state, queries stay in their order
    return state[order], np.repeat(queries, sizes)[order]


def _spread(stored: Sequence[tuple[int, int, int]], machine: Machine) -> OutputCounts:
    row, value, count = np.array(stored, np.int64).reshape(len(stored), 3).T
    if len(row) == 0:
        raise ValueError("spread is there, and holds nothing")
    outputs = len(machine.outputs)
    if np.any((row < 0) | (row >= len(machine.output_value)) | (value < 0) | (value >= outputs)):
        raise ValueError("spread holds a number out of range")
    _check_rising(row * outputs + value, "spread")
    if np.any((count < 1) | (count > _MAX_COUNT)):
        raise ValueError(f"spread holds a count that is not from 1 to {_MAX_COUNT:,}")
    spread = OutputCounts(
        machine.output_state[row],
        machine.output_question[row],
        value.astype(np.int32),
        np.ascontiguousarray(count),
    )
    if np.any(np.diff(spread.starts, append=len(row)) < 2):
        raise ValueError("spread has a row of by_state with only one answer")
    if not np.array_equal(spread.main, machine.output_value[row[spread.starts]]):
        raise ValueError("by_state does not hold the most frequent answer of spread")
    return spread


def _support(machine: Machine, stored: schema.Support) -> Support:
    is_known = machine.transitions >= 0
    by_observed = [] if isinstance(stored.asked, UnsetType) else stored.asked
    if (len(stored.transitions), len(stored.by_state), len(stored.constant)) != (
        int(np.count_nonzero(is_known)),
        len(machine.output_value),
        len(machine.constant_value),
    ) or len(by_observed) not in (0, len(machine.asked_state)):
        raise ValueError("support does not fit the tables")
    counts = [*stored.transitions, *stored.by_state, *stored.constant, *by_observed]
    if counts and not 0 <= min(counts) <= max(counts) <= _MAX_COUNT:
        raise ValueError(f"support holds a count that is not from 0 to {_MAX_COUNT:,}")
    by_state = np.array(stored.by_state, np.int64)
    spread = machine.spread
    if not np.array_equal(by_state[machine.spread_rows[spread.starts]], spread.totals):
        raise ValueError("support does not fit the spread")
    table = np.zeros(machine.transitions.shape, np.int64)
    table[is_known] = stored.transitions
    return Support(
        table,
        by_state,
        np.array(stored.constant, np.int64),
        np.array(by_observed, np.int64),
        None if isinstance(stored.rivals, UnsetType) else _alternatives(stored.rivals, machine),
    )


def _alternatives(
    stored: Sequence[tuple[int, int, float]], machine: Machine
) -> AlternativeTransitions:
    target = np.full(machine.transitions.shape, -1, np.int32)
    log_odds = np.zeros(target.shape)
    cells = np.argwhere(machine.transitions >= 0).tolist()
    last = -1
    for row, state, odds in stored:
        if not last < row < len(cells) or not 0 <= state < machine.states or not isfinite(odds):
            raise ValueError("rivals do not fit the transitions")
        cell = tuple(cells[row])
        if state == machine.transitions[cell]:
            raise ValueError("rivals name the state that a move leads to as its rival")
        target[cell], log_odds[cell] = state, odds
        last = row
    return AlternativeTransitions(target, log_odds)


def _decisions(machine: Machine, stored: schema.Decisions) -> tuple[MergeDecision, ...]:
    """Return the decisions, checked to be a possible run of state merging for this machine."""
    cells = np.argwhere(machine.transitions >= 0).tolist()
    if not len(stored.transitions) == len(stored.agreeing) == len(stored.folded):
        raise ValueError("the columns of decisions differ in length")
    if len(set(stored.transitions)) < len(stored.transitions):
        raise ValueError("decisions settle a transition twice")
    if any(not 0 <= row < len(cells) for row in stored.transitions):
        raise ValueError("decisions name a transition that does not exist")
    if any(not 0 <= number < 2**63 for number in (*stored.agreeing, *stored.folded)):
        raise ValueError("decisions hold a count out of range")
    reached = {0}
    decisions = []
    columns = (stored.transitions, stored.agreeing, stored.folded)
    for row, agreeing, folded in zip(*columns, strict=True):
        state, label = cells[row]
        target = int(machine.transitions[state, label])
        is_new = target not in reached
        if state not in reached:
            raise ValueError(f"decisions leave state {state} before they find it")
        if is_new == (folded > 0) or (is_new and agreeing > 0):
            raise ValueError(f"decisions fold nothing into state {target}, or too much")
        reached.add(target)
        decisions.append(
            MergeDecision(state, machine.labels[label], target, is_new, agreeing, folded)
        )
    if len(reached) < machine.states:
        raise ValueError("decisions never find some of the states")
    return tuple(decisions)


def _situations(
    machines: Machines, rows: Sequence[Sequence[int]], name: str
) -> frozenset[tuple[Any, ...]]:
    first = machines.machines[0]
    states = (machine.states for machine in machines.values())
    columns = _columns(rows, (len(first.observations), *states, len(first.actions)), name)
    return frozenset(
        (first.observations[observation], *states, first.actions[action])
        for observation, *states, action in _rows(*columns)
    )


def _columns(
    rows: Sequence[Sequence[int]], sizes: tuple[int, ...], name: str
) -> tuple[_Numbers, ...]:
    """Turn rows into columns, each checked to lie below its size."""
    if any(len(row) != len(sizes) for row in rows):
        raise ValueError(f"{name} has a row of another length than {len(sizes)}")
    table = np.array(rows, np.int64).reshape(len(rows), len(sizes))
    if np.any(table < 0) or np.any(table >= np.array(sizes)):
        raise ValueError(f"{name} holds a number out of range")
    return tuple(table.T)


def _check_rising(keys: _Numbers, name: str) -> None:
    if np.any(np.diff(keys) <= 0):
        raise ValueError(f"{name} is not sorted or has an entry twice")
