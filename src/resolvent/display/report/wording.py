"""What traces hold → short texts for a page."""

from typing import Any

from resolvent._util.text import short
from resolvent.machines import UNSEEN
from resolvent.traces import Label, label_text, symbol_text


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
