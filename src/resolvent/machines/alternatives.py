"""A machine that traces hardly distinguish from the one that was inferred."""

from dataclasses import dataclass
from typing import Any

from resolvent._util.math import exp
from resolvent._util.text import amount, odds_text
from resolvent.machines.machine import Machine
from resolvent.traces.symbols import Label, label_text


@dataclass(frozen=True)
class Alternative:
    """Another machine that traces hardly tell from the one that was found.

    `log_odds` is the logarithm of how many times as likely it is as that one: below 0 in
    general. `move` is (state, label, target) where it is the same machine but for this move,
    in the numbers of that one; otherwise it has another number of states.
    """

    machine: Machine
    log_odds: float
    move: tuple[int, Label, int] | None = None

    @property
    def odds(self) -> float:
        """How many times as likely it is as the machine that was found."""
        return exp(self.log_odds)

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as JSON values."""
        move = None
        if self.move is not None:
            state, label, target = self.move
            move = {"state": state, "label": sorted(label), "target": target}
        return {"states": self.machine.states, "log_odds": self.log_odds, "move": move}

    def __str__(self) -> str:
        what = amount(self.machine.states, "state")
        if self.move is not None:
            state, label, target = self.move
            what = f"state {state} reads {label_text(label)} → {target}"
        return f"{what}: {odds_text(self.log_odds)}"
