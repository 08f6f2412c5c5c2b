"""Starts + what may come of steps → every situation that may be reached, and its chances."""

import numpy as np

from resolvent.control.planning.chance.branching import Branches, Branching
from resolvent.control.planning.chance.chances import ENDED, NOT_KNOWN, Chances
from resolvent.control.planning.stepping import Answers
from resolvent.control.planning.steps import Keys, places_of


def reached(starts: Keys, branching: Branching) -> tuple[Keys, Answers, Chances]:
    """Return every situation that steps may lead to, what is likeliest there, and all that may be.

    `Answers.following` are numbers of a `Space`, those of the chances are places.
    """
    met = starts
    layers, found = [], []
    frontier = starts
    while len(frontier):
        layers.append(frontier)
        found.append(branching(frontier))
        led = np.unique(found[-1].following)
        frontier = np.setdiff1d(led[led >= 0], met, assume_unique=True)
        met = np.union1d(met, frontier)
    situations = np.concatenate(layers)
    return situations, *_put_together(situations, found, branching)


def _put_together(
    situations: Keys, found: list[Branches], branching: Branching
) -> tuple[Answers, Chances]:
    actions = len(branching.space.actions)
    sizes = [len(one.reward) for one in found]
    before = np.cumsum([0, *sizes[:-1]])
    step = np.concatenate([one.owner + first for one, first in zip(found, before, strict=True)])
    columns = {
        name: np.concatenate([getattr(one, name) for one in found])
        for name in ("following", "share", "pay", "reward", "seen", "paid", "doubt", "weight")
    }
    led, steps = columns.pop("following"), len(columns["reward"])
    there = places_of(led, situations, np.argsort(situations)).astype(np.int64)
    there[led == NOT_KNOWN] = NOT_KNOWN
    # Labels that lead to the same states and pay the same come to the same.
    pays, paid = np.unique(columns["pay"], return_inverse=True)
    width = len(situations) + 2
    both, place = np.unique((step * width + there + 2) * len(pays) + paid, return_inverse=True)
    columns["share"] = share = np.bincount(place, columns["share"], len(both))
    columns["pay"] = pays[both % len(pays)] if len(pays) else pays
    step, there = np.divmod(both // max(len(pays), 1), width)
    there -= 2
    offset = np.searchsorted(step, np.arange(steps + 1))
    likeliest = np.full(steps, -1, np.int64)
    order = np.lexsort((there, -share, step))
    known = np.diff(offset) > 0
    first = there[order[offset[:-1][known]]]
    likeliest[known] = np.where(first < 0, -1, situations[np.maximum(first, 0)])
    over = np.bincount(step, there == ENDED, steps)
    ends = (over > 0) & (over == np.diff(offset))
    shape = len(situations), actions
    answers = Answers(
        likeliest.reshape(shape),
        columns.pop("reward").reshape(shape),
        ends.reshape(shape),
        known.reshape(shape),
        ((over > 0) & ~ends).reshape(shape),
        np.full(shape, -1, np.int32),
    )
    possible = branching.space.situations * actions
    chances = Chances(
        offset,
        there.astype(np.int32),
        **columns,
        pays=branching.pay,
        possible=possible,
        pay_follows=branching.pay_follows,
    )
    return answers, chances
