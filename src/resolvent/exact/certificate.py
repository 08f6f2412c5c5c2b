"""What an exact search has proven about the machine it gives back."""

from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from resolvent import notebook
from resolvent.inference.attempts import Ran


@dataclass(frozen=True, slots=True, eq=False)
class Effort:
    """What a search took: evidence given to the solver, its work, and the clock.

    `ran` are the attempts that were made side by side, if any.
    """

    traces: int
    tree_nodes: int
    clauses: int
    solver_calls: int
    seconds: float
    ran: tuple[Ran, ...] = ()


A = TypeVar("A")
"""What an alternative is: an automaton, or a machine made of it."""


@dataclass(frozen=True)
class Certificate(Generic[A]):
    """How many states the machine has and how many any machine must have.

    No machine of fewer than `lower_bound` states explains the samples. `unique`
    says whether the machine is the only one of its size, as far as the samples
    tell machines apart: a transition after which nothing is asked does not count.
    It is None where that is not known, and then so is `alternative`, a second
    machine of the same size that explains the samples as well. What it took to find
    out makes no difference when two are compared.
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
        """Show what was proven, and what it took, in a notebook."""
        effort = self.effort
        took = (
            []
            if effort is None
            else [
                ("traces given to the solver", f"{effort.traces:,}"),
                ("calls of the solver", f"{effort.solver_calls:,}"),
                ("seconds", f"{effort.seconds:.3f}"),
            ]
        )
        return notebook.panel(str(self), notebook.figures(took))

    def __str__(self) -> str:
        """Say it in a line.

        >>> print(Certificate(7, 7, unique=True))
        7 states, proven minimal: 6 are impossible; unique
        >>> print(Certificate(9, 6))
        at most 9 states, at least 6: not proven (time ran out)
        """
        if not self.proven:
            return (
                f"at most {_states(self.states)}, at least {self.lower_bound}: "
                "not proven (time ran out)"
            )
        fewer = self.states - 1
        impossible = f": {fewer} {'is' if fewer == 1 else 'are'} impossible" if fewer else ""
        unique = {
            True: "unique",
            False: "not unique: another machine of the same size fits as well",
            None: "whether it is unique is not decided",
        }[self.unique]
        return f"{_states(self.states)}, proven minimal{impossible}; {unique}"


def _states(count: int) -> str:
    return f"{count} state" if count == 1 else f"{count} states"
