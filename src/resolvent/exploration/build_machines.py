"""Build machines from transition tables and all recorded steps, with every output observed."""

from importlib.metadata import version
from typing import Any

import numpy as np

from resolvent.exploration.buffer import Buffer, Columns
from resolvent.exploration.tables import QueriedSteps, TransitionTables
from resolvent.inference.counterexamples import observed_termination
from resolvent.inference.options import InferenceOptions
from resolvent.machines import Machine, Machines, Provenance, machines_of
from resolvent.machines.build import machine_of_tables
from resolvent.machines.machine import machine_class
from resolvent.preprocess.labeling import LabelingFunction
from resolvent.preprocess.transform import Preprocessor
from resolvent.replay import replay_traces
from resolvent.traces import TraceSet, Vocabulary
from resolvent.traces.symbols import NO_EVENT
from resolvent.traces.vocabulary import Codes


def build_machines(
    tables: TransitionTables,
    buffer: Buffer,
    columns: Columns,
    traces: TraceSet,
    options: InferenceOptions,
    labelling: LabelingFunction,
) -> Machines:
    """Return the machines with these transitions and the outputs in these columns.

    The traces have the same steps as the columns.
    """
    steps = QueriedSteps(columns, tables.timing, tables.names)
    states = [steps.walk(transitions) for transitions in tables.transitions]
    acting: list[Machine] = []
    transition_states: Codes | None = None
    for index, name in enumerate(tables.names):
        machine, number = _machine(
            index, name, tables, states, transition_states, buffer, steps, traces
        )
        if index == 0:
            transition_states = number[states[0]]
        acting.append(machine)
    machines = machines_of(acting, tables.timing, senses=Preprocessor(labelling))
    counts = replay_traces(machines, traces)
    provenance = Provenance(
        version=version("resolvent"),
        traces=len(traces),
        steps=traces.steps,
        traces_sha256=traces.digest,
        options=options.as_dict(),
    )
    return machines.replacing(termination=observed_termination(counts), provenance=provenance)


def _machine(
    index: int,
    name: str,
    tables: TransitionTables,
    states: list[Codes],
    transition_states: Codes | None,
    buffer: Buffer,
    steps: QueriedSteps,
    traces: TraceSet,
) -> tuple[Machine, Codes]:
    codes = traces.at_step(traces.observation_codes).astype(np.int64)
    observations: Vocabulary[Any] = traces.observations
    if transition_states is not None:  # supplement observations by the transition state
        size = int(transition_states.max()) + 1
        pairs, inverse = np.unique(codes * size + transition_states, return_inverse=True)
        parts = (divmod(int(pair), size) for pair in pairs)
        observations = Vocabulary((traces.observations[code], state) for code, state in parts)
        codes = inverse.astype(np.int64)
    outputs: Vocabulary[Any]
    column = "observation" if name == "transition" else name
    if name == "transition":
        outputs, output_codes = traces.observations, traces.after_step(traces.observation_codes)
    elif name == "reward":
        outputs, output_codes = traces.rewards, traces.reward_codes
    else:
        outputs, output_codes = Vocabulary([False, True]), steps.terminated.astype(np.int32)
    has_state = states[index] >= 0
    query = codes * len(traces.actions) + traces.action_codes
    rows = np.stack([states[index][has_state], query[has_state], output_codes[has_state]])
    state, question, output = np.unique(rows, axis=1)
    order = [buffer.labels.codes[label] for label in traces.labels]
    transitions = tables.transitions[index][:, order]
    own = np.arange(len(transitions), dtype=np.int32)[:, None]
    loops = (transitions == -1) | (transitions == own)
    trivial = tuple(
        code
        for code, label in enumerate(traces.labels)
        if label == NO_EVENT and bool(loops[:, code].all())
    )
    return machine_of_tables(
        machine_class(column),
        labels=traces.labels,
        observations=observations,
        actions=traces.actions,
        outputs=outputs,
        transitions=np.ascontiguousarray(transitions),
        initial=0,
        answers=(state, question, output.astype(np.int32)),
        trivial=trivial,
        predicts=column,
        supplemented=name != "transition",
    )
