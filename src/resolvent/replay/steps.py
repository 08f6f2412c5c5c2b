"""Machine states at the steps of traces → queries to machines, and counts of distinct steps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.machines import Machine, Machines
from resolvent.machines.tables import pair_keys
from resolvent.preprocess.samples import Histories, rounded
from resolvent.replay.coded_shard import Alphabets, CodedShard
from resolvent.replay.counts import CountTable, Rows
from resolvent.traces import Codes, Symbol, TraceSet
from resolvent.traces.schema import ACTION, LABEL, OBSERVATION, REWARD
from resolvent.traces.vocabulary import codes_of, distinct_pairs


@dataclass(frozen=True, slots=True, eq=False)
class StepQueries:
    """The query to a machine at every step of some traces, in its own codes.

    `labels` are read before the step: −1 for none, the number of labels or more for an unknown one.
    `states` and `queries` are −1 where not known. `outputs` are those of the traces: the number of
    outputs for an unknown one.
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
    """Return each machine's query and output at every step, given the states of a replay."""
    histories = Histories.of(traces, machines.timing)
    observation = traces.at_step(traces.observation_codes)
    queries = {}
    for name, machine in machines.items():
        number = query_numbers(
            machine,
            (traces.observations, traces.actions),
            (observation, traces.action_codes),
            states["transition"] if machine.supplemented else None,
        )
        values, codes = outputs_at_steps(machine, traces)
        outputs = codes_of(values, machine.outputs, len(machine.outputs))[codes]
        label_codes = codes_of(histories.labels, machine.labels, len(machine.labels))
        labels = np.append(label_codes, np.int32(-1))[histories.beta]
        queries[name] = StepQueries(machine, labels, states[name], number, outputs)
    return queries


def query_numbers(
    machine: Machine,
    alphabets: tuple[Sequence[Symbol], Sequence[Symbol]],
    codes: tuple[NDArray[Any], NDArray[Any]],
    states: NDArray[Any] | None = None,
) -> NDArray[np.int64]:
    """Return the machine's number of each query, −1 where it knows none.

    A query is given by its codes in other alphabets of observations and actions, and for a
    supplemented machine by the state of the Transition Machine, −1 if that is not known.
    """
    (observations, actions), (observation, action) = alphabets, codes
    if states is None:
        observed = codes_of(observations, machine.observations, -1)[observation]
    else:
        width = int(states.max(initial=0)) + 2  # the first stands for an unknown state
        first, second = (
            np.ascontiguousarray(column, np.int32) for column in (observation, states + 1)
        )
        distinct, pair = distinct_pairs(first, second, len(observations), width)
        named = (divmod(number, width) for number in distinct.tolist())
        pairs = ((observations[code], state - 1) for code, state in named)
        observed = codes_of(pairs, machine.observations, -1)[pair]
    acted = codes_of(actions, machine.actions, -1)[action]
    return pair_keys(observed, acted, len(machine.actions))


def to_machine_codes(
    machine: Machine, outputs: Rows, alphabets: Alphabets, transition_states: int
) -> tuple[NDArray[np.int64], Codes]:
    """Return the queries and outputs of `MachineCounts.outputs` in the codes of their machine.

    Both are −1 where the machine has none. A query to a supplemented machine is about a pair of an
    observation and one of `transition_states`.
    """
    observation, action = np.divmod(outputs["query"], len(alphabets.actions))
    states = None
    if machine.supplemented:
        observation, states = np.divmod(observation, transition_states)
    symbols = alphabets.observations, alphabets.actions
    output = codes_of(alphabets.outputs(machine.predicts), machine.outputs, -1)[outputs["output"]]
    return query_numbers(machine, symbols, (observation, action), states), output


def outputs_at_steps(machine: Machine, traces: TraceSet) -> tuple[Sequence[Any], Codes]:
    """Return the values that a machine predicts, rounded as it sees them, and their codes."""
    values, codes = traces.column(machine.predicts)
    return values if machine.digits is None else rounded(values, machine.digits), codes


def count_steps(
    shard: CodedShard,
    states: Mapping[str, Codes],
    *,
    reward: Codes | None = None,
    lag: bool = False,
) -> CountTable:
    """Return the distinct steps of a shard, in common codes, each with its first location.

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
    trace = traces.trace_of_step
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


def state_column(name: str) -> str:
    """Return the column name of a machine's states; machines may have the names of columns."""
    return f"state of {name}"
