"""Why one cannot be sure which state a machine is in, though all labels were read."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from resolvent.noise.label_noise import LabelNoise
from resolvent.traces.symbols import Label, label_text


@dataclass(frozen=True)
class Doubt:
    """What has to be known to infer states: how often labels lie, and how episodes begin.

    Attributes:
        label_noise: How often recorded labels are not the true ones, which machines read; None
            if they always are.
        label_shares: How frequent each true label is among all, where labels lie.
        starts: How often episodes begin in each way. A way stands as the label that leads the
            machines there from state 0; nobody ever sees it. Empty if all begin in state 0.

    >>> print(Doubt(LabelNoise(0.05, 0.0, 0.0), {frozenset(): 0.9, frozenset({"key"}): 0.1}))
    labels lie: 5% missed, 0% false, 0% swapped
    >>> bool(Doubt())
    False
    """

    label_noise: LabelNoise | None = None
    label_shares: Mapping[Label, float] = field(default_factory=dict)
    starts: Mapping[Label, float] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.label_noise is not None or bool(self.starts)

    def __hash__(self) -> int:
        return hash((self.label_noise, tuple(self.starts.items())))

    def __str__(self) -> str:
        told = []
        if self.label_noise is not None:
            told.append(f"labels lie: {self.label_noise}")
        if self.starts:
            shares = (f"{label_text(one)} {share:.2g}" for one, share in self.starts.items())
            told.append(f"hidden starts: {', '.join(shares)}")
        return "; ".join(told) or "none"
