"""Assume an outcome for every step that was never taken: optimism in the face of uncertainty.

An action under one observation may have several outcomes, like a door that is open or shut. An
unknown step is assumed to have the best outcome ever observed, or to undo another action
(`with_inverse_steps`). A label that was never read in a state is assumed to lead to the best state.
A plan for this model is either right, or soon shows which of its steps has another outcome.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from resolvent.planning.deterministic import OptimalPolicy, solve
from resolvent.traces.vocabulary import Codes

if TYPE_CHECKING:
    from resolvent.exploration.empirical_model import EmpiricalModel

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

ENDS: Final = -1


class ObservedOutcomes:
    """The outcomes of each action by observation, in each transition state and in any of them."""

    def __init__(self, states: int, actions: int) -> None:
        self.in_state = np.full((states, 64, actions), -1, np.int32)
        self.in_any = np.full((64, actions, MAX_OUTCOMES), -1, np.int32)

    def grow(self, observations: int) -> None:
        """Make room for this number of observations."""
        if observations > len(self.in_any):
            more = max(observations - len(self.in_any), len(self.in_any))
            self.in_state = np.pad(self.in_state, ((0, 0), (0, more), (0, 0)), constant_values=-1)
            self.in_any = np.pad(self.in_any, ((0, more), (0, 0), (0, 0)), constant_values=-1)

    def note(self, state: int, observation: int, action: int, seen: int) -> None:
        """Note the outcome of a step."""
        self.grow(max(observation, seen) + 1)
        if self.in_state[state, observation, action] == seen:
            return
        self.in_state[state, observation, action] = seen
        of = self.in_any[observation, action]
        if seen not in of and of[-1] < 0:
            of[int((of >= 0).sum())] = seen

    def note_all(self, states: Codes, observations: Codes, actions: Codes, seen: Codes) -> None:
        """Note the outcomes of many steps."""
        self.grow(max(int(observations.max(initial=0)), int(seen.max(initial=0))) + 1)
        self.in_state[states, observations, actions] = seen
        count = self.in_any.shape[1]
        key = (observations.astype(np.int64) * count + actions) * len(self.in_any) + seen
        _, first = np.unique(key, return_index=True)
        chosen = np.sort(first)
        order = np.argsort(
            observations[chosen].astype(np.int64) * count + actions[chosen], kind="stable"
        )
        chosen = chosen[order]
        question = observations[chosen].astype(np.int64) * count + actions[chosen]
        begins = np.flatnonzero(np.append(True, question[1:] != question[:-1]))
        place = np.arange(len(chosen)) - np.repeat(begins, np.diff(np.append(begins, len(chosen))))
        is_kept = place < MAX_OUTCOMES
        chosen = chosen[is_kept]
        self.in_any[observations[chosen], actions[chosen], place[is_kept]] = seen[chosen]


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
    possible: NDArray[np.bool_]
    anywhere: NDArray[np.bool_]
    states: int
    known: NDArray[np.bool_]
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
        after = np.append(value, 0.0)[next_number[self.number_of_row]]
        worth = np.where(
            self.possible[self.number_of_row],
            self.reward[self.number_of_row] + gamma * after,
            -np.inf,
        )
        worth = worth.reshape(len(self.number_of_row), -1, self.width)
        last = worth[:, :, -1]
        last[:] = np.where(
            self.novelty[self.number_of_row] > 0, unseen[self.number_of_row][:, None], last
        )
        best: NDArray[np.float64] = worth.max(axis=2)
        return best


def optimistic_model(
    model: "EmpiricalModel",
    next_row: Codes,
    reward: NDArray[np.float64],
    has_outcome: NDArray[np.bool_],
) -> OptimisticModel | None:
    """Return the optimistic model; None if labels are read late, or it would be too large.

    `next_row`, `reward` and `has_outcome` are the arrays of the empirical model.
    """
    sizes, observations = model.sizes, len(model.buffer.observations)
    states, actions = int(np.prod(sizes)), has_outcome.shape[1]
    if model.lag or observations * states * actions > MAX_STEPS:
        return None
    outcomes = model.outcomes
    outcomes.grow(observations)
    of = with_inverse_steps(outcomes.in_any[:observations])
    width = max(int((of >= 0).sum(axis=2).max(initial=0)), 1)
    parts = np.unravel_index(np.arange(states), sizes)
    in_state = outcomes.in_state[:, :observations][parts[0]]  # state, observation, action
    outcome = np.broadcast_to(of[None, :, :, :width], (states, observations, actions, width)).copy()
    is_known = in_state >= 0
    outcome[is_known] = -1
    outcome[is_known, 0] = in_state[is_known]
    labels = _labels(model, observations)
    label = np.where(outcome >= 0, labels[outcome], -2)
    next_state, reward_of, ended = _by_label(model, parts, states, actions)
    here = np.arange(states)[:, None, None, None]
    action = np.arange(actions)[None, None, :, None]
    # The machines do not know newer labels.
    read = np.where(label < next_state.shape[1] - 2, label, -1)
    after, rewards = next_state[here, read], reward_of[here, read, action]
    is_end = ended[here, read, action]
    unread = (outcome >= 0) & (label >= 0) & ~is_end & (after < 0)
    rewards = np.where(unread & ~np.isfinite(rewards), model.usual_reward or 0.0, rewards)
    possible = (label >= 0) & np.isfinite(rewards)
    target = np.where(is_end, ENDS, outcome.astype(np.int64) * states + np.maximum(after, 0))
    # An unseen outcome is possible for a step never taken, for one that changed nothing in the few
    # states where it was taken, and for one that reads a label in a state where it was never read.
    of = outcomes.in_any[:observations]
    still = (of[:, :, 0] == np.arange(observations)[:, None]) & (of[:, :, 1] < 0)
    times = (outcomes.in_state[:, :observations] >= 0).sum(axis=0)
    new = np.where(times == 0, 1.0, np.where(still, 1.0 / (1 + times), 0.0))
    novelty = np.where(is_known, 0.0, new[None])
    novelty[unread.any(axis=3)] = 1.0

    def by_number(array: NDArray[Any]) -> NDArray[Any]:
        """Put observations before states, and make rows of both."""
        return array.swapaxes(0, 1).reshape(observations * states, *array.shape[2:])

    def padded(array: NDArray[Any], value: Any) -> NDArray[Any]:
        wide = np.full((*array.shape[:2], width + 1), value, array.dtype)
        wide[:, :, :width] = array
        return wide

    possible, target = padded(by_number(possible), False), padded(by_number(target), ENDS)
    rewards = padded(by_number(rewards), 0.0)
    anywhere = padded(by_number(unread), False)
    novelty = by_number(novelty)
    augmented = np.array(model.augmented_states, np.int64)
    number_of_row = augmented[:, 0] * states + np.ravel_multi_index(
        tuple(augmented[:, 1:].T), sizes
    )
    row_of_number = np.full(observations * states, -1, np.int64)
    row_of_number[number_of_row] = np.arange(len(number_of_row))
    rows, taken_actions = np.nonzero(has_outcome)
    numbers = number_of_row[rows]
    possible[numbers, taken_actions] = anywhere[numbers, taken_actions] = False
    possible[numbers, taken_actions, 0] = True
    next_rows = next_row[rows, taken_actions]
    target[numbers, taken_actions, 0] = np.where(
        next_rows < 0, ENDS, number_of_row[np.maximum(next_rows, 0)]
    )
    rewards[numbers, taken_actions, 0] = reward[rows, taken_actions]
    novelty[numbers, taken_actions] = 0.0
    is_taken = np.zeros(novelty.shape, bool)
    is_taken[numbers, taken_actions] = True
    for row, tried_action in model.nondeterministic:
        possible[number_of_row[row], tried_action] = anywhere[number_of_row[row], tried_action] = (
            False
        )
        novelty[number_of_row[row], tried_action] = 0.0
    columns = (observations * states, actions * (width + 1))
    target = np.where(possible, target, ENDS)
    return OptimisticModel(
        number_of_row,
        row_of_number,
        target.reshape(columns).astype(np.int32),
        np.where(possible, rewards, 0.0).reshape(columns),
        possible.reshape(columns),
        anywhere.reshape(columns),
        states,
        is_taken,
        novelty,
        width + 1,
    )


def _labels(model: "EmpiricalModel", observations: int) -> Codes:
    """Return the label of each observation; -2 where it varies or is unknown."""
    labels = np.full(observations, -2, np.int32)
    for observation, label in model.label_of.items():
        labels[observation] = label
    return labels


def _by_label(
    model: "EmpiricalModel", parts: tuple[NDArray[np.intp], ...], states: int, actions: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]]:
    """Return the next state by state and label, and reward and termination by these and action."""
    moves = model.tables.transitions
    count = moves[0].shape[1] + 2
    next_state = np.full((states, count), -1, np.int64)
    targets = [table[part] for table, part in zip(moves, parts, strict=True)]
    lost = np.min(targets, axis=0) < 0
    together = np.ravel_multi_index(tuple(np.maximum(targets, 0)), model.sizes)
    next_state[:, :-2] = np.where(lost, -1, together)
    paid = np.full((states, count, actions), np.nan)
    ended = np.zeros((states, count, actions), bool)
    for key, (pays, ends) in sorted(model.last_reward.items(), key=lambda table: len(table[0])):
        paying, label, *action = key
        if 0 <= label < count - 2:
            which = parts[1] == paying
            columns: Any = slice(None) if not action else action[0]
            paid[which, label, columns] = pays
            ended[which, label, columns] = ends
    return next_state, paid, ended


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
    seen, action = np.nonzero(guess >= 0)
    place = (outcomes[seen, action] >= 0).sum(axis=1)
    wide[seen, action, place] = guess[seen, action]
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
