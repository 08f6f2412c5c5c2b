"""Value bounds: what the known steps guarantee, and what unknown steps could improve.

Input: the `EmpiricalModel`. Output: the value of the plan, an upper bound on any plan's value, and
a level of importance for each unknown step, by optimism in the face of uncertainty: an unknown step
is assumed to have the best outcome ever observed of its action under one observation, or to undo
another action (`with_inverse_steps`). A label that was never read in a state is assumed to lead to
the best state. A plan for this model is either right, or soon shows which of its steps has another
outcome.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.exploration.empirical_model import ENDS, VARIES, EmpiricalModel, KnownSteps, Step
from resolvent.exploration.tables import Flags
from resolvent.planning.deterministic import OptimalPolicy, discounted_sum, solve
from resolvent.traces.vocabulary import Codes

if TYPE_CHECKING:
    from resolvent.exploration.state import LearnerConfig

Numbers = NDArray[np.float64]
Optimum = tuple[OptimalPolicy, Codes]  # of the optimistic model, with the next number of each step
RELIED_ON: Final = 6.0  # use of an unknown step that the best plan of the optimistic model takes
USES: Final = (  # of an unknown step, by its level of importance; and its purpose
    (0.0, ""),
    (1.0, "untried step"),
    (3.0, "untried step that may improve the plan"),
    (RELIED_ON, "untried step of the optimistic plan"),
)

GAIN_QUANTILE: Final = 0.95  # quantile of the known gains that an unseen outcome is assumed to have
MANY_STARTS: Final = 10  # number of starts above which others are likely
MAX_OUTCOMES: Final = 4  # maximum number of outcomes of a query that are distinguished
MAX_STEPS: Final = 2_000_000  # number of steps of the model above which nothing is assumed
N_ITERATIONS: Final = 2  # for the best state after an unread label, which depends on itself
MIN_INVERSES: Final = 20  # minimum number of cases in which an action has undone another
INVERSE_SHARE: Final = 0.9  # minimum share among the cases where it changed the observation


@dataclass(eq=False)
class ValueBounds:
    """Lower and upper bounds on the value of each augmented state, and the policy of the lower one.

    `importance` has a level for each unknown step: 1 if a better plan may use it in some world, 2
    if also in the optimistic model, 3 if that model's best plan does. `relied_on` are the latter.
    `novelty` is the share of its use that a step keeps although it changed nothing elsewhere.
    """

    value: Numbers = field(default_factory=lambda: np.empty(0))
    upper: Numbers = field(default_factory=lambda: np.empty(0))
    policy: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    importance: NDArray[np.int8] = field(default_factory=lambda: np.empty((0, 0), np.int8))
    novelty: Numbers = field(default_factory=lambda: np.empty((0, 0)))
    relied_on: list[Step] = field(default_factory=list)

    @cached_property
    def _levels(self) -> list[list[int]]:
        levels: list[list[int]] = self.importance.tolist()  # several times as fast to look up
        return levels

    def levels(self, row: int) -> Sequence[int]:
        """Return the importance of unknown steps by action; 2 in an augmented state met since."""
        return self._levels[row] if row < len(self._levels) else [2] * self.importance.shape[1]

    def largest_gap(self, model: EmpiricalModel) -> float:
        """Return the largest difference between upper and lower bound among the starts."""
        rows = [row for row in model.starts if row < len(self.value)]
        return float((self.upper[rows] - self.value[rows]).max()) if rows else float("inf")

    def mean_value(self, model: EmpiricalModel | None) -> tuple[float, float]:
        """Return the value of the plan and the gap, both averaged over the starts."""
        starts = {} if model is None else model.starts
        rows = [row for row in starts if row < len(self.value)]
        if not rows:
            return 0.0, float("inf")
        weights = np.array([starts[row] for row in rows], np.float64)
        value, gap = self.value[rows], self.upper[rows] - self.value[rows]
        return float(np.average(value, weights=weights)), float(np.average(gap, weights=weights))


def value_bounds(model: EmpiricalModel, config: "LearnerConfig") -> ValueBounds:
    """Compute the bounds from the model; a gap up to the target counts as none."""
    gamma, known = config.gamma, model.known_steps(config.gamma)
    least, most = config.reward_range or (model.least, model.most)
    worst = min(least, discounted_sum(least, gamma))
    best = max(most, discounted_sum(most, gamma))
    # Of actions of equal value the first by name, as in a plan made from the traces.
    order = model.buffer.actions_by_name
    safe, highest = known.solve(worst, order), known.solve(best)
    slack = safe.rounding + highest.rounding
    bounds = ValueBounds(
        safe.value,
        np.where(highest.value > safe.value + slack, highest.value, safe.value),
        order[safe.policy],
        np.zeros(known.is_known.shape, np.int8),
        np.ones(known.is_known.shape),
    )
    if model.single_reward:  # no reason to prefer one unknown step to another
        bounds.importance[~known.is_known] = 2
    if model.single_reward or bounds.largest_gap(model) <= config.target:
        return bounds
    is_better = known.action_values(bounds.upper, best) > (safe.value + slack)[:, None]
    bounds.importance[_useful_steps(model, known, is_better)] = 1
    likely = max(most, float(safe.value.max(initial=most)))
    # Without discount, assumed rewards may recur for ever and then say nothing.
    world = optimistic_model(model, known, worst) if gamma < 1 else None
    if world is None:
        better = known.solve(likely)
        bound, rounding = known.action_values(better.value, likely), better.rounding
    else:
        bounds.novelty = world.novelty[world.number_of_row]
        closed = world.solve()
        unseen = _value_of_unseen(closed[0].value, known, safe.value, likely)
        better, next_number = world.solve(unseen, closed)
        bound = world.action_values(better.value, next_number, unseen)
        rounding = better.rounding[world.number_of_row]
        bounds.relied_on = _relied_on_steps(model, world, closed, safe)
    is_better = bound > (safe.value + safe.rounding + rounding)[:, None]
    bounds.importance[_useful_steps(model, known, is_better)] = 2
    for step in bounds.relied_on:
        bounds.importance[step] = 3
    return bounds


def _value_of_unseen(
    value: Numbers, known: KnownSteps, safe_value: Numbers, likely: float
) -> Numbers:
    """Return the assumed value of an unseen outcome of a step in each augmented state.

    It exceeds the value of the best known action there by the gain of most known steps.
    """
    known_values = np.sort(known.action_values(safe_value, -np.inf), axis=1)
    has_choice = known.is_known.sum(axis=1) > 1
    if not has_choice.any():
        return np.full(len(value), likely)
    gains = known_values[has_choice, -1] - known_values[has_choice, -2]
    gain = float(np.quantile(gains, GAIN_QUANTILE))
    assumed: Numbers = np.maximum(value, np.median(safe_value)) + gain
    return np.minimum(likely, assumed)


def _useful_steps(model: EmpiricalModel, known: KnownSteps, is_better: Flags) -> Flags:
    """Return the unknown steps to which a path of possibly better actions leads from a start."""
    targets = np.where(is_better & known.is_known, known.next_row, -1)
    return _reachable(list(model.starts), targets)[:, None] & is_better & ~known.is_known


def _reachable(starts: Any, targets: Codes) -> Flags:
    """Return the rows that are reached from some of them, by their next rows or -1."""
    reached, frontier = np.zeros(len(targets), bool), np.array(starts, np.int64)
    while len(frontier):
        reached[frontier] = True
        further = np.unique(targets[frontier]).astype(np.int64)
        further = further[further >= 0]
        frontier = further[~reached[further]]
    return reached


def _relied_on_steps(
    model: EmpiricalModel, world: "OptimisticModel", closed: Optimum, safe: OptimalPolicy
) -> list[Step]:
    """Return the unknown steps that the best optimistic policy takes."""
    (best, next_number), numbers = closed, world.number_of_row
    is_above = best.value[numbers] > safe.value + safe.rounding + best.rounding[numbers]
    starts = [row for row in _likely_starts(model) if is_above[row]]
    targets = next_number[np.arange(len(next_number)), best.policy]
    rows = np.flatnonzero(_reachable(numbers[starts], targets)[numbers])
    chosen = best.policy[numbers[rows]] // world.width
    steps = zip(rows.tolist(), chosen.tolist(), strict=True)
    return [step for step in steps if not world.known.is_known[step]]


def _likely_starts(model: EmpiricalModel) -> list[int]:
    """Return the starts; if there are many, also where episodes are likely to start."""
    starts = list(model.starts)
    if len(starts) <= MANY_STARTS:
        return starts
    states = {model.augmented_states[row][1:] for row in starts}
    return [row for row, state in enumerate(model.augmented_states) if state[1:] in states]


@dataclass(frozen=True, eq=False)
class OptimisticModel:
    """All observations in all states, with an assumed outcome for every step.

    Impossible steps have the reward `worst`. `number_of_row` is the number of each augmented state
    in it. Each action has a column for each outcome, and one more for an outcome never seen:
    `width` columns. For the steps in `anywhere` the next observation is assumed, but not the state.
    """

    known: KnownSteps
    worst: float
    number_of_row: NDArray[np.int64]
    next_number: Codes
    reward: Numbers
    possible: Flags
    anywhere: Flags
    states: int
    novelty: Numbers
    width: int

    def solve(self, unseen: Numbers | None = None, start: Optimum | None = None) -> Optimum:
        """Return the optimal solution, and the next number of each step in it.

        An outcome never seen has the value `unseen` and ends, or is left out. The search starts
        from `start`, the result for other values.
        """
        gamma, reward = self.known.gamma, np.where(self.possible, self.reward, self.worst)
        if unseen is not None:
            last = reward.reshape(len(reward), -1, self.width)[:, :, -1]
            last[:] = np.where(self.novelty > 0, unseen[:, None], last)
        if start is None:
            solution = solve(self.next_number, np.where(self.anywhere, self.worst, reward), gamma)
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

    def action_values(self, value: Numbers, next_number: Codes, unseen: Numbers) -> Numbers:
        """Return the value of each action in each augmented state that was met."""
        rows = self.number_of_row
        after = np.append(value, 0.0)[next_number[rows]]
        reward = self.reward[rows] + self.known.gamma * after
        values = np.where(self.possible[rows], reward, -np.inf)
        values = values.reshape(len(rows), -1, self.width)
        last = values[:, :, -1]
        last[:] = np.where(self.novelty[rows] > 0, unseen[rows][:, None], last)
        return np.asarray(values.max(axis=2))


def optimistic_model(
    model: EmpiricalModel, known: KnownSteps, worst: float
) -> OptimisticModel | None:
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
    rows, actions = np.nonzero(known.is_known)
    taken, next_rows = (number_of_row[rows], actions), known.next_row[rows, actions]
    varying = np.array([*model.nondeterministic], np.int64).reshape(-1, 2).T
    for fixed in taken, (number_of_row[varying[0]], varying[1]):  # no outcome is assumed
        reward[fixed], anywhere[fixed], novelty[fixed] = np.nan, False, 0.0
    reward[*taken, 0] = known.reward[rows, actions]
    next_number[*taken, 0] = np.where(next_rows < 0, ENDS, number_of_row[next_rows])
    possible = np.isfinite(reward)
    columns = len(novelty), -1
    return OptimisticModel(
        known,
        worst,
        number_of_row,
        np.where(possible, next_number, ENDS).reshape(columns).astype(np.int32),
        np.where(possible, reward, 0.0).reshape(columns),
        possible.reshape(columns),
        anywhere.reshape(columns),
        n_states,
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
    first, _ = _core.numbered(query * n_observations + outcomes)
    first = first[np.argsort(query[first], kind="stable")]
    begins = np.flatnonzero(np.diff(query[first], prepend=-1))
    rank = np.arange(len(first)) - np.repeat(begins, np.diff(begins, append=len(first)))
    kept, rank = first[rank < MAX_OUTCOMES], rank[rank < MAX_OUTCOMES]
    in_any[observations[kept], actions[kept], rank] = outcomes[kept]
    return in_state, in_any


def _assumed_steps(
    model: EmpiricalModel, in_state: Codes, in_any: Codes, parts: tuple[NDArray[np.intp], ...]
) -> tuple[NDArray[np.int64], Numbers, Flags]:
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
) -> tuple[NDArray[np.int64], Numbers, Flags]:
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
    """
    guess = _inverse_steps(_only_outcome(outcomes))
    guess[(outcomes == guess[:, :, None]).any(axis=2)] = -1
    wide = np.pad(outcomes, ((0, 0), (0, 0), (0, 1)), constant_values=-1)
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
