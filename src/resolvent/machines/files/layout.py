"""What a file of machines holds, as `storage` writes it and the schema in docs/formats says."""

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from resolvent.machines.files.stored_doubt import StoredDoubt
from resolvent.machines.files.stored_senses import StoredSenses
from resolvent.machines.files.stored_spread import StoredSpread
from resolvent.machines.machine_set import Provenance
from resolvent.samples import LabelTiming


class Counts(msgspec.Struct, forbid_unknown_fields=True):
    """How often the traces showed each row of the tables."""

    transitions: list[int]
    by_state: list[int]
    constant: list[int]


class Support(Counts, forbid_unknown_fields=True):
    """The same, and for each state and constant question, sorted by both, how often it was asked.

    Only where `asked` says which these are. `rivals` are rows of `transitions` that might lead
    elsewhere, for all that noise allows: the row, the likeliest other state, and the logarithm of
    how many times as likely the one is that stands there.
    """

    asked: list[int] | UnsetType = UNSET
    rivals: list[tuple[int, int, float]] | UnsetType = UNSET


class Decisions(msgspec.Struct, forbid_unknown_fields=True):
    """In order, the rows of `transitions` that were settled, and what each rests on."""

    transitions: list[int]
    agreeing: list[int]
    folded: list[int]


class Tables(msgspec.Struct, forbid_unknown_fields=True):
    """Tables over positions in the lists `labels`, `observations`, `actions`, `outputs`."""

    states: int
    labels: list[list[str]]
    observations: list[Any]
    actions: list[Any]
    outputs: list[Any]
    trivial: list[int]
    transitions: list[tuple[int, int, int]]  # state, label, next state
    by_state: list[tuple[int, int, int, int]]  # state, observation, action, output
    constant: list[tuple[int, int, int]]  # observation, action, output


class Asked(msgspec.Struct, forbid_unknown_fields=True):
    """In which states each row of `constant` was asked: the number of a set of states.

    Many rows share one set, so each is written once, in the order of its first row.
    """

    sets: list[list[int]]
    rows: list[int]


class Machine(msgspec.Struct, forbid_unknown_fields=True):
    """A machine: the column it answers with, how it reads observations, and its tables.

    `spread` lists all answers of the rows of `by_state` that have more than one: the row, the
    output, and how often it came. Each such row names the most frequent of them.
    """

    predicts: str
    supplemented: bool
    digits: int | None
    tables: Tables
    asked: Asked | UnsetType = UNSET
    spread: StoredSpread | UnsetType = UNSET


class Termination(msgspec.Struct, forbid_unknown_fields=True):
    """The situations whose step ended an episode, always or sometimes.

    Each is an observation and an action of the first machine, with the states of all
    machines between them.
    """

    ends: list[list[int]]
    ambiguous: list[list[int]]


class Header(msgspec.Struct):
    """What says whether the rest can be read."""

    format: str = ""
    version: int = 0


class File(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """All of the file; `support` and `decisions` by the kind of machine."""

    format: str
    version: int
    timing: LabelTiming
    machines: list[Machine]
    termination: Termination
    support: dict[str, Support]
    decisions: dict[str, Decisions] | UnsetType = UNSET
    senses: StoredSenses | UnsetType = UNSET
    doubt: StoredDoubt | UnsetType = UNSET
    provenance: Provenance | None
