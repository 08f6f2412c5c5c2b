"""The paper's overall algorithm: traces → a machine for each output, or a `Conflict`.

Each machine is inferred from reduced samples, exactly or by likelihood, and gets back what the
reduction removed.
"""

import time
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from resolvent.inference.conflict import Conflict
from resolvent.inference.engine import min_states_bound
from resolvent.inference.fit import MachineFit, MachineStatistics
from resolvent.inference.portfolio import find_candidate
from resolvent.inference.task import Task, TrainingSet, reduce_task
from resolvent.machines import Machine, machines_of
from resolvent.machines.build import automaton_of_transitions, decisions_of
from resolvent.machines.machine import machine_name
from resolvent.noise.outputs import (
    SearchLimits,
    alternatives,
    compare_transitions,
    fit_likely_machine,
    improve_transitions,
    machine_log_evidence,
    with_exact_odds,
)
from resolvent.noise.rewards import assign_reward_levels
from resolvent.preprocess.samples import ContradictoryRows, ObservationColumn, supplement
from resolvent.replay.replaying import states_at_steps
from resolvent.traces.schema import OBSERVATION, REWARD


def infer_machines(
    data: TrainingSet, known: Mapping[str, MachineFit]
) -> dict[str, MachineFit] | Conflict:
    """Infer a machine for each output, the Transition Machine first; `known` ones are kept.

    Paper: "Overall Inferring Algorithm" (Algorithm 1). The numbers are its lines; each output
    after the first runs through lines 4 and 5.

    Raises:
        StateLimitExceeded: when merging finds too many states for one machine.
    """
    fits: dict[str, MachineFit] = {}
    observed: ObservationColumn | None = None
    for predicts in data.outputs:
        name = machine_name(predicts)
        fit: MachineFit | Conflict
        if name in known:
            fit = known[name]
        elif predicts in data.noisy:
            fit = infer_likely_machine(data.task(predicts, observed))
        else:
            task = reduce_task(data.task(predicts, observed))  # 1, 4: ReductionRule
            fit = infer_machine(task)  # 2, 5: DB-RPNI
        if isinstance(fit, Conflict):
            return fit
        fits[name] = fit
        if predicts == OBSERVATION and data.options.supplement and len(data.outputs) > 1:
            observed = supplement_observations(data, fit.machine)  # 3: StateSupp
    return fits


def supplement_observations(data: TrainingSet, transition: Machine) -> ObservationColumn:
    """Pair observations with the states of the Transition Machine."""
    machines = machines_of([transition], data.options.timing)
    return supplement(data.traces, states_at_steps(machines, data.traces)["transition"])


def infer_machine(task: Task) -> MachineFit | Conflict:
    """Infer the machine that explains all samples of a reduced task."""
    try:
        best, attempts = find_candidate(task)
    except ContradictoryRows as rows:
        return task.conflict(rows)
    automaton = best.automaton
    decisions = decisions_of(best.machine, task.without(best.without).histories, automaton)
    machine = replace(best.machine, decisions=decisions)
    # A machine might read labels that were dropped on evidence: a proof keeps them.
    full = task.without(task.looping)
    at_least = min_states_bound(full, automaton) if automaton.finished else 1
    log_evidence = {}
    if task.data.noisy:
        log_evidence = {machine.states: machine_log_evidence(machine, task.samples)}
    return MachineFit(
        machine,
        MachineStatistics.of(machine, automaton, time.perf_counter() - task.started, at_least),
        task.tests,
        attempts,
        best.proof,
        log_evidence,
        finished=automaton.finished,
    )


def infer_likely_machine(task: Task) -> MachineFit:
    """Infer the most likely machine for an output that varies; a replay estimates its outputs.

    The samples are not reduced: with noise, the rare outputs of a query say most about the state.
    """
    options, limits, samples = task.options, task.limits(), task.samples
    levels = task.data.context.preprocessor.rewards
    if levels is not None and task.predicts == REWARD:
        samples = assign_reward_levels(samples, task.data.traces, levels)
    search_limits = SearchLimits(options.seed, options.effort, limits.time_limit)
    likely = fit_likely_machine(samples, search_limits, limits.listener)
    finished, likely = likely.finished, improve_transitions(samples, likely)
    automaton = automaton_of_transitions(likely.transitions)
    loops = likely.transitions == np.arange(likely.states, dtype=np.int32)[:, None]
    never_moving = np.flatnonzero((loops | (likely.transitions < 0)).all(0)).tolist()
    machine = task.build(automaton, tuple(never_moving))
    comparison = compare_transitions(samples, machine.transitions)
    comparison = with_exact_odds(samples, likely, machine.transitions, comparison)
    similar = alternatives(machine, task.samples, likely, comparison)
    support = machine.support and replace(machine.support, alternatives=comparison)
    machine = replace(machine, support=support)
    return MachineFit(
        machine,
        MachineStatistics.of(machine, automaton, time.perf_counter() - task.started),
        log_evidence={size: likely.log_evidence + odds for size, odds in likely.log_odds.items()},
        alternatives=similar,
        finished=finished,
    )
