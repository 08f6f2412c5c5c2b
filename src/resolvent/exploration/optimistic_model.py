"""What is known of some steps → what the others do, if each does what its like did elsewhere.

The same action where the same was seen did one thing in one state and maybe another in the
next, as a door does that is open or shut. A step that nobody has taken is supposed to do
whichever of these is best, or to undo what another action did (`undoing.py`). A label that was
never read in a state may lead to any state, and is supposed to lead to the best. So a plan by
what is supposed finds out soonest what it is after: it is either right, or a step that it relies
on is shown to do something else.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from resolvent.control.planning.solving import Solution, solve
from resolvent.exploration.inverse_actions import with_inverse_steps
from resolvent.traces.vocabulary import Codes

if TYPE_CHECKING:
    from resolvent.exploration.empirical_model import EmpiricalModel

MOST_OUTCOMES: Final = 4
"""So many outcomes of the same action where the same was seen are told apart."""

MOST_STEPS: Final = 2_000_000
"""Above so many steps to suppose something of, nothing is supposed."""

TRIES: Final = 2
"""The best state that an unread label may lead to is looked for so often: it depends on itself."""

ENDS: Final = -1


class ObservedOutcomes:
    """What each action led to, state by state of the Transition Machine and in any of them."""

    def __init__(self, states: int, actions: int) -> None:
        self.told = np.full((states, 64, actions), -1, np.int32)
        self.of = np.full((64, actions, MOST_OUTCOMES), -1, np.int32)

    def grow(self, observations: int) -> None:
        """Make room for so many observations."""
        if observations > len(self.of):
            more = max(observations - len(self.of), len(self.of))
            self.told = np.pad(self.told, ((0, 0), (0, more), (0, 0)), constant_values=-1)
            self.of = np.pad(self.of, ((0, more), (0, 0), (0, 0)), constant_values=-1)

    def note(self, state: int, observation: int, action: int, seen: int) -> None:
        """Note what a step led to."""
        self.grow(max(observation, seen) + 1)
        if self.told[state, observation, action] == seen:
            return
        self.told[state, observation, action] = seen
        of = self.of[observation, action]
        if seen not in of and of[-1] < 0:
            of[int((of >= 0).sum())] = seen

    def note_all(self, states: Codes, observations: Codes, actions: Codes, seen: Codes) -> None:
        """Note what many steps led to."""
        self.grow(max(int(observations.max(initial=0)), int(seen.max(initial=0))) + 1)
        self.told[states, observations, actions] = seen
        count = self.of.shape[1]
        key = (observations.astype(np.int64) * count + actions) * len(self.of) + seen
        _, first = np.unique(key, return_index=True)
        chosen = np.sort(first)
        order = np.argsort(
            observations[chosen].astype(np.int64) * count + actions[chosen], kind="stable"
        )
        chosen = chosen[order]
        question = observations[chosen].astype(np.int64) * count + actions[chosen]
        begins = np.flatnonzero(np.append(True, question[1:] != question[:-1]))
        place = np.arange(len(chosen)) - np.repeat(begins, np.diff(np.append(begins, len(chosen))))
        kept = place < MOST_OUTCOMES
        chosen = chosen[kept]
        self.of[observations[chosen], actions[chosen], place[kept]] = seen[chosen]


@dataclass(frozen=True, eq=False)
class OptimisticModel:
    """A world of all observations in all states, in which every step does what is supposed.

    `place` is the number that each situation has there, `row` the other way round, −1 where
    it was never met. Each action has as many columns as it may have outcomes, and one more for
    an outcome that nobody has seen. Of the steps in `anywhere` it is supposed what is seen next,
    but not in which of the `states`.
    """

    place: NDArray[np.int64]
    row: NDArray[np.int64]
    following: Codes
    reward: NDArray[np.float64]
    possible: NDArray[np.bool_]
    anywhere: NDArray[np.bool_]
    states: int
    known: NDArray[np.bool_]
    novelty: NDArray[np.float64]
    width: int

    def solved(
        self,
        worst: float,
        unseen: NDArray[np.float64] | None,
        gamma: float,
        near: tuple[Solution, Codes] | None = None,
    ) -> tuple[Solution, Codes]:
        """Return the best way to act, and where steps lead then.

        What nobody has seen pays so much and ends, or is not hoped for at all. `near` is what
        was returned for other such hopes.
        """
        reward = np.where(self.possible, self.reward, worst)
        if unseen is not None:
            last = reward.reshape(len(reward), -1, self.width)[:, :, -1]
            last[:] = np.where(self.novelty > 0, unseen[:, None], last)
        if near is None:
            solution = solve(self.following, np.where(self.anywhere, worst, reward), gamma)
            near = solution, self.following
            if not self.anywhere.any():
                return near
        solution, following = near
        seen = self.following[self.anywhere] // self.states
        for number in range(TRIES):
            best = solution.value.reshape(-1, self.states).argmax(axis=1)
            led = seen * self.states + best[seen]
            if number and np.array_equal(led, following[self.anywhere]):
                break
            following = following.copy()
            following[self.anywhere] = led
            solution = solve(following, reward, gamma, solution.policy)
        return solution, following

    def hope(
        self,
        value: NDArray[np.float64],
        following: Codes,
        unseen: NDArray[np.float64],
        gamma: float,
    ) -> NDArray[np.float64]:
        """Return what each action in each situation that was met may be worth."""
        after = np.append(value, 0.0)[following[self.place]]
        worth = np.where(
            self.possible[self.place], self.reward[self.place] + gamma * after, -np.inf
        )
        worth = worth.reshape(len(self.place), -1, self.width)
        last = worth[:, :, -1]
        last[:] = np.where(self.novelty[self.place] > 0, unseen[self.place][:, None], last)
        best: NDArray[np.float64] = worth.max(axis=2)
        return best


def optimistic_model(
    model: "EmpiricalModel",
    following: Codes,
    reward: NDArray[np.float64],
    known: NDArray[np.bool_],
) -> OptimisticModel | None:
    """Return the world as it is supposed to be; None where too little is known to tell.

    `following`, `reward` and `known` are the tables of what is known.
    """
    sizes, observations = model.sizes, len(model.log.observations)
    states, actions = int(np.prod(sizes)), known.shape[1]
    if model.lag or observations * states * actions > MOST_STEPS:
        return None
    outcomes = model.outcomes
    outcomes.grow(observations)
    of = with_inverse_steps(outcomes.of[:observations])
    width = max(int((of >= 0).sum(axis=2).max(initial=0)), 1)
    parts = np.unravel_index(np.arange(states), sizes)
    told = outcomes.told[:, :observations][parts[0]]  # state, observation, action
    come = np.broadcast_to(of[None, :, :, :width], (states, observations, actions, width)).copy()
    settled = told >= 0
    come[settled] = -1
    come[settled, 0] = told[settled]
    labels = _labels(model, observations)
    label = np.where(come >= 0, labels[come], -2)
    led, paid, ended = _by_label(model, parts, states, actions)
    here = np.arange(states)[:, None, None, None]
    action = np.arange(actions)[None, None, :, None]
    read = np.where(label < led.shape[1] - 2, label, -1)  # the machines do not know newer ones
    after, pays = led[here, read], paid[here, read, action]
    ends = ended[here, read, action]
    unread = (come >= 0) & (label >= 0) & ~ends & (after < 0)
    pays = np.where(unread & ~np.isfinite(pays), model.usual_reward or 0.0, pays)
    possible = (label >= 0) & np.isfinite(pays)
    target = np.where(ends, ENDS, come.astype(np.int64) * states + np.maximum(after, 0))
    # Whether anything that nobody has seen may come: a step never taken, or one that changed
    # nothing in the few states in which it was taken, or that reads a label where it never was.
    of = outcomes.of[:observations]
    still = (of[:, :, 0] == np.arange(observations)[:, None]) & (of[:, :, 1] < 0)
    asked = (outcomes.told[:, :observations] >= 0).sum(axis=0)
    new = np.where(asked == 0, 1.0, np.where(still, 1.0 / (1 + asked), 0.0))
    novelty = np.where(settled, 0.0, new[None])
    novelty[unread.any(axis=3)] = 1.0

    def turned(array: NDArray[Any]) -> NDArray[Any]:
        """Put observations before states, and make rows of both."""
        return array.swapaxes(0, 1).reshape(observations * states, *array.shape[2:])

    def padded(array: NDArray[Any], value: Any) -> NDArray[Any]:
        wide = np.full((*array.shape[:2], width + 1), value, array.dtype)
        wide[:, :, :width] = array
        return wide

    possible, target = padded(turned(possible), False), padded(turned(target), ENDS)
    pays = padded(turned(pays), 0.0)
    anywhere = padded(turned(unread), False)
    novelty = turned(novelty)
    situations = np.array(model.augmented_states, np.int64)
    place = situations[:, 0] * states + np.ravel_multi_index(tuple(situations[:, 1:].T), sizes)
    row = np.full(observations * states, -1, np.int64)
    row[place] = np.arange(len(place))
    which, done = np.nonzero(known)
    at = place[which]
    possible[at, done] = anywhere[at, done] = False
    possible[at, done, 0] = True
    led_to = following[which, done]
    target[at, done, 0] = np.where(led_to < 0, ENDS, place[np.maximum(led_to, 0)])
    pays[at, done, 0] = reward[which, done]
    novelty[at, done] = 0.0
    taken = np.zeros(novelty.shape, bool)
    taken[at, done] = True
    for met, tried in model.nondeterministic:
        possible[place[met], tried] = anywhere[place[met], tried] = False
        novelty[place[met], tried] = 0.0
    columns = (observations * states, actions * (width + 1))
    target = np.where(possible, target, ENDS)
    return OptimisticModel(
        place,
        row,
        target.reshape(columns).astype(np.int32),
        np.where(possible, pays, 0.0).reshape(columns),
        possible.reshape(columns),
        anywhere.reshape(columns),
        states,
        taken,
        novelty,
        width + 1,
    )


def _labels(model: "EmpiricalModel", observations: int) -> Codes:
    """Return the label of each observation; −2 where that differs or is not known."""
    labels = np.full(observations, -2, np.int32)
    for observation, label in model.label_of.items():
        labels[observation] = label
    return labels


def _by_label(
    model: "EmpiricalModel", parts: tuple[NDArray[np.intp], ...], states: int, actions: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]]:
    """Return where labels lead from all states together, what they pay, and whether they end.

    The last two are by action, too.
    """
    moves = model.believed.moves
    count = moves[0].shape[1] + 2
    led = np.full((states, count), -1, np.int64)
    targets = [one[part] for one, part in zip(moves, parts, strict=True)]
    lost = np.min(targets, axis=0) < 0
    together = np.ravel_multi_index(tuple(np.maximum(targets, 0)), model.sizes)
    led[:, :-2] = np.where(lost, -1, together)
    paid = np.full((states, count, actions), np.nan)
    ended = np.zeros((states, count, actions), bool)
    for key, (pays, ends) in sorted(model.last_reward.items(), key=lambda one: len(one[0])):
        paying, label, *action = key
        if 0 <= label < count - 2:
            which = parts[1] == paying
            columns: Any = slice(None) if not action else action[0]
            paid[which, label, columns] = pays
            ended[which, label, columns] = ends
    return led, paid, ended
