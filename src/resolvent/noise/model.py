"""The noise that a user allows for in traces, and the explanations that were considered."""

from dataclasses import dataclass
from numbers import Real
from typing import Any, Final, Literal

import numpy as np

from resolvent._util.validation import quoted
from resolvent.errors import OptionError
from resolvent.traces.schema import REWARD

_REWARD_NOISE: Final = ("gaussian", "flipped", False)


def _share(name: str, value: Any, alternative: str = "") -> float:
    is_wrong = isinstance(value, bool | np.bool_) or not isinstance(value, Real)
    if is_wrong or not 0 <= value <= 1:
        raise OptionError(
            f"Noise: {name} is {quoted(value)}: choose a share from 0 to 1{alternative}"
        )
    return float(value)


@dataclass(frozen=True, kw_only=True)
class Noise:
    """The kinds of noise in traces, as far as they are known; everything else is exact.

    Attributes:
        outcomes: The same step has different outcomes: actions slip, sensors fail.
        labels: Labels are missed, false or swapped: a share of them from 0 to 1, or True for
            a share to be estimated.
        rewards: "gaussian" for rewards that vary around their values, "flipped" for values
            that are sometimes mistaken for one another.
        starts: Each episode draws a hidden initial state.
        outliers: Maximum share of the traces that may be excluded as outliers.

    >>> Noise(outcomes=True, labels=0.02)
    Noise(outcomes=True, labels=0.02, rewards=False, starts=False, outliers=0.0)
    >>> Noise(labels=2)
    Traceback (most recent call last):
    resolvent.errors.OptionError: Noise: labels is 2: choose a share from 0 to 1, or True to \
estimate it
    """

    outcomes: bool = False
    labels: bool | float = False
    rewards: Literal["gaussian", "flipped"] | bool = False
    starts: bool = False
    outliers: float = 0.0

    def __post_init__(self) -> None:
        for name in ("outcomes", "starts"):
            if not isinstance(value := getattr(self, name), bool | np.bool_):
                raise OptionError(f"Noise: {name} is {quoted(value)}: choose True or False")
            object.__setattr__(self, name, bool(value))
        if isinstance(self.labels, bool | np.bool_):
            labels: bool | float = bool(self.labels)
        else:
            labels = _share("labels", self.labels, ", or True to estimate it")
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "outliers", _share("outliers", self.outliers))
        if not isinstance(self.rewards, str | bool) or self.rewards not in _REWARD_NOISE:
            raise OptionError(
                f"Noise: rewards is {quoted(self.rewards)}: choose 'gaussian', 'flipped' or False"
            )

    def __bool__(self) -> bool:
        return self != Noise()

    @property
    def label_share(self) -> float | None:
        """Share of the labels that are wrong; None if it is to be estimated."""
        return None if isinstance(self.labels, bool) else self.labels

    @property
    def has_latent_states(self) -> bool:
        """Whether states may have to be inferred, since labels or starts do not determine them."""
        return bool(self.labels) or self.starts

    def may_vary(self, output: str) -> bool:
        """Return whether an output may vary in one and the same state."""
        return self.outcomes or (self.rewards == "flipped" and output == REWARD)


AUTO: Final = Noise(outcomes=True, labels=True, rewards="gaussian", starts=True, outliers=0.05)
"""Noise that noise="auto" allows for."""


def allowed_noise(option: Noise | Literal["none", "auto"]) -> Noise:
    """Return the noise that an option of `infer` allows for."""
    if isinstance(option, Noise):
        return option
    return AUTO if option == "auto" else Noise()


@dataclass(frozen=True)
class NoiseCandidate:
    """An explanation of the traces that `infer` considered, and why it was chosen or rejected.

    Attributes:
        name: "no noise", "denoised labels", "noisy outputs", "outliers", "latent labels" or
            "latent starts".
        reason: Why it was chosen or rejected.
        is_chosen: Whether the result uses it; besides denoised labels, a second one is chosen.
        log_evidence: The log-likelihood of all outputs, if candidates were compared by that.

    >>> print(NoiseCandidate("outliers", "no trace stands out"))
    outliers: rejected, no trace stands out
    """

    name: str
    reason: str
    is_chosen: bool = False
    log_evidence: float | None = None

    def __str__(self) -> str:
        return f"{self.name}: {'chosen' if self.is_chosen else 'rejected'}, {self.reason}"
