"""A shard + machine states at its steps → queries to machines, and distinct steps."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.machines import Machine, Machines
from resolvent.replay.coded_shard import CodedShard
from resolvent.replay.counts import Kinds
from resolvent.samples import Histories, rounded
from resolvent.traces import Codes, TraceSet
from resolvent.traces.column_names import ACTION, LABEL, OBSERVATION, REWARD
from resolvent.traces.vocabulary import codes_of, distinct_pairs


@dataclass(frozen=True, slots=True, eq=False)
class StepsAsked:
    """What one machine is asked at every step of some traces, in its own codes.

    `labels` are read before the step (−1 for none, anything at or above their
    number for one the machine does not know), `states` are −1 where not known,
    `questions` −1 where it never met the observation or action, and `outputs`,
    what the traces answer, the number of its outputs where it knows no such one.
    """

    machine: Machine
    labels: Codes
    states: Codes
    questions: NDArray[np.int64]
    outputs: Codes

    @property
    def predicted(self) -> Codes:
        """What the machine answers at every step, assumed answers included; −1 for nothing."""
        return self.machine.answer_many(self.states, self.questions)


def steps_asked(
    machines: Machines, traces: TraceSet, states: Mapping[str, Codes]
) -> dict[str, StepsAsked]:
    """Say what machines are asked at every step, and what the traces answer.

    `states` are those that a replay of these traces found.
    """
    histories = Histories.of(traces, machines.timing)
    return {
        kind: StepsAsked(
            machine,
            _labels_read(machine, histories),
            states[kind],
            _questions(machine, machines, traces, states),
            _answered(machine, traces),
        )
        for kind, machine in machines.items()
    }


def _labels_read(machine: Machine, histories: Histories) -> Codes:
    """Return the labels read at every step in the machine's codes, unknown ones above those."""
    if histories.labels == machine.labels:
        return histories.beta
    codes = codes_of(histories.labels, machine.labels, len(machine.labels))
    return np.append(codes, np.int32(-1))[histories.beta]


def _questions(
    machine: Machine, machines: Machines, traces: TraceSet, states: Mapping[str, Codes]
) -> NDArray[np.int64]:
    seen = traces.at_step(traces.observation_codes)
    if machine.supplemented:
        observed = _paired(machine, traces, states["transition"], machines.transition.states)
    else:
        observed = codes_of(traces.observations, machine.observations, -1)[seen]
    done = codes_of(traces.actions, machine.actions, -1)[traces.action_codes]
    questions = observed.astype(np.int64) * len(machine.actions) + done
    questions[(observed < 0) | (done < 0)] = -1
    return questions


def _paired(machine: Machine, traces: TraceSet, state: Codes, states: int) -> Codes:
    """Return for each step the machine's code of (observation, transition state)."""
    # One state more, for "not known": no observation is paired with that one.
    seen, count = traces.at_step(traces.observation_codes), len(traces.observations)
    kept, codes = distinct_pairs(seen, state + np.int32(1), count, states + 1)
    pairs = (divmod(key, states + 1) for key in kept.tolist())
    named = ((traces.observations[code], state - 1) for code, state in pairs)
    return codes_of(named, machine.observations, -1)[codes]


def _answered(machine: Machine, traces: TraceSet) -> Codes:
    values: Iterable[Any]
    if machine.predicts == OBSERVATION:
        values, codes = traces.observations, traces.after_step(traces.observation_codes)
    else:
        values, codes = traces.column(machine.predicts)
    if machine.digits is not None:
        values = rounded(values, machine.digits)
    return codes_of(values, machine.outputs, len(machine.outputs))[codes]


def steps_taken(
    shard: CodedShard,
    states: Mapping[str, Codes],
    *,
    paid: Codes | None = None,
    lag: bool = False,
) -> Kinds:
    """Return the different steps of a shard, in common codes.

    The columns are `observation`, `action`, `following` and `label`, the two that a step leads
    to, and `ended`; the states of machines by `state_of` their kinds; `paid` as it is given; and
    with `lag` also `read`, the label before the step.
    """
    traces, codes = shard.traces, shard.codes
    ended = np.zeros(traces.steps, np.int32)
    ended[traces.offsets[1:] - 1] = traces.terminated
    columns = {
        OBSERVATION: traces.at_step(codes[OBSERVATION]),
        ACTION: codes[ACTION],
        "following": traces.after_step(codes[OBSERVATION]),
        LABEL: traces.after_step(codes[LABEL]),
        "ended": ended,
        **{state_of(kind): column for kind, column in states.items()},
    }
    if paid is not None:
        columns["paid"] = paid
    if lag:
        columns["read"] = traces.at_step(codes[LABEL])
    return Kinds.of(columns, *_places(shard))


def starts_taken(shard: CodedShard, states: Mapping[str, Codes]) -> Kinds:
    """Return how the traces of a shard begin: `observation`, `label`, and the states."""
    traces = shard.traces
    rows, number = traces.offsets[:-1], np.arange(len(traces))
    columns = {
        OBSERVATION: shard.codes[OBSERVATION][rows + number],
        LABEL: shard.codes[LABEL][rows + number],
        **{state_of(kind): column[rows] for kind, column in states.items()},
    }
    return Kinds.of(columns, shard.first + number, np.zeros(len(traces), np.int64))


def state_of(kind: str) -> str:
    """Return the name of the column with a machine's states; kinds may be called as columns are."""
    return f"state of {kind}"


def _places(shard: CodedShard) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the trace among all, and the step in it, of every step."""
    offsets, lengths = shard.traces.offsets, shard.length
    trace = np.repeat(np.arange(len(lengths)), lengths)
    return trace + shard.first, np.arange(offsets[-1]) - offsets[trace]


def paid_at_steps(shard: CodedShard) -> Codes:
    """Return what every step paid, in the codes of what a Reward Machine answers with."""
    codes, alphabets = shard.codes[REWARD], shard.alphabets
    if REWARD not in alphabets.answers:
        return codes
    return _core.recode(codes, alphabets.in_answers(REWARD, shard.rounding[REWARD]))
