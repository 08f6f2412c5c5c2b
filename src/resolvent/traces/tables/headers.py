"""The beginning of a CSV file → the names of its columns."""

import csv
import io

from resolvent.errors import TraceError

DELIMITERS = (",", ";", "\t")
MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL")
"""Texts that stand for a missing value, unless the caller names others."""


def header_of(start: bytes, place: str, delimiter: str | None = None) -> tuple[list[str], str]:
    r"""Return the names in the first line that is not blank, and what separates them.

    Names in quotes may hold ends of lines, and lines may end in a carriage return alone.

    >>> header_of(b"session;event;answer, if any\n1;coin;ok\n", "log.csv")
    (['session', 'event', 'answer, if any'], ';')
    """
    text = start.decode("utf-8-sig", "surrogateescape")
    try:
        found = [
            (next(filter(None, csv.reader(io.StringIO(text, newline=""), delimiter=one)), []), one)
            for one in ((delimiter,) if delimiter else DELIMITERS)
        ]
    except csv.Error as error:
        raise TraceError(f"{place} cannot be read as CSV ({error}): make it again") from error
    names, separator = max(found, key=lambda names_and_delimiter: len(names_and_delimiter[0]))
    try:
        "".join(names).encode()
    except UnicodeEncodeError as error:
        raise TraceError(f"{place} is not UTF-8: save it as UTF-8") from error
    return names, separator
