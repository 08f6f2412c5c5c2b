"""The whole inference: traces → a Transition Machine and a Reward Machine.

`infer` is the paper's overall algorithm, readable as its five lines.
"""

import time
from collections.abc import Callable, Iterable
from importlib.metadata import version
from typing import Any, TypeVar

from resolvent.contradiction import explain
from resolvent.errors import OptionError, TraceError
from resolvent.machines import (
    Machine,
    MachinePair,
    Provenance,
    RewardMachine,
    TransitionMachine,
    build_machine,
    observe_termination,
)
from resolvent.machines.score import states_at_steps
from resolvent.merging import Automaton, Contradiction, Progress, merge
from resolvent.reduction import ConstantOutputs, remove_redundant, remove_trivial, trivial_codes
from resolvent.result import InferenceResult, MachineStatistics, Options
from resolvent.samples import Histories, LabelTiming, SampleSet, reward_samples, transition_samples
from resolvent.supplement import supplement as pair_with_states
from resolvent.traces import Codes, Label, TraceSet

M = TypeVar("M", bound=Machine)

ProgressListener = Callable[[str, Progress], None]
"""Told now and then which machine is being inferred and how far it is."""


def infer(
    traces: TraceSet,
    *,
    strategy: str = "edsm",
    timing: LabelTiming | str = LabelTiming.CURRENT,
    trivial: Iterable[Label | str] = (),
    supplement: bool = True,
    remove_redundant: bool = True,
    remove_trivial: bool = True,
    reward_digits: int | None = None,
    engine: str = "native",
    time_limit: float | None = None,
    progress: ProgressListener | None = None,
) -> InferenceResult:
    """Infer the two machines that explain the traces.

    Args:
        traces: What the agent saw.
        strategy: The order of merging: "edsm" (most evidence first) or "rpni"
            (the paper's).
        timing: Which labels are read before a step is answered.
        trivial: Labels known to change no state, besides "no event"; as sets of
            propositions or as the texts they print as.
        supplement: Pair observations with Transition Machine states for the
            Reward Machine.
        remove_redundant: Leave questions with one answer throughout out of the
            search, and put the answer back afterwards.
        remove_trivial: Leave trivial labels out of the search, and put them back
            as self-loops.
        reward_digits: Round rewards to so many decimals before comparing them.
        engine: "native", or "python" for the executable specification.
        time_limit: Seconds for the whole inference; `TimeLimitReached` after that.
        progress: Called now and then with the machine's name and how far it is.

    Raises:
        ContradictoryTraces: when no deterministic machine over these labels can
            explain the traces.

    >>> import gymnasium as gym, resolvent as rs
    >>> house = rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
    >>> pair = infer(house).machines
    >>> pair.transition.states, pair.reward.states
    (2, 2)
    """
    if len(traces) == 0:
        raise TraceError("there are no traces to infer from: collect or read at least one")
    if isinstance(trivial, str):
        raise OptionError(f"trivial labels come as a list: write ['{trivial}'], not '{trivial}'")
    trivial = tuple(trivial)
    if trivial and not remove_trivial:
        raise OptionError("trivial labels are named, but remove_trivial is off: leave out one")
    options = Options(
        strategy,
        _timing(timing),
        trivial,
        supplement,
        remove_redundant,
        remove_trivial,
        reward_digits,
        engine,
        time_limit,
    )
    run = _Run(traces, options, progress)
    histories = run.histories

    samples = transition_samples(traces, histories)
    transition = run.learn(TransitionMachine, samples)

    states = states_at_steps(transition, histories)
    observed = pair_with_states(transition, traces, states) if supplement else None
    samples = reward_samples(traces, histories, observed=observed, digits=reward_digits)
    reward = run.learn(RewardMachine, samples, supplemented=supplement, reward_digits=reward_digits)
    return run.result(transition, reward, states)


class _Run:
    """One inference under way: its histories, its clock, what it has counted so far."""

    def __init__(
        self, traces: TraceSet, options: Options, progress: ProgressListener | None
    ) -> None:
        self.started = self.lap = time.perf_counter()
        self.traces = traces
        self.options = options
        self.progress = progress
        self.trivial = (
            trivial_codes(traces.labels, options.trivial) if options.remove_trivial else ()
        )
        # Trivial labels are taken out once, for both machines.
        self.histories = remove_trivial(Histories.of(traces, options.timing), self.trivial)
        self.statistics: dict[str, MachineStatistics] = {}
        self.automata: dict[str, Automaton] = {}

    def learn(self, kind: type[M], samples: SampleSet, **more: Any) -> M:
        """Reduce the samples, merge states, and give back what reduction took out."""
        reduced, constants = samples, ConstantOutputs.nothing()
        if self.options.remove_redundant:
            reduced, constants = remove_redundant(reduced)
        try:
            automaton = merge(
                reduced,
                order=self.options.strategy,
                engine=self.options.engine,
                time_limit=self._time_left(),
                listener=self._listener(kind.kind),
            )
        except Contradiction as rows:
            ask = self._reward_samples if kind is RewardMachine else transition_samples
            raise explain(
                rows, self.traces, ask, kind.kind, self.options.timing, self.trivial
            ) from None
        machine = build_machine(kind, automaton, samples, constants, self.trivial, **more)
        self._note(machine, automaton)
        return machine

    def result(
        self, transition: TransitionMachine, reward: RewardMachine, transition_states: Codes
    ) -> InferenceResult:
        """Put the pair together with all that was counted."""
        reward_states = states_at_steps(reward, self.histories)
        pair = MachinePair(
            transition,
            reward,
            self.options.timing,
            observe_termination(self.traces, transition_states, reward_states),
            Provenance(
                version=version("resolvent"),
                traces=len(self.traces),
                steps=self.traces.steps,
                traces_sha256=self.traces.digest,
                options=self.options.stored(),
            ),
        )
        seconds = {name: one.seconds for name, one in self.statistics.items()}
        return InferenceResult(
            machines=pair,
            options=self.options,
            traces=len(self.traces),
            steps=self.traces.steps,
            transition=self.statistics["transition"],
            reward=self.statistics["reward"],
            seconds={**seconds, "total": time.perf_counter() - self.started},
            _histories=self.histories,
            _automata=self.automata,
        )

    def _reward_samples(self, traces: TraceSet, histories: Histories) -> SampleSet:
        return reward_samples(traces, histories, digits=self.options.reward_digits)

    def _time_left(self) -> float | None:
        limit = self.options.time_limit
        if limit is None or not limit > 0:
            return limit  # merge() refuses what is not above 0
        return max(limit - (time.perf_counter() - self.started), 1e-9)

    def _listener(self, name: str) -> Callable[[Progress], None] | None:
        if self.progress is None:
            return None
        listen = self.progress
        return lambda progress: listen(name, progress)

    def _note(self, machine: Machine, automaton: Automaton) -> None:
        now = time.perf_counter()
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
            seconds=now - self.lap,
        )
        self.lap = now


def _timing(timing: LabelTiming | str) -> LabelTiming:
    try:
        return LabelTiming(timing)
    except ValueError:
        known = ", ".join(LabelTiming)
        raise OptionError(f"unknown timing '{timing}': choose one of {known}") from None
