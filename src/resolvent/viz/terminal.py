"""Show progress bars and tables on a terminal.

Rich is imported at the first use: most work is over before a bar appears.
"""

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from resolvent._util.text import visible

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.progress import Progress
    from rich.table import Table
    from rich.text import Text

_SECONDS_BEFORE_FIRST = 1.0
_SECONDS_BETWEEN_REFRESHES = 0.1
_LEAST_SECONDS, _LEAST_FRACTION = 0.5, 0.005  # of work from which the remaining time is estimated
_UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


class Amount(NamedTuple):
    """Amount of work in a stage: 1,000 "episodes", say, or a file's size in "B"."""

    total: float
    unit: str


class ProgressBar:
    """A bar on a terminal from a second after the start of the work to the end of its block."""

    def __init__(self) -> None:
        self._first = self._next = time.monotonic() + _SECONDS_BEFORE_FIRST
        self._is_wanted = sys.stderr.isatty()
        self._bar: Progress | None = None
        self._begin("")

    def __enter__(self) -> "ProgressBar":
        return self

    def __exit__(self, *error: object) -> None:
        self.clear()

    def clear(self) -> None:
        """Remove the bar, so that a line can be printed; it may come back later."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def reading(self, path: Path) -> Callable[[float], None]:
        """Return a listener for reading a file or a folder of files."""
        files = [path] if path.is_file() else path.glob("*")
        size = sum(file.stat().st_size for file in files if file.is_file())
        return self.stage(f"reading {path.name}", Amount(size, "B") if size else None)

    def stage(self, text: str, of: Amount | None = None) -> Callable[[float], None]:
        """Return a listener that shows this text with each fraction it receives."""
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
        """Show the current work and the fraction done; costs a look at the clock.

        The pace is measured from the start of each stage, by default named by the text. Only
        `steady` work shows the remaining time. With an unknown fraction, None, there is no bar.
        """
        now = time.monotonic()
        if not self._is_wanted:
            return
        if (stage or text) != self._stage:
            self._begin(stage or text)
        # The end is always shown: the next stage may take long before its first call.
        if now < (self._first if fraction is not None and fraction >= 1.0 else self._next):
            return
        usable = fraction if fraction is not None and steady else 0.0
        self._update(text, fraction, pace_text(now - self._began, usable, of))

    def announce(self, text: str, *, at_once: bool = False) -> None:
        """Show work that reports no fraction; `at_once`: in the first second, too."""
        if self._is_wanted and (at_once or time.monotonic() >= self._first):
            self._begin(text)
            self._update(text, 0.0, "")

    def _update(self, text: str, fraction: float | None, pace: str) -> None:
        self._next = time.monotonic() + _SECONDS_BETWEEN_REFRESHES
        has_fraction = fraction is not None
        if self._bar is not None and (len(self._bar.columns) > 2) != has_fraction:
            self.clear()
        if self._bar is None:
            self._bar = _new_bar(has_fraction)
        self._bar.update(
            self._bar.task_ids[0], description=visible(text), completed=fraction or 0.0, pace=pace
        )
        self._bar.start()  # does nothing after the first time
        self._bar.refresh()

    def _begin(self, stage: str) -> None:
        self._stage, self._began = stage, time.monotonic()


def _new_bar(has_fraction: bool) -> "Progress":
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
    from rich.table import Column

    fraction = (BarColumn(bar_width=16), TaskProgressColumn()) if has_fraction else ()
    description = Column(no_wrap=True, overflow="ellipsis", ratio=1)
    pace = Column(no_wrap=True, min_width=26 if has_fraction else 12)
    bar = Progress(
        TextColumn("{task.description}", markup=False, table_column=description),
        *fraction,
        TextColumn("{task.fields[pace]}", markup=False, table_column=pace),
        console=Console(stderr=True),
        transient=True,
        auto_refresh=False,  # refreshed by the working thread: no other one beside it
        expand=True,
    )
    bar.add_task("", total=1.0, pace="")
    return bar


def pace_text(seconds: float, fraction: float, of: Amount | None = None) -> str:
    """Return the mean rate and the remaining time; at the very start, the time so far."""
    if fraction < _LEAST_FRACTION or seconds < _LEAST_SECONDS:
        return f"{duration(seconds)} so far"
    left = f"{duration(seconds * (1 - min(fraction, 1.0)) / fraction)} left"
    return left if of is None else f"{rate(of.total * fraction / seconds, of.unit)}, {left}"


def rate(per_second: float, unit: str) -> str:
    """Write a rate per second, or per minute or hour if it is low."""
    per, name = next(
        (period for period in ((1, "s"), (60, "min")) if per_second * period[0] >= 1), (3600, "h")
    )
    number = per_second * per
    size, letter = next((step for step in _UNITS if number >= step[0]), (1.0, ""))
    text = f"{number / size:.3g}"
    return f"{text} {letter}{unit}/{name}" if unit == "B" else f"{text}{letter} {unit}/{name}"


def duration(seconds: float) -> str:
    """Write a duration."""
    rounded = round(seconds)
    return f"{rounded} s" if rounded < 60 else str(timedelta(seconds=rounded)).lstrip("0:")


def show(*blocks: "RenderableType", wrapped: bool = True) -> None:
    """Print blocks without blanks at line ends; commands are not `wrapped`, to be copied whole."""
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    with console.capture() as captured:
        for block in blocks:
            console.print(block, soft_wrap=not wrapped)
    for line in captured.get().splitlines():
        print(line.rstrip())


def table(
    header: Sequence[str], rows: "Iterable[Sequence[str | Text]]", *, right: Iterable[int] = ()
) -> "Table":
    """Return a table; the columns numbered in `right` are flush right."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False)
    for name in header:
        grid.add_column(Text(name))
    for number in right:
        grid.columns[number].justify = "right"
    for row in rows:
        grid.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    return grid
