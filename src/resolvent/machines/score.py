"""Scores: numbers of steps that machines predict right and wrong; `replay` counts them.

Input: counts of steps and probabilities of outputs. Output: scores that add up over traces, with
log loss and calibration.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent._util import html
from resolvent._util.math import log
from resolvent._util.records import ByMachine
from resolvent._util.text import short, visible
from resolvent.traces.symbols import Symbol, difference_text, quoted_text

COUNTS = ("right", "wrong", "assumed_right", "assumed_wrong", "unseen")

_CALIBRATION_BINS: Final = 20
_UNIT: Final = 10**9  # probabilities and losses are summed in billionths: in any order the same


@dataclass(frozen=True)
class Mismatch:
    """A step that a machine predicts wrongly, by an observed or by a generalized output."""

    machine: str
    trace: int
    step: int
    observation: Symbol
    action: Symbol
    state: int
    predicted: Any
    actual: Any
    generalized: bool = False

    def __str__(self) -> str:
        state = f"in state {self.state}" if self.state >= 0 else "in an unknown state"
        observation, action, predicted, actual = map(
            quoted_text, (self.observation, self.action, self.predicted, self.actual)
        )
        difference = difference_text(self.predicted, self.actual)
        return (
            f"{visible(self.machine)} machine, trace {self.trace}, step {self.step}: {state} "
            f"it predicts {predicted} for ({observation}, {action})"
            f"{', generalized from other states' if self.generalized else ''}, "
            f"the trace has {actual}{f'; they {difference}' if difference else ''}"
        )


class Calibration(NamedTuple):
    """The steps whose most likely output had a probability from `lower` to `upper`.

    If the machine is calibrated, `right` is about `predicted`.
    """

    lower: float
    upper: float
    predicted: float
    """Mean probability of the most likely outputs."""
    right: float
    """Share of steps with the most likely output."""
    steps: int


class Bin(NamedTuple):
    """Sums over the steps whose most likely outputs have about the same probability."""

    steps: int = 0
    right: int = 0
    predicted: int = 0


@dataclass(frozen=True)
class PredictionSums:
    """Sums of predicted probabilities and observed outputs, for log loss and calibration.

    `loss` is the sum of −ln p of the observed outputs that were predicted, and `bins` split their
    steps by the probability of the most likely output; both in billionths.
    """

    loss: int = 0
    bins: tuple[Bin, ...] = (Bin(),) * _CALIBRATION_BINS

    @classmethod
    def of(
        cls,
        probability: NDArray[np.float64],
        of_main: NDArray[np.float64],
        right: NDArray[np.bool_],
        count: NDArray[np.int64],
    ) -> "PredictionSums":
        """Sum up steps by the probabilities of the observed and of the most likely output.

        `right` marks where these are the same, `count` is the number of such steps.
        """
        bin_of = np.minimum((of_main * _CALIBRATION_BINS).astype(np.int64), _CALIBRATION_BINS - 1)
        bins = (
            Bin(
                int(count[inside].sum()),
                int(count[inside & right].sum()),
                _in_billionths(of_main[inside], count[inside]),
            )
            for inside in (bin_of == number for number in range(_CALIBRATION_BINS))
        )
        return cls(_in_billionths(-log(probability), count), tuple(bins))

    @property
    def steps(self) -> int:
        """Number of steps with a prediction."""
        return sum(entry.steps for entry in self.bins)

    @property
    def log_loss(self) -> float | None:
        """Mean of −ln p over these steps; None without steps."""
        return self.loss / _UNIT / self.steps if self.steps else None

    @property
    def calibration(self) -> tuple[Calibration, ...]:
        """Share of right predictions by their probability, only where there are steps."""
        return tuple(
            Calibration(
                number / _CALIBRATION_BINS,
                (number + 1) / _CALIBRATION_BINS,
                entry.predicted / _UNIT / entry.steps,
                entry.right / entry.steps,
                entry.steps,
            )
            for number, entry in enumerate(self.bins)
            if entry.steps
        )

    def plus(self, other: "PredictionSums", sign: int = 1) -> "PredictionSums":
        """Return the sums of the steps of both, or without those of the other if `sign` is −1."""
        bins = (
            Bin(*(mine + sign * yours for mine, yours in zip(*pair, strict=True)))
            for pair in zip(self.bins, other.bins, strict=True)
        )
        return PredictionSums(self.loss + sign * other.loss, tuple(bins))


def _in_billionths(values: NDArray[np.float64], count: NDArray[np.int64]) -> int:
    """Return the weighted sum of values in billionths; two summands avoid overflow."""
    high, low = np.divmod(np.rint(values * _UNIT).astype(np.int64), 1 << 20)
    return (int(high @ count) << 20) + int(low @ count)


@dataclass(frozen=True)
class MachineScore:
    """Number of steps that one machine predicts right and wrong.

    `right` and `wrong` count outputs that were observed in the state of the step,
    `assumed_right` and `assumed_wrong` those generalized from other states (see `Basis`), and
    `unseen` the steps without a prediction. Where outputs vary, the most frequent one is right.
    `forecasts` hold the predicted probabilities.
    """

    right: int = 0
    wrong: int = 0
    assumed_right: int = 0
    assumed_wrong: int = 0
    unseen: int = 0
    first_mismatch: Mismatch | None = None
    forecasts: PredictionSums = field(default_factory=PredictionSums)

    @property
    def log_loss(self) -> float | None:
        """Mean of −ln p over predicted steps, p being the probability of the observed output.

        None where no step is predicted. An output that was never observed before has a small
        probability, estimated from the outputs of all other queries.
        """
        return self.forecasts.log_loss

    @property
    def calibration(self) -> tuple[Calibration, ...]:
        """Share of right predictions by their probability."""
        return self.forecasts.calibration

    @property
    def steps(self) -> int:
        """Number of steps replayed."""
        return self.all_right + self.all_wrong + self.unseen

    @property
    def all_right(self) -> int:
        """Number of steps predicted right, by an observed or a generalized output."""
        return self.right + self.assumed_right

    @property
    def all_wrong(self) -> int:
        """Number of steps predicted wrong, by an observed or a generalized output."""
        return self.wrong + self.assumed_wrong

    def then(self, later: "MachineScore", first: int) -> "MachineScore":
        """Return the sum of this score and one of later traces; `first` traces precede those."""
        mismatch, next_one = self.first_mismatch, later.first_mismatch
        if mismatch is None and next_one is not None:
            mismatch = replace(next_one, trace=next_one.trace + first)
        return self._plus(later, 1, mismatch)

    def without(self, part: "MachineScore") -> "MachineScore":
        """Return the score of all steps except those counted in `part`.

        >>> print(MachineScore(right=7, unseen=2).without(MachineScore(right=4)))
        right 3, wrong 0, unseen 2
        """
        return self._plus(part, -1, self.first_mismatch if part.first_mismatch is None else None)

    def _plus(self, other: "MachineScore", sign: int, mismatch: Mismatch | None) -> "MachineScore":
        counts = {name: getattr(self, name) + sign * getattr(other, name) for name in COUNTS}
        forecasts = self.forecasts.plus(other.forecasts, sign)
        return MachineScore(**counts, first_mismatch=mismatch, forecasts=forecasts)

    def __str__(self) -> str:
        counts = ((name, getattr(self, name)) for name in COUNTS)
        return ", ".join(
            f"{name.replace('assumed_', 'generalized ')} {count}"
            for name, count in counts
            if count or not name.startswith("assumed_")
        )


@dataclass(frozen=True)
class Score(ByMachine[MachineScore]):
    """Number of steps that machines predict right and wrong, by the name of the machine.

    Those of the Transition and the Reward Machine are also attributes: `transition`, `reward`.
    """

    scores: dict[str, MachineScore] = field(default_factory=dict)

    @property
    def _by_name(self) -> dict[str, MachineScore]:
        return self.scores

    def __hash__(self) -> int:
        return hash(frozenset(self.items()))

    @property
    def perfect(self) -> bool:
        """Whether every step is predicted right."""
        return all(score.all_right == score.steps for score in self.values())

    @property
    def first_mismatch(self) -> Mismatch | None:
        """The earliest step that any machine predicts wrongly."""
        return min(
            filter(None, (score.first_mismatch for score in self.values())),
            key=lambda mismatch: (mismatch.trace, mismatch.step),
            default=None,
        )

    def then(self, later: "Score", first: int) -> "Score":
        """Return the sum of these scores and those of later traces; `first` traces precede those.

        >>> part = Score({"transition": MachineScore(5, unseen=1), "reward": MachineScore(6)})
        >>> print(part.then(part, first=1))
        transition right 10, wrong 0, unseen 2
        reward     right 12, wrong 0, unseen 0
        """
        return Score({name: score.then(later[name], first) for name, score in self.items()})

    def __repr__(self) -> str:
        scores = "; ".join(f"{name} {score}" for name, score in self.items())
        return short(f"Score({scores})", 250)

    def _repr_html_(self) -> str:
        """Show the counts in a notebook, a row for each machine."""
        names = (name.replace("assumed_", "generalized ") for name in COUNTS)
        rows = (
            [name, *(f"{getattr(score, count):,}" for count in COUNTS)]
            for name, score in self.items()
        )
        first = self.first_mismatch
        return html.panel(
            "every step is predicted, and right" if self.perfect else "steps predicted",
            html.table(["machine", *names], rows, len(self)),
            "" if first is None else html.lines(f"first mismatch: {first}"),
        )

    def __str__(self) -> str:
        width = max((len(visible(name)) for name in self), default=0)
        lines = [f"{visible(name):<{width}} {score}" for name, score in self.items()]
        if self.first_mismatch is not None:
            lines.append(f"first mismatch: {self.first_mismatch}")
        return "\n".join(lines)
