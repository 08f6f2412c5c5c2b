"""What traces hold → short texts for a page."""

from typing import Any

from resolvent.machines import UNSEEN
from resolvent.traces import Label, label_text, symbol_text
from resolvent.wording import visible

MOST_CHARACTERS = 120


def short(text: str, most: int = MOST_CHARACTERS) -> str:
    """Make a text safe to show, and cut the middle of a long one.

    >>> short("corridor"), short("a" * 20, 7)
    ('corridor', 'aaa…aaa')
    """
    shown = visible(text)
    half = (most - 1) // 2
    return shown if len(shown) <= most else f"{shown[:half]}…{shown[-half:]}"


def value_text(value: Any) -> str:
    """Write an observation, an action or a reward.

    >>> value_text("hall"), value_text(1.0), value_text((1, 2)), value_text(UNSEEN)
    ('hall', '1', '(1, 2)', 'never seen')
    """
    if value is UNSEEN:
        return "never seen"
    return short(f"{value:g}" if isinstance(value, float) else symbol_text(value))


def event_text(label: Label) -> str:
    """Write a label."""
    return short(label_text(label))
