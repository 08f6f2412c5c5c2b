"""Assume an outcome for every step that was never taken: optimism in the face of uncertainty.

An action under one observation may have several outcomes, like a door that is open or shut. An
unknown step is assumed to have the best outcome ever observed, or to undo another action
(`with_inverse_steps`). A label that was never read in a state is assumed to lead to the best state.
A plan for this model is either right, or soon shows which of its steps has another outcome.
"""

from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from resolvent.exploration.empirical_model import ENDS, VARIES, EmpiricalModel, KnownSteps
from resolvent.exploration.tables import Flags
from resolvent.planning.deterministic import OptimalPolicy, solve
from resolvent.traces.vocabulary import Codes

MAX_OUTCOMES: Final = 4
"""Maximum number of outcomes of a query that are distinguished."""

MAX_STEPS: Final = 2_000_000
"""Number of steps, by observation, state and action, above which nothing is assumed."""

N_ITERATIONS: Final = 2
"""Number of iterations for the best state after an unread label, which depends on itself."""

MIN_INVERSES: Final = 20
"""Minimum number of cases in which an action has undone another."""

INVERSE_SHARE: Final = 0.9
"""Minimum share of such cases among those where the action changed the observation."""


@dataclass(frozen=True, eq=False)
class OptimisticModel:
    """All observations in all states, with an assumed outcome for every step.

    `number_of_row` is the number of each augmented state in it, and `row_of_number` the inverse,
    -1 for those that were never met. Each action has a column for each outcome, and one more for
    an outcome never seen: `width` columns. For the steps in `anywhere` the next observation is
    assumed, but not the state.
    """

    number_of_row: NDArray[np.int64]
    row_of_number: NDArray[np.int64]
    next_number: Codes
    reward: NDArray[np.float64]
    possible: Flags
    anywhere: Flags
    states: int
    known: Flags
    novelty: NDArray[np.float64]
    width: int

    def solve(
        self,
        worst: float,
        unseen: NDArray[np.float64] | None,
        gamma: float,
        start: tuple[OptimalPolicy, Codes] | None = None,
    ) -> tuple[OptimalPolicy, Codes]:
        """Return the optimal solution, and the next number of each step in it.

        An outcome never seen has the value `unseen` and ends, or is left out. The search starts
        from `start`, the result for other values.
        """
        reward = np.where(self.possible, self.reward, worst)
        if unseen is not None:
            last = reward.reshape(len(reward), -1, self.width)[:, :, -1]
            last[:] = np.where(self.novelty > 0, unseen[:, None], last)
        if start is None:
            solution = solve(self.next_number, np.where(self.anywhere, worst, reward), gamma)
            start = solution, self.next_number
            if not self.anywhere.any():
                return start
        solution, next_number = start
        seen = self.next_number[self.anywhere] // self.states
        for number in range(N_ITERATIONS):
            best = solution.value.reshape(-1, self.states).argmax(axis=1)
            target = seen * self.states + best[seen]
            if number and np.array_equal(target, next_number[self.anywhere]):
                break
            next_number = next_number.copy()
            next_number[self.anywhere] = target
            solution = solve(next_number, reward, gamma, solution.policy)
        return solution, next_number

    def action_values(
        self,
        value: NDArray[np.float64],
        next_number: Codes,
        unseen: NDArray[np.float64],
        gamma: float,
    ) -> NDArray[np.float64]:
        """Return the value of each action in each augmented state that was met."""
        rows = self.number_of_row
        after = np.append(value, 0.0)[next_number[rows]]
        values = np.where(self.possible[rows], self.reward[rows] + gamma * after, -np.inf)
        values = values.reshape(len(rows), -1, self.width)
        last = values[:, :, -1]
        last[:] = np.where(self.novelty[rows] > 0, unseen[rows][:, None], last)
        best: NDArray[np.float64] = values.max(axis=2)
        return best


def optimistic_model(model: EmpiricalModel, known: KnownSteps) -> OptimisticModel | None:
    """Return the optimistic model; None if labels are read late, or it would be too large."""
    n_observations, n_states = len(model.buffer.observations), prod(model.sizes)
    if model.lag or n_observations * n_states * model.n_actions > MAX_STEPS:
        return None
    parts = np.unravel_index(np.arange(n_states), model.sizes)
    in_transition_state, in_any = observed_outcomes(model, n_observations)
    in_state = in_transition_state[parts[0]].swapaxes(0, 1)
    next_number, reward, anywhere = _assumed_steps(
        model, in_state, with_inverse_steps(in_any), parts
    )
    # An unseen outcome is possible for a step never taken, for one that changed nothing in the few
    # states where it was taken, and for one that reads a label in a state where it was never read.
    stays = (in_any[:, :, 0] == np.arange(n_observations)[:, None]) & (in_any[:, :, 1] < 0)
    times = (in_transition_state >= 0).sum(axis=0)
    novelty = np.where(times == 0, 1.0, np.where(stays, 1.0 / (1 + times), 0.0))[:, None]
    novelty = np.where(in_state >= 0, 0.0, novelty)
    novelty[anywhere.any(axis=3)] = 1.0
    # From here on, a row is an observation in a state.
    novelty, shape = novelty.reshape(-1, model.n_actions), (-1, model.n_actions, anywhere.shape[3])
    next_number, reward = next_number.reshape(shape), reward.reshape(shape)
    anywhere = anywhere.reshape(shape)
    augmented = np.array(model.augmented_states, np.int64)
    number_of_row = augmented[:, 0] * n_states + np.ravel_multi_index(
        tuple(augmented[:, 1:].T), model.sizes
    )
    row_of_number = np.full(len(novelty), -1, np.int64)
    row_of_number[number_of_row] = np.arange(len(number_of_row))
    rows, actions = np.nonzero(known.is_known)
    taken, next_rows = (number_of_row[rows], actions), known.next_row[rows, actions]
    is_taken = np.zeros(novelty.shape, bool)
    is_taken[taken] = True
    is_fixed = is_taken.copy()  # no outcome is assumed
    for row, action in model.nondeterministic:
        is_fixed[number_of_row[row], action] = True
    reward[is_fixed], anywhere[is_fixed], novelty[is_fixed] = np.nan, False, 0.0
    reward[*taken, 0] = known.reward[rows, actions]
    next_number[*taken, 0] = np.where(next_rows < 0, ENDS, number_of_row[next_rows])
    possible = np.isfinite(reward)
    columns = len(novelty), -1
    return OptimisticModel(
        number_of_row,
        row_of_number,
        np.where(possible, next_number, ENDS).reshape(columns).astype(np.int32),
        np.where(possible, reward, 0.0).reshape(columns),
        possible.reshape(columns),
        anywhere.reshape(columns),
        n_states,
        is_taken,
        novelty,
        possible.shape[2],
    )


def observed_outcomes(model: EmpiricalModel, n_observations: int) -> tuple[Codes, Codes]:
    """Return the observed outcomes of each observation and action; -1 stands for none.

    The first array is by transition state, observation and action; the second has the first few
    outcomes of each observation and action in any state.
    """
    states, observations, actions, outcomes = model.machines.transition_outputs()
    in_state = np.full((model.sizes[0], n_observations, model.n_actions), -1, np.int32)
    in_state[states, observations, actions] = outcomes
    in_any = np.full((n_observations, model.n_actions, MAX_OUTCOMES), -1, np.int32)
    query = observations * model.n_actions + actions
    _, first = np.unique(query * n_observations + outcomes, return_index=True)
    first = np.sort(first)
    first = first[np.argsort(query[first], kind="stable")]
    begins = np.flatnonzero(np.diff(query[first], prepend=-1))
    rank = np.arange(len(first)) - np.repeat(begins, np.diff(begins, append=len(first)))
    kept, rank = first[rank < MAX_OUTCOMES], rank[rank < MAX_OUTCOMES]
    in_any[observations[kept], actions[kept], rank] = outcomes[kept]
    return in_state, in_any


def _assumed_steps(
    model: EmpiricalModel, in_state: Codes, in_any: Codes, parts: tuple[NDArray[np.intp], ...]
) -> tuple[NDArray[np.int64], NDArray[np.float64], Flags]:
    """Return the assumed outcomes of each step, by observation, state, action and outcome.

    They are the observed one in the state, if there is one, and else all that are known anywhere;
    the last is reserved for an outcome never seen. An array has their next numbers, another their
    rewards (NaN if impossible); the third marks those of which only the observation is assumed.
    """
    n_observations, n_states, n_actions = in_state.shape
    width = max(int((in_any >= 0).sum(axis=2).max(initial=0)), 1)
    wide = np.pad(in_any[:, :, :width], ((0, 0), (0, 0), (0, 1)), constant_values=-1)
    outcome = np.repeat(wide[:, None], n_states, axis=1)
    is_known = in_state >= 0
    outcome[is_known] = -1
    outcome[is_known, 0] = in_state[is_known]
    labels = np.full(n_observations, VARIES, np.int32)
    for observation, code in model.label_of.items():
        labels[observation] = code
    label = np.where(outcome >= 0, labels[outcome], VARIES)
    next_state, reward_of, ended = _by_label(model, parts)
    here, action = np.arange(n_states)[:, None, None], np.arange(n_actions)[:, None]
    # The machines do not know newer labels.
    read = np.where(label < next_state.shape[1] - 2, label, -1)
    after, reward = next_state[here, read], reward_of[here, read, action]
    is_end = ended[here, read, action]
    unread = (outcome >= 0) & (label >= 0) & ~is_end & (after < 0)
    reward = np.where(unread & ~np.isfinite(reward), model.usual_reward, reward)
    target = np.where(is_end, ENDS, outcome.astype(np.int64) * n_states + np.maximum(after, 0))
    return target, np.where(label >= 0, reward, np.nan), unread


def _by_label(
    model: EmpiricalModel, parts: tuple[NDArray[np.intp], ...]
) -> tuple[NDArray[np.int64], NDArray[np.float64], Flags]:
    """Return the next state by state and label, and reward and termination by these and action.

    The last two columns stand for labels that vary and labels that the machines do not know.
    """
    tables = model.tables.transitions
    n_states, n_labels = len(parts[0]), tables[0].shape[1]
    targets = [table[part] for table, part in zip(tables, parts, strict=True)]
    is_lost = np.min(targets, axis=0) < 0
    joint = np.ravel_multi_index(tuple(np.maximum(targets, 0)), model.sizes)
    next_state = np.full((n_states, n_labels + 2), -1, np.int64)
    next_state[:, :n_labels] = np.where(is_lost, -1, joint)
    reward = np.full((*next_state.shape, model.n_actions), np.nan)
    ended = np.zeros(reward.shape, bool)
    for key, last in sorted(model.last_reward.items(), key=lambda item: len(item[0])):
        state, label, *action = key
        if 0 <= label < n_labels:
            at: Any = parts[1] == state, label, action[0] if action else slice(None)
            reward[at], ended[at] = last
    return next_state, reward, ended


def with_inverse_steps(outcomes: Codes) -> Codes:
    """Add the outcomes of actions that undo another action, as left undoes right.

    The array is by observation, action, and number of the outcome; -1 stands for none. Actions
    that undo no other in most known cases get no outcome.

    >>> row = np.array([[[1], [-1]]] + [[[n + 1], [n - 1]] for n in range(1, 30)] + [[[-1], [29]]])
    >>> more = with_inverse_steps(row.astype(np.int32))  # a corridor: to the right, and to the left
    >>> more.shape, row[30, 0].tolist(), more[0, 1].tolist()
    ((31, 2, 2), [-1], [-1, -1])
    >>> row[7, 1] = -1  # nobody went to the left there
    >>> with_inverse_steps(row.astype(np.int32))[7, 1].tolist()
    [6, -1]
    """
    observations, actions, _ = outcomes.shape
    guess = _inverse_steps(_only_outcome(outcomes))
    guess[(outcomes == guess[:, :, None]).any(axis=2)] = -1
    wide = np.concatenate([outcomes, np.full((observations, actions, 1), -1, np.int32)], axis=2)
    guessed = np.nonzero(guess >= 0)
    wide[*guessed, (outcomes[guessed] >= 0).sum(axis=1)] = guess[guessed]
    return wide


def _only_outcome(outcomes: Codes) -> Codes:
    """Return the only outcome of each action that changes anything; -1 if there is none."""
    elsewhere = (outcomes >= 0) & (outcomes != np.arange(len(outcomes))[:, None, None])
    moves: Codes = np.where(elsewhere, outcomes, -1).max(axis=2).astype(np.int32)
    moves[elsewhere.sum(axis=2) > 1] = -1
    return moves


def _inverse_steps(moves: Codes) -> Codes:
    """Return the outcome of each action that mostly undoes another, where it was never seen."""
    back = np.full_like(moves, -1)
    for action in range(moves.shape[1]):
        sources = np.flatnonzero(moves[:, action] >= 0)
        targets = moves[sources, action]
        after = moves[targets]  # by every action
        undone, moved = after == sources[:, None], after >= 0
        times, cases = undone.sum(axis=0), moved.sum(axis=0)
        inverse = int((times / np.maximum(cases, 1)).argmax())
        if times[inverse] >= max(MIN_INVERSES, INVERSE_SHARE * cases[inverse]):
            missing = ~moved[:, inverse]
            back[targets[missing], inverse] = sources[missing]
    return back
