"""The first line of a CSV file → the names of its columns."""

import csv

from resolvent.errors import TraceError

DELIMITERS = (",", ";", "\t")
MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL")
"""Texts that stand for a missing value, unless the caller names others."""


def header_of(first: bytes, place: str, delimiter: str | None = None) -> tuple[list[str], str]:
    r"""Return the names in a first line, and what separates them.

    >>> header_of(b"session;event;answer, if any\n", "log.csv")
    (['session', 'event', 'answer, if any'], ';')
    """
    try:
        line = first.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise TraceError(f"{place} is not UTF-8: save it as UTF-8") from error
    found = [
        (next(csv.reader([line], delimiter=one), []), one)
        for one in ((delimiter,) if delimiter else DELIMITERS)
    ]
    return max(found, key=lambda names_and_delimiter: len(names_and_delimiter[0]))
