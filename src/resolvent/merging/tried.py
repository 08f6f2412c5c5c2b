"""What was tried to find one machine, as plain data."""

from dataclasses import dataclass, field
from typing import Any, Final

CHOSEN: Final = "chosen"
LONGER: Final = "longer"
GIVEN_UP: Final = "given up"
OUT_OF_TIME: Final = "out of time"


@dataclass(frozen=True)
class Tried:
    """One strategy that was tried for a machine, and what came of it.

    Two are equal if they differ in seconds alone.

    Attributes:
        strategy: Its name.
        outcome: "chosen"; "longer", if its machine takes no fewer bits than the one chosen;
            "given up", if its machine would have had too many states, or took too much work; "out
            of time".
        states: How many states its machine has; None where there is none.
        bits: How many bits it takes to write that down.
        seconds: How long it took.

    >>> print(Tried("edsm", "chosen", 7, 310.4, 0.02))
    edsm: 7 states, 310 bits
    >>> print(Tried("rpni", "given up"))
    rpni: given up
    """

    strategy: str
    outcome: str
    states: int | None = None
    bits: float | None = None
    seconds: float = field(default=0.0, compare=False)

    def as_dict(self) -> dict[str, Any]:
        """Return the same as JSON values."""
        return {
            "strategy": self.strategy,
            "outcome": self.outcome,
            "states": self.states,
            "bits": None if self.bits is None else round(self.bits, 3),
            "seconds": round(self.seconds, 6),
        }

    def __str__(self) -> str:
        if self.bits is None:
            return f"{self.strategy}: {self.outcome}"
        states = "1 state" if self.states == 1 else f"{self.states:,} states"
        return f"{self.strategy}: {states}, {self.bits:,.0f} bits"
