"""The paper's overall algorithm on traces in memory: machines that explain them."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.arithmetic import log2
from resolvent.contradiction import explain
from resolvent.errors import ContradictoryTraces, TracePlace
from resolvent.exact import Certificate
from resolvent.learning.contest import Contest, patience
from resolvent.learning.labels import choose_labels
from resolvent.learning.lesson import Lesson, asking_for, digits_of
from resolvent.learning.likely import likely_machine, log_evidence
from resolvent.learning.strategies import proposed
from resolvent.machines import (
    Alternative,
    Machine,
    build_machine,
    decisions_of,
    kind_of,
    loop_where_read,
    machine_class,
    machines_of,
)
from resolvent.merging import Automaton, Contradiction, fewest_states, find_contradiction
from resolvent.merging.ran import Ran
from resolvent.merging.tried import Tried
from resolvent.options import Options
from resolvent.progress import Listener, Progress
from resolvent.reduction import ConstantOutputs, LabelVerdict, remove_redundant, remove_trivial
from resolvent.replay import states_at_steps
from resolvent.result import Found, MachineStatistics, MergeLog
from resolvent.samples import Histories, ObservationColumn, output_samples
from resolvent.senses import RewardLevels
from resolvent.supplement import supplement
from resolvent.traces import NO_EVENT, Label, TraceSet
from resolvent.traces.column_names import OBSERVATION, TERMINATED
from resolvent.traces.labelling import GIVEN
from resolvent.workers import Workers

MOST_ENDING_NODES: Final = 50_000
"""When episodes end gets a machine by itself only from prefix trees of so many nodes: where it is
chance, merging larger ones takes long and finds as many states as there are surprises."""


@dataclass
class Learner:
    """Learns machines for some outputs from some of many traces.

    `trivial` are the labels named as such, None if they are to be judged.
    `time_left` says how many seconds it may take, `place` where a step is, given its
    trace's number among all and its own. Seconds of several calls add up. For outputs that
    are `noisy` the most likely machines are learned, whose answers may vary; `log_evidence`
    then says of all machines how likely they are, by their number of states. `rewards` are the
    levels that rewards were taken for, if they vary. With `workers`, strategies that search try
    several ways side by side.
    """

    options: Options
    outputs: Sequence[str]
    trivial: frozenset[Label] | None
    place: Callable[[int, int], TracePlace]
    time_left: Callable[[], float | None]
    progress: Listener | None = None
    noisy: frozenset[str] = frozenset()
    rewards: RewardLevels | None = None
    workers: Workers | None = None
    statistics: dict[str, MachineStatistics] = field(default_factory=dict)
    verdicts: dict[str, tuple[LabelVerdict, ...]] = field(default_factory=dict)
    certificates: dict[str, Certificate[Machine]] = field(default_factory=dict)
    logs: dict[str, MergeLog] = field(default_factory=dict)
    log_evidence: dict[str, dict[int, float]] = field(default_factory=dict)
    alternatives: dict[str, tuple[Alternative, ...]] = field(default_factory=dict)
    unfinished: set[str] = field(default_factory=set)  # machines whose search was cut short
    tried: dict[str, tuple[Tried, ...]] = field(default_factory=dict)
    tried_ending: int = 0  # the traces there were when no machine told when episodes end

    def learn(
        self,
        traces: TraceSet,
        numbers: NDArray[np.int64],
        known: Mapping[str, Machine] | None = None,
        *,
        most_states: int | None = None,
    ) -> Found:
        """Learn a machine for each output, the Transition Machine first.

        With that one's states beside the observation, unless this is switched off, the
        others are learned. `numbers` are those of the traces among all. Machines that
        are `known` already are not learned. Where none are, a machine for when episodes
        end that nobody asked for is forgotten: the new ones may tell that without it.

        Paper: "Overall Algorithm".

        Raises:
            TooManyStates: when merging finds more than `most_states` for one machine.
        """
        if known is None and self.options.outputs is None:
            self._forget_ending()
        histories = Histories.of(traces, self.options.timing)
        observed: ObservationColumn | None = None
        machines: list[Machine] = []
        for place, predicts in enumerate(self.outputs):
            digits = digits_of(predicts, self.options)
            samples = output_samples(traces, histories, predicts, observed=observed, digits=digits)
            later = len(self.outputs) - place - 1
            lesson = Lesson(
                predicts,
                samples,
                traces,
                numbers,
                observed is not None,
                later,
                most_states,
                self.options,
                self.time_left,
                self._listener(kind_of(predicts)),
            )
            machines.append((known or {}).get(lesson.kind) or self._learned(lesson))
            if predicts == OBSERVATION and self.options.supplement and later:
                alone = machines_of(machines, self.options.timing)
                states = states_at_steps(alone, traces)["transition"]
                observed = supplement(traces, states)
        return Found(
            machines_of(machines, self.options.timing),
            traces.steps,
            dict(self.statistics),
            dict(self.verdicts),
            dict(self.certificates),
            dict(self.logs),
            self.tried_ending,
            dict(self.log_evidence),
            dict(self.alternatives),
            frozenset(self.unfinished),
            dict(self.tried),
        )

    def may_try_ending(self, traces: int) -> bool:
        """Whether a machine may be tried that tells when episodes end, given so many traces.

        Not if the user says what to predict; and after a try in vain only with twice the traces.
        """
        asked_for = self.options.outputs is not None
        tried = TERMINATED in self.outputs or traces < 2 * self.tried_ending
        return not asked_for and not tried

    def learn_ending(
        self, traces: TraceSet, numbers: NDArray[np.int64], found: Found, *, bits: float, of: int
    ) -> Found:
        """Add a machine that tells when episodes end, if memory tells that and not chance.

        Chance it is taken to be where traces contradict each other, where so many label
        histories would have to be told apart that it would be known by heart what happened,
        and where the machine takes more bits to write down than it saves: `bits`, those
        that all traces, `of` which there are so many, leave open without it.
        """
        with_ending = self._with_ending(traces, numbers, found)
        if with_ending is not None and _bits(with_ending.machines[TERMINATED]) < bits:
            return with_ending
        self._forget_ending()
        self.tried_ending = of
        return replace(found, tried_ending=of)

    def _with_ending(
        self, traces: TraceSet, numbers: NDArray[np.int64], found: Found
    ) -> Found | None:
        histories = Histories.of(traces, self.options.timing)
        silence = [code for code, label in enumerate(traces.labels) if label == NO_EVENT]
        if len(remove_trivial(histories, silence).tree) > MOST_ENDING_NODES:
            return None
        self.outputs = [*self.outputs, TERMINATED]
        try:
            return self.learn(traces, numbers, found.machines)
        except ContradictoryTraces:
            return None  # nobody asked for it

    def _forget_ending(self) -> None:
        self.outputs = [name for name in self.outputs if name != TERMINATED]
        told: dict[str, Any]
        for told in (self.statistics, self.verdicts, self.certificates, self.logs, self.tried):
            told.pop(TERMINATED, None)
        self.unfinished.discard(TERMINATED)

    def recall(self, found: Found) -> None:
        """Take over what is known of machines that were found before, at no cost now."""
        self.statistics = {
            name: replace(one, seconds=0.0) for name, one in found.statistics.items()
        }
        self.verdicts = dict(found.verdicts)
        self.certificates = dict(found.certificates)
        self.logs = dict(found.logs)
        self.tried_ending = found.tried_ending
        self.tried = dict(found.tried)
        self.unfinished = set(found.unfinished)

    def _learned(self, lesson: Lesson) -> Machine:
        if lesson.predicts in self.noisy:
            return self._likely(lesson)
        machine = self._machine(lesson)
        if self.noisy:
            self.log_evidence[lesson.kind] = {machine.states: log_evidence(machine, lesson.samples)}
        return machine

    def _likely(self, lesson: Lesson) -> Machine:
        """Find the most likely machine, and note how likely others are."""
        started = time.perf_counter()
        found = likely_machine(lesson, self.rewards)
        root = np.zeros(1, np.int32)
        self.log_evidence[lesson.kind] = found.log_evidence
        self.alternatives[lesson.kind] = found.alternatives
        self.logs[lesson.kind] = MergeLog((), root, root, lesson.samples.labels)
        self.verdicts[lesson.kind] = ()
        self._note(
            found.machine, found.automaton, time.perf_counter() - started, finished=found.finished
        )
        return found.machine

    def _machine(self, lesson: Lesson) -> Machine:
        """Reduce the samples, find an automaton, and give back what reduction took out."""
        started = time.perf_counter()
        samples, strategy = lesson.samples, self.options.strategy
        reduced, constants = samples, ConstantOutputs.nothing()
        if self.options.remove_redundant:
            reduced, constants = remove_redundant(reduced)
        choice = choose_labels(
            lesson,
            reduced,
            self.trivial,
            keeps_labels=strategy.keeps_labels,
            most_work=patience(reduced) if strategy.chooses else None,
        )
        self.verdicts[lesson.kind] = choice.verdicts

        def build(automaton: Automaton, without: tuple[int, ...]) -> Machine:
            known = self._known_trivial(lesson.traces, without)
            machine = build_machine(
                machine_class(lesson.predicts),
                automaton,
                samples,
                constants,
                known,
                predicts=lesson.predicts,
                supplemented=lesson.supplemented,
                digits=lesson.digits,
            )
            in_every_state = set(known)
            dropped = tuple(code for code in without if code not in in_every_state)
            return loop_where_read(machine, dropped, samples.histories)

        known = self._known_trivial(lesson.traces, choice.trivial)
        contest = Contest(lesson, reduced, choice.trivial, known, build)
        try:
            told = proposed(contest, choice, self.trivial, self.workers)
        except Contradiction as rows:
            raise self._explained(rows, lesson, choice.trivial) from None
        found, automaton = told.proposal, told.proposal.automaton
        self.tried[lesson.kind] = told.tried
        if told.certificate is not None:
            self.certificates[lesson.kind] = told.certificate
        decisions = decisions_of(found.machine, found.histories, automaton)
        machine = replace(found.machine, decisions=decisions)
        _, parent, label = _core.history_columns(found.histories.tree)
        self.logs[lesson.kind] = MergeLog(automaton.events, parent, label, found.histories.labels)
        # A machine might read labels that were dropped on evidence: a proof keeps them.
        proven = 1
        if automaton.finished:
            proven = fewest_states(contest.without(known), automaton)
        self._note(
            machine,
            automaton,
            time.perf_counter() - started,
            finished=automaton.finished,
            at_least=proven,
            ran=told.ran,
        )
        return machine

    def _known_trivial(self, traces: TraceSet, trivial: tuple[int, ...]) -> tuple[int, ...]:
        """Of trivial labels, return those that are so in every state, seen or not."""
        if self.trivial is not None:
            return trivial
        return tuple(code for code in trivial if traces.labels[code] == NO_EVENT)

    def _explained(
        self, rows: Contradiction, lesson: Lesson, trivial: tuple[int, ...]
    ) -> ContradictoryTraces:
        # Labels dropped on evidence are to blame only if nothing contradicts with them.
        known = self._known_trivial(lesson.traces, trivial)
        timing, asking = self.options.timing, lesson.asking
        histories = remove_trivial(Histories.of(lesson.traces, timing), known)
        if (found := find_contradiction(asking(lesson.traces, histories))) is not None:
            rows, trivial = found, known

        def locate(trace: int, step: int) -> TracePlace:
            return self.place(int(lesson.numbers[trace]), step)

        return explain(
            rows,
            lesson.traces,
            asking,
            lesson.kind,
            timing,
            trivial,
            locate,
            labels_made=self.options.labels != GIVEN,
            alone=self._explained_alone(lesson, histories),
        )

    def _explained_alone(self, lesson: Lesson, histories: Histories) -> list[str]:
        """Return the other outputs that vary, and yet follow from what machines read."""
        others = (one for one in self.outputs if one != lesson.predicts)
        asked = {one: asking_for(one, self.options)(lesson.traces, histories) for one in others}
        return [
            one
            for one, samples in asked.items()
            if len(samples.outputs) > 1 and find_contradiction(samples) is None
        ]

    def _listener(self, name: str) -> Callable[[Progress], object] | None:
        if self.progress is None:
            return None
        listen = self.progress
        return lambda progress: listen(name, progress)

    def _note(
        self,
        machine: Machine,
        automaton: Automaton,
        seconds: float,
        *,
        finished: bool,
        at_least: int = 1,
        ran: tuple[Ran, ...] = (),
    ) -> None:
        """Note what a machine took, and whether its search was finished."""
        self.unfinished.discard(machine.kind)
        if not finished:
            self.unfinished.add(machine.kind)
        before = self.statistics.get(machine.kind)
        promotions = sum(event.red is None for event in automaton.events)
        self.statistics[machine.kind] = MachineStatistics(
            states=machine.states,
            prefix_tree_nodes=automaton.tree_nodes,
            merges=len(automaton.events) - promotions,
            promotions=promotions,
            attempts=automaton.attempts,
            constant_outputs=len(machine.constant_value),
            outputs_by_state=len(machine.output_value),
            seconds=seconds + (before.seconds if before else 0.0),
            at_least=at_least,
            ran=ran,
        )


def _bits(machine: Machine) -> float:
    """Return how many bits it takes to say where each label leads from each state."""
    moving = len(machine.labels) - len(machine.trivial)
    return machine.states * moving * log2(machine.states)
