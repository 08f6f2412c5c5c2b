"""The parts of an inference result: machines, how each was inferred, and the state for updates.

`Fit` is about the traces that machines were learned from, `InferenceState` about all traces. All
are plain data.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from resolvent._util.records import to_builtins
from resolvent._util.text import amount
from resolvent.machines import Alternative, Machine, Machines, machines_of
from resolvent.machines.build import RawAutomaton
from resolvent.preprocess.reduction import TrivialityTest
from resolvent.preprocess.timing import LabelTiming
from resolvent.replay.corpus import Corpus
from resolvent.replay.counts import ReplayCounts

# ---- attempts ----------------------------------------------------------------

CHOSEN: Final = "chosen"
LONGER: Final = "longer"
GIVEN_UP: Final = "given up"
OUT_OF_TIME: Final = "out of time"

FOUND: Final = "found"
IMPOSSIBLE: Final = "impossible"
UNDECIDED: Final = "undecided"
STOPPED: Final = "stopped"


@dataclass(frozen=True)
class Attempt:
    """One attempt at a machine, and its outcome; equality ignores seconds.

    Attributes:
        name: The strategy; or a part of it that ran in parallel with others, such as "6 states,
            seed 1". Which of these are stopped differs from run to run; the machines do not.
        outcome: "chosen"; "longer", if its machine has no shorter description than the chosen
            one; "given up", if its machine had too many states or took too much work; "out of
            time". In parallel: "found", if there is such a machine; "impossible", if there is none;
            "undecided", if time ran out; "stopped", if another attempt made it superfluous.
        states: Number of states of its machine; None if there is none.
        bits: Length of the machine's description.
        seconds: Time it took; 0 if it was stopped.
        workers: The workers that ran it in parallel, such as "processes"; None if it ran alone.

    >>> print(Attempt("edsm", "chosen", 7, 310.4, 0.02))
    edsm: 7 states, 310 bits
    >>> print(Attempt("rpni", "given up"))
    rpni: given up
    >>> print(Attempt("6 states, seed 1", "impossible", seconds=3.42, workers="ray"))
    6 states, seed 1: impossible, 3.4 s
    """

    name: str
    outcome: str
    states: int | None = None
    bits: float | None = None
    seconds: float = field(default=0.0, compare=False)
    workers: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        bits = None if self.bits is None else round(self.bits, 3)
        return {**vars(self), "bits": bits, "seconds": round(self.seconds, 6)}

    def __str__(self) -> str:
        if self.bits is not None:
            return f"{self.name}: {amount(self.states or 0, 'state')}, {self.bits:,.0f} bits"
        seconds = f", {self.seconds:.1f} s" if self.workers and self.outcome != STOPPED else ""
        return f"{self.name}: {self.outcome}{seconds}"


# ---- one machine -------------------------------------------------------------


@dataclass(frozen=True)
class MachineStatistics:
    """The size of a machine, and the effort for it. Equality ignores seconds.

    No machine of fewer than `at_least` states explains the traces: this number of label sequences
    have outputs that differ pairwise.
    """

    states: int
    prefix_tree_nodes: int
    merges: int
    promotions: int
    attempts: int
    constant_outputs: int
    outputs_by_state: int
    seconds: float = field(compare=False)
    at_least: int = 1

    @classmethod
    def of(
        cls, machine: Machine, automaton: RawAutomaton, seconds: float, at_least: int = 1
    ) -> "MachineStatistics":
        """Return the figures of a machine that was built from an automaton."""
        promotions = sum(event.red is None for event in automaton.events)
        return cls(
            states=machine.states,
            prefix_tree_nodes=automaton.tree_nodes,
            merges=len(automaton.events) - promotions,
            promotions=promotions,
            attempts=automaton.attempts,
            constant_outputs=len(machine.constant_value),
            outputs_by_state=len(machine.output_value),
            seconds=seconds,
            at_least=at_least,
        )


@dataclass(frozen=True)
class MinimalityProof:
    """The number of states of a machine, and a lower bound on that of any machine.

    No machine with fewer than `lower_bound` states explains the samples. `unique` says whether the
    machine is the only one of its size, as far as the samples distinguish machines: a transition
    with no query after it does not count. It is None if unknown, and then so is `alternative`,
    another machine of the same size that explains the samples.
    """

    states: int
    lower_bound: int
    unique: bool | None = None
    alternative: Machine | None = None

    @property
    def proven(self) -> bool:
        """Whether no smaller machine explains the samples."""
        return self.lower_bound == self.states

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        attributes = ("states", "lower_bound", "proven", "unique")
        return to_builtins(self, attributes, names={"lower_bound": "at_least"})

    def __str__(self) -> str:
        """Return the proof in one line."""
        states = amount(self.states, "state")
        if not self.proven:
            return f"at most {states}, at least {self.lower_bound:,}: not proven (time ran out)"
        fewer = self.states - 1
        impossible = f": {fewer:,} {'is' if fewer == 1 else 'are'} impossible" if fewer else ""
        unique = {
            True: "unique",
            False: "not unique: another machine of the same size fits as well",
            None: "whether it is unique is not decided",
        }[self.unique]
        return f"{states}, proven minimal{impossible}; {unique}"


@dataclass(frozen=True)
class MachineFit:
    """A machine that explains some traces, and how it was inferred.

    Attributes:
        machine: The machine, with the decisions that led to it.
        statistics: Its size, and the effort for it.
        trivial: The labels that it does without, and why.
        attempts: The attempts at it.
        proof: With strategy "exact", the proof that it is minimal.
        log_evidence: With noise, the log-likelihood of the machine and of the best one of each
            other number of states.
        alternatives: With noise, machines that are nearly as likely.
        finished: False if the time limit ended its search.
    """

    machine: Machine
    statistics: MachineStatistics
    trivial: tuple[TrivialityTest, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    proof: MinimalityProof | None = None
    log_evidence: Mapping[int, float] = field(default_factory=dict)
    alternatives: tuple[Alternative, ...] = ()
    finished: bool = True


@dataclass(frozen=True)
class Fold:
    """The score of one machine in one fold, inferred without the traces that it is tested on.

    Only steps whose output depends on the past are counted: `errors` of the `steps`, `unseen` of
    these without a prediction, and `rare_errors` of the `rare` ones with a rare outcome.
    """

    states: int
    steps: int
    errors: int
    unseen: int
    rare: int
    rare_errors: int

    def as_dict(self) -> dict[str, Any]:
        """Return the counts as JSON values."""
        return to_builtins(self, ("states", "steps", "errors", "unseen", "rare", "rare_errors"))


# ---- all machines ------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Fit:
    """Machines that explain some traces, and how each was inferred.

    `steps` is the number of steps learned from; `failed_termination` that of traces when a machine
    for the end of episodes was last tried without success, 0 if it never was.
    """

    by_name: dict[str, MachineFit]
    timing: LabelTiming
    steps: int
    failed_termination: int = 0

    @cached_property
    def machines(self) -> Machines:
        """The machines."""
        return machines_of([fit.machine for fit in self.by_name.values()], self.timing)

    @property
    def unfinished(self) -> frozenset[str]:
        """The machines whose search was ended by the time limit."""
        return frozenset(name for name, fit in self.by_name.items() if not fit.finished)

    def __getitem__(self, name: str) -> MachineFit:
        return self.by_name[name]


@dataclass(frozen=True)
class Refinement:
    """The number of traces learned from, and the number of rounds.

    After each round all traces were replayed, and some of the counterexamples were added; the last
    replay found none, so the machines explain every trace. If they are `noisy`, they explain the
    most likely outputs, with their frequency.
    """

    rounds: int
    traces: int
    steps: int
    all_traces: int
    noisy: bool = False

    def __str__(self) -> str:
        rounds = amount(self.rounds, "round")
        learned = f"{amount(self.traces, 'trace')} ({amount(self.steps, 'step')})"
        if self.traces == self.all_traces:
            learned = "all traces"
        explained = "but for noise, " if self.noisy else ""
        return f"{learned} in {rounds}; replayed, {explained}all traces are explained"


@dataclass(frozen=True)
class OriginalTraces:
    """Traces as they were recorded, if machines were learned from a preprocessed form of them."""

    corpus: Corpus
    timing: LabelTiming


@dataclass(frozen=True, eq=False)
class InferenceState:
    """The state of an inference, from which an update continues.

    It has all traces and the numbers of the `chosen` ones, from which the machines of `fit` were
    learned, the `counts` of their replay of all traces, and the `original` traces, as they were
    recorded, if another form of them was learned from.
    """

    corpus: Corpus
    chosen: NDArray[np.int64]
    fit: Fit
    counts: ReplayCounts
    original: OriginalTraces | None = None
