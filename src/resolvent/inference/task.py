"""The task of inferring one machine: its samples, and their reduction.

Input: traces to learn from (`TrainingSet`). Output: a `Task` for each output; `reduce_task` removes
its redundant α-inputs and trivial labels.
"""

import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent._util.math import log2
from resolvent.errors import StepLocation
from resolvent.inference.conflict import Conflict, Sampling, explain_conflict
from resolvent.inference.context import InferenceContext
from resolvent.inference.engine import Limits, merge
from resolvent.inference.options import InferenceOptions
from resolvent.inference.strategy import AUTO, EDSM
from resolvent.machines import Machine
from resolvent.machines.build import (
    RawAutomaton,
    StateLimitExceeded,
    WorkLimitExceeded,
    build_machine,
    restore_loops,
)
from resolvent.machines.machine import machine_class, machine_name
from resolvent.machines.tables import pair_keys
from resolvent.preprocess.labeling import AS_RECORDED
from resolvent.preprocess.reduction import (
    ConstantOutputs,
    Triviality,
    TrivialityBasis,
    TrivialityTest,
    assess_labels,
    declared_trivial,
    fitting_timing,
    remove_redundant,
    remove_trivial,
)
from resolvent.preprocess.samples import (
    ContradictoryRows,
    Histories,
    ObservationColumn,
    SampleBuilder,
    SampleSet,
    find_contradiction,
    output_samples,
)
from resolvent.replay.corpus import Corpus
from resolvent.traces import NO_EVENT, Label, TraceSet
from resolvent.traces.schema import REWARD

WORK_BEFORE_SEARCH: Final = 100_000_000
"""Least work after which merging is put off until the search has run: about a second."""

WORK_FOR_NODE: Final = 2_000
"""The same for each node of the prefix tree. That much work is needed only if hardly any two
label sequences are alike, as in one long log."""

COMPARED_NODES: Final = 200_000
"""Maximum number of nodes of a prefix tree in which undecided labels are compared. Each takes a
search, and with more label sequences merging finds the loops by itself."""

COMPARED_IN_ALL: Final = 400_000
"""Maximum number of nodes of all prefix trees in which labels are compared, at least one tree."""


@dataclass(frozen=True)
class TrainingSet:
    """Traces to learn machines from: those of a corpus with some `numbers`.

    `outputs` are predicted in this order; the most likely machines are inferred for the `noisy`
    ones. `named_trivial` are the labels that the user names as trivial; None if they are tested. A
    machine with more than `most_states` raises `StateLimitExceeded`.
    """

    context: InferenceContext
    corpus: Corpus
    numbers: NDArray[np.int64]
    outputs: tuple[str, ...]
    named_trivial: frozenset[Label] | None
    noisy: frozenset[str] = frozenset()
    most_states: int | None = None

    @property
    def options(self) -> InferenceOptions:
        """The options of the inference."""
        return self.context.options

    @cached_property
    def traces(self) -> TraceSet:
        """The traces."""
        return self.corpus.fetch(self.numbers)

    @cached_property
    def histories(self) -> Histories:
        """The label histories of the traces."""
        return Histories.of(self.traces, self.options.timing)

    def digits(self, predicts: str) -> int | None:
        """Return the number of decimals that an output is rounded to; None for all."""
        return self.options.reward_digits if predicts == REWARD else None

    def build_samples(
        self, predicts: str, observed: ObservationColumn | None = None
    ) -> SampleBuilder:
        """Return the function that returns the samples of an output."""
        digits = self.digits(predicts)
        return partial(output_samples, predicts=predicts, observed=observed, digits=digits)

    def task(self, predicts: str, observed: ObservationColumn | None) -> "Task":
        """Return the task for one output; `observed` supplements the observations."""
        samples = self.build_samples(predicts, observed)(self.traces, self.histories)
        return Task(self, predicts, samples, samples, supplemented=observed is not None)


@dataclass(frozen=True)
class Task:
    """The samples that one machine is inferred from, and how they were reduced.

    `reduced` are the samples without redundant α-inputs, whose outputs are `constants`. They have
    all labels; merging does without those that are `trivial`. If labels were tested, `tests` has
    one for each label, and `merged` the automaton merged without the trivial ones, if there is one.
    """

    data: TrainingSet
    predicts: str
    samples: SampleSet
    reduced: SampleSet
    supplemented: bool
    constants: ConstantOutputs = field(default_factory=ConstantOutputs.nothing)
    trivial: tuple[int, ...] = ()
    tests: tuple[TrivialityTest, ...] = ()
    merged: RawAutomaton | None = None
    started: float = field(default_factory=time.perf_counter)

    @property
    def options(self) -> InferenceOptions:
        """The options of the inference."""
        return self.data.options

    @cached_property
    def _usual(self) -> tuple[float, float]:
        """The chance that two outputs of a query are equal, and that one is the most frequent."""
        samples, width = self.reduced, len(self.reduced.outputs)
        rows = np.flatnonzero(samples.alpha >= 0)
        # Repeated traces must change nothing: an output counts once for each label history.
        nodes = _core.history_columns(samples.histories.tree)[0][rows]
        queried = pair_keys(nodes, samples.alpha[rows], len(samples.alpha_keys))
        rows = rows[np.unique(queried, return_index=True)[1]]
        pairs = pair_keys(samples.alpha[rows], samples.output[rows], width)
        distinct, count = np.unique(pairs, return_counts=True)
        if not len(count):
            return 1.0, 1.0
        starts = np.flatnonzero(np.diff(distinct // width, prepend=-1))
        totals = np.add.reduceat(count, starts)
        equal = np.add.reduceat(count.astype(float) ** 2, starts) / totals
        most = np.maximum.reduceat(count, starts)
        return float(equal.sum() / totals.sum()), float(most.sum() / totals.sum())

    @property
    def output_bits(self) -> float:
        """The evidence of two equal outputs, in bits: little if nearly all are equal, at most 1."""
        return min(-log2(self._usual[0]), 1.0)

    @property
    def rare_outputs(self) -> float:
        """The share of outputs other than the most frequent one of their query."""
        return 1 - self._usual[1]

    @property
    def looping(self) -> tuple[int, ...]:
        """The trivial labels that loop in every state, so that all strategies do without them."""
        return self._looping(self.trivial)

    def without(self, labels: Iterable[int]) -> SampleSet:
        """Return the reduced samples without some labels."""
        return replace(self.reduced, histories=remove_trivial(self.reduced.histories, labels))

    def limits(self) -> Limits:
        """Return the limits of one run of an engine; each later machine gets as much time."""
        context, outputs = self.data.context, self.data.outputs
        seconds, listener = context.time_left(), None
        if seconds is not None:
            seconds /= len(outputs) - outputs.index(self.predicts)
        if context.progress is not None:
            listener = partial(context.progress, machine_name(self.predicts))
        return Limits(seconds, listener, self.data.most_states)

    def within(self, seconds: float | None) -> "Task":
        """Return the same task as the only one, with this number of seconds, and in silence."""
        context = self.data.context
        options = context.options.replacing(time_limit=seconds)
        context = replace(context, options=options, progress=None, started=time.perf_counter())
        return replace(self, data=replace(self.data, context=context, outputs=(self.predicts,)))

    def build(self, automaton: RawAutomaton, trivial: tuple[int, ...]) -> Machine:
        """Build the machine of an automaton, with the constant outputs and trivial labels."""
        return build_machine(
            machine_class(self.predicts),
            automaton,
            self.samples,
            self.constants,
            trivial,
            predicts=self.predicts,
            supplemented=self.supplemented,
            digits=self.data.digits(self.predicts),
        )

    def restore(self, automaton: RawAutomaton, without: tuple[int, ...]) -> Machine:
        """Undo the reduction: build the machine of an automaton that was found without labels."""
        looping = self._looping(without)
        dropped = tuple(code for code in without if code not in set(looping))
        return restore_loops(self.build(automaton, looping), dropped, self.samples.histories)

    def conflict(self, rows: ContradictoryRows) -> Conflict:
        """Return the steps that no machine explains without trivial labels, and what to try."""
        data, options, trivial = self.data, self.options, self.trivial
        build = data.build_samples(self.predicts)
        # Labels dropped on evidence are to blame only if nothing contradicts with them.
        histories = remove_trivial(data.histories, self.looping)
        if (contradiction := find_contradiction(build(data.traces, histories))) is not None:
            rows, trivial = contradiction, self.looping
        predictable = []  # the other outputs that vary without contradictions
        for output in data.outputs:
            samples = data.build_samples(output)(data.traces, histories)
            varies = output != self.predicts and len(samples.outputs) > 1
            if varies and find_contradiction(samples) is None:
                predictable.append(output)
        by_user = options.labels == AS_RECORDED
        sampling = Sampling(data.traces, build, self.predicts, options.timing, trivial, by_user)

        def locate(trace: int, step: int) -> StepLocation:
            return data.corpus.location(int(data.numbers[trace]), step)

        return explain_conflict(rows, sampling, locate, predictable)

    def _looping(self, trivial: tuple[int, ...]) -> tuple[int, ...]:
        are_all = self.data.named_trivial is not None
        return tuple(code for code in trivial if are_all or self.samples.labels[code] == NO_EVENT)


# ---- reduction ---------------------------------------------------------------


def reduce_task(task: Task) -> Task:
    """Remove redundant α-inputs and trivial labels from the samples of a task."""
    options = task.options
    if options.remove_redundant:
        reduced, constants = remove_redundant(task.samples)
        task = replace(task, reduced=reduced, constants=constants)
    most_work = work_before_search(task) if options.strategy == AUTO else None
    return choose_trivial_labels(task, options.strategy.keeps_labels, most_work)


def work_before_search(task: Task) -> int:
    """Return the work after which merging is put off until the search has run."""
    return max(WORK_BEFORE_SEARCH, WORK_FOR_NODE * len(task.reduced.histories.tree))


def choose_trivial_labels(task: Task, only_no_event: bool, most_work: int | None = None) -> Task:
    """Choose the labels that a machine is inferred without; `most_work` limits each comparison."""
    samples, data, named = task.reduced, task.data, task.data.named_trivial
    labels, in_time = samples.labels, data.context.in_time
    if not task.options.remove_trivial:
        return task
    if named is not None:
        codes = tuple(code for code, label in enumerate(labels) if label in named)
        return replace(task, trivial=codes, tests=declared_trivial(labels, codes))
    tests = assess_labels(samples, beyond_no_event=not only_no_event, in_time=in_time)
    merged: dict[frozenset[int], RawAutomaton] = {}
    if not only_no_event and in_time():
        tests = _compared(task, tests, merged, most_work)
    trivial, no_event = _trivial_codes(tests), labels.get(NO_EVENT)
    # With "no event" a machine can count steps, and so explain away that labels are read at the
    # wrong time: the user has to know that.
    if no_event is not None and no_event not in trivial:
        build = data.build_samples(task.predicts)
        if fitting_timing(data.traces, build, task.options.timing, (no_event,)):
            trivial.add(no_event)
    tests = tuple(test.renumbered(data.numbers) for test in tests)
    automaton = merged.get(frozenset(trivial))
    return replace(task, trivial=tuple(sorted(trivial)), tests=tests, merged=automaton)


def _trivial_codes(tests: tuple[TrivialityTest, ...]) -> set[int]:
    return {code for code, test in enumerate(tests) if test.triviality is Triviality.TRIVIAL}


def _compared(
    task: Task,
    tests: tuple[TrivialityTest, ...],
    merged: dict[frozenset[int], RawAutomaton],
    most_work: int | None,
) -> tuple[TrivialityTest, ...]:
    """Let merging decide about labels that were not proven necessary; record what was `merged`.

    The smallest machine never grows when a label that changes no state is deleted. So a label that
    was dropped on evidence is restored if the machine is smaller with it; an undecided one is
    dropped if the machine is smaller without it.
    """
    trivial = _trivial_codes(tests)
    by_evidence = [
        code for code, test in enumerate(tests) if test.basis is TrivialityBasis.EVIDENCE
    ]
    dropped = [code for code in by_evidence if code in trivial]
    undecided = [code for code in by_evidence if tests[code].triviality is Triviality.UNDECIDED]
    if not dropped and not undecided:
        return tests

    def states(without: set[int], below: float = inf) -> float:
        limits = replace(task.limits(), most_work=most_work)
        most = min(below - 1, inf if limits.most_states is None else limits.most_states)
        limits = replace(limits, most_states=None if most == inf else int(most))
        try:
            automaton = merge(task.without(without), EDSM, task.options.engine, limits)
        except (ContradictoryRows, StateLimitExceeded):
            return inf  # or not below the number to beat
        merged[frozenset(without)] = automaton
        return automaton.states if automaton.finished else inf

    new = set(trivial)
    with suppress(WorkLimitExceeded):
        fewest = states(new)
        first = merged.get(frozenset(new))
        if first is not None and not first.finished:
            return tests
        nodes = 0 if first is None else first.tree_nodes
        if nodes > COMPARED_NODES:
            undecided = []
        most = max(COMPARED_IN_ALL // max(nodes, 1), 1)
        if len(dropped) + len(undecided) > most:  # those with the least evidence
            dropped.sort(key=lambda code: (tests[code].agreements, code))
        for code in (dropped + undecided)[:most]:
            if fewest <= 2:  # if outputs vary at all, no machine has fewer than two states
                break
            if (count := states(new ^ {code}, fewest)) < fewest:
                new, fewest = new ^ {code}, count
    by_loss = {True: Triviality.TRIVIAL, False: Triviality.UNDECIDED}
    changed = {
        code: replace(tests[code], triviality=by_loss[code in new], basis=TrivialityBasis.SEARCH)
        for code in trivial ^ new
    }
    return tuple(changed.get(code, test) for code, test in enumerate(tests))
