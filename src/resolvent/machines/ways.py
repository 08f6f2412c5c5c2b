"""How states are reached: label histories → words, short also where histories are long."""

from collections.abc import Sequence
from typing import Final

from resolvent.machines.machine import Machine
from resolvent.traces.symbols import Label, label_text

_SHOWN: Final = 8
"""Of a long history so many labels are shown at each end; it is long if that saves half of it."""


def history_text(history: Sequence[Label]) -> str:
    """Write a label history for people; of a long one how it begins and ends.

    >>> history_text(()), history_text((frozenset({"key"}), frozenset({"door"})))
    ('start', 'key, door')
    >>> history_text((frozenset({"x"}),) * 1000)
    'x, x, x, x, x, x, x, x, … 984 more …, x, x, x, x, x, x, x, x'
    """
    if not history:
        return "start"
    if len(history) <= 4 * _SHOWN:
        return ", ".join(map(label_text, history))
    between = f"… {len(history) - 2 * _SHOWN:,} more …"
    first, last = history[:_SHOWN], history[-_SHOWN:]
    return ", ".join([*map(label_text, first), between, *map(label_text, last)])


def ways_text(machine: Machine) -> list[str]:
    """Say of each state how it is reached first, as `history_text` does.

    All in one pass: the histories of a long chain together are as long as its square.

    >>> from resolvent.worlds import House
    >>> ways_text(House().machines().transition)
    ['start', 'key']
    """
    texts = ["no labels lead here"] * machine.states
    begins: dict[int, tuple[str, ...]] = {}
    ends: dict[int, tuple[int, tuple[str, ...]]] = {}
    names = [*map(label_text, machine.labels)]
    for state, (source, code) in machine._first_ways.items():  # nearer ones come first
        if code < 0:
            begins[state], ends[state], texts[state] = (), (0, ()), "start"
            continue
        long, last = ends[source]
        begins[state] = begins[source]
        if long < _SHOWN:
            begins[state] += (names[code],)
        ends[state] = long + 1, (*last[1 - 4 * _SHOWN :], names[code])
        long, last = ends[state]
        if long > 4 * _SHOWN:
            between = f"… {long - 2 * _SHOWN:,} more …"
            last = (*begins[state], between, *last[-_SHOWN:])
        texts[state] = ", ".join(last)
    return texts
