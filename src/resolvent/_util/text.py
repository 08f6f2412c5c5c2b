"""Numbers and texts → words that are easy to read, and safe to show."""

import unicodedata
from collections.abc import Iterable
from math import exp, floor, log


def amount(number: int, noun: str) -> str:
    """Write a number of things, with thousands separators.

    >>> amount(1, "trace"), amount(18239, "step")
    ('1 trace', '18,239 steps')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def percent(share: float) -> str:
    """Write a share in percent; only 1 is written as 100%.

    >>> percent(0.951), percent(0.999), percent(1), percent(0.001), percent(0)
    ('95%', '>99%', '100%', '<1%', '0%')
    """
    if 0.99 < share < 1:
        return ">99%"
    if 0 < share < 0.01:
        return "<1%"
    return f"{share:.0%}"


def odds_text(log_odds: float) -> str:
    """Write a likelihood ratio, given its logarithm.

    >>> odds_text(-27.6), odds_text(-1.2), odds_text(0.5), odds_text(1000)
    ('10⁻¹² as likely', '0.3 times as likely', '1.6 times as likely', '10⁴³⁴ times as likely')
    """
    if -log(1000) < log_odds < log(1000):
        return f"{exp(log_odds):.2g} times as likely"
    power = str(floor(log_odds / log(10) + 0.5)).translate(_RAISED)
    return f"10{power} as likely" if log_odds < 0 else f"10{power} times as likely"


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def visible(text: str) -> str:
    r"""Escape invisible characters and those that change the display of others, as Python does.

    These are control characters, which XML forbids, and marks that change the direction of
    writing.

    >>> visible("key"), visible("two\nlines"), visible("\u202eyek")
    ('key', 'two\\nlines', '\\u202eyek')
    """
    return text if text.isprintable() else "".join(map(_visible_character, text))


def short(text: str, most: int = 120) -> str:
    """Make a text safe to show, and cut the middle of a long one.

    >>> short("corridor"), short("a" * 20, 7)
    ('corridor', 'aaa…aaa')
    """
    safe = visible(text)
    half = (most - 1) // 2
    return safe if len(safe) <= most else f"{safe[:half]}…{safe[-half:]}"


def listed(names: Iterable[str], between: str = ", ") -> str:
    """Write names chosen by users, separated, each as `short` does.

    >>> listed(["cost", "fault"])
    'cost, fault'
    """
    return between.join(map(short, names))


def _visible_character(character: str) -> str:
    hidden = unicodedata.category(character)[0] == "C" or character in "\u2028\u2029"
    return character.encode("unicode_escape").decode() if hidden else character
