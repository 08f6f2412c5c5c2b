"""How the rows of a piece of files stand, as plain data: found once, it holds for good."""

from typing import NamedTuple


class Arrangement(NamedTuple):
    """What need not be looked at again when a piece is read once more, for its files are sealed.

    `front` is how many rows come first that belong to an episode which began in a piece before;
    `in_order` says that the others stand in order, so that what orders them need not be read.
    """

    front: int
    in_order: bool
