"""Learn machines from some traces of a corpus, exactly or by likelihood.

Input: traces and the outputs to predict. Output: a `MachineFit` for each output, or the
`Conflict` that no machine without noise explains.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent._util.parallel import Workers
from resolvent.inference.algorithm import infer_machines
from resolvent.inference.attempts import WorkerRun
from resolvent.inference.conflict import Conflict, explain_conflict
from resolvent.inference.context import InferenceContext
from resolvent.inference.fit import MachineStatistics, MergeLog
from resolvent.inference.label_choice import LabelChoice, choose_labels
from resolvent.inference.learning_task import LearningTask, MachineFit, digits_of, sampler_for
from resolvent.inference.portfolio import Portfolio, patience, run_strategy
from resolvent.inference.restarts import min_states_bound
from resolvent.machines import (
    Machine,
    build_machine,
    decisions_of,
    machine_class,
    machine_name,
    machines_of,
    restore_loops,
)
from resolvent.machines.automaton import RawAutomaton, automaton_of_transitions
from resolvent.noise.alternatives import alternatives, compare_transitions, improve_transitions
from resolvent.noise.label_evidence import machine_log_evidence
from resolvent.noise.outputs import fit_likely_machine
from resolvent.noise.rewards import assign_reward_levels
from resolvent.preprocess.contradictions import ContradictoryRows, find_contradiction
from resolvent.preprocess.labeling import AS_RECORDED
from resolvent.preprocess.reduction import ConstantOutputs, remove_redundant, remove_trivial
from resolvent.preprocess.samples import Histories, ObservationColumn, SampleSet, output_samples
from resolvent.preprocess.supplement import supplement
from resolvent.replay import Corpus, states_at_steps
from resolvent.traces import NO_EVENT, Label, TraceSet
from resolvent.traces.schema import REWARD, TERMINATED

MOST_ENDING_NODES: Final = 50_000
"""Maximum number of nodes of a prefix tree from which a machine for the ends of episodes is learned
unasked. If they are random, merging larger trees takes long and finds a state for each surprise."""


@dataclass(frozen=True)
class MachineFitter:
    """Learns machines from some traces of a corpus.

    `named_trivial` are the labels that the user names as trivial; None if they are judged. For
    outputs that are `noisy` the most likely machines are learned, whose outputs may vary.
    """

    context: InferenceContext
    corpus: Corpus
    named_trivial: frozenset[Label] | None
    noisy: frozenset[str] = frozenset()

    @property
    def workers(self) -> Workers | None:
        """Workers for the restarts of a search; None for threads, which run them in sequence."""
        workers = self.context.workers
        return None if workers.name == "threads" else workers

    def fit(
        self,
        traces: TraceSet,
        trace_numbers: NDArray[np.int64],
        outputs: Sequence[str],
        *,
        reused: Mapping[str, MachineFit] | None = None,
        previous: Mapping[str, MachineFit] | None = None,
        most_states: int | None = None,
    ) -> dict[str, MachineFit] | Conflict:
        """Learn a machine for each output, the Transition Machine first.

        Args:
            traces: The traces to learn from.
            trace_numbers: Their numbers in the corpus.
            outputs: The columns to predict.
            reused: Fits of machines that are not learned again.
            previous: Fits of an earlier round, to which seconds are added.
            most_states: Maximum number of states of a machine.

        Raises:
            TooManyStates: when merging finds more than `most_states` for one machine.
        """
        stages = _Stages(
            self, traces, trace_numbers, outputs, reused or {}, previous or {}, most_states
        )
        return infer_machines(outputs, stages)

    def fit_ending(
        self,
        traces: TraceSet,
        trace_numbers: NDArray[np.int64],
        outputs: Sequence[str],
        fits: Mapping[str, MachineFit],
    ) -> dict[str, MachineFit] | None:
        """Add a machine that predicts when episodes end; None if that seems random.

        It does if traces contradict each other, or if the machine would memorize label histories.
        """
        histories = Histories.of(traces, self.context.options.timing)
        silence = [code for code, label in enumerate(traces.labels) if label == NO_EVENT]
        if len(remove_trivial(histories, silence).tree) > MOST_ENDING_NODES:
            return None
        extended = self.fit(traces, trace_numbers, [*outputs, TERMINATED], reused=fits)
        return None if isinstance(extended, Conflict) else extended


@dataclass(frozen=True)
class _Reduced:
    """A learning task after the reduction, with the data to undo it."""

    task: LearningTask
    started: float
    samples: SampleSet
    constants: ConstantOutputs = field(default_factory=ConstantOutputs.nothing)
    choice: LabelChoice = field(default_factory=LabelChoice)


@dataclass(frozen=True)
class _Stages:
    """The stages of the paper's algorithm for one set of traces."""

    fitter: MachineFitter
    traces: TraceSet
    trace_numbers: NDArray[np.int64]
    outputs: Sequence[str]
    reused: Mapping[str, MachineFit]
    previous: Mapping[str, MachineFit]
    most_states: int | None

    @cached_property
    def histories(self) -> Histories:
        """The label histories of the traces."""
        return Histories.of(self.traces, self.fitter.context.options.timing)

    def task(self, predicts: str, observed: ObservationColumn | None) -> LearningTask:
        """Return the samples for one output."""
        context = self.fitter.context
        return LearningTask(
            predicts,
            output_samples(
                self.traces,
                self.histories,
                predicts,
                observed=observed,
                digits=digits_of(predicts, context.options),
            ),
            self.traces,
            self.trace_numbers,
            observed is not None,
            len(self.outputs) - self.outputs.index(predicts) - 1,
            self.most_states,
            context.options,
            context.time_left,
            context.listener_for(machine_name(predicts)),
        )

    def reduce(self, task: LearningTask) -> _Reduced:
        """Remove redundant α-inputs and trivial labels, unless noise makes them informative."""
        started, options = time.perf_counter(), task.options
        if task.kind in self.reused or task.predicts in self.fitter.noisy:
            return _Reduced(task, started, task.samples)
        samples, constants = task.samples, ConstantOutputs.nothing()
        if options.remove_redundant:
            samples, constants = remove_redundant(samples)
        choice = choose_labels(
            task,
            samples,
            self.fitter.named_trivial,
            keeps_labels=options.strategy.keeps_labels,
            most_work=patience(samples) if options.strategy.chooses else None,
        )
        return _Reduced(task, started, samples, constants, choice)

    def learn(self, reduced: _Reduced) -> MachineFit | Conflict:
        """Learn an automaton, and undo the reduction."""
        task = reduced.task
        if task.kind in self.reused:
            return self.reused[task.kind]
        if task.predicts in self.fitter.noisy:
            return self._learn_noisy(task, reduced.started)
        fit = self._learn_exact(reduced)
        if isinstance(fit, MachineFit) and self.fitter.noisy:
            log_evidence = machine_log_evidence(fit.machine, task.samples)
            fit = replace(fit, log_evidence={fit.machine.states: log_evidence})
        return fit

    def supplement(self, fits: Sequence[MachineFit]) -> ObservationColumn | None:
        """Pair observations with states of the Transition Machine, if other machines follow."""
        options = self.fitter.context.options
        if not options.supplement or len(fits) == len(self.outputs):
            return None
        machines = machines_of([fit.machine for fit in fits], options.timing)
        states = states_at_steps(machines, self.traces)["transition"]
        return supplement(self.traces, states)

    def _learn_exact(self, reduced: _Reduced) -> MachineFit | Conflict:
        task, choice = reduced.task, reduced.choice

        def build(automaton: RawAutomaton, without: tuple[int, ...]) -> Machine:
            everywhere = self._in_every_state(without)
            machine = build_machine(
                machine_class(task.predicts),
                automaton,
                task.samples,
                reduced.constants,
                everywhere,
                predicts=task.predicts,
                supplemented=task.supplemented,
                digits=task.digits,
            )
            dropped = tuple(code for code in without if code not in set(everywhere))
            return restore_loops(machine, dropped, task.samples.histories)

        everywhere = self._in_every_state(choice.trivial)
        portfolio = Portfolio(task, reduced.samples, choice.trivial, everywhere, build)
        named, workers = self.fitter.named_trivial, self.fitter.workers
        try:
            run = run_strategy(portfolio, choice, named, workers)
        except ContradictoryRows as rows:
            return self._conflict(rows, task, choice.trivial)
        candidate, automaton = run.candidate, run.candidate.automaton
        decisions = decisions_of(candidate.machine, candidate.histories, automaton)
        machine = replace(candidate.machine, decisions=decisions)
        _, parent, label = _core.history_columns(candidate.histories.tree)
        # A machine might read labels that were dropped on evidence: a proof keeps them.
        at_least = 1
        if automaton.finished:
            at_least = min_states_bound(portfolio.without(everywhere), automaton)
        return MachineFit(
            machine,
            self._statistics(machine, automaton, reduced.started, at_least, run.ran),
            choice.verdicts,
            MergeLog(automaton.events, parent, label, candidate.histories.labels),
            automaton.finished,
            run.certificate,
            run.tried,
        )

    def _learn_noisy(self, task: LearningTask, started: float) -> MachineFit:
        """Find the most likely machine; a replay estimates its outputs."""
        listen, options = task.listener, task.options
        samples, levels = task.samples, self.fitter.context.senses.rewards
        if levels is not None and task.predicts == REWARD:
            samples = assign_reward_levels(samples, task.traces, levels)
        likely = fit_likely_machine(
            samples,
            seed=options.seed,
            effort=options.effort,
            time_limit=task.share(),
            listener=None if listen is None else lambda _, progress: listen(progress),
        )
        finished = likely.finished
        likely = improve_transitions(samples, likely)
        automaton = automaton_of_transitions(likely.transitions)
        loops = likely.transitions == np.arange(likely.states, dtype=np.int32)[:, None]
        idle = np.flatnonzero((loops | (likely.transitions < 0)).all(0)).tolist()
        machine = build_machine(
            machine_class(task.predicts),
            automaton,
            task.samples,
            ConstantOutputs.nothing(),
            tuple(idle),
            predicts=task.predicts,
            supplemented=task.supplemented,
            digits=task.digits,
        )
        comparison = compare_transitions(samples, machine.transitions)
        similar = alternatives(machine, task.samples, likely, comparison)
        machine = replace(
            machine, support=machine.support and replace(machine.support, rivals=comparison)
        )
        root = np.zeros(1, np.int32)
        return MachineFit(
            machine,
            self._statistics(machine, automaton, started),
            (),
            MergeLog((), root, root, task.samples.labels),
            finished,
            log_evidence={
                states: likely.log_evidence + odds for states, odds in likely.log_odds.items()
            },
            alternatives=similar,
        )

    def _in_every_state(self, trivial: tuple[int, ...]) -> tuple[int, ...]:
        """Return those trivial labels that loop in every state, seen or not."""
        if self.fitter.named_trivial is not None:
            return trivial
        return tuple(code for code in trivial if self.traces.labels[code] == NO_EVENT)

    def _conflict(
        self, rows: ContradictoryRows, task: LearningTask, trivial: tuple[int, ...]
    ) -> Conflict:
        """Return the steps that no machine explains, without the labels that are to blame."""
        # Labels dropped on evidence are to blame only if nothing contradicts with them.
        everywhere = self._in_every_state(trivial)
        options, corpus = task.options, self.fitter.corpus
        histories = remove_trivial(Histories.of(task.traces, options.timing), everywhere)
        if (contradiction := find_contradiction(task.asking(task.traces, histories))) is not None:
            rows, trivial = contradiction, everywhere
        return explain_conflict(
            rows,
            task.traces,
            task.asking,
            task.kind,
            options.timing,
            trivial,
            lambda trace, step: corpus.place(int(task.trace_numbers[trace]), step),
            labels_made=options.labels != AS_RECORDED,
            predictable=self._predictable(task, histories),
        )

    def _predictable(self, task: LearningTask, histories: Histories) -> list[str]:
        """Return the other outputs that vary without contradictions."""
        outputs = (output for output in self.outputs if output != task.predicts)
        samples = {
            output: sampler_for(output, task.options)(task.traces, histories) for output in outputs
        }
        return [
            output
            for output, sampled in samples.items()
            if len(sampled.outputs) > 1 and find_contradiction(sampled) is None
        ]

    def _statistics(
        self,
        machine: Machine,
        automaton: RawAutomaton,
        started: float,
        at_least: int = 1,
        ran: tuple[WorkerRun, ...] = (),
    ) -> MachineStatistics:
        """Return what it took to find a machine, with the seconds of earlier rounds."""
        previous = self.previous.get(machine.kind)
        seconds = time.perf_counter() - started
        promotions = sum(event.red is None for event in automaton.events)
        return MachineStatistics(
            states=machine.states,
            prefix_tree_nodes=automaton.tree_nodes,
            merges=len(automaton.events) - promotions,
            promotions=promotions,
            attempts=automaton.attempts,
            constant_outputs=len(machine.constant_value),
            outputs_by_state=len(machine.output_value),
            seconds=seconds + (previous.statistics.seconds if previous else 0.0),
            at_least=at_least,
            ran=ran,
        )
