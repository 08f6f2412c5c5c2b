"""The whole inference: traces → a Transition Machine and a Reward Machine.

`infer` is the paper's overall algorithm, readable as its five lines.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, TypeVar

import numpy as np

from resolvent.contradiction import explain
from resolvent.errors import OptionError, TraceError
from resolvent.machines import (
    Machine,
    MachinePair,
    Provenance,
    RewardMachine,
    Termination,
    TransitionMachine,
    build_machine,
)
from resolvent.machines.drawing import count
from resolvent.machines.score import states_at_steps
from resolvent.merging import Automaton, Contradiction, Progress, merge
from resolvent.reduction import ConstantOutputs, remove_redundant, remove_trivial, trivial_codes
from resolvent.samples import Histories, LabelTiming, SampleSet, reward_samples, transition_samples
from resolvent.supplement import supplement as pair_with_states
from resolvent.traces import Label, TraceSet, label_text

M = TypeVar("M", bound=Machine)

ProgressListener = Callable[[str, Progress], None]
"""Told now and then which machine is being inferred and how far it is."""


@dataclass(frozen=True)
class MergeEvent:
    """One decision of the search, by the label histories of the states it was about.

    `into` is None when the state became one of its own.
    """

    history: tuple[Label, ...]
    into: tuple[Label, ...] | None
    agreeing: int
    folded: int


@dataclass(frozen=True)
class MachineStatistics:
    """What it took to find one machine."""

    states: int
    prefix_tree_nodes: int
    merges: int
    promotions: int
    attempts: int
    constant_outputs: int
    outputs_by_state: int
    seconds: float


@dataclass(frozen=True)
class Options:
    """What `infer` was asked to do; stored with the machines."""

    strategy: str = "edsm"
    timing: LabelTiming = LabelTiming.CURRENT
    trivial: tuple[Label | str, ...] = ()
    supplement: bool = True
    remove_redundant: bool = True
    remove_trivial: bool = True
    reward_digits: int | None = None
    engine: str = "native"
    time_limit: float | None = None

    def stored(self) -> dict[str, Any]:
        """Return the options that shape the machines, as JSON values."""
        return {
            "strategy": self.strategy,
            "timing": str(self.timing),
            "trivial": sorted(
                name if isinstance(name, str) else label_text(frozenset(name))
                for name in self.trivial
            ),
            "supplement": self.supplement,
            "remove_redundant": self.remove_redundant,
            "remove_trivial": self.remove_trivial,
            "reward_digits": self.reward_digits,
        }


@dataclass(frozen=True)
class InferenceResult:
    """The machines, and how they were found."""

    machines: MachinePair
    options: Options
    traces: int
    steps: int
    transition: MachineStatistics
    reward: MachineStatistics
    seconds: dict[str, float]
    _histories: Histories = field(repr=False)
    _automata: dict[str, Automaton] = field(repr=False)

    def events(self, machine: str) -> tuple[MergeEvent, ...]:
        """Return the log of merges and promotions for "transition" or "reward"."""
        labels, tree = self._histories.labels, self._histories.tree

        def history(node: int) -> tuple[Label, ...]:
            return tuple(labels[code] for code in tree.history(node))

        return tuple(
            MergeEvent(
                history(event.blue),
                None if event.red is None else history(event.red),
                event.score,
                event.folded,
            )
            for event in self._automata[machine].events
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as JSON values, as `resolvent infer --json` prints them."""
        return {
            "tm_states": self.transition.states,
            "rm_states": self.reward.states,
            "traces": self.traces,
            "steps": self.steps,
            "seconds": {name: round(value, 6) for name, value in self.seconds.items()},
            "prefix_tree_nodes": {
                "transition": self.transition.prefix_tree_nodes,
                "reward": self.reward.prefix_tree_nodes,
            },
            "merges": {"transition": self.transition.merges, "reward": self.reward.merges},
            "folds_tried": {"transition": self.transition.attempts, "reward": self.reward.attempts},
            "constant_outputs": {
                "transition": self.transition.constant_outputs,
                "reward": self.reward.constant_outputs,
            },
            "terminal_situations": len(self.machines.termination.ends),
            "ambiguous_terminations": len(self.machines.termination.ambiguous),
            "options": {**self.options.stored(), "engine": self.options.engine},
        }

    def __str__(self) -> str:
        lines = [f"{self.traces} traces, {self.steps} steps"]
        for name, one in (("Transition Machine", self.transition), ("Reward Machine", self.reward)):
            lines.append(
                f"{name:<19} {count(one.states, 'state')}, from {one.prefix_tree_nodes} "
                f"prefix-tree nodes by {count(one.merges, 'merge')}, in {one.seconds:.3f} s"
            )
        lines.append(f"{'termination':<19} {self.machines.termination}")
        lines.append(f"{'total':<19} {self.seconds['total']:.3f} s")
        return "\n".join(lines)


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
    options = Options(
        strategy,
        _timing(timing),
        tuple(trivial),
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

    observed = pair_with_states(transition, traces, histories) if supplement else None
    samples = reward_samples(traces, histories, observed=observed, digits=reward_digits)
    reward = run.learn(RewardMachine, samples, supplemented=supplement, reward_digits=reward_digits)
    return run.result(transition, reward)


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

    def result(self, transition: TransitionMachine, reward: RewardMachine) -> InferenceResult:
        """Put the pair together with all that was counted."""
        pair = MachinePair(
            transition,
            reward,
            self.options.timing,
            _termination(transition, reward, self.traces, self.histories),
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


def _termination(
    transition: TransitionMachine, reward: RewardMachine, traces: TraceSet, histories: Histories
) -> Termination:
    """Find the situations whose step ended an episode, and those where it sometimes did not."""
    last = traces.offsets[1:][traces.terminated] - 1
    ending = np.zeros(traces.steps, bool)
    ending[last] = True
    observed = traces.at_step(traces.observation_codes)
    # Only steps with the observation of some ending one can tell anything.
    suspects = np.zeros(len(traces.observations), bool)
    suspects[observed[last]] = True
    rows = np.flatnonzero(suspects[observed])
    # And of those only the ones with its action too.
    suspects = np.zeros((len(traces.observations), len(traces.actions)), bool)
    suspects[observed[last], traces.action_codes[last]] = True
    rows = rows[suspects[observed[rows], traces.action_codes[rows]]]
    situations = np.stack(
        [
            observed[rows],
            states_at_steps(transition, histories)[rows],
            states_at_steps(reward, histories)[rows],
            traces.action_codes[rows],
        ],
        axis=1,
    )
    ends = {tuple(row) for row in situations[ending[rows]].tolist()}
    sizes = (len(traces.observations), transition.states, reward.states, len(traces.actions))
    keys = np.ravel_multi_index(tuple(situations.T), sizes)
    both = np.intersect1d(keys[ending[rows]], keys[~ending[rows]])
    ambiguous = {tuple(map(int, np.unravel_index(key, sizes))) for key in both}

    def named(rows: set[tuple[int, ...]]) -> frozenset[Any]:
        return frozenset((traces.observations[o], q, u, traces.actions[a]) for o, q, u, a in rows)

    return Termination(named(ends - ambiguous), named(ambiguous))
