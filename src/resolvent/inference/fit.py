"""The parts of an inference result: machines with their statistics, and the state for updates.

`Fit` is about the traces that were learned from, `InferenceState` about all traces. All are plain
data.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from resolvent._util.text import amount
from resolvent.inference.attempts import Attempt, WorkerRun
from resolvent.inference.exact.certificate import MinimalityProof
from resolvent.machines import Alternative, Machine, Machines
from resolvent.machines.automaton import RawMergeEvent
from resolvent.preprocess.reduction import TrivialityTest
from resolvent.preprocess.timing import LabelTiming
from resolvent.replay import Corpus, ReplayCounts
from resolvent.traces import Codes, Label, Vocabulary


@dataclass(frozen=True)
class MergeEvent:
    """One decision of the search, by the label histories of the states.

    `into` is None if the state was promoted.
    """

    history: tuple[Label, ...]
    into: tuple[Label, ...] | None
    agreeing: int
    folded: int


@dataclass(frozen=True, eq=False)
class MergeLog:
    """The events of a search, and the tree of label histories that they refer to.

    Node n of the tree is the child of `parent[n]` by the label with code `label[n]`; node 0 is the
    empty history.
    """

    events: tuple[RawMergeEvent, ...]
    parent: Codes
    label: Codes
    labels: Vocabulary[Label]

    def by_history(self) -> tuple[MergeEvent, ...]:
        """Return the events, with histories instead of nodes."""
        return tuple(
            MergeEvent(
                self._history(event.blue),
                None if event.red is None else self._history(event.red),
                event.score,
                event.folded,
            )
            for event in self.events
        )

    def _history(self, node: int) -> tuple[Label, ...]:
        labels = []
        while node > 0:
            labels.append(self.labels[int(self.label[node])])
            node = int(self.parent[node])
        return tuple(reversed(labels))


@dataclass(frozen=True)
class MachineStatistics:
    """The effort for one machine. Equality ignores seconds.

    No machine of fewer than `at_least` states explains the traces: this number of label histories
    have outputs that differ pairwise. `ran` holds the attempts that ran in parallel.
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
    ran: tuple[WorkerRun, ...] = field(default=(), compare=False)


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
        if self.traces == self.all_traces:
            learned = f"all traces in {rounds}"
        else:
            learned = f"{amount(self.traces, 'trace')} ({amount(self.steps, 'step')}) in {rounds}"
        explained = "but for noise, " if self.noisy else ""
        return f"{learned}; replayed, {explained}all traces are explained"


@dataclass(frozen=True)
class Fit:
    """Machines that explain some traces, and how each was inferred, by machine name.

    Attributes:
        machines: The machines.
        steps: Number of steps learned from.
        statistics: The effort for each machine.
        verdicts: The labels that each machine does without, and why.
        certificates: With strategy "exact", the proof for each machine.
        logs: The merges of each machine.
        tried_ending: Number of traces when a machine for the end of episodes was last tried
            without success; 0 if it never was.
        log_evidence: For machines with noise, the log-likelihood of the best machine of each size.
        alternatives: For machines with noise, those that are nearly as likely.
        unfinished: Machines whose search was ended by the time limit.
        tried: The strategies that were tried for each machine.
    """

    machines: Machines
    steps: int
    statistics: dict[str, MachineStatistics]
    verdicts: dict[str, tuple[TrivialityTest, ...]]
    certificates: dict[str, MinimalityProof[Machine]]
    logs: dict[str, MergeLog]
    tried_ending: int = 0
    log_evidence: dict[str, dict[int, float]] = field(default_factory=dict)
    alternatives: dict[str, tuple[Alternative, ...]] = field(default_factory=dict)
    unfinished: frozenset[str] = frozenset()
    tried: dict[str, tuple[Attempt, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class OriginalTraces:
    """Traces as they were recorded, if machines were learned from a preprocessed form of them."""

    corpus: Corpus
    timing: LabelTiming


@dataclass(frozen=True, eq=False)
class InferenceState:
    """The state of an inference, from which an update continues.

    It holds all traces, the numbers of those learned from (`chosen`), the machines, their replay
    of all traces, and the recorded traces if another form of them was learned from.
    """

    corpus: Corpus
    chosen: NDArray[np.int64]
    found: Fit
    shown: ReplayCounts
    recorded: OriginalTraces | None = None
