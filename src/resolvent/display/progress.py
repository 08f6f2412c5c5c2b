"""Progress of long work → a bar on standard error, for people who wait."""

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

_SECONDS_OF_PATIENCE = 1.0
_SECONDS_BETWEEN_REFRESHES = 0.1


class ProgressBar:
    """A bar that appears once the work has lasted a second, on a terminal only.

    It goes away without a trace when its block ends.
    """

    def __init__(self) -> None:
        self._next = time.monotonic() + _SECONDS_OF_PATIENCE
        self._wanted = sys.stderr.isatty()
        self._bar: Progress | None = None

    def __enter__(self) -> "ProgressBar":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.clear()

    def clear(self) -> None:
        """Take the bar away, so that a line can be printed; it may come back later."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def stage(self, text: str) -> Callable[[float], None]:
        """Return a listener that shows this text with each fraction it is told."""
        return lambda fraction: self.show(text, fraction)

    def show(self, text: str, fraction: float) -> None:
        """Say what is going on and how much of it is done; costs a look at the clock."""
        now = time.monotonic()
        if not self._wanted or now < self._next:
            return
        self._next = now + _SECONDS_BETWEEN_REFRESHES
        if self._bar is None:
            self._bar = _new_bar(text)
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], description=text, completed=fraction, refresh=True)


def _new_bar(text: str) -> "Progress":
    # Most work is over before this: a bar that never shows need not be loaded.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        TaskProgressColumn(),
        console=Console(stderr=True),
        transient=True,
        auto_refresh=False,  # refreshed by who does the work: no thread beside it
    )
    bar.add_task(text, total=1.0)
    return bar
