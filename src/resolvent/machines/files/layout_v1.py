"""What a file of format version 1 holds, and the same as a file of today.

Version 1 knew two machines by name, and did not say where constant questions were asked.
"""

import msgspec
from msgspec import UNSET, UnsetType

from resolvent.machines.files import layout as today
from resolvent.machines.machine_set import Provenance
from resolvent.samples import LabelTiming

VERSION = 1


class Reward(today.Tables, forbid_unknown_fields=True):
    """Tables of a Reward Machine, and how it reads observations and rewards."""

    supplemented: bool
    reward_digits: int | None


class Log(msgspec.Struct, forbid_unknown_fields=True):
    """How each machine was found, where that is known."""

    transition: today.Decisions | UnsetType = UNSET
    reward: today.Decisions | UnsetType = UNSET


class Termination(msgspec.Struct, forbid_unknown_fields=True):
    """The situations whose step ended an episode, always or sometimes."""

    ends: list[tuple[int, int, int, int]]  # observation, TM state, RM state, action
    ambiguous: list[tuple[int, int, int, int]]


class File(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """All of the file. Those written before there was a log have no `decisions`."""

    format: str
    version: int
    timing: LabelTiming
    transition: today.Tables
    reward: Reward
    termination: Termination
    support: dict[str, today.Counts]
    decisions: Log | UnsetType = UNSET
    provenance: Provenance | None


def as_today(old: File) -> today.File:
    """Return what a file of version 1 says as a file of today would say it."""
    log = Log() if isinstance(old.decisions, UnsetType) else old.decisions
    found = {"transition": log.transition, "reward": log.reward}
    reward = old.reward
    return today.File(
        format=old.format,
        version=old.version,
        timing=old.timing,
        machines=[
            today.Machine("observation", False, None, old.transition),
            today.Machine("reward", reward.supplemented, reward.reward_digits, reward),
        ],
        termination=today.Termination(
            [list(row) for row in old.termination.ends],
            [list(row) for row in old.termination.ambiguous],
        ),
        support={
            kind: today.Support(one.transitions, one.by_state, one.constant)
            for kind, one in old.support.items()
        },
        decisions={kind: one for kind, one in found.items() if not isinstance(one, UnsetType)},
        provenance=old.provenance,
    )
