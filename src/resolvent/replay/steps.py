"""Machine states at the steps of traces → queries to machines, and counts of distinct steps."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.machines import Machine, Machines
from resolvent.preprocess.samples import Histories, rounded
from resolvent.replay.coded_shard import CodedShard
from resolvent.replay.counts import CountTable
from resolvent.traces import Codes, TraceSet
from resolvent.traces.schema import ACTION, LABEL, OBSERVATION, REWARD
from resolvent.traces.vocabulary import codes_of, distinct_pairs


@dataclass(frozen=True, slots=True, eq=False)
class StepQueries:
    """The query to a machine at every step of some traces, in its own codes.

    `labels` are read before the step: −1 for none, the number of labels or more for one that
    the machine does not know. `states` are −1 where not known, `queries` −1 where the machine
    never met the observation or action. `outputs` are those of the traces: the number of outputs
    for one that the machine does not know.
    """

    machine: Machine
    labels: Codes
    states: Codes
    queries: NDArray[np.int64]
    outputs: Codes

    @property
    def predicted(self) -> Codes:
        """The machine's output at every step, generalized ones included; −1 for none."""
        return self.machine.predict(self.states, self.queries)


def step_queries(
    machines: Machines, traces: TraceSet, states: Mapping[str, Codes]
) -> dict[str, StepQueries]:
    """Return the query to each machine at every step, and the output of the traces.

    `states` are those of a replay of these traces.
    """
    histories = Histories.of(traces, machines.timing)
    return {
        name: StepQueries(
            machine,
            _labels_read(machine, histories),
            states[name],
            _queries(machine, machines, traces, states),
            _outputs(machine, traces),
        )
        for name, machine in machines.items()
    }


def _labels_read(machine: Machine, histories: Histories) -> Codes:
    """Return the labels read at every step in the machine's codes, unknown ones above those."""
    if histories.labels == machine.labels:
        return histories.beta
    codes = codes_of(histories.labels, machine.labels, len(machine.labels))
    return np.append(codes, np.int32(-1))[histories.beta]


def _queries(
    machine: Machine, machines: Machines, traces: TraceSet, states: Mapping[str, Codes]
) -> NDArray[np.int64]:
    seen = traces.at_step(traces.observation_codes)
    if machine.supplemented:
        observed = _supplemented(machine, traces, states["transition"], machines.transition.states)
    else:
        observed = codes_of(traces.observations, machine.observations, -1)[seen]
    done = codes_of(traces.actions, machine.actions, -1)[traces.action_codes]
    queries = observed.astype(np.int64) * len(machine.actions) + done
    queries[(observed < 0) | (done < 0)] = -1
    return queries


def _supplemented(machine: Machine, traces: TraceSet, state: Codes, states: int) -> Codes:
    """Return for each step the machine's code of (observation, transition state)."""
    # One state more, for "not known": no observation is paired with that one.
    seen, count = traces.at_step(traces.observation_codes), len(traces.observations)
    distinct, codes = distinct_pairs(seen, state + np.int32(1), count, states + 1)
    pairs = (divmod(pair, states + 1) for pair in distinct.tolist())
    named = ((traces.observations[code], own - 1) for code, own in pairs)
    return codes_of(named, machine.observations, -1)[codes]


def _outputs(machine: Machine, traces: TraceSet) -> Codes:
    values: Iterable[Any]
    if machine.predicts == OBSERVATION:
        values, codes = traces.observations, traces.after_step(traces.observation_codes)
    else:
        values, codes = traces.column(machine.predicts)
    if machine.digits is not None:
        values = rounded(values, machine.digits)
    return codes_of(values, machine.outputs, len(machine.outputs))[codes]


def count_steps(
    shard: CodedShard,
    states: Mapping[str, Codes],
    *,
    reward: Codes | None = None,
    lag: bool = False,
) -> CountTable:
    """Return the distinct steps of a shard, in common codes, with their first places.

    The columns are `observation`, `action`, `next_observation`, `label` (after the step), `ended`,
    the states of machines by `state_column` of their names, `reward` if given, and with `lag` also
    `label_read`, the label before the step.
    """
    traces, codes = shard.traces, shard.codes
    ended = np.zeros(traces.steps, np.int32)
    ended[traces.offsets[1:] - 1] = traces.terminated
    columns = {
        OBSERVATION: traces.at_step(codes[OBSERVATION]),
        ACTION: codes[ACTION],
        "next_observation": traces.after_step(codes[OBSERVATION]),
        LABEL: traces.after_step(codes[LABEL]),
        "ended": ended,
        **{state_column(name): column for name, column in states.items()},
    }
    if reward is not None:
        columns[REWARD] = reward
    if lag:
        columns["label_read"] = traces.at_step(codes[LABEL])
    trace = np.repeat(np.arange(len(shard.length)), shard.length)
    step = np.arange(traces.steps) - traces.offsets[trace]
    return CountTable.of(columns, trace=trace + shard.first, step=step)


def count_starts(shard: CodedShard, states: Mapping[str, Codes]) -> CountTable:
    """Return the distinct starts of a shard's traces: `observation`, `label`, and the states."""
    traces = shard.traces
    rows, number = traces.offsets[:-1], np.arange(len(traces))
    columns = {
        OBSERVATION: shard.codes[OBSERVATION][rows + number],
        LABEL: shard.codes[LABEL][rows + number],
        **{state_column(name): column[rows] for name, column in states.items()},
    }
    return CountTable.of(columns, trace=shard.first + number, step=np.zeros_like(number))


def state_column(kind: str) -> str:
    """Return the column name of a machine's states; machines may have the names of columns."""
    return f"state of {kind}"


def reward_codes_at_steps(shard: CodedShard) -> Codes:
    """Return the reward of every step, in the codes of the outputs of a Reward Machine."""
    codes, alphabets = shard.codes[REWARD], shard.alphabets
    if REWARD not in alphabets.rounded:
        return codes
    return _core.recode(codes, alphabets.rounded_codes(REWARD, shard.rounding[REWARD]))
