"""What was learned → the figures and lines that `resolvent train` prints."""

import math
from dataclasses import asdict, dataclass
from typing import Any

from resolvent._util.text import amount
from resolvent.rl.q_table import QTable
from resolvent.rl.tabular import Evaluation

_AT_THE_ENDS = 100


@dataclass(frozen=True)
class TrainingReport:
    """What was learned, what it is worth, the best possible if that is known, and the time."""

    learned: QTable
    found: Evaluation
    optimum: float | None
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as JSON values."""
        value = self.found.value if math.isfinite(self.found.value) else None
        return {
            "episodes": len(self.learned.curve),
            "steps": int(self.learned.curve.steps.sum()),
            "situations": len(self.learned.situations),
            "engine": self.learned.engine,
            "first": self._mean(slice(_AT_THE_ENDS)),
            "last": self._mean(slice(-_AT_THE_ENDS, None)),
            "evaluation": {
                "value": value,
                "ended": self.found.ended,
                "exact": self.found.exact,
                "optimum": self.optimum,
            },
            "evaluations": [
                asdict(one) | {"value": one.value if math.isfinite(one.value) else None}
                for one in self.learned.evaluations
            ],
            "seconds": round(self.seconds, 6),
        }

    def __str__(self) -> str:
        steps = int(self.learned.curve.steps.sum())
        rate = f"{steps / self.seconds:,.0f} steps a second, {self.learned.engine} engine"
        lines = []
        for name, part in (("first", slice(_AT_THE_ENDS)), ("last", slice(-_AT_THE_ENDS, None))):
            mean = self._mean(part)
            lines.append(
                f"{name + ' ' + amount(mean['episodes'], 'episode'):<20} mean return "
                f"{mean['return']:.4g}, mean length {mean['steps']:.4g}"
            )
        lines += [
            f"{'what was learned':<20} {self._worth()}",
            f"{'it took':<20} {amount(steps, 'step')}, {self.seconds:.2f} s ({rate})",
            f"{'it met':<20} {amount(len(self.learned.situations), 'situation')}",
        ]
        return "\n".join(lines)

    def _mean(self, part: slice) -> dict[str, Any]:
        curve = self.learned.curve
        return {
            "episodes": len(curve.returns[part]),
            "return": float(curve.returns[part].mean()),
            "discounted_return": float(curve.discounted_returns[part].mean()),
            "steps": float(curve.steps[part].mean()),
        }

    def _worth(self) -> str:
        over = "exactly, over all starts" if self.found.exact else "in 100 episodes"
        text = f"is worth {self.found.value:.4g} discounted, {over}"
        if self.optimum is not None:
            text += f"; the best possible is {self.optimum:.4g}"
        if self.found.ended < 1:
            what = "of starts never end" if self.found.exact else "of them were cut"
            text += f"; {1 - self.found.ended:.0%} {what}"
        return text
