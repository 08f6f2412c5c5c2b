"""The paper's overall algorithm on traces in memory: two machines that explain them."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from resolvent.contradiction import Naming, explain
from resolvent.machines import Machine, MachinePair, RewardMachine, TransitionMachine, build_machine
from resolvent.machines.score import states_at_steps
from resolvent.merging import Automaton, Contradiction, Progress, merge
from resolvent.reduction import ConstantOutputs, remove_redundant, remove_trivial, trivial_codes
from resolvent.result import MachineStatistics, Options
from resolvent.samples import Histories, SampleSet, reward_samples, transition_samples
from resolvent.supplement import supplement
from resolvent.traces import TraceSet

M = TypeVar("M", bound=Machine)

ProgressListener = Callable[[str, Progress], None]
"""Told now and then which machine is being inferred and how far it is."""


@dataclass(frozen=True)
class Learned:
    """Two machines that explain some traces, and how they were found."""

    machines: MachinePair
    statistics: dict[str, MachineStatistics]
    histories: Histories
    automata: dict[str, Automaton]

    @property
    def steps(self) -> int:
        """How many steps they were learned from."""
        return int(self.histories.offsets[-1])


@dataclass
class Learner:
    """Learns both machines from traces in memory.

    `time_left` says how many seconds it may take. Seconds of several calls add up.
    """

    options: Options
    time_left: Callable[[], float | None]
    progress: ProgressListener | None = None
    statistics: dict[str, MachineStatistics] = field(default_factory=dict)
    automata: dict[str, Automaton] = field(default_factory=dict)

    def learn(
        self, traces: TraceSet, name: Naming, known: TransitionMachine | None = None
    ) -> Learned:
        """Learn a Transition Machine, and with its states beside the observation a Reward Machine.

        `name` says what an error should call a trace. If a Transition Machine
        is `known` already, only the other one is learned.

        Paper: "Overall Algorithm".
        """
        options = self.options
        trivial = trivial_codes(traces.labels, options.trivial) if options.remove_trivial else ()
        # Trivial labels are taken out once, for both machines.
        histories = remove_trivial(Histories.of(traces, options.timing), trivial)

        transition = known
        if transition is None:
            samples = transition_samples(traces, histories)
            transition = self._machine(TransitionMachine, traces, samples, trivial, name)

        observed = None
        if options.supplement:
            observed = supplement(transition, traces, states_at_steps(transition, histories))
        digits = options.reward_digits
        samples = reward_samples(traces, histories, observed=observed, digits=digits)
        more = {"supplemented": options.supplement, "reward_digits": digits}
        reward = self._machine(RewardMachine, traces, samples, trivial, name, **more)
        pair = MachinePair(transition, reward, options.timing)
        return Learned(pair, dict(self.statistics), histories, dict(self.automata))

    def _machine(
        self,
        kind: type[M],
        traces: TraceSet,
        samples: SampleSet,
        trivial: tuple[int, ...],
        name: Naming,
        **more: Any,
    ) -> M:
        """Reduce the samples, merge states, and give back what reduction took out."""
        started = time.perf_counter()
        reduced, constants = samples, ConstantOutputs.nothing()
        if self.options.remove_redundant:
            reduced, constants = remove_redundant(reduced)
        try:
            automaton = merge(
                reduced,
                order=self.options.strategy,
                engine=self.options.engine,
                time_limit=self.time_left(),
                listener=self._listener(kind.kind),
            )
        except Contradiction as rows:
            ask = self._reward_samples if kind is RewardMachine else transition_samples
            raise explain(
                rows, traces, ask, kind.kind, self.options.timing, trivial, name
            ) from None
        machine = build_machine(kind, automaton, samples, constants, trivial, **more)
        self._note(machine, automaton, time.perf_counter() - started)
        return machine

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
