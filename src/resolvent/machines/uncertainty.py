"""Uncertainty about the state of machines and about the targets of their transitions."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

from resolvent.traces.symbols import Label, label_text
from resolvent.traces.vocabulary import Codes


@dataclass(frozen=True)
class LabelNoise:
    """Rates of wrong labels, as shares of the steps at which each kind of error is possible.

    Attributes:
        missed: Share of the steps with an event that are recorded without one.
        false: Share of the steps without an event that are recorded with one.
        swapped: Share of the steps with an event that are recorded with another event.

    >>> print(LabelNoise(missed=0.051, false=0.0, swapped=0.002))
    5.1% missed, 0% false, 0.2% swapped
    """

    missed: float
    false: float
    swapped: float

    def shares(self) -> dict[str, float]:
        """Return the rates by the names that `result.noise` has for them.

        >>> LabelNoise(0.05, 0.0, 0.01).shares()
        {'missed labels': 0.05, 'false labels': 0.0, 'swapped labels': 0.01}
        """
        return {f"{name} labels": share for name, share in self.as_dict().items()}

    @classmethod
    def of_shares(cls, shares: Mapping[str, float]) -> "LabelNoise | None":
        """Return the rates among the entries of `result.noise`; None unless all are there."""
        names = {field.name: f"{field.name} labels" for field in fields(cls)}
        if not shares.keys() >= {*names.values()}:
            return None
        return cls(**{name: shares[entry] for name, entry in names.items()})

    def as_dict(self) -> dict[str, float]:
        """Return the rates as JSON values."""
        return asdict(self)

    def __str__(self) -> str:
        return ", ".join(f"{_percent(share)} {name}" for name, share in self.as_dict().items())


@dataclass(frozen=True)
class StateUncertainty:
    """Why labels do not determine the state, and the probabilities needed to infer it.

    Attributes:
        label_noise: Rates at which recorded labels differ from the true ones, which machines
            read; None if labels are exact.
        label_shares: Share of each true label among all, if labels are noisy.
        starts: Probability of each hidden initial state, given as the label that leads the
            machines there from state 0; no trace records it. Empty if all episodes begin in
            state 0.

    >>> starts = {frozenset(): 0.9, frozenset({"key"}): 0.1}
    >>> print(StateUncertainty(LabelNoise(0.05, 0.0, 0.0), starts))
    labels lie: 5% missed, 0% false, 0% swapped
    >>> bool(StateUncertainty())
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
        reasons = []
        if self.label_noise is not None:
            reasons.append(f"labels lie: {self.label_noise}")
        if self.starts:
            shares = (f"{label_text(start)} {share:.2g}" for start, share in self.starts.items())
            reasons.append(f"hidden starts: {', '.join(shares)}")
        return "; ".join(reasons) or "none"


@dataclass(frozen=True, eq=False)
class AlternativeTransitions:
    """For each transition, the likeliest other target, and the odds against it.

    `target` is [state, label]. It is −1 for transitions without an alternative: those never
    taken, those by a label that is read often and changes no state, and those of a machine with
    one state. `log_odds` is the logarithm of the odds of the present target against the
    alternative.
    """

    target: Codes
    log_odds: NDArray[np.float64]


def _percent(share: float) -> str:
    """Return a share in percent with two significant digits.

    >>> _percent(0.0507), _percent(0.00012), _percent(0), _percent(0.5)
    ('5.1%', '0.012%', '0%', '50%')
    """
    return f"{100 * share:.2g}%"
