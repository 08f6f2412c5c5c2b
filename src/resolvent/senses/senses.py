"""All that stands between raw steps and what machines read, as one value of the model."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from resolvent.senses.discretise import Discretise
from resolvent.senses.reward_levels import RewardLevels
from resolvent.traces.arrangement import Arrangement
from resolvent.traces.gap import Gap
from resolvent.traces.labelling import Labelling
from resolvent.traces.shards import (
    Shards,
    ShardsInMemory,
    arrangements_of,
    gaps_of,
    leaving_out,
    look_at,
    remember,
    seal_of,
)
from resolvent.traces.trace_set import TraceSet


@dataclass(frozen=True)
class Senses:
    """How machines see a world: which readings look equal, and what they take for its labels.

    Numbers are put into intervals first, so that labels can be made of these. Rewards that
    vary are taken for the values that they vary around.

    To see the same traces twice through the same senses changes nothing.

    >>> from resolvent.traces import Trace
    >>> traces = TraceSet([Trace(["hall", "attic"], [None, None], ["up"])])
    >>> Senses().on(traces) is traces
    True
    """

    labelling: Labelling = field(default_factory=Labelling)
    discretise: Discretise | None = None
    rewards: RewardLevels | None = None

    @property
    def are_plain(self) -> bool:
        """Whether traces are taken as they are."""
        return self.labelling.is_given and self.discretise is None and self.rewards is None

    def on(self, traces: TraceSet) -> TraceSet:
        """Return traces as the machines see them."""
        if self.discretise is not None:
            traces = self.discretise.on(traces)
        if self.rewards is not None:
            traces = self.rewards.on(traces)
        return self.labelling.on(traces)

    def on_shards(self, shards: Shards) -> Shards:
        """Return shards of traces as the machines see them, each when it is read."""
        if self.are_plain:
            return shards
        if isinstance(shards, ShardsInMemory):
            return ShardsInMemory([self.on(one) for one in shards])
        return SensedShards(shards, self)


class SensedShards:
    """Shards of traces seen through senses."""

    def __init__(self, shards: Shards, senses: Senses) -> None:
        self.shards, self.senses = shards, senses

    def __len__(self) -> int:
        return len(self.shards)

    def __iter__(self) -> Iterator[TraceSet]:
        return map(self.senses.on, self.shards)

    def read(self, number: int) -> TraceSet:
        """Return one shard."""
        return self.senses.on(self.shards.read(number))

    def look(self, number: int) -> tuple[TraceSet, Gap | None]:
        """Return one shard, and what is left out of it as files are damaged."""
        traces, gap = look_at(self.shards, number)
        return self.senses.on(traces), gap

    @property
    def skips(self) -> bool:
        """Whether what is damaged is still to be found out."""
        return getattr(self.shards, "skips", False)

    def leaving_out(self, gaps: Mapping[int, Gap]) -> "SensedShards":
        """Return the same shards without what was found to be damaged."""
        return SensedShards(leaving_out(self.shards, gaps), self.senses)

    @property
    def gaps(self) -> Mapping[int, Gap]:
        """What is left out of shards, by their numbers."""
        return gaps_of(self.shards)

    @property
    def arrangements(self) -> Mapping[int, Arrangement]:
        """How the rows of shards stand that were read already, by their numbers."""
        return arrangements_of(self.shards)

    def remember(self, arrangements: Mapping[int, Arrangement]) -> None:
        """Take over how the rows of shards stand, from who read them."""
        remember(self.shards, arrangements)

    def seal(self, number: int) -> Any:
        """Return all that a shard depends on, as plain data; None if it is in memory."""
        seal = seal_of(self.shards, number)
        return None if seal is None else (seal, self.senses)

    @property
    def rows(self) -> int | None:
        """How many rows the source says it holds; None where it does not say."""
        return getattr(self.shards, "rows", None)

    def name(self, number: int) -> str | None:
        """Call a shard as its source does."""
        return self.shards.name(number)
