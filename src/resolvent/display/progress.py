"""Progress of long work → a bar on standard error, with its pace, for people who wait."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple

from resolvent._util.text import visible
from resolvent.display.pace import Pace

if TYPE_CHECKING:
    from rich.progress import Progress

_SECONDS_OF_PATIENCE = 1.0
_SECONDS_BETWEEN_REFRESHES = 0.1


class Amount(NamedTuple):
    """How much there is to do in a stage: 1,000 "episodes", say, or a file's size in "B"."""

    total: float
    unit: str


class ProgressBar:
    """A bar that appears once the work has lasted a second, on a terminal only.

    It goes away without a trace when its block ends.
    """

    def __init__(self) -> None:
        self._first = self._next = time.monotonic() + _SECONDS_OF_PATIENCE
        self._wanted = sys.stderr.isatty()
        self._bar: Progress | None = None
        self._measured = True
        self._stage = ""
        self._pace = Pace(time.monotonic())

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

    def reading(self, path: Path) -> Callable[[float], None]:
        """Return a listener for reading a file or a folder of files."""
        files = [path] if path.is_file() else path.glob("*")
        size = sum(file.stat().st_size for file in files if file.is_file())
        return self.stage(f"reading {path.name}", Amount(size, "B") if size else None)

    def stage(self, text: str, of: Amount | None = None) -> Callable[[float], None]:
        """Return a listener that shows this text with each fraction it is told."""
        self._begin(text)
        return lambda fraction: self.show(text, fraction, of=of)

    def show(
        self,
        text: str,
        fraction: float | None,
        *,
        of: Amount | None = None,
        stage: str | None = None,
        steady: bool = True,
    ) -> None:
        """Say what is going on and how much of it is done; costs a look at the clock.

        Pace is measured anew in each stage, which is the text unless it has a name.
        Of work that is not `steady` nothing is said of the time left. Where nobody can know how
        much is done, the fraction is None, and the line has no bar.
        """
        now = time.monotonic()
        if not self._wanted:
            return
        if (stage or text) != self._stage:
            self._begin(stage or text)
        # The end is always shown: what comes next may take long before it says anything.
        if now < (self._first if fraction is not None and fraction >= 1.0 else self._next):
            return
        total, unit = of or (None, "")
        seen = fraction if fraction is not None and steady else 0.0
        self._update(text, fraction, self._pace.text(now, seen, total, unit))

    def announce(self, text: str, *, at_once: bool = False) -> None:
        """Say what comes next, which cannot say how far it is; `at_once`: in the first second, too.

        What is sure to take seconds should be said at once.
        """
        if self._wanted and (at_once or time.monotonic() >= self._first):
            self._begin(text)
            self._update(text, 0.0, "")

    def _update(self, text: str, fraction: float | None, pace: str) -> None:
        self._next = time.monotonic() + _SECONDS_BETWEEN_REFRESHES
        if self._bar is not None and self._measured is (fraction is None):
            self.clear()
        if self._bar is None:
            self._measured = fraction is not None
            self._bar = _new_bar(self._measured)
        self._bar.update(
            self._bar.task_ids[0], description=visible(text), completed=fraction or 0.0, pace=pace
        )
        self._bar.start()  # once is enough, more does no harm
        self._bar.refresh()

    def _begin(self, stage: str) -> None:
        self._stage, self._pace = stage, Pace(time.monotonic())


def _new_bar(measured: bool) -> "Progress":
    # Most work is over before this: a bar that never shows need not be loaded.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
    from rich.table import Column

    how_far = (BarColumn(bar_width=16), TaskProgressColumn()) if measured else ()
    width = 26 if measured else 12
    bar = Progress(
        TextColumn(
            "{task.description}",
            markup=False,
            table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1),
        ),
        *how_far,
        TextColumn(
            "{task.fields[pace]}", markup=False, table_column=Column(no_wrap=True, min_width=width)
        ),
        console=Console(stderr=True),
        transient=True,
        auto_refresh=False,  # refreshed by who does the work: no thread beside it
        expand=True,
    )
    bar.add_task("", total=1.0, pace="")
    return bar
