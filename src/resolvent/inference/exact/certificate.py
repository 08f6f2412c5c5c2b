"""The outcome of an exact search: the bounds on the number of states, and the effort."""

from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from resolvent._util import html as notebook
from resolvent._util.text import amount
from resolvent.inference.attempts import WorkerRun


@dataclass(frozen=True, slots=True, eq=False)
class Effort:
    """The effort of a search: the evidence given to the solver, its work, and the time.

    `ran` holds the attempts that ran in parallel, if any.
    """

    traces: int
    tree_nodes: int
    clauses: int
    solver_calls: int
    seconds: float
    ran: tuple[WorkerRun, ...] = ()


A = TypeVar("A")
"""The type of an alternative: an automaton, or a machine built from it."""


@dataclass(frozen=True)
class MinimalityProof(Generic[A]):
    """The number of states of a machine, and a lower bound on that of any machine.

    No machine with fewer than `lower_bound` states explains the samples. `unique` says whether the
    machine is the only one of its size, as far as the samples distinguish machines: a transition
    with no query after it does not count. It is None if unknown, and then so is `alternative`,
    another machine of the same size that explains the samples. Equality ignores effort.
    """

    states: int
    lower_bound: int
    unique: bool | None = None
    alternative: A | None = None
    effort: Effort | None = field(default=None, repr=False, compare=False)

    @property
    def proven(self) -> bool:
        """Whether no smaller machine explains the samples."""
        return self.lower_bound == self.states

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "states": self.states,
            "at_least": self.lower_bound,
            "proven": self.proven,
            "unique": self.unique,
        }

    def _repr_html_(self) -> str:
        """Return the proof and its effort for a notebook."""
        figures: list[tuple[str, str]] = []
        if (effort := self.effort) is not None:
            figures = [
                ("traces given to the solver", f"{effort.traces:,}"),
                ("calls of the solver", f"{effort.solver_calls:,}"),
                ("seconds", f"{effort.seconds:.3f}"),
            ]
        return notebook.panel(str(self), notebook.figures(figures))

    def __str__(self) -> str:
        """Return the proof in one line.

        >>> print(MinimalityProof(7, 7, unique=True))
        7 states, proven minimal: 6 are impossible; unique
        >>> print(MinimalityProof(9, 6))
        at most 9 states, at least 6: not proven (time ran out)
        """
        states = amount(self.states, "state")
        if not self.proven:
            return f"at most {states}, at least {self.lower_bound:,}: not proven (time ran out)"
        fewer = self.states - 1
        impossible = f": {fewer:,} {'is' if fewer == 1 else 'are'} impossible" if fewer else ""
        unique = {
            True: "unique",
            False: "not unique: another machine of the same size fits as well",
            None: "whether it is unique is not decided",
        }[self.unique]
        return f"{states}, proven minimal{impossible}; {unique}"
