"""How long a method has run, how long it may, and who wants to know."""

import time
from collections.abc import Callable
from typing import TypeAlias

from resolvent.errors import OptionError, TimeLimitReached

Listener: TypeAlias = Callable[[str, float], None]
"""Called regularly with a description of the work, and the share of it or of the time done."""

now: Callable[[], float] = time.monotonic
"""The seconds that limits count. A process in which one method runs and nothing else may put those
of the processor here, which other work on the machine does not use up."""

_SECONDS_BETWEEN_REPORTS = 0.05


class Clock:
    """Counts the seconds since it was made, against a limit if there is one.

    >>> Clock(None).left is None, 0 < Clock(60).left <= 60
    (True, True)
    """

    def __init__(self, time_limit: float | None, progress: Listener | None = None) -> None:
        if time_limit is not None and not time_limit > 0:
            raise OptionError(f"time_limit={time_limit}: give the method some seconds, or None")
        self._limit = time_limit
        self._progress = progress
        self._started = self._told = now()

    @property
    def seconds(self) -> float:
        """How long it has run."""
        return now() - self._started

    @property
    def left(self) -> float | None:
        """The seconds that are left, at least 0; None if there is no limit."""
        return None if self._limit is None else max(0.0, self._limit - self.seconds)

    def look(self) -> None:
        """Stop with `TimeLimitReached` once time is up."""
        if self.left == 0:
            raise TimeLimitReached(f"time ran out after {self._limit:g} seconds")

    def tell(self, text: str, fraction: float | None = None) -> None:
        """Report the progress; without a fraction, the share of the time used."""
        at = now()
        if self._progress is not None and at - self._told >= _SECONDS_BETWEEN_REPORTS:
            self._told = at
            over = 0.0 if self._limit is None else min(1.0, self.seconds / self._limit)
            self._progress(text, over if fraction is None else fraction)
