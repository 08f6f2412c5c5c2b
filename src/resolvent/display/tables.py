"""Rows of text → tables for a terminal, plain when it is not one."""

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text


def show(*blocks: RenderableType, wrapped: bool = True) -> None:
    """Print blocks on standard output, with no blanks at the ends of lines.

    Commands are not wrapped: whoever copies a line wants all of it.
    """
    console = Console(highlight=False, markup=False, emoji=False)
    with console.capture() as captured:
        for block in blocks:
            console.print(block, soft_wrap=not wrapped)
    for line in captured.get().splitlines():
        print(line.rstrip())


def table(
    header: Sequence[str], rows: Iterable[Sequence[str | Text]], *, right: Iterable[int] = ()
) -> Table:
    """Set rows under a header; the columns numbered in `right` are flush right."""
    flush_right = frozenset(right)
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False)
    for number, name in enumerate(header):
        grid.add_column(Text(name), justify="right" if number in flush_right else "left")
    for row in rows:
        grid.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    return grid
