"""What notebooks show of machines: a picture where one can be drawn, otherwise their text."""

from collections.abc import Iterable
from html import escape

from resolvent.errors import ResolventError
from resolvent.machines.machine import Machine
from resolvent.machines.picture.svg import to_svg


def svg_or_nothing(machine: Machine) -> str | None:
    """Draw a machine, or return None, which makes a notebook show the machine's text."""
    try:
        return to_svg(machine)
    except ResolventError:
        return None


def html_of_machines(machines: Iterable[Machine]) -> str | None:
    """Draw machines one below the other, each under its name; None where that is impossible."""
    parts = []
    for machine in machines:
        drawn = svg_or_nothing(machine)
        if drawn is None:
            return None
        name = escape(machine.title)
        parts.append(f'<div style="overflow-x:auto"><p><b>{name}</b></p>\n{drawn}</div>')
    return "\n".join(parts)
