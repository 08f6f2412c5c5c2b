"""Machines → what tables and pages call them. A kind may be any name that a column has."""

from resolvent.machines import Machine
from resolvent.wording import visible

_SHORT = {"transition": "TM", "reward": "RM"}


def title(machine: Machine) -> str:
    """Return what a machine is called in headings, safe to show.

    >>> from resolvent.environments import House
    >>> title(House().machines().reward)
    'Reward Machine'
    """
    return visible(machine.title)


def short_name(kind: str) -> str:
    """Return what a kind of machine is called where there is little room.

    >>> short_name("transition"), short_name("reward"), short_name("cost")
    ('TM', 'RM', 'cost')
    """
    return _SHORT.get(kind) or visible(kind)
