"""What ran side by side to find one machine, as plain data."""

from dataclasses import dataclass
from typing import Any, Final

FOUND: Final = "found"
IMPOSSIBLE: Final = "impossible"
UNIQUE: Final = "unique"
UNDECIDED: Final = "undecided"
STOPPED: Final = "stopped"


@dataclass(frozen=True)
class Ran:
    """One of several attempts that were made side by side, and what came of it.

    Which attempts are stopped depends on who is first, and so do seconds: they differ from run
    to run where the machines do not.

    Attributes:
        what: What was attempted, such as "6 states, seed 1".
        where: Which workers did, such as "processes".
        outcome: "found", if there is such a machine; "impossible", if there is none; "unique",
            if there is no other; "undecided", if it was given up; "stopped", if another attempt
            had made it superfluous.
        seconds: How long it took its worker; 0 where it was stopped.

    >>> print(Ran("6 states, seed 1", "ray", "impossible", 3.42))
    6 states, seed 1: impossible, 3.4 s
    >>> print(Ran("6 states, seed 0", "ray", "stopped"))
    6 states, seed 0: stopped
    """

    what: str
    where: str
    outcome: str
    seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return the same as JSON values."""
        return {
            "what": self.what,
            "where": self.where,
            "outcome": self.outcome,
            "seconds": round(self.seconds, 6),
        }

    def __str__(self) -> str:
        took = f", {self.seconds:.1f} s" if self.outcome != STOPPED else ""
        return f"{self.what}: {self.outcome}{took}"
