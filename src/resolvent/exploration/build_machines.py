"""Moves that are believed in + all that was seen → machines, with every answer they were shown."""

from importlib.metadata import version
from typing import Any

import numpy as np

from resolvent.exploration.buffer import Columns, Buffer
from resolvent.exploration.tables import QueriedSteps, TransitionTables
from resolvent.machines import Machine, Machines, Provenance, machines_of
from resolvent.machines.building import machine_of_tables
from resolvent.machines.machine import machine_class
from resolvent.options import Options
from resolvent.refinement import observed_termination
from resolvent.replay import replay_traces
from resolvent.senses import Senses
from resolvent.traces import TraceSet, Vocabulary
from resolvent.traces.labelling import Labelling
from resolvent.traces.symbols import NO_EVENT
from resolvent.traces.vocabulary import Codes


def build_machines(
    tables: TransitionTables,
    log: Buffer,
    columns: Columns,
    traces: TraceSet,
    options: Options,
    labelling: Labelling,
) -> Machines:
    """Return the machines that the moves and the answers in these columns make.

    The traces are those of the same columns.
    """
    steps = QueriedSteps(columns, tables.timing, tables.kinds)
    states = [steps.walk(one) for one in tables.moves]
    built: list[Machine] = []
    told: Codes | None = None
    for place, kind in enumerate(tables.kinds):
        machine, number = _machine(place, kind, tables, states, told, log, steps, traces)
        if place == 0:
            told = number[states[0]]
        built.append(machine)
    machines = machines_of(built, tables.timing, senses=Senses(labelling))
    shown = replay_traces(machines, traces)
    made = Provenance(
        version=version("resolvent"),
        traces=len(traces),
        steps=traces.steps,
        traces_sha256=traces.digest,
        options=options.as_dict(),
    )
    return machines.replacing(termination=observed_termination(shown), provenance=made)


def _machine(
    place: int,
    kind: str,
    tables: TransitionTables,
    states: list[Codes],
    told: Codes | None,
    log: Buffer,
    steps: QueriedSteps,
    traces: TraceSet,
) -> tuple[Machine, Codes]:
    actions = len(traces.actions)
    seen = traces.at_step(traces.observation_codes).astype(np.int64)
    observations: Vocabulary[Any] = traces.observations
    if told is not None:  # observations are paired with the state of the Transition Machine
        size = int(told.max()) + 1
        pairs, code = np.unique(seen * size + told, return_inverse=True)
        both = (divmod(int(one), size) for one in pairs)
        observations = Vocabulary((traces.observations[one], state) for one, state in both)
        seen = code.astype(np.int64)
    outputs: Vocabulary[Any]
    column = "observation" if kind == "transition" else kind
    if kind == "transition":
        outputs, answers = traces.observations, traces.after_step(traces.observation_codes)
    elif kind == "reward":
        outputs, answers = traces.rewards, traces.reward_codes
    else:
        outputs, answers = Vocabulary([False, True]), steps.ended.astype(np.int32)
    known = states[place] >= 0
    question = seen * actions + traces.action_codes
    rows = np.stack([states[place][known], question[known], answers[known]])
    state, asked, output = np.unique(rows, axis=1)
    order = [log.labels.codes[label] for label in traces.labels]
    moves = tables.moves[place][:, order]
    loops = (moves == -1) | (moves == np.arange(len(moves), dtype=np.int32)[:, None])
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
        transitions=np.ascontiguousarray(moves),
        initial=0,
        answers=(state, asked, output.astype(np.int32)),
        trivial=trivial,
        predicts=column,
        supplemented=kind != "transition",
    )
