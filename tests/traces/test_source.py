"""Sources of traces: in memory, joined, and mapped."""

from dataclasses import dataclass

import pytest

from resolvent.traces import TraceSet
from resolvent.traces.source import InMemorySource, JoinedSource, MappedSource, ShardInfo
from worlds import random_world

WORLD = random_world(1, size=9, labels=3, tm_states=3)
SETS = [WORLD.rollouts(4, number) for number in range(3)]


@dataclass(frozen=True)
class First:
    """Keeps the first traces of a shard."""

    count: int

    def __call__(self, traces: TraceSet) -> TraceSet:
        return traces[: self.count]


def test_joined_sources_have_the_shards_of_each():
    joined = JoinedSource([InMemorySource(SETS[:1]), InMemorySource(SETS[1:])])
    assert [*joined] == SETS == [joined.read(number) for number in range(len(joined))]
    assert [joined.name(number) for number in range(3)] == [
        "trace set 0",
        "trace set 0",
        "trace set 1",
    ]
    assert joined.info(1) == ShardInfo("trace set 0")
    assert joined.rows is None
    assert joined.skipped == ()


@pytest.mark.parametrize("count", [1, 3])
def test_a_mapped_source_transforms_what_is_read(count):
    source = InMemorySource(SETS)
    mapped = MappedSource(source, First(count))
    expected = [traces[:count] for traces in SETS]
    assert [*mapped] == expected == [mapped.read(number) for number in range(len(mapped))]
    assert mapped.scan(1).traces == expected[1]
    assert mapped.info(2) == source.info(2)
    assert mapped.fingerprint(0) is None
    assert mapped.is_same(MappedSource(source, First(count)))
    assert not mapped.is_same(MappedSource(source, First(2)))
    assert not mapped.is_same(source)
