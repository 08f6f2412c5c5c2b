"""Machines and steps of traces → all outcomes of each step, with their relative frequencies.

Input: the augmented states that traces begin in. Output: all reachable augmented states, the
outcomes of their steps, and a table of the likeliest ones.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent._util.records import ByValue
from resolvent.machines import Machine
from resolvent.machines.tables import is_member
from resolvent.planning.confidence import Numbers, RewardCounts
from resolvent.planning.step_table import (
    CONTINUES,
    ENDS,
    NOT_KNOWN,
    KnownSteps,
    StepTable,
    observations_of,
    reachable,
)
from resolvent.planning.steps import Keys, are_known, pack, positions
from resolvent.replay.counts import GroupedCounts
from resolvent.traces.vocabulary import Codes, codes_of

ENDED: Final = -1  # as a next state: the episode is over
_END: Final = 0  # code of the outcome that ends an episode; any other is a label's code + 1


@dataclass(frozen=True, eq=False)
class Outcomes(ByValue):
    """All outcomes of the steps of a model.

    Steps are numbered by augmented state, then action. The outcomes of step i lie from
    `offset[i]` up to `offset[i + 1]`: the next augmented state, `ENDED` or `NOT_KNOWN`, and its
    relative frequency; none where the step is not known.

    `reward` is the reward of each outcome if rewards follow from outcomes (`has_rewards`); NaN
    where it is not known. Otherwise it is NaN everywhere, and only the mean reward of the step is
    known.

    `count` is the number of outputs of the Transition Machine that the frequencies rest on,
    `evidence` the number of times that whole outcomes were observed, and `reward_row` the row of
    `rewards` with those of the Reward Machine, −1 for none.
    """

    offset: NDArray[np.int64]
    next_state: Codes
    frequency: Numbers
    reward: Numbers
    count: NDArray[np.int64]
    reward_row: NDArray[np.int64]
    evidence: NDArray[np.int64]
    rewards: RewardCounts
    has_rewards: bool

    @cached_property
    def step(self) -> NDArray[np.int64]:
        """The number of the step of each outcome."""
        return np.repeat(np.arange(len(self.count)), np.diff(self.offset))

    def text(self) -> str:
        """Return the number of steps with several outcomes, and their median count."""
        varying, count = int((np.diff(self.offset) > 1).sum()), self.count[self.count > 0]
        median = f", each observed {int(np.median(count)):,} times (median)" if len(count) else ""
        return f"{varying:,} of {len(count):,} known steps have several outcomes{median}"

    def drawn(self, random: np.random.Generator) -> tuple[Numbers, Numbers]:
        """Return frequencies as plausible as these, and changes of mean rewards of steps."""
        steps, counts = len(self.count), self.rewards.counts
        weight = random.standard_gamma(self.frequency * self.evidence[self.step])
        frequency = weight / np.bincount(self.step, weight, steps)[self.step]
        if self.has_rewards:  # they follow from outcomes
            return frequency, np.zeros(steps)
        weight = random.standard_gamma(counts.count.astype(float))
        total = np.bincount(counts.row, weight * self.rewards.rewards[counts.value], len(counts))
        change = total / np.bincount(counts.row, weight, len(counts)) - self.rewards.mean
        return frequency, np.where(self.reward_row < 0, 0.0, change[self.reward_row])

    def next_states(self, step: int) -> Codes:
        """Return the augmented states that a step was observed to lead to."""
        after = self.next_state[self.offset[step] : self.offset[step + 1]]
        return after[after >= 0]


def tabulate_outcomes(
    starts: Keys, known: KnownSteps, rewards: Numbers
) -> tuple[Keys, StepTable, Outcomes]:
    """Return all reachable augmented states, the likeliest outcomes of their steps, and all.

    `rewards` are the rewards of all steps, by their code.
    """
    predictor = _OutcomePredictor(known, rewards)
    actions = len(known.space.actions)
    states = reachable(starts, predictor.next_states, actions)
    row, reward_row, observed = predictor.observations(states)
    branches = predictor.branches(observed)
    next_state = positions(branches.next_state, states).astype(np.int64)
    next_state[branches.next_state == NOT_KNOWN] = NOT_KNOWN
    # Labels that lead to the same states with the same reward are one outcome.
    distinct, code = np.unique(branches.reward, return_inverse=True)
    merged, place = np.unique(
        pack((branches.step, next_state + 2, code), (0, len(states) + 2, len(distinct))),
        return_inverse=True,
    )
    merged, code = np.divmod(merged, max(len(distinct), 1))
    step, next_state = np.divmod(merged, len(states) + 2)
    mean = np.where(reward_row < 0, np.nan, predictor.rewards.mean[reward_row])
    count, evidence = predictor.evidence(row, observed)
    outcomes = Outcomes(
        np.searchsorted(step, np.arange(len(mean) + 1)),
        (next_state - 2).astype(np.int32),
        np.bincount(place, branches.frequency, len(merged)).astype(float, copy=False),
        distinct[code],
        count,
        reward_row,
        evidence,
        predictor.rewards,
        predictor.has_rewards,
    )
    return states, _likeliest(outcomes, mean, actions), outcomes


def _likeliest(outcomes: Outcomes, mean: Numbers, actions: int) -> StepTable:
    """Return the table of the likeliest outcomes, with the mean reward of each step."""
    step, next_state, steps = outcomes.step, outcomes.next_state, len(mean)
    has_outcomes = np.diff(outcomes.offset) > 0
    order = np.lexsort((next_state, -outcomes.frequency, step))
    likeliest = np.full(steps, -1, np.int32)
    likeliest[has_outcomes] = next_state[order[outcomes.offset[:-1][has_outcomes]]]
    ended = np.bincount(step, next_state == ENDED, steps)
    ends = (ended > 0) & (ended == np.diff(outcomes.offset))
    return StepTable.of(
        actions,
        np.maximum(likeliest, -1),
        mean,
        ends,
        has_outcomes,
        (ended > 0) & ~ends,
        np.full(steps, -1, np.int32),
    )


class _Observed(NamedTuple):
    """The next observations of some steps, with their relative frequencies.

    `step` is the position of a step among these. `cell` is the row of the counts of what follows
    the observation, −1 where there are none.
    """

    step: Keys
    o: Codes
    states: list[Codes]
    a: Codes
    next_observation: Keys
    frequency: Numbers
    cell: Keys


class _Branches(NamedTuple):
    """The outcomes of some steps; the reward is NaN where it is not known."""

    step: Keys
    next_state: Keys
    frequency: Numbers
    reward: Numbers


class _OutcomePredictor:
    """Predicts the outcomes of every action by relative frequencies.

    The next observation depends on the observation, the state of the Transition Machine and the
    action. An end of the episode or else the label read depends on the whole augmented state and
    the next observation. Rewards are known as means by the rows of the Reward Machine, and by
    outcome if they follow from it: then bounds are tighter.
    """

    def __init__(self, known: KnownSteps, rewards: Numbers) -> None:
        self._known = known
        machines, space, steps = known.machines, known.space, known.steps
        usable = np.flatnonzero(are_known(steps.states))
        o, a = steps.observation[usable], steps.action[usable]
        s = [column[usable] for column in steps.states]
        following, count = steps.next_observation[usable].astype(np.int64), steps.count[usable]
        outcome = np.where(steps.ended, _END, steps.read + 1)[usable].astype(np.int64)
        reward = rewards[steps.reward[usable]]
        row, value, counted = _counted_rows(machines.transition, known, self._transition_row)
        outputs = codes_of(machines.transition.outputs, space.observations, -1)[value]
        self._observations = GroupedCounts.of(
            self._transition_row(o, s, a), following, count
        ).better_known(GroupedCounts.of(row, outputs, counted))
        row, value, counted = _counted_rows(machines.reward, known, self._reward_row)
        of_machine = np.array([float(output) for output in machines.reward.outputs])[value]
        self.rewards = RewardCounts.of(self._reward_row(o, s, a), reward, count).better_known(
            RewardCounts.of(row, of_machine, counted)
        )
        in_state, anywhere = self._cell(o, s, a, following), space.move(o, a, following)
        self._outcomes = GroupedCounts.of(in_state, outcome, count)
        self._anywhere = GroupedCounts.of(anywhere, outcome, count)
        self._rewards = _rewards_of(self._outcomes, in_state, outcome, reward)
        self._rewards_anywhere = _rewards_of(self._anywhere, anywhere, outcome, reward)
        self.has_rewards = not np.isnan(self._rewards).any()

    def next_states(self, numbers: Keys) -> Keys:
        """Return all next states of some augmented states; below 0 for none."""
        return self.branches(self.observations(numbers)[-1]).next_state

    def observations(self, numbers: Keys) -> tuple[Keys, Keys, _Observed]:
        """Return the next observations of each action in each augmented state.

        With them return the rows of the counts of observations and of rewards, −1 for none.
        """
        o, s, a = self._known.space.all_steps(numbers)
        row = self._observations.find(self._transition_row(o, s, a))
        reward_row = self.rewards.counts.find(self._reward_row(o, s, a))
        is_known = (row >= 0) & (reward_row >= 0)
        row, reward_row = np.where(is_known, row, -1), np.where(is_known, reward_row, -1)
        step, entry = self._observations.entries(row)
        o, a, s = o[step], a[step], [column[step] for column in s]
        following = self._observations.value[entry]
        cell = self._outcomes.find(self._cell(o, s, a, following))
        frequency = self._observations.share[entry]
        return row, reward_row, _Observed(step, o, s, a, following, frequency, cell)

    def branches(self, observed: _Observed) -> _Branches:
        """Return what follows each observation: an end, or a label and so the next states."""
        source, entry = self._outcomes.entries(observed.cell)
        new = np.flatnonzero(observed.cell < 0)
        inferred, inferred_reward = self._outcome_anywhere(observed, new)
        order = np.argsort(source := np.concatenate([source, new]), kind="stable")
        source = source[order]
        outcome = np.concatenate([self._outcomes.value[entry], inferred])[order]
        within = np.concatenate([self._outcomes.share[entry], np.ones(len(new))])[order]
        reward = np.concatenate([self._rewards[entry], inferred_reward])[order]
        label = np.where(outcome > _END, outcome - 1, -1)
        states = [column[source] for column in observed.states]
        after = self._known.next_state(observed.next_observation[source], states, label)
        return _Branches(
            observed.step[source],
            np.where(outcome == _END, ENDED, after),
            observed.frequency[source] * within,
            reward if self.has_rewards else np.full(len(reward), np.nan),
        )

    def _outcome_anywhere(self, observed: _Observed, rows: Keys) -> tuple[Keys, Numbers]:
        """Return the outcomes and rewards of steps not taken in their augmented state.

        An outcome is that of the same step in other states if it was always the same, −1 if it
        is not known. A reward is NaN if it varied.
        """
        o, a, following = observed.o[rows], observed.a[rows], observed.next_observation[rows]
        states = [column[rows] for column in observed.states]
        row = self._anywhere.find(self._known.space.move(o, a, following))
        is_constant = (row >= 0) & (self._anywhere.size[row] == 1)
        first = self._anywhere.offset[:-1][row]
        outcome = np.where(is_constant, self._anywhere.value[first], -1)
        reward = np.where(is_constant, self._rewards_anywhere[first], np.nan)
        ending = self._known.termination(o, states, a)
        outcome[(row < 0) & (ending == ENDS)] = _END
        label = self._known.label((o, states, a, following.astype(np.int32)))
        has_label = (row < 0) & (ending == CONTINUES) & (label >= 0)
        outcome[has_label] = label[has_label] + 1
        return outcome, reward

    def evidence(self, row: Keys, observed: _Observed) -> tuple[Keys, Keys]:
        """Return how often the observations of each step came, and its outcomes as a whole."""
        count = np.where(row < 0, 0, self._observations.total[row])
        # Where what follows an observation varies, only steps from the same augmented state count.
        varies = (observed.cell >= 0) & (self._outcomes.size[observed.cell] > 1)
        own = np.where(observed.cell < 0, 0, self._outcomes.total[observed.cell])
        own = np.bincount(observed.step, own, len(row)).astype(np.int64)
        has_varied = np.bincount(observed.step, varies, len(row)) > 0
        return count, np.where(has_varied, np.minimum(own, count), count)

    def _transition_row(self, o: Any, states: Sequence[Any], a: Any) -> Keys:
        """Return the number of a query to the Transition Machine in one of its states."""
        space = self._known.space
        return pack((o, states[0], a), (0, space.sizes[0], len(space.actions)))

    def _reward_row(self, o: Any, states: Sequence[Any], a: Any) -> Keys:
        """Return the number of a query to the Reward Machine in one of its states."""
        sizes, actions = self._known.space.sizes, len(self._known.space.actions)
        if self._known.machines.reward.supplemented:
            return pack((o, *states[:2], a), (0, *sizes[:2], actions))
        return pack((o, states[1], a), (0, sizes[1], actions))

    def _cell(self, o: Any, states: Sequence[Any], a: Any, next_observation: Any) -> Keys:
        """Return the number of a step from an augmented state to an observation."""
        space = self._known.space
        return pack((space.step(o, states, a), next_observation), (0, len(space.observations)))


def _rewards_of(counts: GroupedCounts, keys: Keys, outcome: Keys, rewards: Numbers) -> Numbers:
    """Return the reward of each outcome in each row; NaN where it varied."""
    width = int(outcome.max(initial=0)) + 1
    entry = np.searchsorted(counts.row * width + counts.value, counts.find(keys) * width + outcome)
    reward_of = np.empty(len(counts.value))
    reward_of[entry] = rewards
    reward_of[entry[reward_of[entry] != rewards]] = np.nan
    return reward_of


def _counted_rows(
    machine: Machine, known: KnownSteps, row_of: Callable[..., Keys]
) -> tuple[Keys, Codes, Keys]:
    """Return the row, the code and the count of each output that a machine has counted.

    `row_of` numbers rows by observation, states and action.
    """
    state, query, value, count = _counted_outputs(machine, known.trust_constants)
    observation, action = np.divmod(query, len(machine.actions))
    symbols, transition_states = observations_of(machine)
    own_states = transition_states[observation] if machine.supplemented else state
    o = codes_of(symbols, known.space.observations, -1)[observation]
    a = codes_of(machine.actions, known.space.actions, -1)[action]
    rows = np.flatnonzero(o >= 0)
    return row_of(o[rows], [own_states[rows], state[rows]], a[rows]), value[rows], count[rows]


def _counted_outputs(machine: Machine, trust_constants: bool) -> tuple[Codes, Keys, Codes, Keys]:
    """Return all outputs that a machine has counted, as state, query, value and count.

    Trusted constant outputs are included in every state, with their total count.
    """
    counts, support = machine.output_counts, machine.support
    columns: list[tuple[NDArray[Any], ...]] = [
        (counts.state, counts.query, counts.value, counts.count)
    ]
    if support is not None:
        width = len(machine.observations) * len(machine.actions)
        varying = np.unique(counts.state.astype(np.int64) * width + counts.query)
        own = machine.output_state.astype(np.int64) * width + machine.output_query
        single = ~is_member(varying, own)
        outputs = machine.output_state, machine.output_query, machine.output_value
        columns.append(tuple(column[single] for column in (*outputs, support.outputs)))
    if trust_constants:
        states, constants = machine.states, len(machine.constant_query)
        total = np.ones(constants, np.int64) if support is None else support.constants
        constant = (machine.constant_query, machine.constant_value, np.maximum(total, 1))
        state = np.repeat(np.arange(states, dtype=np.int32), constants)
        columns.append((state, *(np.tile(column, states) for column in constant)))
    state, query, value, count = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    counted = count > 0
    return state[counted], query[counted], value[counted], count[counted]
