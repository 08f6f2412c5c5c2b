"""The paper's overall algorithm on traces in memory: machines that explain them."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, log2
from typing import Final

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.contradiction import Asking, explain, fitting_timing
from resolvent.errors import ContradictoryTraces, TimeLimitReached, TracePlace
from resolvent.exact import Certificate, import_solvers, minimal_automaton
from resolvent.machines import (
    Alternative,
    Machine,
    alternatives,
    build_machine,
    decisions_of,
    kind_of,
    loop_where_read,
    machine_class,
    machines_of,
)
from resolvent.merging import (
    STRATEGIES,
    Automaton,
    Contradiction,
    Strategy,
    TooManyStates,
    fewest_states,
    find_contradiction,
    merge,
    moves_alone,
)
from resolvent.noise import most_likely, rivals, settled_moves, settled_questions, weigh
from resolvent.options import Options
from resolvent.progress import Listener, Progress
from resolvent.reduction import (
    Basis,
    ConstantOutputs,
    LabelVerdict,
    Verdict,
    given_verdicts,
    judge_labels,
    remove_redundant,
    remove_trivial,
)
from resolvent.replay import states_at_steps
from resolvent.result import Found, MachineStatistics, MergeLog
from resolvent.samples import Histories, ObservationColumn, SampleSet, output_samples
from resolvent.senses import RewardLevels
from resolvent.supplement import supplement
from resolvent.traces import NO_EVENT, Label, TraceSet
from resolvent.traces.column_names import OBSERVATION, REWARD, TERMINATED
from resolvent.traces.labelling import GIVEN

SEARCH: Final = STRATEGIES["search"]
"""Finds the machine that a proof of minimality starts from."""

WEIGHING: Final = STRATEGIES["edsm"]
"""The search that says whether a machine grows when a label is dropped: a fast one."""

WEIGHED_NODES: Final = 200_000
"""Undecided labels are weighed only in prefix trees of so many nodes: each takes a search, and
with so many histories merging finds the loops by itself."""

WEIGHED_IN_ALL: Final = 400_000
"""Nodes of all prefix trees together in which labels are weighed, one tree at least."""

NO_TIME: Final = 1e-9
"""What is left when no time is: limits must be above 0."""

MOST_ENDING_NODES: Final = 50_000
"""When episodes end gets a machine by itself only from prefix trees of so many nodes: where it is
chance, merging larger ones takes long and finds as many states as there are surprises."""


@dataclass(frozen=True)
class _Lesson:
    """What one machine is to be learned from: samples, and the traces behind them.

    `numbers` are those of the traces among all; `later` counts the machines that
    are still to be learned after this one. Machines of more than `most_states` are given up.
    """

    predicts: str
    samples: SampleSet
    traces: TraceSet
    numbers: NDArray[np.int64]
    supplemented: bool
    later: int
    most_states: int | None

    @property
    def kind(self) -> str:
        """What the machine is called."""
        return kind_of(self.predicts)


@dataclass
class Learner:
    """Learns machines for some outputs from some of many traces.

    `trivial` are the labels named as such, None if they are to be judged.
    `time_left` says how many seconds it may take, `place` where a step is, given its
    trace's number among all and its own. Seconds of several calls add up. For outputs that
    are `noisy` the most likely machines are learned, whose answers may vary; `log_evidence`
    then says of all machines how likely they are, by their number of states. `rewards` are the
    levels that rewards were taken for, if they vary.
    """

    options: Options
    outputs: Sequence[str]
    trivial: frozenset[Label] | None
    place: Callable[[int, int], TracePlace]
    time_left: Callable[[], float | None]
    progress: Listener | None = None
    noisy: frozenset[str] = frozenset()
    rewards: RewardLevels | None = None
    statistics: dict[str, MachineStatistics] = field(default_factory=dict)
    verdicts: dict[str, tuple[LabelVerdict, ...]] = field(default_factory=dict)
    certificates: dict[str, Certificate[Machine]] = field(default_factory=dict)
    logs: dict[str, MergeLog] = field(default_factory=dict)
    log_evidence: dict[str, dict[int, float]] = field(default_factory=dict)
    alternatives: dict[str, tuple[Alternative, ...]] = field(default_factory=dict)
    unfinished: set[str] = field(default_factory=set)  # machines whose search was cut short
    tried_ending: int = 0  # the traces there were when no machine told when episodes end
    _weighing: dict[frozenset[int], Automaton] = field(default_factory=dict)  # by labels dropped

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
            digits = self._digits(predicts)
            samples = output_samples(traces, histories, predicts, observed=observed, digits=digits)
            later = len(self.outputs) - place - 1
            lesson = _Lesson(
                predicts, samples, traces, numbers, observed is not None, later, most_states
            )
            machines.append((known or {}).get(lesson.kind) or self._learned(lesson))
            if predicts == OBSERVATION and self.options.supplement and later:
                alone = machines_of(machines, self.options.timing)
                states = states_at_steps(alone, traces)["transition"]
                observed = supplement(alone.transition, traces, states)
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
        except (ContradictoryTraces, TimeLimitReached):
            return None  # nobody asked for it

    def _forget_ending(self) -> None:
        self.outputs = [name for name in self.outputs if name != TERMINATED]
        for told in (self.statistics, self.verdicts, self.certificates, self.logs):
            told.pop(TERMINATED, None)

    def recall(self, found: Found) -> None:
        """Take over what is known of machines that were found before, at no cost now."""
        self.statistics = {
            name: replace(one, seconds=0.0) for name, one in found.statistics.items()
        }
        self.verdicts = dict(found.verdicts)
        self.certificates = dict(found.certificates)
        self.logs = dict(found.logs)
        self.tried_ending = found.tried_ending

    def _learned(self, lesson: _Lesson) -> Machine:
        if lesson.predicts in self.noisy:
            return self._likely_machine(lesson)
        machine = self._machine(lesson)
        if self.noisy:
            self.log_evidence[lesson.kind] = {machine.states: log_evidence(machine, lesson.samples)}
        return machine

    def _likely_machine(self, lesson: _Lesson) -> Machine:
        """Find the moves of the most likely machine; what it answers, a replay tells."""
        started = time.perf_counter()
        listen = self._listener(lesson.kind)
        samples = self._settled(lesson)
        found = most_likely(
            samples,
            seed=self.options.seed,
            effort=self.options.effort,
            time_limit=self._share(lesson),
            listener=None if listen is None else lambda _, now: listen(now),
        )
        self.unfinished.discard(lesson.kind)
        if not found.finished:
            self.unfinished.add(lesson.kind)
        found = settled_moves(samples, found)
        # That of the machine found, and others by their odds: the price of states included.
        self.log_evidence[lesson.kind] = {
            states: found.log_evidence + odds for states, odds in found.log_odds.items()
        }
        automaton = moves_alone(found.transitions)
        loops = found.transitions == np.arange(found.states, dtype=np.int32)[:, None]
        idle = np.flatnonzero((loops | (found.transitions < 0)).all(0)).tolist()
        machine = build_machine(
            machine_class(lesson.predicts),
            automaton,
            lesson.samples,
            ConstantOutputs.nothing(),
            tuple(idle),
            predicts=lesson.predicts,
            supplemented=lesson.supplemented,
            digits=self._digits(lesson.predicts),
        )
        sure = rivals(samples, machine.transitions)
        self.alternatives[lesson.kind] = alternatives(machine, lesson.samples, found, sure)
        machine = replace(
            machine, support=machine.support and replace(machine.support, rivals=sure)
        )
        root = np.zeros(1, np.int32)
        self.logs[lesson.kind] = MergeLog((), root, root, lesson.samples.labels)
        self.verdicts[lesson.kind] = ()
        self._note(machine, automaton, time.perf_counter() - started)
        return machine

    def _settled(self, lesson: _Lesson) -> SampleSet:
        """Return samples without the noise that is known to be noise."""
        if self.rewards is None or lesson.predicts != REWARD:
            return lesson.samples
        traces = lesson.traces
        asked = traces.at_step(traces.observation_codes).astype(np.int64) * len(traces.actions)
        return settled_questions(lesson.samples, asked + traces.action_codes, self.rewards)

    def _machine(self, lesson: _Lesson) -> Machine:
        """Reduce the samples, merge states, and give back what reduction took out."""
        started = time.perf_counter()
        samples = lesson.samples
        reduced, constants = samples, ConstantOutputs.nothing()
        if self.options.remove_redundant:
            reduced, constants = remove_redundant(reduced)
        self._weighing.clear()
        trivial = self._trivial(lesson, reduced)
        histories = remove_trivial(samples.histories, trivial)
        known = self._known_trivial(lesson.traces, trivial)
        dropped = tuple(code for code in trivial if code not in known)

        def built(automaton: Automaton) -> Machine:
            machine = build_machine(
                machine_class(lesson.predicts),
                automaton,
                samples,
                constants,
                known,
                predicts=lesson.predicts,
                supplemented=lesson.supplemented,
                digits=self._digits(lesson.predicts),
            )
            return loop_where_read(machine, dropped, samples.histories)

        searched = replace(reduced, histories=histories)
        strategy = self.options.strategy
        try:
            if strategy.proves:
                automaton, certificate = self._minimal(lesson, searched)
                other = certificate.alternative
                self.certificates[lesson.kind] = Certificate(
                    certificate.states,
                    certificate.lower_bound,
                    certificate.unique,
                    None if other is None else built(other),
                    certificate.effort,
                )
            elif strategy == WEIGHING and frozenset(trivial) in self._weighing:
                automaton = self._weighing[frozenset(trivial)]
            else:
                share = self._share(lesson) if strategy.searches else None
                automaton = self._merged(
                    lesson, searched, strategy, share, most_states=lesson.most_states
                )
        except Contradiction as rows:
            raise self._explained(rows, lesson, trivial) from None
        machine = built(automaton)
        machine = replace(machine, decisions=decisions_of(machine, histories, automaton))
        _, parent, label = _core.history_columns(histories.tree)
        self.logs[lesson.kind] = MergeLog(automaton.events, parent, label, histories.labels)
        # A machine might read labels that were dropped on evidence: a proof keeps them.
        asked = replace(reduced, histories=remove_trivial(samples.histories, known))
        proven = fewest_states(asked, automaton)
        self._note(machine, automaton, time.perf_counter() - started, proven)
        return machine

    def _share(self, lesson: _Lesson) -> float | None:
        """Return the seconds for a search that may use all it gets.

        An equal share of the time left is reserved for each machine that comes later.
        """
        left = self.time_left()
        return None if left is None else left / (lesson.later + 1)

    def _minimal(
        self, lesson: _Lesson, samples: SampleSet
    ) -> tuple[Automaton, Certificate[Automaton]]:
        """Search for a small machine, then close in on the smallest from below."""
        import_solvers()
        share = self._share(lesson)
        started = time.perf_counter()
        try:
            # To find a machine is worth more than to prove that there is none.
            upper = self._merged(lesson, samples, SEARCH, None if share is None else 0.75 * share)
        except TimeLimitReached:
            # Some machine is needed to say how far it is proven minimal.
            upper = merge(samples, order=WEIGHING, engine=self.options.engine)
        if share is not None:
            share = max(share - (time.perf_counter() - started), NO_TIME)
        return minimal_automaton(
            samples, upper, time_limit=share, listener=self._listener(lesson.kind)
        )

    def _trivial(self, lesson: _Lesson, samples: SampleSet) -> tuple[int, ...]:
        """Decide which labels the search for this machine does without, and note why."""
        labels, options = samples.labels, self.options
        if not options.remove_trivial:
            self.verdicts[lesson.kind] = ()
            return ()
        if self.trivial is not None:
            named = tuple(code for code, label in enumerate(labels) if label in self.trivial)
            self.verdicts[lesson.kind] = given_verdicts(labels, named)
            return named
        weighed = not options.strategy.keeps_labels
        judged = judge_labels(samples, beyond_no_event=weighed)
        if weighed:
            judged = self._weighed(lesson, samples, judged)
        self.verdicts[lesson.kind] = tuple(verdict.renumbered(lesson.numbers) for verdict in judged)
        found = [code for code, one in enumerate(judged) if one.verdict is Verdict.TRIVIAL]
        silence = labels.get(NO_EVENT)
        if silence is None or silence in found:
            return tuple(found)
        # With "no event" kept a machine can count steps, and explain away that
        # labels are read at the wrong time: that is for the user to know.
        asking = self._asking(lesson.predicts)
        if fitting_timing(lesson.traces, asking, options.timing, (silence,)) is not None:
            found.append(silence)
        return tuple(sorted(found))

    def _weighed(
        self, lesson: _Lesson, samples: SampleSet, verdicts: tuple[LabelVerdict, ...]
    ) -> tuple[LabelVerdict, ...]:
        """Let the search have the last word on labels that were not proven needed.

        The smallest machine never grows when a label that changes no state is
        deleted, and few searches find the loops of many such labels. So one that
        was dropped on evidence is taken back if the machine is smaller with it; one
        that was undecided is dropped if the machine is smaller without it.
        """
        trivial = {code for code, one in enumerate(verdicts) if one.verdict is Verdict.TRIVIAL}
        dropped = [code for code in sorted(trivial) if verdicts[code].basis is Basis.EVIDENCE]
        undecided = [
            code
            for code, one in enumerate(verdicts)
            if one.verdict is Verdict.UNDECIDED and one.basis is Basis.EVIDENCE
        ]
        if not dropped and not undecided:
            return verdicts

        def states(without: set[int], below: float = inf) -> float:
            histories = remove_trivial(samples.histories, sorted(without))
            counted = replace(samples, histories=histories)
            least = min(below - 1, inf if lesson.most_states is None else lesson.most_states)
            most = None if least == inf else int(least)
            try:
                found = self._merged(lesson, counted, WEIGHING, most_states=most)
            except (Contradiction, TooManyStates):
                return inf  # or not below what is to be undercut
            self._weighing[frozenset(without)] = found
            return found.states

        before, fewest = set(trivial), states(trivial)
        # Where answers vary at all, no machine has fewer than two states.
        for code in self._to_weigh(trivial, dropped, undecided, verdicts):
            if fewest > 2 and (found := states(trivial ^ {code}, fewest)) < fewest:
                trivial, fewest = trivial ^ {code}, found
        changed = {True: Verdict.TRIVIAL, False: Verdict.UNDECIDED}
        return tuple(
            replace(one, verdict=changed[code in trivial], basis=Basis.SEARCH)
            if code in trivial ^ before
            else one
            for code, one in enumerate(verdicts)
        )

    def _to_weigh(
        self,
        trivial: set[int],
        dropped: list[int],
        undecided: list[int],
        verdicts: tuple[LabelVerdict, ...],
    ) -> list[int]:
        """Return the labels to weigh: all, or if that takes long those that least is known of."""
        first = self._weighing.get(frozenset(trivial))
        nodes = 0 if first is None else first.tree_nodes
        if nodes > WEIGHED_NODES:
            undecided = []
        most = max(WEIGHED_IN_ALL // max(nodes, 1), 1)
        if len(dropped) + len(undecided) <= most:
            return dropped + undecided
        doubted = sorted(dropped, key=lambda code: (verdicts[code].agreements, code))
        return (doubted + undecided)[:most]

    def _merged(
        self,
        lesson: _Lesson,
        samples: SampleSet,
        strategy: Strategy,
        time_limit: float | None = None,
        *,
        most_states: int | None = None,
    ) -> Automaton:
        return merge(
            samples,
            order=strategy,
            engine=self.options.engine,
            time_limit=time_limit or self.time_left(),
            listener=self._listener(lesson.kind),
            seed=self.options.seed,
            effort=self.options.effort,
            most_states=most_states,
        )

    def _known_trivial(self, traces: TraceSet, trivial: tuple[int, ...]) -> tuple[int, ...]:
        """Of trivial labels, return those that are so in every state, seen or not."""
        if self.trivial is not None:
            return trivial
        return tuple(code for code in trivial if traces.labels[code] == NO_EVENT)

    def _explained(
        self, rows: Contradiction, lesson: _Lesson, trivial: tuple[int, ...]
    ) -> ContradictoryTraces:
        # Labels dropped on evidence are to blame only if nothing contradicts with them.
        known = self._known_trivial(lesson.traces, trivial)
        timing, asking = self.options.timing, self._asking(lesson.predicts)
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

    def _explained_alone(self, lesson: _Lesson, histories: Histories) -> list[str]:
        """Return the other outputs that vary, and yet follow from what machines read."""
        others = (one for one in self.outputs if one != lesson.predicts)
        asked = {one: self._asking(one)(lesson.traces, histories) for one in others}
        return [
            one
            for one, samples in asked.items()
            if len(samples.outputs) > 1 and find_contradiction(samples) is None
        ]

    def _asking(self, predicts: str) -> Asking:
        digits = self._digits(predicts)

        def ask(traces: TraceSet, histories: Histories) -> SampleSet:
            return output_samples(traces, histories, predicts, digits=digits)

        return ask

    def _digits(self, predicts: str) -> int | None:
        return self.options.reward_digits if predicts == REWARD else None

    def _listener(self, name: str) -> Callable[[Progress], object] | None:
        if self.progress is None:
            return None
        listen = self.progress
        return lambda progress: listen(name, progress)

    def _note(
        self, machine: Machine, automaton: Automaton, seconds: float, at_least: int = 1
    ) -> None:
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
        )


def log_evidence(machine: Machine, samples: SampleSet) -> float:
    """Return how likely all answers are if a machine gave them, as noise is weighed: a logarithm.

    The machine has the codes of the samples.
    """
    moves = machine.transitions.copy()
    moves[:, list(machine.trivial)] = np.arange(machine.states, dtype=np.int32)[:, None]
    return weigh(samples, moves).log_evidence


def _bits(machine: Machine) -> float:
    """Return how many bits it takes to say where each label leads from each state."""
    moving = len(machine.labels) - len(machine.trivial)
    return machine.states * moving * log2(machine.states)
