"""Machines ↔ one versioned JSON file.

Everything in a file is checked before any of it is used: a file that was cut short, damaged or
written by another version raises a `ModelError`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from resolvent._util.files import read_content
from resolvent._util.validation import (
    check_arguments,
    check_limit,
    check_table,
    explain_memory_errors,
)
from resolvent.errors import ModelError, OutOfMemory, ResolventError, TooLarge
from resolvent.machines.augmented_state import Termination
from resolvent.machines.io import schema
from resolvent.machines.machine import Machine, machine_class
from resolvent.machines.machine_set import Machines, machines_of
from resolvent.machines.tables import (
    AlternativeTransitions,
    MergeDecision,
    OutputCounts,
    Support,
    is_member,
    no_codes,
    no_numbers,
)
from resolvent.traces.symbols import as_symbol, ordered_propositions
from resolvent.traces.vocabulary import Codes, Vocabulary

FORMAT = "resolvent-machines"
VERSION = 2
_PAIR_BYTES = 24  # bytes for each pair of a state and a constant query while a file is read
_CELL_BYTES = 12  # bytes for each transition table entry: its target and its count
_ODDS_DECIMALS = 3  # decimals of the log odds of alternative transitions
_Numbers = NDArray[np.int64]


def load(path: str | Path) -> Machines:
    """Read machines from a file that `Machines.save` wrote.

    A Transition Machine and a Reward Machine without others come as a `MachinePair`.

    Raises:
        ModelError: when the file is missing, cut short, of a later version, or
            not consistent in itself.
    """
    check_arguments(load, locals())
    with explain_memory_errors(f"{path} was read"):
        return decode(read_content(path), str(path))


def encode(machines: Machines) -> bytes:
    """Return the bytes that `save` writes; the same machines give the same bytes."""
    steps = machines.termination.ends, machines.termination.ambiguous
    content = schema.File(
        format=FORMAT,
        version=VERSION,
        timing=machines.timing,
        machines=list(map(_stored_machine, machines.values())),
        termination=schema.Termination(*(_stored_steps(machines, rows) for rows in steps)),
        preprocessor=schema.stored_preprocessor(machines.preprocessor),
        state_uncertainty=schema.stored_uncertainty(machines.state_uncertainty),
        provenance=machines.provenance,
    )
    return _in_lines(msgspec.to_builtins(content)) + b"\n"


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
    except (ValueError, OverflowError, RecursionError, ResolventError) as error:
        raise ModelError(f"{source} is damaged: {error}; infer it again") from error


def _in_lines(value: Any, indent: bytes = b"") -> bytes:
    """Encode with each entry of an object on a line of its own."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return b"[" + b", ".join(_in_lines(item, indent) for item in value) + b"]"
    if not isinstance(value, dict) or not value:
        return msgspec.json.encode(value)
    inner = indent + b"  "
    lines = [
        inner + msgspec.json.encode(name) + b": " + _in_lines(item, inner)
        for name, item in value.items()
    ]
    return b"{\n" + b",\n".join(lines) + b"\n" + indent + b"}"


def _rows(*columns: NDArray[Any]) -> list[Any]:
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _stored_machine(machine: Machine) -> schema.Machine:
    actions, counts = len(machine.actions), machine.output_counts
    state, label = np.nonzero(machine.transitions >= 0)
    return schema.Machine(
        predicts=machine.predicts,
        supplemented=machine.supplemented,
        digits=machine.digits,
        tables=schema.Tables(
            states=machine.states,
            labels=cast("list[list[str]]", list(map(ordered_propositions, machine.labels))),
            observations=list(machine.observations),
            actions=list(machine.actions),
            outputs=list(machine.outputs),
            trivial=list(machine.trivial),
            transitions=_rows(state, label, machine.transitions[state, label]),
            by_state=_rows(
                machine.output_state,
                *np.divmod(machine.output_query, actions),
                machine.output_value,
            ),
            constant=_rows(*np.divmod(machine.constant_query, actions), machine.constant_value),
        ),
        observed_constants=_stored_pairs(machine),
        output_counts=_rows(machine.output_count_rows, counts.value, counts.count),
        support=None if machine.support is None else _stored_support(machine, machine.support),
        decisions=None
        if machine.decisions is None
        else _stored_decisions(machine, machine.decisions),
    )


def _stored_pairs(machine: Machine) -> schema.ObservedConstants | None:
    if not len(machine.observed_constant_state):
        return None
    states_of: dict[int, list[int]] = {query: [] for query in machine.constant_query.tolist()}
    for state, query in _rows(machine.observed_constant_state, machine.observed_constant_query):
        states_of[query].append(state)
    numbers: dict[tuple[int, ...], int] = {}
    rows = [numbers.setdefault(tuple(states), len(numbers)) for states in states_of.values()]
    return schema.ObservedConstants(sets=list(map(list, numbers)), rows=rows)


def _stored_support(machine: Machine, support: Support) -> schema.Support:
    is_known = machine.transitions >= 0
    stored = schema.Support(
        transitions=support.transitions[is_known].tolist(),
        by_state=support.outputs.tolist(),
        constant=support.constants.tolist(),
        constant_by_state=support.constants_by_state.tolist(),
    )
    if support.alternatives is not None:
        target = support.alternatives.target[is_known]
        log_odds = np.round(support.alternatives.log_odds[is_known], _ODDS_DECIMALS)
        row = np.flatnonzero(target >= 0)
        stored.alternatives = _rows(row, target[row], log_odds[row])
    return stored


def _stored_decisions(machine: Machine, decisions: Sequence[MergeDecision]) -> schema.Decisions:
    row = np.cumsum(machine.transitions >= 0).reshape(machine.transitions.shape) - 1
    cells = ((decision.source, machine.labels.code(decision.label)) for decision in decisions)
    return schema.Decisions(
        transitions=[int(row[cell]) for cell in cells],
        agreeing=[decision.agreeing for decision in decisions],
        folded=[decision.folded for decision in decisions],
    )


def _stored_steps(machines: Machines, steps: Iterable[tuple[Any, ...]]) -> list[list[int]]:
    """Return steps as codes of the first machine, whose observations are the recorded ones."""
    first = machines.machines[0]
    return sorted(
        [first.observations.code(observation), *states, first.actions.code(action)]
        for observation, *states, action in steps
    )


def _machines(content: schema.File) -> Machines:
    stored = [_machine(machine) for machine in content.machines]
    machines = machines_of(stored, content.timing, provenance=content.provenance)
    if list(machines) != [machine.name for machine in stored]:
        raise ValueError(f"the machines are not in their order, {', '.join(machines)}")
    termination = Termination(
        _steps(machines, content.termination.ends, "ends"),
        _steps(machines, content.termination.ambiguous, "ambiguous"),
    )
    return machines.replacing(
        termination=termination,
        preprocessor=schema.preprocessor_in(content.preprocessor),
        state_uncertainty=schema.uncertainty_in(content.state_uncertainty, machines),
    )


def _machine(stored: schema.Machine) -> Machine:
    tables, name = stored.tables, f"the machine that predicts {stored.predicts!r}"
    n = tables.states
    if n > len(tables.transitions) + 1:  # before tables of that size are made
        raise ValueError(f"{name} has more states than its transitions reach")
    check_limit("labels", len(tables.labels), f"{name} reads {len(tables.labels):,} labels,")
    check_table(n, len(tables.labels), _CELL_BYTES, f"{name}: states by labels")
    labels = Vocabulary(frozenset(label) for label in tables.labels)
    observations, actions, outputs = (
        Vocabulary(map(as_symbol, symbols))
        for symbols in (tables.observations, tables.actions, tables.outputs)
    )
    if stored.predicts == "reward" and not all(isinstance(output, float) for output in outputs):
        raise ValueError("the reward machine has an output that is not a number with a point")

    queries = len(observations), len(actions)
    source, label, target = _columns(tables.transitions, (n, len(labels), n), "transitions", 2)
    state, *query, value = _columns(tables.by_state, (n, *queries, len(outputs)), "by_state", 3)
    *constant, constant_value = _columns(tables.constant, (*queries, len(outputs)), "constant", 2)
    output_query, constant_query = (
        observation * len(actions) + action for observation, action in (query, constant)
    )
    if is_member(constant_query, output_query).any():
        raise ValueError("a constant output depends on the state as well")
    transitions = np.full((n, len(labels)), -1, np.int32)
    transitions[source, label] = target
    observed_state, observed_query = _observed_pairs(stored.observed_constants, constant_query, n)
    machine = machine_class(stored.predicts)(
        labels=labels,
        observations=observations,
        actions=actions,
        outputs=outputs,
        transitions=transitions,
        trivial=tuple(tables.trivial),
        output_state=state.astype(np.int32),
        output_query=output_query,
        output_value=value.astype(np.int32),
        constant_query=constant_query,
        constant_value=constant_value.astype(np.int32),
        observed_constant_state=observed_state,
        observed_constant_query=observed_query,
        predicts=stored.predicts,
        supplemented=stored.supplemented,
        digits=stored.digits,
    )
    if any(not 0 <= code < len(labels) for code in tables.trivial):
        raise ValueError("trivial names a label that does not exist")
    if unreachable := n - len(machine.reachable()):
        raise ValueError(f"{unreachable} states of the {machine.name} machine cannot be reached")
    if np.any(transitions[:, tables.trivial] != np.arange(n, dtype=np.int32)[:, None]):
        raise ValueError("a trivial label changes a state")
    if stored.output_counts:
        machine = replace(machine, output_counts=_output_counts(stored.output_counts, machine))
    return replace(
        machine,
        support=None if stored.support is None else _support(machine, stored.support),
        decisions=None if stored.decisions is None else _decisions(machine, stored.decisions),
    )


def _observed_pairs(
    stored: schema.ObservedConstants | None, queries: _Numbers, states: int
) -> tuple[Codes, _Numbers]:
    """Return the states and the constant queries observed in them, sorted by both."""
    if stored is None:
        return no_codes(), no_numbers()
    if len(stored.rows) != len(queries):
        raise ValueError("observed_constants does not fit the constant outputs")
    if list(dict.fromkeys(stored.rows)) != list(range(len(stored.sets))):
        raise ValueError("observed_constants names its sets in another order than they have")
    for members in stored.sets:
        _columns([(state,) for state in members], (states,), "observed_constants", 1)
    sizes = np.array([len(members) for members in stored.sets], np.int64)[stored.rows]
    what = "observed_constants: the pairs of a state and a query"
    check_table(int(sizes.sum()), 1, _PAIR_BYTES, what)
    state = np.array([state for row in stored.rows for state in stored.sets[row]], np.int32)
    order = np.argsort(state, kind="stable")  # within a state, queries stay in their order
    return state[order], np.repeat(queries, sizes)[order]


def _output_counts(stored: Sequence[tuple[int, int, int]], machine: Machine) -> OutputCounts:
    sizes = len(machine.output_value), len(machine.outputs), schema.MAX_COUNT + 1
    row, value, count = _columns(stored, sizes, "output_counts", 2)
    counts = OutputCounts(
        machine.output_state[row],
        machine.output_query[row],
        value.astype(np.int32),
        np.ascontiguousarray(count),
    )
    if np.any(np.diff(counts.starts, append=len(row)) < 2):
        raise ValueError("output_counts has a row of by_state with only one output")
    if not np.array_equal(counts.main, machine.output_value[row[counts.starts]]):
        raise ValueError("by_state does not hold the most frequent output of output_counts")
    return counts


def _support(machine: Machine, stored: schema.Support) -> Support:
    is_known = machine.transitions >= 0
    by_state, constant, observed = (
        np.array(counts, np.int64)
        for counts in (stored.by_state, stored.constant, stored.constant_by_state)
    )
    if (len(stored.transitions), len(by_state), len(constant)) != (
        int(np.count_nonzero(is_known)),
        len(machine.output_value),
        len(machine.constant_value),
    ) or len(observed) not in (0, len(machine.observed_constant_state)):
        raise ValueError("support does not fit the tables")
    varying = machine.output_counts
    if not np.array_equal(by_state[machine.output_count_rows[varying.starts]], varying.totals):
        raise ValueError("support does not fit output_counts")
    table = np.zeros(machine.transitions.shape, np.int64)
    table[is_known] = stored.transitions
    alternatives = _alternatives(stored.alternatives, machine) if stored.alternatives else None
    return Support(table, by_state, constant, observed, alternatives)


def _alternatives(
    stored: Sequence[tuple[int, int, float]], machine: Machine
) -> AlternativeTransitions:
    target = np.full(machine.transitions.shape, -1, np.int32)
    log_odds = np.zeros(target.shape)
    cells = np.argwhere(machine.transitions >= 0).tolist()
    last = -1
    for row, state, odds in stored:
        if not last < row < len(cells) or not 0 <= state < machine.states:
            raise ValueError("alternatives do not fit the transitions")
        cell = tuple(cells[row])
        if state == machine.transitions[cell]:
            raise ValueError("alternatives name the present target of a transition")
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
    reached = {0}
    decisions = []
    columns = zip(stored.transitions, stored.agreeing, stored.folded, strict=True)
    for row, agreeing, folded in columns:
        state, label = cells[row]
        target = int(machine.transitions[state, label])
        is_new = target not in reached
        if state not in reached:
            raise ValueError(f"decisions leave state {state} before they reach it")
        if is_new == (folded > 0) or (is_new and agreeing > 0):
            raise ValueError(f"decisions fold nothing into state {target}, or too much")
        reached.add(target)
        decisions.append(
            MergeDecision(state, machine.labels[label], target, is_new, agreeing, folded)
        )
    if len(reached) < machine.states:
        raise ValueError("decisions never reach some of the states")
    return tuple(decisions)


def _steps(
    machines: Machines, rows: Sequence[Sequence[int]], name: str
) -> frozenset[tuple[Any, ...]]:
    first = machines.machines[0]
    sizes = (machine.states for machine in machines.values())
    _columns(rows, (len(first.observations), *sizes, len(first.actions)), name)
    return frozenset(
        (first.observations[observation], *states, first.actions[action])
        for observation, *states, action in rows
    )


def _columns(
    rows: Sequence[Sequence[int]], sizes: tuple[int, ...], name: str, sorted_by: int = 0
) -> tuple[_Numbers, ...]:
    """Return the columns of rows, checked to lie below their sizes and to be sorted.

    No two rows are equal in their first `sorted_by` columns.
    """
    if any(len(row) != len(sizes) for row in rows):
        raise ValueError(f"{name} has a row of another length than {len(sizes)}")
    table = np.array(rows, np.int64).reshape(len(rows), len(sizes))
    if np.any(table < 0) or np.any(table >= np.array(sizes)):
        raise ValueError(f"{name} holds a number out of range")
    columns = tuple(table.T)
    if sorted_by and len(rows) > 1:
        keys = np.ravel_multi_index(columns[:sorted_by], sizes[:sorted_by])
        if np.any(np.diff(keys) <= 0):
            raise ValueError(f"{name} is not sorted or has an entry twice")
    return columns
