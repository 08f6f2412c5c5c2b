"""Scores: numbers of steps that machines predict right and wrong; `replay` counts them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from resolvent._util import html
from resolvent._util.text import listed, short, visible
from resolvent.errors import ModelError
from resolvent.machines.likelihood import Calibration, PredictionSums
from resolvent.traces.symbols import Symbol, difference_text, quoted_text

_COUNTS = ("right", "wrong", "assumed_right", "assumed_wrong", "unseen")


@dataclass(frozen=True)
class Mismatch:
    """A step that a machine predicts wrongly, by an observed or by an assumed output."""

    machine: str
    trace: int
    step: int
    observation: Symbol
    action: Symbol
    state: int
    predicted: Any
    actual: Any
    assumed: bool = False

    def __str__(self) -> str:
        state = f"in state {self.state}" if self.state >= 0 else "in a state not known"
        query = f"({quoted_text(self.observation)}, {quoted_text(self.action)})"
        prediction = f"it predicts {quoted_text(self.predicted)} for {query}"
        if self.assumed:
            prediction += ", which it only assumes"
        difference = difference_text(self.predicted, self.actual)
        return (
            f"{visible(self.machine)} machine, trace {self.trace}, step {self.step}: {state} "
            f"{prediction}, the trace says {quoted_text(self.actual)}"
            f"{f'; they {difference}' if difference else ''}"
        )


@dataclass(frozen=True)
class MachineScore:
    """Number of steps that one machine predicts right and wrong.

    `right` and `wrong` count outputs that were observed in the state of the step,
    `assumed_right` and `assumed_wrong` those only assumed there (see `Basis`), and `unseen`
    the steps without a prediction. Where outputs vary, the most frequent one is right.
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
        """Number of steps predicted right, observed or assumed."""
        return self.right + self.assumed_right

    @property
    def all_wrong(self) -> int:
        """Number of steps predicted wrong, observed or assumed."""
        return self.wrong + self.assumed_wrong

    def then(self, later: "MachineScore", first: int) -> "MachineScore":
        """Return the sum of this score and one of later traces; `first` traces precede those."""
        mismatch = self.first_mismatch
        if mismatch is None and later.first_mismatch is not None:
            mismatch = replace(later.first_mismatch, trace=later.first_mismatch.trace + first)
        counts = {name: getattr(self, name) + getattr(later, name) for name in _COUNTS}
        forecasts = self.forecasts + later.forecasts
        return MachineScore(**counts, first_mismatch=mismatch, forecasts=forecasts)

    def without(self, part: "MachineScore") -> "MachineScore":
        """Return the score of all steps except those counted in `part`.

        >>> print(MachineScore(right=7, unseen=2).without(MachineScore(right=4)))
        right 3, wrong 0, unseen 2
        """
        mismatch = self.first_mismatch if part.first_mismatch is None else None
        counts = {name: getattr(self, name) - getattr(part, name) for name in _COUNTS}
        forecasts = self.forecasts - part.forecasts
        return MachineScore(**counts, first_mismatch=mismatch, forecasts=forecasts)

    def __str__(self) -> str:
        assumed = {"assumed right": self.assumed_right, "assumed wrong": self.assumed_wrong}
        counts = {
            "right": self.right,
            "wrong": self.wrong,
            **{name: count for name, count in assumed.items() if count},
            "unseen": self.unseen,
        }
        return ", ".join(f"{name} {count}" for name, count in counts.items())


@dataclass(frozen=True)
class Score(Mapping[str, MachineScore]):
    """Number of steps that machines predict right and wrong, by the name of the machine."""

    scores: dict[str, MachineScore] = field(default_factory=dict)

    def __getitem__(self, name: str) -> MachineScore:
        return self.scores[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.scores)

    def __len__(self) -> int:
        return len(self.scores)

    def __hash__(self) -> int:
        return hash(frozenset(self.scores.items()))

    @property
    def transition(self) -> MachineScore:
        """The score of the Transition Machine."""
        return self._of("transition")

    @property
    def reward(self) -> MachineScore:
        """The score of the Reward Machine."""
        return self._of("reward")

    @property
    def perfect(self) -> bool:
        """Whether every step is predicted right, observed or assumed."""
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

        >>> later = {"transition": MachineScore(right=5, unseen=1), "reward": MachineScore(6)}
        >>> print(Score().then(Score(later), 0))
        transition right 5, wrong 0, unseen 1
        reward     right 6, wrong 0, unseen 0
        """
        empty = MachineScore()
        return Score(
            {
                name: self.get(name, empty).then(later.get(name, empty), first)
                for name in (self.scores | later.scores)
            }
        )

    def __repr__(self) -> str:
        scores = "; ".join(f"{name} {score}" for name, score in self.items())
        return short(f"Score({scores})", 250)

    def _repr_html_(self) -> str:
        """Show the counts in a notebook, a row for each machine."""
        header = ["machine", *(name.replace("_", " ") for name in _COUNTS)]
        rows = (
            [name, *(f"{getattr(score, count):,}" for count in _COUNTS)]
            for name, score in self.items()
        )
        first = self.first_mismatch
        return html.panel(
            "every step is predicted, and right" if self.perfect else "steps predicted",
            html.table(header, rows, len(self)),
            "" if first is None else html.lines(f"first mismatch: {first}"),
        )

    def __str__(self) -> str:
        names = [*map(visible, self)]
        width = max(map(len, names), default=0)
        rows = zip(names, self.values(), strict=True)
        lines = [f"{name:<{width}} {score}" for name, score in rows]
        if self.first_mismatch is not None:
            lines.append(f"first mismatch: {self.first_mismatch}")
        return "\n".join(lines)

    def _of(self, name: str) -> MachineScore:
        if name not in self:
            raise ModelError(f"no {short(name)} machine was scored: there is {listed(self)}")
        return self[name]
