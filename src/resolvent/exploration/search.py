"""Search for the shortest path over steps whose outcome is known.

Input: start nodes and, for each node in turn, its successors. Output: a `Path`.
"""

from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

from resolvent.exploration.empirical_model import UNKNOWN
from resolvent.machines.memory import BreadthFirstSearch

Step: TypeAlias = tuple[int, int]
"""The row of an augmented state, and an action."""

Node = TypeVar("Node", bound=int | tuple[Any, ...])
"""The row of an augmented state, or a tuple that begins with it."""


@dataclass(frozen=True)
class Path:
    """Steps to take one after another; the last one serves the purpose."""

    steps: tuple[Step, ...]
    use: float = 1.0
    purpose: str = ""

    @property
    def start(self) -> int:
        """The row of the path's first augmented state; `UNKNOWN` if the path is empty."""
        return self.steps[0][0] if self.steps else UNKNOWN

    @property
    def rate(self) -> float:
        """The use per step."""
        return self.use / max(len(self.steps), 1)


RESET: Final = Path((), 0.0)
"""Stands for a test to make in another episode."""


class StepSearch(BreadthFirstSearch[Node, int]):
    """A breadth-first search over known steps."""

    def steps_to(self, node: Node, action: int) -> tuple[Step, ...]:
        """Return the steps from a start to a node, and then the action."""
        path = [*self.path_to(node), (node, action)]
        return tuple((node if isinstance(node, int) else int(node[0]), edge) for node, edge in path)
