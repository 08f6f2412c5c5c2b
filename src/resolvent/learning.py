"""The paper's overall algorithm on traces in memory: two machines that explain them."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from resolvent.contradiction import Asking, explain, fitting_timing
from resolvent.errors import ContradictoryTraces, TimeLimitReached
from resolvent.exact import Certificate, import_solvers, minimal_automaton
from resolvent.machines import (
    Machine,
    MachinePair,
    RewardMachine,
    TransitionMachine,
    build_machine,
    decisions_of,
    loop_where_read,
)
from resolvent.machines.score import states_at_steps
from resolvent.merging import STRATEGIES, Automaton, Contradiction, Progress, Strategy, merge
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
from resolvent.result import MachineStatistics, Options
from resolvent.samples import Histories, SampleSet, reward_samples, transition_samples
from resolvent.supplement import supplement
from resolvent.traces import NO_EVENT, Label, TraceSet

M = TypeVar("M", bound=Machine)

SEARCH: Final = STRATEGIES["search"]
"""Finds the machine that a proof of minimality starts from."""

WEIGHING: Final = STRATEGIES["edsm"]
"""The search that says whether a machine grows when a label is dropped: a fast one."""

WEIGHED_NODES: Final = 200_000
"""Undecided labels are weighed only in prefix trees of so many nodes: each takes a search, and
with so many histories merging finds the loops by itself."""

NO_TIME: Final = 1e-9
"""What is left when no time is: limits must be above 0."""

ProgressListener = Callable[[str, Progress], None]
"""Told now and then which machine is being inferred and how far it is."""


@dataclass(frozen=True)
class Learned:
    """Two machines that explain some traces, and for each how it was found, by kind."""

    machines: MachinePair
    steps: int
    statistics: dict[str, MachineStatistics]
    verdicts: dict[str, tuple[LabelVerdict, ...]]
    certificates: dict[str, Certificate[Machine]]
    histories: dict[str, Histories]
    automata: dict[str, Automaton]


@dataclass
class Learner:
    """Learns both machines from some of many traces.

    `trivial` are the labels named as such, None if they are to be judged.
    `time_left` says how many seconds it may take, `place` what an error should
    call a trace, given its number among all. Seconds of several calls add up.
    """

    options: Options
    trivial: frozenset[Label] | None
    place: Callable[[int], str]
    time_left: Callable[[], float | None]
    progress: ProgressListener | None = None
    statistics: dict[str, MachineStatistics] = field(default_factory=dict)
    verdicts: dict[str, tuple[LabelVerdict, ...]] = field(default_factory=dict)
    certificates: dict[str, Certificate[Machine]] = field(default_factory=dict)
    histories: dict[str, Histories] = field(default_factory=dict)
    automata: dict[str, Automaton] = field(default_factory=dict)
    _weighing: dict[frozenset[int], Automaton] = field(default_factory=dict)  # by labels dropped

    def learn(
        self, traces: TraceSet, numbers: NDArray[np.int64], known: TransitionMachine | None = None
    ) -> Learned:
        """Learn a Transition Machine, and with its states beside the observation a Reward Machine.

        `numbers` are those of the traces among all. If a Transition Machine is
        `known` already, only the other one is learned.

        Paper: "Overall Algorithm".
        """
        options = self.options
        histories = Histories.of(traces, options.timing)

        transition = known
        if transition is None:
            samples = transition_samples(traces, histories)
            transition = self._machine(TransitionMachine, samples, traces, numbers)

        observed = None
        if options.supplement:
            observed = supplement(transition, traces, states_at_steps(transition, histories))
        digits = options.reward_digits
        samples = reward_samples(traces, histories, observed=observed, digits=digits)
        more = {"supplemented": options.supplement, "reward_digits": digits}
        reward = self._machine(RewardMachine, samples, traces, numbers, **more)
        return Learned(
            MachinePair(transition, reward, options.timing),
            traces.steps,
            dict(self.statistics),
            dict(self.verdicts),
            dict(self.certificates),
            dict(self.histories),
            dict(self.automata),
        )

    def recall(self, learned: Learned) -> None:
        """Take over what is known of machines that were found before, at no cost now."""
        self.statistics = {
            name: replace(one, seconds=0.0) for name, one in learned.statistics.items()
        }
        self.verdicts = dict(learned.verdicts)
        self.certificates = dict(learned.certificates)
        self.histories = dict(learned.histories)
        self.automata = dict(learned.automata)

    def _machine(
        self,
        kind: type[M],
        samples: SampleSet,
        traces: TraceSet,
        numbers: NDArray[np.int64],
        **more: Any,
    ) -> M:
        """Reduce the samples, merge states, and give back what reduction took out."""
        started = time.perf_counter()
        reduced, constants = samples, ConstantOutputs.nothing()
        if self.options.remove_redundant:
            reduced, constants = remove_redundant(reduced)
        self._weighing.clear()
        trivial = self._trivial(kind, reduced, traces, numbers)
        self.histories[kind.kind] = remove_trivial(samples.histories, trivial)
        known = self._known_trivial(traces, trivial)
        dropped = tuple(code for code in trivial if code not in known)

        def built(automaton: Automaton) -> M:
            machine = build_machine(kind, automaton, samples, constants, known, **more)
            return loop_where_read(machine, dropped, samples.histories)

        searched = replace(reduced, histories=self.histories[kind.kind])
        try:
            if self.options.strategy.proves:
                automaton, certificate = self._minimal(kind, searched)
                other = certificate.alternative
                self.certificates[kind.kind] = Certificate(
                    certificate.states,
                    certificate.lower_bound,
                    certificate.unique,
                    None if other is None else built(other),
                    certificate.effort,
                )
            elif self.options.strategy == WEIGHING and frozenset(trivial) in self._weighing:
                automaton = self._weighing[frozenset(trivial)]
            else:
                share = self._share(kind) if self.options.strategy.searches else None
                automaton = self._merged(kind, searched, self.options.strategy, share)
        except Contradiction as rows:
            raise self._explained(rows, kind, traces, numbers, trivial) from None
        machine = built(automaton)
        log = decisions_of(machine, searched.histories, automaton)
        machine = replace(machine, decisions=log)
        self._note(machine, automaton, time.perf_counter() - started)
        return machine

    def _share(self, kind: type[Machine]) -> float | None:
        """Return the seconds for a search that may use all it gets; half are for the other one."""
        left = self.time_left()
        return left if left is None or kind is RewardMachine else left / 2

    def _minimal(
        self, kind: type[Machine], samples: SampleSet
    ) -> tuple[Automaton, Certificate[Automaton]]:
        """Search for a small machine, then close in on the smallest from below."""
        import_solvers()
        share = self._share(kind)
        started = time.perf_counter()
        try:
            # To find a machine is worth more than to prove that there is none.
            upper = self._merged(kind, samples, SEARCH, None if share is None else 0.75 * share)
        except TimeLimitReached:
            # Some machine is needed to say how far it is proven minimal.
            upper = merge(samples, order=WEIGHING, engine=self.options.engine)
        if share is not None:
            share = max(share - (time.perf_counter() - started), NO_TIME)
        return minimal_automaton(
            samples, upper, time_limit=share, listener=self._listener(kind.kind)
        )

    def _trivial(
        self,
        kind: type[Machine],
        samples: SampleSet,
        traces: TraceSet,
        numbers: NDArray[np.int64],
    ) -> tuple[int, ...]:
        """Decide which labels the search for this machine does without, and note why."""
        labels, options = samples.labels, self.options
        if not options.remove_trivial:
            self.verdicts[kind.kind] = ()
            return ()
        if self.trivial is not None:
            named = tuple(code for code, label in enumerate(labels) if label in self.trivial)
            self.verdicts[kind.kind] = given_verdicts(labels, named)
            return named
        weighed = not options.strategy.keeps_labels
        judged = judge_labels(samples, beyond_no_event=weighed)
        if weighed:
            judged = self._weighed(kind, samples, judged)
        self.verdicts[kind.kind] = tuple(verdict.renumbered(numbers) for verdict in judged)
        found = [code for code, one in enumerate(judged) if one.verdict is Verdict.TRIVIAL]
        silence = labels.get(NO_EVENT)
        if silence is None or silence in found:
            return tuple(found)
        # With "no event" kept a machine can count steps, and explain away that
        # labels are read at the wrong time: that is for the user to know.
        if fitting_timing(traces, self._asking(kind), options.timing, (silence,)) is not None:
            found.append(silence)
        return tuple(sorted(found))

    def _weighed(
        self, kind: type[Machine], samples: SampleSet, verdicts: tuple[LabelVerdict, ...]
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

        def states(without: set[int]) -> float:
            histories = remove_trivial(samples.histories, sorted(without))
            try:
                found = self._merged(kind, replace(samples, histories=histories), WEIGHING)
            except Contradiction:
                return inf
            self._weighing[frozenset(without)] = found
            return found.states

        before, fewest = set(trivial), states(trivial)
        first = self._weighing.get(frozenset(trivial))
        if first is not None and first.tree_nodes > WEIGHED_NODES:
            undecided = []
        # Where answers vary at all, no machine has fewer than two states.
        for code in dropped + undecided:
            if fewest > 2 and (found := states(trivial ^ {code})) < fewest:
                trivial, fewest = trivial ^ {code}, found
        changed = {True: Verdict.TRIVIAL, False: Verdict.UNDECIDED}
        return tuple(
            replace(one, verdict=changed[code in trivial], basis=Basis.SEARCH)
            if code in trivial ^ before
            else one
            for code, one in enumerate(verdicts)
        )

    def _merged(
        self,
        kind: type[Machine],
        samples: SampleSet,
        strategy: Strategy,
        time_limit: float | None = None,
    ) -> Automaton:
        return merge(
            samples,
            order=strategy,
            engine=self.options.engine,
            time_limit=time_limit or self.time_left(),
            listener=self._listener(kind.kind),
            seed=self.options.seed,
            effort=self.options.effort,
        )

    def _known_trivial(self, traces: TraceSet, trivial: tuple[int, ...]) -> tuple[int, ...]:
        """Of trivial labels, return those that are so in every state, seen or not."""
        if self.trivial is not None:
            return trivial
        return tuple(code for code in trivial if traces.labels[code] == NO_EVENT)

    def _explained(
        self,
        rows: Contradiction,
        kind: type[Machine],
        traces: TraceSet,
        numbers: NDArray[np.int64],
        trivial: tuple[int, ...],
    ) -> ContradictoryTraces:
        # Labels dropped on evidence are not to blame: nothing contradicts without them.
        known = self._known_trivial(traces, trivial)

        def name(number: int) -> str:
            return self.place(int(numbers[number]))

        timing = self.options.timing
        return explain(rows, traces, self._asking(kind), kind.kind, timing, known, name)

    def _asking(self, kind: type[Machine]) -> Asking:
        return self._reward_samples if kind is RewardMachine else transition_samples

    def _reward_samples(self, traces: TraceSet, histories: Histories) -> SampleSet:
        return reward_samples(traces, histories, digits=self.options.reward_digits)

    def _listener(self, name: str) -> Callable[[Progress], None] | None:
        if self.progress is None:
            return None
        listen = self.progress
        return lambda progress: listen(name, progress)

    def _note(self, machine: Machine, automaton: Automaton, seconds: float) -> None:
        before = self.statistics.get(machine.kind)
        promotions = sum(event.red is None for event in automaton.events)
        self.automata[machine.kind] = automaton
        self.statistics[machine.kind] = MachineStatistics(
            states=machine.states,
            prefix_tree_nodes=automaton.tree_nodes,
            merges=len(automaton.events) - promotions,
            promotions=promotions,
            attempts=automaton.attempts,
            constant_outputs=len(machine.constant_value),
            outputs_by_state=len(machine.output_value),
            seconds=seconds + (before.seconds if before else 0.0),
        )
