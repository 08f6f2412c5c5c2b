"""Count in one pass over the traces all that evidence and reports need.

Input: machines and a shard of the traces. Output: `EvidenceCounts`, which add up over shards.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from resolvent.evaluation.holdout import FailureCounts
from resolvent.evaluation.observed import Numbers
from resolvent.evaluation.weakness import HistoryCounts
from resolvent.machines import Machines
from resolvent.replay import (
    CodedShard,
    Kinds,
    MachineTables,
    ReplayCounts,
    StepQueries,
    replay_shard,
    step_queries,
)
from resolvent.replay.replaying import WITHOUT_ALPHABETS
from resolvent.replay.steps import count_starts, count_steps
from resolvent.traces import Codes, TraceSet
from resolvent.traces.vocabulary import distinct_pairs


@dataclass(frozen=True)
class NotableTraces:
    """The shortest trace, the longest one, and the one that visits most states.

    Each is a tuple of sort keys that ends with the number of the trace: the minimum over all
    shards is that of all traces.
    """

    shortest: tuple[int, int]
    longest: tuple[int, int]
    most_states: tuple[int, int, int]

    @classmethod
    def of(cls, shard: CodedShard, states: Mapping[str, Codes]) -> "NotableTraces":
        """Choose from the traces of a shard, which has at least one."""
        lengths, visited = shard.length, _visited_states(shard.traces, states)
        shortest, longest = int(np.argmin(lengths)), int(np.argmax(lengths))
        most = int(np.lexsort((lengths, -visited))[0])
        return cls(
            (int(lengths[shortest]), shortest + shard.first),
            (-int(lengths[longest]), longest + shard.first),
            (-int(visited[most]), int(lengths[most]), most + shard.first),
        )

    def __add__(self, other: "NotableTraces") -> "NotableTraces":
        return NotableTraces(
            min(self.shortest, other.shortest),
            min(self.longest, other.longest),
            min(self.most_states, other.most_states),
        )

    def reasons(self) -> list[tuple[int, str]]:
        """Return the number of each trace and the reason it is notable."""
        return [
            (self.most_states[-1], "visits most states"),
            (self.shortest[-1], "the shortest"),
            (self.longest[-1], "the longest"),
        ]


@dataclass(frozen=True, eq=False)
class NotableExamples:
    """Notable traces: `why` gives the reason for each by its number."""

    why: dict[int, str]
    traces: TraceSet

    def trace(self, number: int) -> TraceSet:
        """Return the trace with this number, as a set of one."""
        return self.traces.take([sorted(self.why).index(number)])


def _visited_states(traces: TraceSet, states: Mapping[str, Codes]) -> Numbers:
    """Return the number of distinct joint states that each trace visits."""
    joint, size = np.zeros(traces.steps, np.int32), 1
    for column in states.values():
        width = int(column.max(initial=-1)) + 2  # one more, for an unknown state
        pairs, joint = distinct_pairs(joint, column + np.int32(1), size, width)
        size = len(pairs)
    # Sorting is faster than the hash table of `np.unique` for millions of numbers.
    keys = np.sort(np.repeat(np.arange(len(traces)), np.diff(traces.offsets)) * size + joint)
    is_new = np.diff(keys, prepend=-1) > 0
    return np.bincount(keys[is_new] // size, minlength=len(traces))


@dataclass(frozen=True, eq=False)
class EvidenceCounts:
    """The replay of traces, and the other counts of the same pass.

    Attributes:
        shown: The replay, with the earliest location of everything.
        steps: The distinct steps of the traces, whatever the states.
        starts: The distinct starts of traces.
        failures: The number of traces that the machines predict without an error.
        histories: By machine, the label histories that reach each state and transition.
        notable: The traces worth looking at.
        is_known: Whether any machine knows any step.
    """

    shown: ReplayCounts
    steps: Kinds
    starts: Kinds
    failures: FailureCounts
    histories: Mapping[str, HistoryCounts]
    notable: NotableTraces
    is_known: bool

    @classmethod
    def of(
        cls, shard: CodedShard, replay: ReplayCounts, steps: Mapping[str, StepQueries]
    ) -> "EvidenceCounts":
        """Count in one shard, by its replay and the queries of each machine at its steps."""
        traces = shard.traces
        return cls(
            replace(replay, states={}),
            count_steps(shard, {}),
            count_starts(shard, {}),
            FailureCounts.of(steps.values(), traces),
            {kind: HistoryCounts.of(column, traces.offsets) for kind, column in steps.items()},
            NotableTraces.of(shard, replay.states),
            any(
                np.any((column.states >= 0) & (column.questions >= 0)) for column in steps.values()
            ),
        )

    def __add__(self, other: "EvidenceCounts") -> "EvidenceCounts":
        return EvidenceCounts(
            self.shown + other.shown,
            self.steps + other.steps,
            self.starts + other.starts,
            self.failures + other.failures,
            {kind: counts + other.histories[kind] for kind, counts in self.histories.items()},
            self.notable + other.notable,
            self.is_known or other.is_known,
        )


@dataclass(frozen=True, eq=False)
class EvidencePass:
    """The pass over one shard, as a function that a worker can run."""

    machines: Machines
    tables: MachineTables

    def __call__(self, shard: CodedShard) -> EvidenceCounts:
        """Return the counts of one shard, without the alphabets, which the caller has."""
        replay, steps = self.replay(shard)
        return EvidenceCounts.of(shard, replace(replay, alphabets=WITHOUT_ALPHABETS), steps)

    def replay(self, shard: CodedShard) -> tuple[ReplayCounts, dict[str, StepQueries]]:
        """Return the replay of a shard, and the queries of each machine at its steps."""
        replay = replay_shard(
            self.tables, shard, shortest=False, unknown_states=True, earliest=True, states=True
        )
        return replay, step_queries(self.machines, shard.traces, replay.states)
