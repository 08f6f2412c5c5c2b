"""Scores of machines on steps that were held out when they were inferred.

Input: counts of held-out steps. Output: records that read as text and JSON.
"""

from dataclasses import dataclass, field
from math import sqrt
from typing import Any, Final

from resolvent._util.records import ByMachine
from resolvent._util.text import amount, short
from resolvent.evaluation.holdout import CalibrationCheck
from resolvent.evaluation.observed import SampledSteps
from resolvent.machines import MachineScore

_NORMAL_95: Final = 1.959964
"""Number of standard deviations that contain 95% of a normal distribution."""


@dataclass(frozen=True)
class MachineHoldoutScore:
    """The score of one machine on held-out steps.

    `states` is the number of states of the machine inferred without these steps, and `traces`
    the number of traces tested. For a `noisy` machine the most likely output counts. `stuck` is
    the number of steps in sinks, and `stuck_right` the number of those predicted right; `rare` and
    `rare_right` are those with a rare outcome, None if no outcome is rare.
    """

    states: int
    traces: int
    score: MachineScore
    noisy: bool = False
    whole_traces: bool = True
    stuck: int = 0
    stuck_right: int = 0
    rare: int | None = None
    rare_right: int = 0

    @property
    def share(self) -> float:
        """The share of the steps that were predicted right."""
        return self.score.all_right / self.score.steps

    @property
    def share_before_stuck(self) -> float | None:
        """The share predicted right of the steps outside sinks; None if there are none."""
        steps = self.score.steps - self.stuck
        return (self.score.all_right - self.stuck_right) / steps if steps else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95% confidence interval of the share; None if the ends of traces were held out.

        It is Wilson's interval, with a sample size of the number of traces: steps of one trace
        depend on each other.

        >>> low, high = MachineHoldoutScore(2, 40, MachineScore(right=390, wrong=10)).interval
        >>> round(low, 3), round(high, 3)
        (0.871, 0.996)
        """
        if not self.whole_traces:
            return None
        share, n = self.share, self.traces
        shrinkage = _NORMAL_95**2 / n
        center = (share + shrinkage / 2) / (1 + shrinkage)
        half = _NORMAL_95 / (1 + shrinkage) * sqrt(share * (1 - share) / n + shrinkage / (4 * n))
        return max(center - half, 0.0), min(center + half, 1.0)

    def as_dict(self) -> dict[str, Any]:
        """Return the score as JSON values."""
        low, high = self.interval or (None, None)
        return {
            "steps": self.score.steps,
            "traces": self.traces,
            "right": self.score.all_right,
            "wrong": self.score.all_wrong,
            "unseen": self.score.unseen,
            "share": self.share,
            "low": low,
            "high": high,
            "stuck": self.stuck,
            "share_before_stuck": self.share_before_stuck,
            "rare": self.rare,
            "rare_right": self.rare_right,
            "log_loss": self.score.log_loss if self.noisy else None,
            "states": self.states,
        }

    def __str__(self) -> str:
        score = self.score
        if self.noisy:
            return str(CalibrationCheck.of(score))
        text = f"{_percent(score.all_right, score.steps)} predicted right"
        if self.interval is not None:
            low, high = self.interval
            limits = f"{low:.1%} or more" if self.share == 1 else f"{low:.1%} to {high:.1%}"
            text += f" (95% confidence: {limits})"
        text += f", {_percent(score.all_wrong, score.steps)} wrong"
        if score.unseen:
            text += f", {_percent(score.unseen, score.steps)} unseen"
        if self.stuck and self.share < 1:
            steps = max(score.steps - self.stuck, 1)
            before = _percent(score.all_right - self.stuck_right, steps)
            text += f"; {before} right outside sink states"
        if self.rare == 0:
            text += "; no rare outcome was held out"
        elif self.rare is not None:
            text += f"; of {amount(self.rare, 'rare outcome')} {self.rare_right:,} right"
        return text


def _percent(part: int, total: int) -> str:
    """Write a share in percent, with enough digits that only all of it reads as 100%.

    >>> _percent(9_999, 10_000), _percent(99_999, 100_000), _percent(1, 100_000), _percent(0, 7)
    ('99.99%', '99.999%', '0.001%', '0%')
    """
    if part in (0, total):
        return f"{100 * part // total}%"
    digits = next((digits for digits in (1, 2) if 0 < round(100 * part / total, digits) < 100), 3)
    return f"{100 * part / total:.{digits}f}%"


@dataclass(frozen=True)
class HoldoutScore(ByMachine[MachineHoldoutScore]):
    """The scores of machines on steps that were held out when they were inferred, by machine.

    Of the distinct traces `traces` were held out; `new` of those were tested, since the rest are
    prefixes of training traces. If `whole_traces` is false, the last steps of each trace were held
    out. `part` is the sample of steps for inference and testing, if traces in files are too many.
    """

    traces: int
    new: int
    steps: int
    whole_traces: bool
    machines: dict[str, MachineHoldoutScore] = field(hash=False)
    part: SampledSteps | None = None

    @property
    def _by_name(self) -> dict[str, MachineHoldoutScore]:
        return self.machines

    def as_dict(self) -> dict[str, Any]:
        """Return the scores as JSON values, by machine."""
        return {name: score.as_dict() for name, score in self.machines.items()}

    def __str__(self) -> str:
        tested, rest = amount(self.traces, "trace"), "the others"
        if not self.whole_traces:
            tested, rest = f"the end of {tested}", "their beginning"
        elif self.new < self.traces:
            tested += f", {self.new:,} of them new"
        if self.part is not None:
            rest += f", {self.part}"
        steps = amount(self.steps, "step")
        header = f"{tested} ({steps}), predicted by machines inferred from {rest}:"
        scores = [f"  {short(name)}: {score}" for name, score in self.machines.items()]
        return "\n".join([header, *scores])
