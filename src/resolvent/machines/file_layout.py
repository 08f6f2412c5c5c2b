"""What a file of machines holds, as `storage` writes it and the schema in docs/formats says."""

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from resolvent.machines.pair import Provenance
from resolvent.samples import LabelTiming


class Support(msgspec.Struct, forbid_unknown_fields=True):
    """How often the traces showed each row of the tables."""

    transitions: list[int]
    by_state: list[int]
    constant: list[int]


class Decisions(msgspec.Struct, forbid_unknown_fields=True):
    """In order, the rows of `transitions` that were settled, and what each rests on."""

    transitions: list[int]
    agreeing: list[int]
    folded: list[int]


class Log(msgspec.Struct, forbid_unknown_fields=True):
    """How each machine was found, where that is known."""

    transition: Decisions | UnsetType = UNSET
    reward: Decisions | UnsetType = UNSET


class Machine(msgspec.Struct, forbid_unknown_fields=True):
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


class Reward(Machine, forbid_unknown_fields=True):
    """Tables of a Reward Machine, and how it reads observations and rewards."""

    supplemented: bool
    reward_digits: int | None


class Termination(msgspec.Struct, forbid_unknown_fields=True):
    """The situations whose step ended an episode, always or sometimes."""

    ends: list[tuple[int, int, int, int]]  # observation, TM state, RM state, action
    ambiguous: list[tuple[int, int, int, int]]


class Header(msgspec.Struct):
    """What says whether the rest can be read."""

    format: str = ""
    version: int = 0


class File(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """All of the file. Those written before there was a log have no `decisions`."""

    format: str
    version: int
    timing: LabelTiming
    transition: Machine
    reward: Reward
    termination: Termination
    support: dict[str, Support]
    decisions: Log | UnsetType = UNSET
    provenance: Provenance | None
