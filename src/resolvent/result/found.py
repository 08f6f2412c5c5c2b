"""What an inference found, and how: the machines, what each took, and where it ended.

`Found` is about the traces that were learned from, `Standing` about all of them. Both are plain
data, as a result is that holds them.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from resolvent.exact import Certificate
from resolvent.machines import Alternative, Machine, Machines
from resolvent.machines.automaton import Event
from resolvent.inference.attempts import Ran
from resolvent.inference.attempts import Tried
from resolvent.reduction import LabelVerdict
from resolvent.replay import Corpus, Replay
from resolvent.samples import LabelTiming
from resolvent.traces import Codes, Label, Vocabulary
from resolvent.wording import amount


@dataclass(frozen=True)
class MergeEvent:
    """One decision of the search, by the label histories of the states it was about.

    `into` is None when the state became one of its own.
    """

    history: tuple[Label, ...]
    into: tuple[Label, ...] | None
    agreeing: int
    folded: int


@dataclass(frozen=True, eq=False)
class MergeLog:
    """The events of a search, and the tree of label histories they are about.

    Node n of the tree hangs from `parent[n]` by the label of code `label[n]`; node 0
    is the empty history.
    """

    events: tuple[Event, ...]
    parent: Codes
    label: Codes
    labels: Vocabulary[Label]

    def told(self) -> tuple[MergeEvent, ...]:
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
    """What it took to find one machine. Two are equal if they differ in seconds alone.

    No machine of fewer than `at_least` states explains the traces: so many label histories are
    followed by answers that pairwise differ. `ran` says what was tried side by side, and where.
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
    ran: tuple[Ran, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Refinement:
    """How many of the traces were learned from, and in how many rounds.

    After each round all traces were replayed through the machines, and some that
    these could not explain were learned from as well; the last replay found
    none. So the machines explain every trace: that was checked. Where they are `noisy`,
    they explain what is most likely, and say how often it comes.
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
class Found:
    """Machines that explain some traces, and for each how it was found, by kind.

    `steps` counts the steps learned from. `tried_ending` is how many traces there
    were when a machine for when episodes end was last tried in vain; 0 if it never was.
    Of machines with noise, `log_evidence` is how likely the one found is, and by their odds
    beside it the best of each other size; `alternatives` are those that are hardly less likely,
    and `unfinished` the kinds whose search was cut short by the time limit. `tried` says which
    strategies were tried for each machine.
    """

    machines: Machines
    steps: int
    statistics: dict[str, MachineStatistics]
    verdicts: dict[str, tuple[LabelVerdict, ...]]
    certificates: dict[str, Certificate[Machine]]
    logs: dict[str, MergeLog]
    tried_ending: int = 0
    log_evidence: dict[str, dict[int, float]] = field(default_factory=dict)
    alternatives: dict[str, tuple[Alternative, ...]] = field(default_factory=dict)
    unfinished: frozenset[str] = frozenset()
    tried: dict[str, tuple[Tried, ...]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Standing:
    """Where an inference ended, for an update to go on from.

    All traces, which of them were learned from, what was found, and what all of them
    show of that; and as what the traces were recorded, where they were read otherwise.
    """

    corpus: Corpus
    chosen: NDArray[np.int64]
    found: Found
    shown: Replay
    recorded: "Recorded | None" = None


@dataclass(frozen=True)
class Recorded:
    """Traces as they were recorded, where machines were learned from another reading of them."""

    corpus: Corpus
    timing: LabelTiming
