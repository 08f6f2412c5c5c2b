"""Machines + steps of traces → all outcomes of each step, with their relative frequencies.

The next observation depends on the observation, the state of the Transition Machine and the
action. The other outcomes, an end of the episode or else the label read, depend on the whole
augmented state and the next observation. Rewards are known as means by the rows of the Reward
Machine. Bounds on rewards are tighter where rewards follow from the outcome.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from resolvent._util.math import log
from resolvent._util.records import ByValue
from resolvent.machines import Machines
from resolvent.planning.confidence import Numbers
from resolvent.planning.label_model import (
    ENDS,
    GOES_ON,
    LabelModel,
    StochasticLabels,
    TerminationModel,
)
from resolvent.planning.outcome_counts import (
    RewardCounts,
    observation_counts,
    pack,
    regret_of,
    reward_counts,
)
from resolvent.planning.steps import Keys, StateSpace, Steps, are_known, place_of
from resolvent.planning.transitions import StepTable, reachable
from resolvent.replay.counts import GroupedCounts
from resolvent.traces.vocabulary import Codes

ENDED: Final = -1
"""In `Outcomes.following`: the episode is over."""

NOT_KNOWN: Final = -2
"""In `Outcomes.following`: the traces do not show where this leads."""

_END: Final = 0
"""Code of the outcome that ends an episode; any other is a label's code + 1."""


@dataclass(frozen=True, eq=False)
class Outcomes(ByValue):
    """All outcomes of the steps of a model.

    Steps are numbered by augmented state, then action. The outcomes of step i lie from
    `offset[i]` up to `offset[i + 1]`: the next augmented state, `ENDED` or `NOT_KNOWN`,
    and its relative frequency (`share`); none where the step is not known.

    `pay` is the reward of each outcome if rewards follow from outcomes (`pay_follows`); NaN
    where it is not known. Otherwise it is NaN everywhere, and the step has its mean alone.

    `seen` is the number of outputs of the Transition Machine that the shares rest on, `paid`
    the row of `pays` with those of the Reward Machine, −1 for none. The true probabilities of a
    step are as close to the shares as the Kullback-Leibler divergence
    `doubt + weight · log(1 / delta)`, with probability 1 − delta for all steps together.
    `possible` is the number of all possible steps.
    """

    offset: NDArray[np.int64]
    following: Codes
    share: Numbers
    pay: Numbers
    seen: NDArray[np.int64]
    paid: NDArray[np.int64]
    doubt: Numbers
    weight: Numbers
    pays: RewardCounts
    possible: int
    pay_follows: bool

    @cached_property
    def step(self) -> NDArray[np.int64]:
        """The number of the step of each outcome."""
        return np.repeat(np.arange(len(self.seen)), np.diff(self.offset))

    def text(self) -> str:
        """Return the number of steps with several outcomes, and their median count."""
        varying = int((np.diff(self.offset) > 1).sum())
        seen = self.seen[self.seen > 0]
        times = f", seen {int(np.median(seen)):,} times in the median" if len(seen) else ""
        return f"{varying:,} of {len(seen):,} known steps may lead to more than one thing{times}"

    def leads_to(self, step: int) -> Codes:
        """Return the augmented states that a step was seen to lead to."""
        following = self.following[self.offset[step] : self.offset[step + 1]]
        return following[following >= 0]

    def radius(self, delta: float) -> Numbers:
        """Return the divergence of each step that holds for all with probability 1 − delta."""
        return self.doubt + self.weight * float(log(1 / delta))


@dataclass(frozen=True, slots=True, eq=False)
class StepOutcomes:
    """The outcomes of some steps: an entry for each step, and one for each outcome.

    `owner` is the place of an outcome's step, `following` a number of a `StateSpace`.
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


class OutcomePredictor:
    """Predicts the outcomes of every action in many augmented states at once."""

    def __init__(
        self,
        machines: Machines,
        steps: Steps,
        rewards: Numbers,
        space: StateSpace,
        termination: TerminationModel,
        trust_constants: bool,
    ) -> None:
        self.space, self._termination = space, termination
        self._transitions = steps.transitions(machines)
        self._labels: LabelModel | None
        try:
            self._labels = LabelModel.of(steps, machines.timing, space, self._transitions)
        except StochasticLabels:
            self._labels = None
        self._is_supplemented = machines.reward.supplemented
        usable = np.flatnonzero(are_known(steps.states))
        o, a = steps.observation[usable], steps.action[usable]
        s = [column[usable] for column in steps.states]
        following, count = steps.following[usable].astype(np.int64), steps.count[usable]
        outcome = np.where(steps.ended, _END, steps.read + 1)[usable].astype(np.int64)
        self._observations = GroupedCounts.of(
            self._transition_row(o, s[0], a), following, count
        ).better_known(observation_counts(machines.transition, space, trust_constants))
        in_state, anywhere = self._cell(o, s, a, following), self._step(o, a, following)
        self._outcomes = GroupedCounts.of(in_state, outcome, count)
        self._outcomes_anywhere = GroupedCounts.of(anywhere, outcome, count)
        # Outcomes that are a function of the step in all traces have no uncertainty.
        self._outcome_follows = bool((self._outcomes.size <= 1).all())
        self.rewards = RewardCounts.of(
            self._reward_row(o, s, a), rewards[usable], count
        ).better_known(reward_counts(machines.reward, space, trust_constants, self._reward_row))
        self._pays = _reward_of_outcome(self._outcomes, in_state, outcome, rewards[usable])
        self._pays_anywhere = _reward_of_outcome(
            self._outcomes_anywhere, anywhere, outcome, rewards[usable]
        )
        self.pay_follows = not np.isnan(self._pays).any()
        values = len(space.observations) + 1  # and any that was never seen
        rows = log(values * space.sizes[0] * len(space.actions))
        self._observation_doubt = (
            regret_of(self._observations, values) + rows
        ) / self._observations.total
        cells = log(values) + log(space.situations * len(space.actions))
        self._outcome_doubt = (
            regret_of(self._outcomes, len(steps.labels) + 1) + cells
        ) / self._outcomes.total

    def __call__(self, situations: Keys) -> StepOutcomes:
        """Return the outcomes of each action in each augmented state."""
        actions = len(self.space.actions)
        observation, states = self.space.parts(situations)
        o, s = np.repeat(observation, actions), [np.repeat(column, actions) for column in states]
        a = np.tile(np.arange(actions, dtype=np.int32), len(situations))
        row = self._observations.find(self._transition_row(o, s[0], a))
        paid = self.rewards.counts.find(self._reward_row(o, s, a))
        is_known = (row >= 0) & (paid >= 0)
        row[~is_known] = -1
        owner, entry = self._observations.entries(row)
        following, share = self._observations.value[entry], self._observations.share[entry]
        o, a, s = o[owner], a[owner], [column[owner] for column in s]
        cell = self._outcomes.find(self._cell(o, s, a, following))
        here, there = self._outcomes.entries(cell)
        new = np.flatnonzero(cell < 0)
        inferred, inferred_pay = self._outcome_anywhere(
            o[new], [column[new] for column in s], a[new], following[new]
        )
        source = np.concatenate([here, new])
        order = np.argsort(source, kind="stable")
        source = source[order]
        outcome = np.concatenate([self._outcomes.value[there], inferred])[order]
        within = np.concatenate([self._outcomes.share[there], np.ones(len(new))])[order]
        pay = np.concatenate([self._pays[there], inferred_pay])[order]
        return StepOutcomes(
            owner[source],
            self._next(following[source], [column[source] for column in s], outcome),
            share[source] * within,
            pay if self.pay_follows else np.full(len(pay), np.nan),
            np.where(is_known, self.rewards.mean[paid], np.nan),
            np.where(is_known, self._observations.total[row], 0),
            np.where(is_known, paid, -1),
            *self._doubt_of(row, owner, share, cell),
        )

    def _next(self, following: Keys, states: list[Codes], outcome: Keys) -> Keys:
        """Return the augmented state after each step, or `ENDED`, or `NOT_KNOWN`."""
        label = np.where(outcome > _END, outcome - 1, -1)
        after = [table[own, label] for table, own in zip(self._transitions, states, strict=True)]
        goes_on = (outcome > _END) & are_known(after)
        there = np.where(goes_on, self.space.situation(following, after), NOT_KNOWN)
        return np.where(outcome == _END, ENDED, there)

    def _outcome_anywhere(
        self, o: Codes, states: list[Codes], a: Codes, following: Keys
    ) -> tuple[Keys, Numbers]:
        """Return the outcomes and rewards of steps not taken in their augmented state.

        An outcome is that of the same step in other states if it was always the same, −1 if it
        is not known. A reward is NaN if it varied.
        """
        row = self._outcomes_anywhere.find(self._step(o, a, following))
        is_constant = (row >= 0) & (self._outcomes_anywhere.size[row] == 1)
        first = self._outcomes_anywhere.offset[:-1][row]
        outcome = np.where(is_constant, self._outcomes_anywhere.value[first], -1)
        pay = np.where(is_constant, self._pays_anywhere[first], np.nan)
        ending = self._termination(o, states, a)
        outcome[(row < 0) & (ending == ENDS)] = _END
        if self._labels is not None:
            label = self._labels((o, states, a, following.astype(np.int32)))
            has_label = (row < 0) & (ending == GOES_ON) & (label >= 0)
            outcome[has_label] = label[has_label] + 1
        return outcome, pay

    def _doubt_of(
        self, row: Keys, owner: Keys, share: Numbers, cell: Keys
    ) -> tuple[Numbers, Numbers]:
        """Return the doubt and its weight for steps; divergences add up along the chain rule."""
        is_known = row >= 0
        divergence = np.where(is_known, self._observation_doubt[row], 0.0)
        weight = np.where(is_known, 1 / self._observations.total[row], 0.0)
        if not self._outcome_follows:
            met = cell >= 0
            for total, of_cell in (
                (divergence, self._outcome_doubt[cell]),
                (weight, 1 / self._outcomes.total[cell]),
            ):
                total += np.bincount(owner, share * np.where(met, of_cell, 0.0), len(row))
        return divergence, weight

    def _transition_row(self, o: Any, transition_state: Any, a: Any) -> Keys:
        """Return the number of a query to the Transition Machine in one of its states."""
        return pack((o, transition_state, a), (0, self.space.sizes[0], len(self.space.actions)))

    def _reward_row(self, o: Any, states: Sequence[Any], a: Any) -> Keys:
        """Return the number of a query to the Reward Machine in one of its states."""
        transition, reward, actions = *self.space.sizes[:2], len(self.space.actions)
        if not self._is_supplemented:
            return pack((o, states[1], a), (0, reward, actions))
        return pack((o, *states[:2], a), (0, transition, reward, actions))

    def _cell(self, o: Any, states: Sequence[Any], a: Any, following: Any) -> Keys:
        """Return the number of a step from an augmented state to an observation."""
        sizes = (0, len(self.space.actions), len(self.space.observations))
        return pack((self.space.situation(o, states), a, following), sizes)

    def _step(self, o: Any, a: Any, following: Any) -> Keys:
        """Return the number of a step from an observation to an observation."""
        return pack((o, a, following), (0, len(self.space.actions), len(self.space.observations)))


def _reward_of_outcome(
    counts: GroupedCounts, keys: Keys, outcome: Keys, rewards: Numbers
) -> Numbers:
    """Return the reward of each outcome in each row; NaN where it varied."""
    width = int(outcome.max(initial=0)) + 1
    entry = np.searchsorted(counts.row * width + counts.value, counts.find(keys) * width + outcome)
    reward_of = np.empty(len(counts.value))
    reward_of[entry] = rewards
    reward_of[entry[reward_of[entry] != rewards]] = np.nan
    return reward_of


def tabulate_outcomes(
    starts: Keys, predictor: OutcomePredictor
) -> tuple[Keys, StepTable, Outcomes]:
    """Return all reachable augmented states, their likeliest outcomes, and all outcomes.

    In the table `following` are numbers of a `StateSpace`, in `Outcomes` they are places.
    """
    situations, layers = reachable(starts, predictor, predictor.space)
    shape = len(situations), len(predictor.space.actions)
    before = np.cumsum([0, *(len(layer.reward) for layer in layers[:-1])])
    step = np.concatenate([layer.owner + n for layer, n in zip(layers, before, strict=True)])
    columns = {
        name: np.concatenate([getattr(layer, name) for layer in layers])
        for name in ("following", "share", "pay", "reward", "seen", "paid", "doubt", "weight")
    }
    number, reward = columns.pop("following"), columns.pop("reward")
    following = place_of(number, situations).astype(np.int64)
    following[number == NOT_KNOWN] = NOT_KNOWN
    # Labels that lead to the same states with the same reward are one outcome.
    pays, pay = np.unique(columns["pay"], return_inverse=True)
    width = len(situations) + 2
    distinct, place = np.unique(
        (step * width + following + 2) * len(pays) + pay, return_inverse=True
    )
    columns["share"] = share = np.bincount(place, columns["share"], len(distinct))
    columns["pay"] = pays[distinct % len(pays)] if len(pays) else pays
    step, following = np.divmod(distinct // max(len(pays), 1), width)
    following -= 2
    offset = np.searchsorted(step, np.arange(len(reward) + 1))
    has_outcomes = np.diff(offset) > 0
    likeliest = np.full(len(reward), -1, np.int64)
    order = np.lexsort((following, -share, step))
    first = following[order[offset[:-1][has_outcomes]]]
    likeliest[has_outcomes] = np.where(first < 0, -1, situations[np.maximum(first, 0)])
    ended = np.bincount(step, following == ENDED, len(reward))
    ends = (ended > 0) & (ended == np.diff(offset))
    table = StepTable(
        likeliest.reshape(shape),
        reward.reshape(shape),
        ends.reshape(shape),
        has_outcomes.reshape(shape),
        ((ended > 0) & ~ends).reshape(shape),
        np.full(shape, -1, np.int32),
    )
    outcomes = Outcomes(
        offset,
        following.astype(np.int32),
        **columns,
        pays=predictor.rewards,
        possible=predictor.space.situations * shape[1],
        pay_follows=predictor.pay_follows,
    )
    return situations, table, outcomes
