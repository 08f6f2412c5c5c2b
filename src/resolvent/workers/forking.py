"""Processes that are forked from this one while other threads are at work."""

import os
import sys
from collections.abc import Callable
from functools import cached_property
from threading import RLock


def in_child(renew: Callable[[], object]) -> Callable[[], object]:
    """Have a function called in every process that is forked from here, before all else there.

    A lock that another thread holds at that moment is held in the child for ever, for the thread
    is not there: `renew` makes another one.
    """
    if hasattr(os, "register_at_fork"):  # Windows has no forks
        os.register_at_fork(after_in_child=renew)
    return renew


def _renew_properties() -> None:
    """Renew the locks that properties of this package's classes have in Python 3.11."""
    ours = (one for name, one in tuple(sys.modules.items()) if name.startswith("resolvent."))
    classes = (kind for module in ours for kind in vars(module).values() if isinstance(kind, type))
    for kind in set(classes):
        for value in vars(kind).values():
            if isinstance(value, cached_property) and hasattr(value, "lock"):
                value.lock = RLock()


if sys.version_info < (3, 12):
    in_child(_renew_properties)
