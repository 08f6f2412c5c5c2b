"""What a fuzzer tries: who reads, and how a valid input is made and damaged."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

Files = dict[str, bytes]
"""What an input is: files by their names, most often one."""


@dataclass(frozen=True)
class Reader:
    """One reader of files.

    Attributes:
        name: What it is called in counts.
        make: Returns the files of an input, damaged or not, of a source of chance.
        read: Reads what lies at a folder; what it returns does not matter.
        allowed: Further exceptions that are documented outcomes.
    """

    name: str
    make: Callable[[Random], Files]
    read: Callable[[Path], object]
    allowed: tuple[type[Exception], ...] = field(default=())


@dataclass(frozen=True)
class Call:
    """One public call: `prepare` draws its arguments, and returns what makes it, and its text."""

    name: str
    prepare: Callable[[Random], tuple[Callable[[], object], str]]
    allowed: tuple[type[Exception], ...] = field(default=())


Target = Reader | Call


def targets() -> dict[str, Target]:
    """Return all that is fuzzed, by name, in a fixed order."""
    from fuzz import (
        acting_calls,
        acting_readers,
        core_calls,
        kept_readers,
        machine_readers,
        odd_worlds,
        public_calls,
        strangers,
        table_readers,
        trace_readers,
    )

    rooms = (
        trace_readers,
        table_readers,
        machine_readers,
        acting_readers,
        kept_readers,
        public_calls,
        acting_calls,
        odd_worlds,
        strangers,
        core_calls,
    )
    return {one.name: one for room in rooms for one in room.TARGETS}
