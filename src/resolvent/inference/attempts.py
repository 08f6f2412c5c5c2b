"""Records of the strategies and parallel attempts that were tried for one machine."""

from dataclasses import dataclass, field
from typing import Any, Final

CHOSEN: Final = "chosen"
LONGER: Final = "longer"
GIVEN_UP: Final = "given up"
OUT_OF_TIME: Final = "out of time"

FOUND: Final = "found"
IMPOSSIBLE: Final = "impossible"
UNIQUE: Final = "unique"
UNDECIDED: Final = "undecided"
STOPPED: Final = "stopped"


@dataclass(frozen=True)
class Attempt:
    """One strategy that was tried for a machine, and its outcome.

    Attempts are equal if they differ in seconds alone.

    Attributes:
        strategy: Its name.
        outcome: "chosen"; "longer", if its machine has no shorter description than the chosen
            one; "given up", if its machine had too many states or took too much work; "out of
            time".
        states: Number of states of its machine; None if there is none.
        bits: Length of the machine's description.
        seconds: Time it took.

    >>> print(Attempt("edsm", "chosen", 7, 310.4, 0.02))
    edsm: 7 states, 310 bits
    >>> print(Attempt("rpni", "given up"))
    rpni: given up
    """

    strategy: str
    outcome: str
    states: int | None = None
    bits: float | None = None
    seconds: float = field(default=0.0, compare=False)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        bits = None if self.bits is None else round(self.bits, 3)
        return {**vars(self), "bits": bits, "seconds": round(self.seconds, 6)}

    def __str__(self) -> str:
        if self.bits is None:
            return f"{self.strategy}: {self.outcome}"
        states = "1 state" if self.states == 1 else f"{self.states:,} states"
        return f"{self.strategy}: {states}, {self.bits:,.0f} bits"


@dataclass(frozen=True)
class WorkerRun:
    """One of several attempts that ran in parallel, and its outcome.

    The attempts that are stopped, and seconds, differ from run to run; the machines do not.

    Attributes:
        what: The attempt, such as "6 states, seed 1".
        where: The workers that ran it, such as "processes".
        outcome: "found", if there is such a machine; "impossible", if there is none; "unique", if
            there is no other; "undecided", if it was given up; "stopped", if another attempt made
            it superfluous.
        seconds: Time it took its worker; 0 if it was stopped.

    >>> print(WorkerRun("6 states, seed 1", "ray", "impossible", 3.42))
    6 states, seed 1: impossible, 3.4 s
    >>> print(WorkerRun("6 states, seed 0", "ray", "stopped"))
    6 states, seed 0: stopped
    """

    what: str
    where: str
    outcome: str
    seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {**vars(self), "seconds": round(self.seconds, 6)}

    def __str__(self) -> str:
        seconds = f", {self.seconds:.1f} s" if self.outcome != STOPPED else ""
        return f"{self.what}: {self.outcome}{seconds}"
