"""The values that machines consist of and reply with: outputs, `UNSEEN`, the basis of an output."""

from enum import Enum, StrEnum
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from resolvent.traces.symbols import Label, Symbol


class Unseen(Enum):
    """Type of `UNSEEN`, its only value."""

    UNSEEN = "unseen"

    def __repr__(self) -> str:
        return "UNSEEN"

    __str__ = __repr__

    def __bool__(self) -> bool:
        raise TypeError("UNSEEN is neither true nor false: compare with `is UNSEEN`")


UNSEEN: Final = Unseen.UNSEEN
"""Output or next state where the traces show none."""

State: TypeAlias = int | Literal[Unseen.UNSEEN]


class Basis(StrEnum):
    """The basis of a machine's output for a query in a state.

    WITNESSED: the traces show this query in this state. ASSUMED: the output was the same in all
    states with this query, but the query was never observed in this state, or the state is not
    known. UNSEEN: there is no output.

    >>> Basis.ASSUMED, str(Basis.ASSUMED)
    (<Basis.ASSUMED: 'assumed'>, 'assumed')
    """

    WITNESSED = "witnessed"
    ASSUMED = "assumed"
    UNSEEN = "unseen"


UNSEEN_CODE: Final = 0
GENERALIZED_CODE: Final = 1
OBSERVED_CODE: Final = 2

BASIS_BY_CODE: Final = (Basis.UNSEEN, Basis.ASSUMED, Basis.WITNESSED)
"""Each basis at its code in columns; a higher code is better knowledge."""


class TableEntry(NamedTuple):
    """One entry of a machine's output table; `state` is None where all states agree."""

    state: int | None
    observation: Symbol
    action: Symbol
    output: Any

    @property
    def knowledge(self) -> Basis:
        """Basis of the output; constant outputs are assumed in states without observation."""
        return Basis.ASSUMED if self.state is None else Basis.WITNESSED


class MergeDecision(NamedTuple):
    """One decision of state merging: the target of one transition, and the evidence for it.

    Either `target` is a `new` state, incompatible with all states before it, or the subtree
    after the label was merged into a known state: `agreeing` outputs were equal on both sides,
    none differed, and `folded` nodes of the prefix tree were removed.
    """

    source: int
    label: Label
    target: int
    new: bool
    agreeing: int
    folded: int


def machine_name(predicts: str) -> str:
    """Return the name of the machine that predicts a column.

    >>> machine_name("observation"), machine_name("reward"), machine_name("cost")
    ('transition', 'reward', 'cost')
    """
    return "transition" if predicts == "observation" else predicts
