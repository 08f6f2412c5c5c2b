"""How well machines predict the steps of some traces, in figures; `replay` counts them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from resolvent._util import html as notebook
from resolvent._util.text import listed, short, visible
from resolvent.errors import ModelError
from resolvent.machines.likelihood.forecasts import Calibration, Forecasts
from resolvent.traces.symbols import Symbol, difference_text, quoted_text


@dataclass(frozen=True)
class Mismatch:
    """A step that a machine predicts wrongly, by what it was shown or by what it assumes."""

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
        where = f"in state {self.state}" if self.state >= 0 else "in a state not known"
        question = f"({quoted_text(self.observation)}, {quoted_text(self.action)})"
        said = f"it predicts {quoted_text(self.predicted)} for {question}"
        if self.assumed:
            said += ", which it only assumes"
        differ = difference_text(self.predicted, self.actual)
        return (
            f"{visible(self.machine)} machine, trace {self.trace}, step {self.step}: {where} "
            f"{said}, the trace says {quoted_text(self.actual)}"
            f"{f'; they {differ}' if differ else ''}"
        )


@dataclass(frozen=True)
class MachineScore:
    """How many steps one machine predicts, and how well.

    `right` and `wrong` count what was witnessed in the state of the step,
    `assumed_right` and `assumed_wrong` what is only assumed there (see `Knowledge`),
    and `unseen` what the machine does not predict. Where answers vary, the most likely one
    is right. `forecasts` say how likely the machine held what came.
    """

    right: int = 0
    wrong: int = 0
    assumed_right: int = 0
    assumed_wrong: int = 0
    unseen: int = 0
    first_mismatch: Mismatch | None = None
    forecasts: Forecasts = field(default_factory=Forecasts)

    @property
    def log_loss(self) -> float | None:
        """The mean of −ln p over steps that are predicted, p being the chance of what came.

        It is None where no step is predicted. An answer that never came before is held to be
        unlikely, not impossible: how unlikely, the answers to all other questions tell.
        """
        return self.forecasts.log_loss

    @property
    def calibration(self) -> tuple[Calibration, ...]:
        """How often the main answer came, by how likely the machine held it to be."""
        return self.forecasts.calibration

    @property
    def steps(self) -> int:
        """All steps replayed."""
        return self.all_right + self.all_wrong + self.unseen

    @property
    def all_right(self) -> int:
        """Steps predicted right, witnessed or assumed."""
        return self.right + self.assumed_right

    @property
    def all_wrong(self) -> int:
        """Steps predicted wrong, witnessed or assumed."""
        return self.wrong + self.assumed_wrong

    def then(self, later: "MachineScore", first: int) -> "MachineScore":
        """Return this score and one of later traces together; `first` traces came before those."""
        mismatch = self.first_mismatch
        if mismatch is None and later.first_mismatch is not None:
            mismatch = replace(later.first_mismatch, trace=later.first_mismatch.trace + first)
        return MachineScore(
            self.right + later.right,
            self.wrong + later.wrong,
            self.assumed_right + later.assumed_right,
            self.assumed_wrong + later.assumed_wrong,
            self.unseen + later.unseen,
            mismatch,
            self.forecasts + later.forecasts,
        )

    def without(self, part: "MachineScore") -> "MachineScore":
        """Return the score of all steps but those that are counted in `part`, too.

        >>> print(MachineScore(right=7, unseen=2).without(MachineScore(right=4)))
        right 3, wrong 0, unseen 2
        """
        return MachineScore(
            self.right - part.right,
            self.wrong - part.wrong,
            self.assumed_right - part.assumed_right,
            self.assumed_wrong - part.assumed_wrong,
            self.unseen - part.unseen,
            self.first_mismatch if part.first_mismatch is None else None,
            self.forecasts - part.forecasts,
        )

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
    """How many steps of some traces machines predict right and wrong, by the kind of machine."""

    scores: dict[str, MachineScore] = field(default_factory=dict)

    def __getitem__(self, kind: str) -> MachineScore:
        return self.scores[kind]

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
        """Whether every step is predicted, witnessed or assumed, and right."""
        return all(one.all_right == one.steps for one in self.values())

    @property
    def first_mismatch(self) -> Mismatch | None:
        """The earliest step that any machine predicts wrongly."""
        return min(
            (one.first_mismatch for one in self.values() if one.first_mismatch is not None),
            key=lambda one: (one.trace, one.step),
            default=None,
        )

    def then(self, later: "Score", first: int) -> "Score":
        """Return these scores and those of later traces together; `first` traces came before those.

        >>> later = {"transition": MachineScore(right=5, unseen=1), "reward": MachineScore(6)}
        >>> print(Score().then(Score(later), 0))
        transition right 5, wrong 0, unseen 1
        reward     right 6, wrong 0, unseen 0
        """
        nothing = MachineScore()
        return Score(
            {
                kind: self.get(kind, nothing).then(later.get(kind, nothing), first)
                for kind in (self.scores | later.scores)
            }
        )

    def __repr__(self) -> str:
        told = "; ".join(f"{kind} {one}" for kind, one in self.items())
        return short(f"Score({told})", 250)

    def _repr_html_(self) -> str:
        """Show the counts in a notebook, a row for each machine."""
        counts = ("right", "wrong", "assumed_right", "assumed_wrong", "unseen")
        rows = (
            [kind, *(f"{getattr(one, name):,}" for name in counts)] for kind, one in self.items()
        )
        header = ["machine", *(name.replace("_", " ") for name in counts)]
        first = self.first_mismatch
        return notebook.panel(
            "every step is predicted, and right" if self.perfect else "steps predicted",
            notebook.table(header, rows, len(self)),
            "" if first is None else notebook.lines(f"first mismatch: {first}"),
        )

    def __str__(self) -> str:
        names = [*map(visible, self)]
        width = max(map(len, names), default=0)
        lines = [f"{name:<{width}} {one}" for name, one in zip(names, self.values(), strict=True)]
        if self.first_mismatch is not None:
            lines.append(f"first mismatch: {self.first_mismatch}")
        return "\n".join(lines)

    def _of(self, kind: str) -> MachineScore:
        if kind not in self:
            raise ModelError(f"no {short(kind)} machine was scored: there is {listed(self)}")
        return self[kind]
