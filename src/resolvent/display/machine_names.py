"""Machines → what tables and pages call them. A kind may be any name that a column has."""

from resolvent._util.text import visible

_SHORT = {"transition": "TM", "reward": "RM"}


def short_name(kind: str) -> str:
    """Return what a kind of machine is called where there is little room.

    >>> short_name("transition"), short_name("reward"), short_name("cost")
    ('TM', 'RM', 'cost')
    """
    return _SHORT.get(kind) or visible(kind)
