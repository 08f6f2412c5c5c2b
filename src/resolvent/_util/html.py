"""Figures, rows and lines → small HTML for notebooks.

All input is text, shortened and escaped, or a picture in a data URI; nothing is fetched or
executed, and colors are those of the notebook, dark or light.
"""

from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice
from typing import NamedTuple

from resolvent._util.text import short

MAX_ROWS = 10  # maximum number of rows of a table
_MAX_LINES = 30
_LONGEST_CELL, _LONGEST_LINE = 60, 300
_LEFT = 'style="text-align:left"'
_PIXELS = 'style="image-rendering:pixelated;vertical-align:middle;outline:1px solid #8886"'


class Pictured(NamedTuple):
    """A text after pictures: the data URI, width and height of each."""

    text: str
    pictures: Sequence[tuple[str, int, int]]


def panel(title: str, *parts: str) -> str:
    """Put the results of the other functions below a title."""
    head = f"<p><b>{_safe(title, _LONGEST_LINE)}</b></p>"
    return f'<div style="overflow-x:auto">{head}{"".join(parts)}</div>'


def figures(rows: Iterable[tuple[str, object]]) -> str:
    """Write names and values, one row for each."""
    return _table(
        f"<th {_LEFT}>{_safe(name)}</th><td {_LEFT}>{_safe(value, _LONGEST_LINE)}</td>"
        for name, value in rows
    )


def table(header: Sequence[str], rows: Iterable[Sequence[object]], count: int = 0) -> str:
    """Write the first rows of a table of `count` rows, and the number of further rows."""
    first_rows = list(islice(rows, MAX_ROWS))
    head = "".join(f"<th {_LEFT}>{_safe(name)}</th>" for name in header)
    body = ("".join(f"<td {_LEFT}>{_cell(value)}</td>" for value in row) for row in first_rows)
    remaining = count - len(first_rows)
    return _table([head, *body]) + (f"<p>… and {remaining:,} more</p>" if remaining > 0 else "")


def lines(text: str) -> str:
    """Write lines of text unchanged, only the first if there are many."""
    all_lines = text.splitlines()
    ellipsis = ["…"] * (len(all_lines) > _MAX_LINES)
    body = "\n".join(_safe(line, _LONGEST_LINE) for line in [*all_lines[:_MAX_LINES], *ellipsis])
    return f'<pre style="white-space:pre-wrap">{body}</pre>'


def _table(rows: Iterable[str]) -> str:
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


def _cell(value: object) -> str:
    if not isinstance(value, Pictured):
        return _safe(value)
    images = (
        f'<img src="{escape(address)}" width="{width}" height="{height}" alt="" {_PIXELS}> '
        for address, width, height in value.pictures
    )
    return "".join(images) + _safe(value.text, 2 * _LONGEST_CELL)


def _safe(value: object, most: int = _LONGEST_CELL) -> str:
    # Text stands between tags only, where quotes are harmless.
    return escape(short(str(value), most), quote=False)
