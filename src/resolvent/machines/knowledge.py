"""How far an answer of a machine can be trusted: witnessed, assumed, or unseen."""

from enum import StrEnum
from typing import Final


class Knowledge(StrEnum):
    """What a machine's answer to a question in a state rests on.

    WITNESSED: the traces asked this question in this state. ASSUMED: the answer was
    the same wherever the question was asked, but it was never asked in this state, or
    the state is not known. UNSEEN: there is no answer.

    >>> Knowledge.ASSUMED, str(Knowledge.ASSUMED)
    (<Knowledge.ASSUMED: 'assumed'>, 'assumed')
    """

    WITNESSED = "witnessed"
    ASSUMED = "assumed"
    UNSEEN = "unseen"


UNSEEN_CODE: Final = 0
ASSUMED_CODE: Final = 1
WITNESSED_CODE: Final = 2

LEVELS: Final = (Knowledge.UNSEEN, Knowledge.ASSUMED, Knowledge.WITNESSED)
"""The levels by their codes in columns, so that a higher code is better knowledge."""
