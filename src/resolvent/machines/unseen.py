"""`UNSEEN`: the answer of a machine to what it was never shown."""

from enum import Enum
from typing import Final, Literal, TypeAlias


class Unseen(Enum):
    """What a machine answers where it was never shown anything; `UNSEEN` is the only such value."""

    UNSEEN = "unseen"

    def __repr__(self) -> str:
        return "UNSEEN"

    __str__ = __repr__

    def __bool__(self) -> bool:
        raise TypeError("UNSEEN is neither true nor false: compare with `is UNSEEN`")


UNSEEN: Final = Unseen.UNSEEN
"""The answer of a machine that was never shown this."""

State: TypeAlias = int | Literal[Unseen.UNSEEN]
