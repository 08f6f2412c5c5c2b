"""Doubt about states ↔ what files of machines hold of it."""

from collections.abc import Mapping

import msgspec
from msgspec import UNSET, UnsetType

from resolvent.machines.machine_set import Machines
from resolvent.machines.uncertainty import LabelNoise, StateUncertainty
from resolvent.traces.symbols import Label

StoredShares = list[tuple[list[str], float]]
"""Pairs of a label and its share; shares add up to 1."""

_ROUNDING = 1e-6


class StoredDoubt(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Why states are not certain.

    `label_noise` says which share of events is missed, which share of steps without an event is
    recorded with one, and which share of events is recorded as another; `label_shares` how
    frequent true labels are. `starts` says how often episodes begin as if they had read each of
    these labels, which nobody sees.
    """

    label_noise: tuple[float, float, float] | None = None
    label_shares: StoredShares = []
    starts: StoredShares = []


def stored_doubt(doubt: StateUncertainty) -> StoredDoubt | UnsetType:
    """Return what a file holds of doubt; nothing if there is none."""
    if not doubt:
        return UNSET
    lies = doubt.label_noise
    return StoredDoubt(
        label_noise=None if lies is None else (lies.missed, lies.false, lies.swapped),
        label_shares=_listed(doubt.label_shares),
        starts=_listed(doubt.starts),
    )


def doubt_in(stored: StoredDoubt | UnsetType, machines: Machines) -> StateUncertainty:
    """Return the doubt that `stored_doubt` wrote down.

    Raises:
        ValueError: when shares are none, or name labels that no machine knows.
    """
    if isinstance(stored, UnsetType):
        return StateUncertainty()
    known = {label for one in machines.values() for label in one.labels}
    lies = stored.label_noise
    if lies is not None and (min(lies) < 0 or max(lies) > 1 or lies[0] + lies[2] > 1):
        raise ValueError("label_noise holds a share that is not from 0 to 1")
    if (lies is None) != (not stored.label_shares):
        raise ValueError("label_noise and label_shares must be there together")
    return StateUncertainty(
        label_noise=None if lies is None else LabelNoise(*lies),
        label_shares=_shares(stored.label_shares, known, "label_shares"),
        starts=_shares(stored.starts, known, "starts"),
    )


def _listed(shares: Mapping[Label, float]) -> StoredShares:
    return [(sorted(label), share) for label, share in shares.items()]


def _shares(stored: StoredShares, known: set[Label], name: str) -> dict[Label, float]:
    shares = {frozenset(label): share for label, share in stored}
    if len(shares) < len(stored):
        raise ValueError(f"{name} names a label twice")
    if unknown := [sorted(label) for label in shares if label and label not in known]:
        raise ValueError(f"{name} names a label that no machine knows: {unknown[0]}")
    if shares and (min(shares.values()) < 0 or abs(sum(shares.values()) - 1) > _ROUNDING):
        raise ValueError(f"{name} does not add up to 1")
    return shares
