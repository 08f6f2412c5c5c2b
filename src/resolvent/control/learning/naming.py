"""What an environment showed, and the names of its numbers → words."""

from resolvent.traces.symbols import Symbol, is_mapping, symbol_text
from resolvent.wording import short


def shown_text(shown: Symbol, names: tuple[Symbol, ...] | None = None) -> str:
    """Write what an environment showed; the parts of a mapping each by their name.

    `names` are those of the numbers that observations are.

    >>> shown_text((("observation", 1), ("reward_state", 1)), ("hall", "attic"))
    'observation attic, reward state 1'
    >>> shown_text(1, ("hall", "attic")), shown_text((1, 2), ("hall", "attic"))
    ('attic', '(1, 2)')
    """
    if not isinstance(shown, tuple) or not is_mapping(shown):
        return short(symbol_text(named(shown, names)))
    return ", ".join(
        f"{short(part).replace('_', ' ')} "
        f"{short(symbol_text(named(value, names if part == 'observation' else None)))}"
        for part, value in shown
    )


def named(value: Symbol, names: tuple[Symbol, ...] | None) -> Symbol:
    """Return the name of a number, where it has one.

    >>> named(1, ("up", "down")), named(7, ("up", "down")), named(1, None)
    ('down', 7, 1)
    """
    if names is None or type(value) is not int or not 0 <= value < len(names):
        return value
    return names[value]


def observed(shown: Symbol) -> Symbol:
    """Return the observation within what an environment showed, if it is a part of that.

    >>> observed((("observation", "hall"), ("reward_state", 1))), observed("hall")
    ('hall', 'hall')
    """
    if not isinstance(shown, tuple) or not is_mapping(shown):
        return shown
    return next((value for part, value in shown if part == "observation"), shown)
