"""Traces + the states that machines are in there → which of them are worth looking at."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from resolvent.replay import CodedShard
from resolvent.traces import Codes, TraceSet
from resolvent.traces.vocabulary import distinct_pairs


@dataclass(frozen=True)
class Notable:
    """The shortest trace, the longest one, and the one that visits most states, by their numbers.

    Each is a tuple that begins with why it was taken, and ends with its number: the least tuple
    of all pieces is that of all traces.
    """

    shortest: tuple[int, int]
    longest: tuple[int, int]
    most_states: tuple[int, int, int]

    @classmethod
    def of(cls, shard: CodedShard, states: Mapping[str, Codes]) -> "Notable":
        """Choose among the traces of a shard, of which there is one at least."""
        lengths, visited = shard.length, _visited(shard.traces, states)
        shortest, longest = int(np.argmin(lengths)), int(np.argmax(lengths))
        most = int(np.lexsort((lengths, -visited))[0])
        return cls(
            (int(lengths[shortest]), shortest + shard.first),
            (-int(lengths[longest]), longest + shard.first),
            (-int(visited[most]), int(lengths[most]), most + shard.first),
        )

    def __add__(self, other: "Notable") -> "Notable":
        return Notable(
            min(self.shortest, other.shortest),
            min(self.longest, other.longest),
            min(self.most_states, other.most_states),
        )

    def reasons(self) -> list[tuple[int, str]]:
        """Return numbers of traces, each with why it is worth looking at."""
        return [
            (self.most_states[-1], "visits most states"),
            (self.shortest[-1], "the shortest"),
            (self.longest[-1], "the longest"),
        ]


@dataclass(frozen=True, eq=False)
class Examples:
    """Some traces to look at: why each is worth it, by its number; and the traces themselves."""

    why: dict[int, str]
    traces: TraceSet

    def trace(self, number: int) -> TraceSet:
        """Return the trace with this number, as a set of one."""
        return self.traces.take([sorted(self.why).index(number)])


def _visited(traces: TraceSet, states: Mapping[str, Codes]) -> NDArray[np.int64]:
    """Return how many combinations of states each trace visits."""
    memory, memories = np.zeros(traces.steps, np.int32), 1
    for state in states.values():
        sizes = int(state.max(initial=-1)) + 2  # one more, for "not known"
        kept, memory = distinct_pairs(memory, state + np.int32(1), memories, sizes)
        memories = len(kept)
    # Sorted, not `np.unique`, which puts millions of numbers into a hash table one by one.
    keys = np.sort(np.repeat(np.arange(len(traces)), np.diff(traces.offsets)) * memories + memory)
    new = np.diff(keys, prepend=-1) > 0
    return np.bincount(keys[new] // memories, minlength=len(traces))
