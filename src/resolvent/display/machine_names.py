"""Machines → what tables and pages call them. A kind may be any name that a column has."""

from resolvent.machines import Machine
from resolvent.wording import visible

_SHORT = {"transition": "TM", "reward": "RM"}
_ANSWERS = {
    "transition": "the next observation",
    "reward": "the reward",
    "terminated": "whether the episode ends",
}


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


def answers_with(kind: str) -> str:
    """Say what a kind of machine predicts.

    >>> answers_with("transition"), answers_with("terminated"), answers_with("cost")
    ('the next observation', 'whether the episode ends', 'the cost')
    """
    return _ANSWERS.get(kind) or f"the {visible(kind)}"
