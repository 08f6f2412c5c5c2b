"""Senses ↔ what files of machines and of plans hold of them."""

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from resolvent.senses import Discretise, RewardLevels, Senses
from resolvent.traces.labelling import Labelling
from resolvent.traces.symbols import as_symbol


class StoredSenses(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What is done to raw steps before the machines read them.

    `labels` says what labels are made of; `events` which of these are one, as pairs of what
    makes an event and the event's name, or names. Without `events`, each is an event of its own.
    `discretise` says how numbers are put into intervals before that, and `rewards` what
    rewards that vary are taken for.
    """

    labels: str
    events: list[tuple[Any, str | list[str]]] | None = None
    discretise: dict[str, Any] | None = None
    rewards: dict[str, Any] | None = None


def stored_senses(senses: Senses) -> StoredSenses | UnsetType:
    """Return what a file holds of senses; nothing if raw steps are taken as they are."""
    if senses.are_plain:
        return UNSET
    made = senses.labelling
    return StoredSenses(
        labels=made.reads,
        events=None if made.events is None else made.plain_events(),
        discretise=None if senses.discretise is None else senses.discretise.as_dict(),
        rewards=None if senses.rewards is None else senses.rewards.as_dict(),
    )


def senses_in(stored: StoredSenses | UnsetType) -> Senses:
    """Return the senses that `stored_senses` wrote down.

    Raises:
        ValueError: when they say two things of one event.
        OptionError: when they name a way to make labels that is not known.
        ModelError: when intervals or levels of rewards are damaged.
        TraceError: when an event is made of something that cannot be seen or done.
    """
    if isinstance(stored, UnsetType):
        return Senses()
    events: Any = None
    if stored.events is not None:
        events = {as_symbol(source): name for source, name in stored.events}
        if len(events) < len(stored.events):
            raise ValueError("senses name an event twice")
    labelling = Labelling(stored.labels, events)  # type: ignore[arg-type]  # it checks
    numbers, rewards = stored.discretise, stored.rewards
    return Senses(
        labelling,
        None if numbers is None else Discretise.from_dict(numbers),
        None if rewards is None else RewardLevels.from_dict(rewards),
    )
