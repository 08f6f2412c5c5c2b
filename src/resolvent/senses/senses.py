"""All that stands between raw steps and what machines read, as one value of the model."""

from dataclasses import dataclass, field

from resolvent.senses.discretise import Discretise
from resolvent.senses.reward_levels import RewardLevels
from resolvent.traces.labelling import Labelling
from resolvent.traces.source import InMemorySource, MappedSource, TraceSource
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

    def __call__(self, traces: TraceSet) -> TraceSet:
        """Return traces as the machines see them."""
        return self.on(traces)

    def on_shards(self, shards: TraceSource) -> TraceSource:
        """Return shards of traces as the machines see them, each when it is read."""
        if self.are_plain:
            return shards
        if isinstance(shards, InMemorySource):
            return InMemorySource([self.on(one) for one in shards])
        return MappedSource(shards, self)
