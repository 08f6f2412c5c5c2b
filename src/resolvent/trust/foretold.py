"""Scores of noisy machines on traces they had not seen → whether they are right within noise."""

from dataclasses import dataclass
from math import sqrt
from typing import Any

from resolvent.machines import Machines, MachineScore
from resolvent.replay import Replay, score_of
from resolvent.wording import amount

MOST_DEVIATIONS = 4.0
"""Shares this many standard deviations apart are no longer the same but for chance."""


@dataclass(frozen=True)
class Foretold:
    """How many answers were the most likely ones, and how many should have been.

    `steps` are those that the machine foretells, `unseen` the others. `expected` sums up how
    likely it held the most likely answers, and `deviation` is the standard deviation of
    how many come by chance. `log_loss` is as in `MachineScore`.
    """

    steps: int
    unseen: int
    right: int
    expected: float
    deviation: float
    log_loss: float | None

    @classmethod
    def of(cls, score: MachineScore) -> "Foretold":
        """Take it from a score.

        >>> from noisy_worlds import noisy_house
        >>> machines, traces = noisy_house()
        >>> Foretold.of(machines.score(traces).transition).within_noise
        True
        """
        bins = score.calibration
        variance = sum(one.steps * one.predicted * (1 - one.predicted) for one in bins)
        return cls(
            steps=score.forecasts.steps,
            unseen=score.unseen,
            right=score.all_right,
            expected=sum(one.steps * one.predicted for one in bins),
            deviation=sqrt(variance),
            log_loss=score.log_loss,
        )

    @property
    def within_noise(self) -> bool:
        """Whether not fewer answers were right than noise explains."""
        return self.expected - self.right <= MOST_DEVIATIONS * self.deviation + 1

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "steps": self.steps,
            "unseen": self.unseen,
            "right": self.right,
            "expected": self.expected,
            "deviation": self.deviation,
            "within_noise": self.within_noise,
            "log_loss": self.log_loss,
        }

    def __str__(self) -> str:
        if not self.steps:
            return f"nothing foretold, {amount(self.unseen, 'step')} unseen"
        verdict = "within noise" if self.within_noise else "less than noise explains"
        shares = f"{self.right / self.steps:.1%} of {amount(self.steps, 'answer')}"
        return (
            f"{shares} are the most likely ones, {self.expected / self.steps:.1%} were expected: "
            f"{verdict}; log-loss {self.log_loss:.3f}, {amount(self.unseen, 'step')} unseen"
        )


def foretold(machines: Machines, shown: Replay) -> dict[str, Foretold]:
    """Say of each machine how well it foretells what traces show."""
    return {kind: Foretold.of(one) for kind, one in score_of(machines, shown).items()}
