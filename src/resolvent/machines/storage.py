"""A pair of machines ↔ one versioned JSON file.

What is in the file is checked before any of it is used: a file that was cut
short, edited badly or written by another version gives a `ModelError` that says
so, never a crash later on.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType
from numpy.typing import NDArray

from resolvent.atomic_file import atomic_write
from resolvent.errors import ModelError, TraceError
from resolvent.machines import file_layout as layout
from resolvent.machines.machine import Machine, RewardMachine, Support, TransitionMachine
from resolvent.machines.merge_log import decisions_of_columns, log_columns
from resolvent.machines.pair import MachinePair
from resolvent.machines.termination import Termination
from resolvent.traces.symbols import as_symbol
from resolvent.traces.vocabulary import Vocabulary

FORMAT = "resolvent-machines"
VERSION = 1

M = TypeVar("M", bound=Machine)


def save(pair: MachinePair, path: str | Path) -> None:
    """Write a pair of machines to a JSON file, whole or not at all."""
    with atomic_write(path) as file:
        file.write(encode(pair))


def encode(pair: MachinePair) -> bytes:
    """Return the file that `save` writes; the same pair gives the same bytes."""
    reward = pair.reward
    machines: tuple[Machine, ...] = (pair.transition, reward)
    decisions = {
        one.kind: layout.Decisions(*log_columns(one, one.decisions))
        for one in machines
        if one.decisions is not None
    }
    content = layout.File(
        format=FORMAT,
        version=VERSION,
        timing=pair.timing,
        transition=layout.Machine(**_tables(pair.transition)),
        reward=layout.Reward(
            **_tables(reward),
            supplemented=reward.supplemented,
            reward_digits=reward.reward_digits,
        ),
        termination=layout.Termination(
            ends=_situations(pair, pair.termination.ends),
            ambiguous=_situations(pair, pair.termination.ambiguous),
        ),
        support={
            machine.kind: _support(machine, machine.support)
            for machine in machines
            if machine.support is not None
        },
        decisions=layout.Log(**decisions) if decisions else UNSET,
        provenance=pair.provenance,
    )
    return _one_entry_a_line(msgspec.to_builtins(content))


def load(path: str | Path) -> MachinePair:
    """Read a pair of machines from a file that `MachinePair.save` wrote.

    Raises:
        ModelError: when the file is missing, cut short, of another version, or
            not consistent in itself.
    """
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise ModelError(f"{path} does not exist") from None
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}") from error
    return decode(data, str(path))


def decode(data: bytes, source: str = "machines") -> MachinePair:
    """Return the pair that `encode` turned into bytes; `source` names them in errors."""
    if not data.strip():
        raise ModelError(f"{source} is empty")
    try:
        header = layout.Header()
        if data.lstrip().startswith(b"{"):  # anything else is some other file
            header = msgspec.json.decode(data, type=layout.Header)
    except msgspec.ValidationError:
        header = layout.Header()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ModelError(
            f"{source} is not valid JSON, perhaps it was cut short: {error}; infer it again"
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
        content = msgspec.json.decode(data, type=layout.File)
        return _pair(content)
    except (
        msgspec.ValidationError,
        ValueError,
        OverflowError,
        RecursionError,
        TraceError,
    ) as error:
        raise ModelError(f"{source} is damaged: {error}; infer it again") from error


def _tables(machine: Machine) -> dict[str, Any]:
    actions = len(machine.actions)
    state, label = np.nonzero(machine.transitions >= 0)
    return {
        "states": machine.states,
        "labels": [sorted(label) for label in machine.labels],
        "observations": list(machine.observations),
        "actions": list(machine.actions),
        "outputs": list(machine.outputs),
        "trivial": list(machine.trivial),
        "transitions": _rows(state, label, machine.transitions[state, label]),
        "by_state": _rows(
            machine.output_state, *np.divmod(machine.output_question, actions), machine.output_value
        ),
        "constant": _rows(*np.divmod(machine.constant_question, actions), machine.constant_value),
    }


def _support(machine: Machine, support: Support) -> layout.Support:
    known = np.nonzero(machine.transitions >= 0)
    return layout.Support(
        transitions=support.transitions[known].tolist(),
        by_state=support.outputs.tolist(),
        constant=support.constants.tolist(),
    )


def _situations(pair: MachinePair, situations: frozenset[Any]) -> list[tuple[int, int, int, int]]:
    observations, actions = pair.transition.observations, pair.transition.actions
    return sorted((observations.code(o), q, u, actions.code(a)) for o, q, u, a in situations)


def _rows(*columns: NDArray[Any]) -> list[Any]:
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _one_entry_a_line(content: dict[str, Any]) -> bytes:
    """Encode with each top-level entry, and each table of a machine, on a line of its own."""
    lines = []
    for key, value in content.items():
        if key in ("transition", "reward", "support", "decisions"):
            inner = ",\n".join(f"  {_json(name)}: {_json(table)}" for name, table in value.items())
            lines.append(f"{_json(key)}: {{\n{inner}\n}}" if inner else f"{_json(key)}: {{}}")
        else:
            lines.append(f"{_json(key)}: {_json(value)}")
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _pair(content: layout.File) -> MachinePair:
    log = layout.Log() if isinstance(content.decisions, UnsetType) else content.decisions
    transition = _machine(
        TransitionMachine,
        content.transition,
        content.support.get("transition"),
        log.transition,
    )
    reward = _machine(
        RewardMachine,
        content.reward,
        content.support.get("reward"),
        log.reward,
        supplemented=content.reward.supplemented,
        reward_digits=content.reward.reward_digits,
    )
    if not all(isinstance(reward_value, float) for reward_value in reward.outputs):
        raise ValueError("the reward machine has an output that is not a number with a point")
    sizes = (len(transition.observations), transition.states, reward.states)

    def situations(rows: list[tuple[int, int, int, int]], name: str) -> frozenset[Any]:
        columns = _columns(rows, (*sizes, len(transition.actions)), name)
        return frozenset(
            (transition.observations[o], q, u, transition.actions[a])
            for o, q, u, a in zip(*(column.tolist() for column in columns), strict=True)
        )

    return MachinePair(
        transition,
        reward,
        content.timing,
        Termination(
            situations(content.termination.ends, "ends"),
            situations(content.termination.ambiguous, "ambiguous"),
        ),
        content.provenance,
    )


def _machine(
    kind: type[M],
    tables: layout.Machine,
    counts: layout.Support | None,
    log: layout.Decisions | UnsetType,
    **more: Any,
) -> M:
    if tables.states < 1:
        raise ValueError(f"the {kind.kind} machine has no state")
    if tables.states > len(tables.transitions) + 1:  # before tables of that size are made
        raise ValueError(f"the {kind.kind} machine has more states than its transitions reach")
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
    machine = kind(
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
        support=None
        if counts is None
        else _counted(transitions, counts, len(value), len(fixed_value)),
        **more,
    )
    unreachable = n - len(machine.reachable())
    if unreachable:
        raise ValueError(f"{unreachable} states of the {kind.kind} machine cannot be reached")
    if np.any(transitions[:, tables.trivial] != np.arange(n, dtype=np.int32)[:, None]):
        raise ValueError("a trivial label changes a state")
    if isinstance(log, UnsetType):
        return machine
    decisions = decisions_of_columns(machine, log.transitions, log.agreeing, log.folded)
    return replace(machine, decisions=decisions)


def _counted(
    transitions: NDArray[np.int32], counts: layout.Support, by_state: int, constant: int
) -> Support:
    known = np.nonzero(transitions >= 0)
    if (len(counts.transitions), len(counts.by_state), len(counts.constant)) != (
        len(known[0]),
        by_state,
        constant,
    ):
        raise ValueError("support does not fit the tables")
    table = np.zeros(transitions.shape, np.int64)
    table[known] = counts.transitions
    return Support(table, np.array(counts.by_state, np.int64), np.array(counts.constant, np.int64))


def _columns(
    rows: Sequence[tuple[int, ...]], sizes: tuple[int, ...], name: str
) -> tuple[NDArray[np.int64], ...]:
    """Turn rows into columns, each checked to lie below its size."""
    table = np.array(rows, np.int64).reshape(len(rows), len(sizes))
    if np.any(table < 0) or np.any(table >= np.array(sizes)):
        raise ValueError(f"{name} holds a number out of range")
    return tuple(table.T)


def _rising(keys: NDArray[np.int64], name: str) -> None:
    if np.any(np.diff(keys) <= 0):
        raise ValueError(f"{name} is not sorted or has an entry twice")
