"""Search for the shortest path over steps whose outcome is known.

Input: start nodes and, for each node in turn, its successors. Output: a `Path`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import inf
from typing import Any, Final, Generic, TypeAlias, TypeVar

from resolvent.exploration.empirical_model import UNKNOWN

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


class BreadthFirstSearch(Generic[Node]):
    """Visits nodes first in, first out, so that ties are broken by the order of actions.

    Iterate over it, and `add` the successors of each node. The search ends when it holds
    `max_nodes` nodes.
    """

    def __init__(self, starts: Iterable[Node], max_nodes: float = inf) -> None:
        self.parents: dict[Node, tuple[Node, int] | None] = dict.fromkeys(starts)
        self.distance = 0
        """Number of steps from the starts to the present node."""
        self._max_nodes = max_nodes
        self._next: list[Node] = list(self.parents)

    def __iter__(self) -> Iterator[Node]:
        while self._next:
            level, self._next = self._next, []
            for node in level:
                if len(self.parents) >= self._max_nodes:
                    return
                yield node
            self.distance += 1

    def add(self, node: Node, parent: Node, action: int) -> None:
        """Note that an action in the parent leads to a node, unless the node was reached before."""
        if node not in self.parents:
            self.parents[node] = parent, action
            self._next.append(node)

    def steps_to(self, node: Node, action: int) -> tuple[Step, ...]:
        """Return the steps from a start to a node, and then the action."""
        path = [(node, action)]
        while (parent := self.parents[path[-1][0]]) is not None:
            path.append(parent)
        rows = (node if isinstance(node, int) else int(node[0]) for node, _ in reversed(path))
        return tuple(zip(rows, (action for _, action in reversed(path)), strict=True))
