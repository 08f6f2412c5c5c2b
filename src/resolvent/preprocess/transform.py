"""Preprocessing as one value of the model: raw traces → the traces that machines read."""

from dataclasses import dataclass, field

from resolvent.preprocess.discretize import Discretizer
from resolvent.preprocess.labeling import LabelingFunction
from resolvent.preprocess.reward_levels import RewardLevels
from resolvent.traces.source import InMemorySource, MappedSource, TraceSource
from resolvent.traces.trace_set import TraceSet


@dataclass(frozen=True)
class Preprocessor:
    """Transforms raw steps: discretizes numbers, denoises rewards, then derives labels.

    A second transformation of the same traces changes nothing.

    >>> from resolvent.traces import Trace
    >>> traces = TraceSet([Trace(["hall", "attic"], [None, None], ["up"])])
    >>> Preprocessor().on(traces) is traces
    True
    """

    labelling: LabelingFunction = field(default_factory=LabelingFunction)
    discretise: Discretizer | None = None
    rewards: RewardLevels | None = None

    @property
    def are_plain(self) -> bool:
        """Whether traces stay as they are."""
        return self.labelling.is_given and self.discretise is None and self.rewards is None

    def on(self, traces: TraceSet) -> TraceSet:
        """Return the transformed traces."""
        if self.discretise is not None:
            traces = self.discretise.on(traces)
        if self.rewards is not None:
            traces = self.rewards.on(traces)
        return self.labelling.on(traces)

    def __call__(self, traces: TraceSet) -> TraceSet:
        """Return the transformed traces."""
        return self.on(traces)

    def on_shards(self, shards: TraceSource) -> TraceSource:
        """Return a source of the transformed traces; each shard is transformed when read."""
        if self.are_plain:
            return shards
        if isinstance(shards, InMemorySource):
            return InMemorySource([self.on(shard) for shard in shards])
        return MappedSource(shards, self)
