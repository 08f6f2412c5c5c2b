"""Machines + steps of traces → all possible outcomes of each step."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.arithmetic import log
from resolvent.by_value import ByValue
from resolvent.machines import Machines
from resolvent.planning.label_model import ENDS, GOES_ON, Ending, Labelling, LabelsByChance
from resolvent.planning.model import Answers
from resolvent.planning.outcome_counts import Pay, Tally, arriving_by, number_of, paid_by
from resolvent.planning.steps import Keys, Space, Steps, are_known, moves_of, places_of
from resolvent.traces.vocabulary import Codes

Numbers = NDArray[np.float64]

ENDED = -1
"""In `Chances.following`: the episode is over."""

NOT_KNOWN = -2
"""In `Chances.following`: the traces do not tell where this leads."""


@dataclass(frozen=True, eq=False)
class Chances(ByValue):
    """What may come of the steps of a model.

    Steps are numbered situation by situation, action by action. What may come of step i lies
    from `offset[i]` up to `offset[i + 1]`: the next situation, or `ENDED`, or `NOT_KNOWN`, with
    its share of all that came; nothing where the step is not known.

    `pay` says what each of them paid, where pay follows from what came; NaN where that is not
    known, and everywhere if it does not follow (`pay_follows`): then the mean of the step is all
    there is.

    `seen` says how often the answers of the Transition Machine were seen that the shares rest
    on, `paid` in which row of `pays` those of the Reward Machine are, −1 for none. The true
    chances of a step are as close to the shares as the Kullback-Leibler divergence
    `doubt + weight · log(1 / delta)`, with probability 1 − delta for all steps together.
    `possible` is how many steps there could be.
    """

    offset: NDArray[np.int64]
    following: Codes
    share: Numbers
    pay: Numbers
    seen: NDArray[np.int64]
    paid: NDArray[np.int64]
    doubt: Numbers
    weight: Numbers
    pays: Pay
    possible: int
    pay_follows: bool

    @cached_property
    def step(self) -> NDArray[np.int64]:
        """For each that may come, the number of its step."""
        return np.repeat(np.arange(len(self.seen)), np.diff(self.offset))

    def text(self) -> str:
        """Say for how many steps it is chance what comes, and how often they were seen."""
        several = int((np.diff(self.offset) > 1).sum())
        seen = self.seen[self.seen > 0]
        times = f", seen {int(np.median(seen)):,} times in the median" if len(seen) else ""
        return f"{several:,} of {len(seen):,} known steps may lead to more than one thing{times}"

    def leads_to(self, step: int) -> Codes:
        """Return the situations that a step was seen to lead to."""
        found = self.following[self.offset[step] : self.offset[step + 1]]
        return found[found >= 0]

    def radius(self, delta: float) -> Numbers:
        """Return how far from its shares each step may be, at most, with probability 1 − delta."""
        return self.doubt + self.weight * float(log(1 / delta))


Numbers = NDArray[np.float64]

_OVER = 0
"""What came of a step that ended the episode; all others are a label's code + 1."""


@dataclass(frozen=True, slots=True, eq=False)
class Branches:
    """What may come of some steps: a row for each step, and for each that may come of it.

    `owner` is the step's place among those that were asked about, `following` the number that
    a `Space` gives.
    """

    owner: Keys
    following: Keys
    share: Numbers
    pay: Numbers
    reward: Numbers
    seen: Keys
    paid: Keys
    doubt: Numbers
    weight: Numbers


class Branching:
    """Tells what may come of every action in many situations at once."""

    def __init__(
        self,
        machines: Machines,
        steps: Steps,
        pay: Numbers,
        space: Space,
        ending: Ending,
        trust_constants: bool,
    ) -> None:
        self.space, self.ending = space, ending
        self.moves = [moves_of(machine, steps.labels) for machine in machines.values()]
        self.labelling = _labelling(machines, steps, space, self.moves)
        self.pairing = machines.reward.supplemented
        told = np.flatnonzero(are_known(steps.states))
        o, a = steps.observation[told], steps.action[told]
        s = [column[told] for column in steps.states]
        following = steps.following[told].astype(np.int64)
        count = steps.count[told]
        came = np.where(steps.ended, _OVER, steps.read + 1)[told].astype(np.int64)
        self.outcomes = len(steps.labels) + 1
        seen = len(space.observations)
        self.arriving = Tally.of(self._asked(o, s[0], a), following, seen, count).seen_more(
            arriving_by(machines.transition, space, trust_constants)
        )
        # A law that all steps keep is believed, as the machines are; else shares are doubted.
        self.after = Tally.of(self._cell(o, s, a, following), came, self.outcomes, count)
        self.elsewhere = Tally.of(self._step(o, a, following), came, self.outcomes, count)
        self.follows = bool((self.after.size <= 1).all())
        pay = pay[told]
        self.pay = Pay.of(self._paying(o, s, a), pay, count).seen_more(
            paid_by(machines.reward, space, trust_constants, self._paying)
        )
        self.pays = _pays(self.after, self._cell(o, s, a, following), came, pay, self.outcomes)
        self.pays_elsewhere = _pays(
            self.elsewhere, self._step(o, a, following), came, pay, self.outcomes
        )
        self.pay_follows = not np.isnan(self.pays).any()
        self._doubts()

    def __call__(self, situations: Keys) -> Branches:
        """Return what may come of each action in each situation."""
        actions = len(self.space.actions)
        observation, states = self.space.parts(situations)
        o, s = np.repeat(observation, actions), [np.repeat(one, actions) for one in states]
        a = np.tile(np.arange(actions, dtype=np.int32), len(situations))
        row, paid = (
            self.arriving.find(self._asked(o, s[0], a)),
            self.pay.find(self._paying(o, s, a)),
        )
        known = (row >= 0) & (paid >= 0)
        row[~known] = -1
        owner, at = self.arriving.spread_out(row)
        following, share = self.arriving.value[at], self.arriving.share[at]
        o, a, s = o[owner], a[owner], [one[owner] for one in s]
        cell = self.after.find(self._cell(o, s, a, following))
        here, there = self.after.spread_out(cell)
        lost = np.flatnonzero(cell < 0)
        guessed, paid_there = self._elsewhere(
            o[lost], [one[lost] for one in s], a[lost], following[lost]
        )
        which = np.concatenate([here, lost])
        came = np.concatenate([self.after.value[there], guessed])
        order = np.argsort(which, kind="stable")
        which, came = which[order], came[order]
        within = np.concatenate([self.after.share[there], np.ones(len(lost))])[order]
        pay = np.concatenate([self.pays[there], paid_there])[order]
        return Branches(
            owner[which],
            self._led_to(following[which], [one[which] for one in s], came),
            share[which] * within,
            pay if self.pay_follows else np.full(len(pay), np.nan),
            np.where(known, self.pay.mean[paid], np.nan),
            np.where(known, self.arriving.total[row], 0),
            np.where(known, paid, -1),
            *self._doubt_of(row, owner, share, cell),
        )

    def _led_to(self, following: Keys, states: list[Codes], came: Keys) -> Keys:
        """Return the situation after each step, or `ENDED`, or `NOT_KNOWN`."""
        label = np.where(came > _OVER, came - 1, -1)
        after = [moves[own, label] for moves, own in zip(self.moves, states, strict=True)]
        goes_on = (came > _OVER) & are_known(after)
        there = np.where(goes_on, self.space.situation(following, after), NOT_KNOWN)
        return np.where(came == _OVER, ENDED, there)

    def _elsewhere(
        self, o: Codes, states: list[Codes], a: Codes, following: Keys
    ) -> tuple[Keys, Numbers]:
        """Return what comes of steps that were not taken in their situation; −1 if nobody knows.

        It is what came wherever the same step was taken, if that was always the same. The second
        column is what that paid, NaN if it varied.
        """
        row = self.elsewhere.find(self._step(o, a, following))
        alike, first = (row >= 0) & (self.elsewhere.size[row] == 1), self.elsewhere.offset[:-1][row]
        came = np.where(alike, self.elsewhere.value[first], -1)
        paid = np.where(alike, self.pays_elsewhere[first], np.nan)
        ending = self.ending(o, states, a)
        came[(row < 0) & (ending == ENDS)] = _OVER
        if self.labelling is not None:
            label = self.labelling((o, states, a, following.astype(np.int32)))
            told = (row < 0) & (ending == GOES_ON) & (label >= 0)
            came[told] = label[told] + 1
        return came, paid

    def _doubts(self) -> None:
        """Say for each row by how much its shares may miss, and how that grows with confidence."""
        space = self.space
        values = len(space.observations) + 1  # and anything that was never seen
        rows = log(values * space.sizes[0] * len(space.actions))
        self._on_arriving = (self.arriving.regret(values) + rows) / self.arriving.total
        cells = log(values) + log(space.situations * len(space.actions))
        self._on_after = (self.after.regret(self.outcomes) + cells) / self.after.total

    def _doubt_of(
        self, row: Keys, owner: Keys, share: Numbers, cell: Keys
    ) -> tuple[Numbers, Numbers]:
        """Return the doubt and its weight for steps; divergences add up along the chain rule."""
        known = row >= 0
        doubt = np.where(known, self._on_arriving[row], 0.0)
        weight = np.where(known, 1 / self.arriving.total[row], 0.0)
        if not self.follows:
            met = cell >= 0
            of = np.where(met, self._on_after[cell], 0.0)
            doubt += np.bincount(owner, share * of, len(row))
            of = np.where(met, 1 / self.after.total[cell], 0.0)
            weight += np.bincount(owner, share * of, len(row))
        return doubt, weight

    def _asked(self, o: Any, transition_state: Any, a: Any) -> Keys:
        """Return the number of a question to the Transition Machine in one of its states."""
        return number_of(
            (o, transition_state, a), (0, self.space.sizes[0], len(self.space.actions))
        )

    def _paying(self, o: Any, states: Sequence[Any], a: Any) -> Keys:
        """Return the number of a question to the Reward Machine in one of its states."""
        transition, reward, actions = *self.space.sizes[:2], len(self.space.actions)
        if not self.pairing:
            return number_of((o, states[1], a), (0, reward, actions))
        return number_of((o, *states[:2], a), (0, transition, reward, actions))

    def _cell(self, o: Any, states: Sequence[Any], a: Any, following: Any) -> Keys:
        sizes = (0, len(self.space.actions), len(self.space.observations))
        return number_of((self.space.situation(o, states), a, following), sizes)

    def _step(self, o: Any, a: Any, following: Any) -> Keys:
        return number_of(
            (o, a, following), (0, len(self.space.actions), len(self.space.observations))
        )


def _pays(tally: Tally, keys: Keys, came: Keys, pay: Numbers, outcomes: int) -> Numbers:
    """Return what was paid whenever the same came in the same row; NaN where that varied."""
    entry = np.searchsorted(tally.row * outcomes + tally.value, tally.find(keys) * outcomes + came)
    paid = np.empty(len(tally.value))
    paid[entry] = pay
    paid[entry[paid[entry] != pay]] = np.nan
    return paid


def _labelling(
    machines: Machines, steps: Steps, space: Space, moves: Sequence[Codes]
) -> Labelling | None:
    """Return what labels follow from, or None if chance has a part in them.

    With a lag that is an error: what was read then is not known any more when it matters.
    """
    try:
        return Labelling.of(steps, machines.timing, space, moves)
    except LabelsByChance:
        return None


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
