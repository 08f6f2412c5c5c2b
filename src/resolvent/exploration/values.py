"""What is known → what to do next: the one ranking, by use for each step that it costs.

An unknown step is worth taking where hope for it is left: where acting otherwise could be
better than the plan in some world that agrees with all that was seen. It is worth more
where less has to be hoped for, and where a label may be read that was never read there.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from resolvent.control.planning.promises import in_all
from resolvent.control.planning.solving import PayingCycle, Solution, solve
from resolvent.exploration.empirical_model import ENDS, UNKNOWN, EmpiricalModel, Query
from resolvent.exploration.optimistic_model import OptimisticModel, optimistic_model
from resolvent.traces.vocabulary import Codes

UNREAD: Final = 5.0
"""What a step is worth that may read a label where it never was."""

RELIED: Final = 6.0
"""What a step is worth that the best plan takes if all comes as it is supposed to."""

USES: Final = (
    (0.0, ""),
    (1.0, "a step nobody has taken"),
    (3.0, "a step that may pay"),
    (RELIED, "a step that the plan would rely on"),
)
"""What an unknown step is worth by how much it matters, and what for."""

TEST: Final = 30.0
"""What it is worth to ask a question again where it shows whether a state is the right one."""

TESTED: Final = "whether a state is what it is taken for"

FARTHEST: Final = 1_000
"""Such a question is looked for within so many steps."""

MOSTLY: Final = 0.95
"""A step that nobody has taken gains as much as so many of those taken do, beside others."""

MANY_STARTS: Final = 10
"""With more starts than these, there are likely others that did not come up yet."""

StepResult: TypeAlias = dict[int, tuple[int, int] | None]
"""The step that each situation was reached by; None where a search began."""


@dataclass(frozen=True)
class Path:
    """Steps to take, as (situation, action); the last is what they are for."""

    steps: tuple[tuple[int, int], ...]
    use: float
    why: str
    start: int

    @property
    def rate(self) -> float:
        """The use for each step."""
        return self.use / max(len(self.steps), 1)


@dataclass
class ValueBounds:
    """What every situation is worth, at least and at most, and which unknown steps matter."""

    gamma: float
    value: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    at_most: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    policy: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    matters: NDArray[np.int8] = field(default_factory=lambda: np.empty((0, 0), np.int8))
    relied: set[tuple[int, int]] = field(default_factory=set)
    """The unknown steps that the plan would rely on, as situation and action."""
    novelty: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))

    def weigh(
        self, model: EmpiricalModel, reward_range: tuple[float, float] | None, target: float
    ) -> None:
        """Work it out again from what is known now; a gap up to the target is none."""
        following, reward, known = model.tables()
        least, most = reward_range or (model.least, model.most)
        worst, best = min(least, in_all(least, self.gamma)), max(most, in_all(most, self.gamma))
        # Of actions worth the same the first by name, as a plan from the traces has it.
        order = model.log.by_name
        safe = solve(following[:, order], np.where(known, reward, worst)[:, order], self.gamma)
        hopeful = solve(following, np.where(known, reward, best), self.gamma)
        more = hopeful.value > safe.value + safe.rounding + hopeful.rounding
        self.value, self.policy = safe.value, order[safe.policy]
        self.at_most = np.where(more, hopeful.value, safe.value)
        starts = list(model.starts)
        self.matters, self.relied = np.zeros(known.shape, np.int8), set()
        self.novelty = np.ones(known.shape)
        if model.single_reward:  # no reason to hope for one thing more than for another
            self.matters[~known] = 2
            return
        if largest_gap(model, self) <= target:
            return
        slack = safe.rounding + hopeful.rounding
        after = np.append(self.at_most, 0.0)[following]
        hope = np.where(known, reward + self.gamma * after, best)
        self._mark(1, following, known, hope, slack, starts)
        # Without discount what is supposed may pay for ever, and then says nothing.
        world = optimistic_model(model, following, reward, known) if self.gamma < 1 else None
        likely = max(most, float(safe.value.max(initial=most)))
        if world is None:
            better = solve(following, np.where(known, reward, likely), self.gamma)
            after = np.append(better.value, 0.0)[following]
            hope = np.where(known, reward + self.gamma * after, likely)
            self._mark(2, following, known, hope, safe.rounding + better.rounding, starts)
            return
        self.novelty = world.novelty[world.place]
        closed, led = world.solved(worst, None, self.gamma)
        unseen = self._unseen(closed.value, following, reward, known, likely)
        better, leads = world.solved(worst, unseen, self.gamma, (closed, led))
        hope = world.hope(better.value, leads, unseen, self.gamma)
        slack = safe.rounding + better.rounding[world.place]
        self._mark(2, following, known, hope, slack, starts)
        self._rely(model, world, closed, led, safe)

    def _unseen(
        self,
        value: NDArray[np.float64],
        following: NDArray[np.int32],
        reward: NDArray[np.float64],
        known: NDArray[np.bool_],
        likely: float,
    ) -> NDArray[np.float64]:
        """Return what a step may be worth that does what nobody has seen, by where it is taken.

        It is worth more than what is best there without it, by as much as steps mostly are.
        """
        after = np.append(self.value, 0.0)[following]
        worth = np.sort(np.where(known, reward + self.gamma * after, -np.inf), axis=1)
        several = known.sum(axis=1) > 1
        if worth.shape[1] < 2 or not several.any():
            return np.full(len(value), likely)
        gain = np.quantile(worth[several, -1] - worth[several, -2], MOSTLY)
        hope: NDArray[np.float64] = np.maximum(value, np.median(self.value)) + gain
        return np.minimum(likely, hope)

    def _rely(
        self,
        model: EmpiricalModel,
        world: OptimisticModel,
        hoped: Solution,
        following: Codes,
        safe: Solution,
    ) -> None:
        """Find the unknown steps that the best way to act takes if all comes as is supposed."""
        best, rounding = hoped.value[world.place], hoped.rounding[world.place]
        more = best > safe.value + safe.rounding + rounding
        starts = np.array([one for one in _beginnings(model) if more[one]], np.int64)
        here = world.place[starts]
        met = np.zeros(len(world.row), bool)
        action = hoped.policy // world.width
        led = following[np.arange(len(world.row)), hoped.policy]
        while len(here):
            met[here] = True
            further = np.unique(led[here][led[here] >= 0]).astype(np.int64)
            here = further[~met[further]]
        rows = world.row[met & (world.row >= 0)]
        chosen = action[world.place[rows]]
        unknown = ~world.known[world.place[rows], chosen]
        self.matters[rows[unknown], chosen[unknown]] = 3
        self.relied = set(zip(rows[unknown].tolist(), chosen[unknown].tolist(), strict=True))

    def _mark(
        self,
        level: int,
        following: NDArray[np.int32],
        known: NDArray[np.bool_],
        hope: NDArray[np.float64],
        slack: NDArray[np.float64],
        starts: list[int],
    ) -> None:
        """Mark unknown steps that ways from the starts lead to on which more may be gained."""
        worthwhile = hope > (self.value + slack)[:, None]
        met = np.zeros(len(known), bool)
        frontier = np.array(starts, np.int64)
        while len(frontier):
            met[frontier] = True
            reached = following[frontier][worthwhile[frontier] & known[frontier]]
            further = np.unique(reached[reached >= 0]).astype(np.int64)
            frontier = further[~met[further]]
        self.matters[met[:, None] & worthwhile & ~known] = level

    def most_use(self, model: EmpiricalModel) -> float:
        """Return what an unknown step is worth at most at the moment."""
        following = model.next_row
        self.relied = {one for one in self.relied if following[one[0]][one[1]] == UNKNOWN}
        return RELIED if self.relied else UNREAD

    def level(self, row: int, action: int) -> int:
        """Return how much an unknown step matters; one that is new since then, fully."""
        if row >= len(self.matters):
            return 2
        return int(self.matters[row, action])


def _beginnings(model: EmpiricalModel) -> list[int]:
    """Return where episodes begin; where that is in many places, also where they might."""
    starts = list(model.starts)
    if len(starts) <= MANY_STARTS:
        return starts
    states = {model.augmented_states[one][1:] for one in starts}
    return [row for row, one in enumerate(model.augmented_states) if one[1:] in states]


def nearest(
    model: EmpiricalModel, hopes: ValueBounds, sources: Iterable[int], floor: float = 0.0
) -> Path | None:
    """Return the way of most use for each step, over known steps from one of the sources."""
    came: StepResult = dict.fromkeys(sources)
    waiting = deque((one, 0) for one in came)
    best, rate, aim = None, floor, ""
    following, unsettled = model.next_row, model.nondeterministic
    most = hopes.most_use(model)
    while waiting:
        here, far = waiting.popleft()
        if most / (far + 1) <= rate:
            break
        for action, led in enumerate(following[here]):
            if led == UNKNOWN:
                if (here, action) in unsettled:
                    continue
                use, why = worth(model, hopes, here, action)
                if use / (far + 1) > rate:
                    best, rate, aim = (here, action), use / (far + 1), why
            elif led != ENDS and led not in came:
                came[led] = here, action
                waiting.append((led, far + 1))
    if best is None:
        return None
    best, aim = _rather_goes_on(model, hopes, best, aim)
    way = way_to(came, best, 0.0, aim)
    return Path(way.steps, rate * len(way.steps), aim, way.start)


def _rather_goes_on(
    model: EmpiricalModel, hopes: ValueBounds, step: tuple[int, int], aim: str
) -> tuple[tuple[int, int], str]:
    """Put a step off that likely ends the episode, while others are of use in the same place."""
    row, observation = step[0], model.augmented_states[step[0]][0]
    if (observation, step[1]) not in model.terminating:
        return step, aim
    most = 0.0
    for action, led in enumerate(model.next_row[row]):
        open_yet = led == UNKNOWN and (row, action) not in model.nondeterministic
        if open_yet and (observation, action) not in model.terminating:
            use, why = worth(model, hopes, row, action)
            if use > most:
                step, aim, most = (row, action), why, use
    return step, aim


def within(
    model: EmpiricalModel, row: int, asked: set[Query], most: int, floor: float = 0.0
) -> Path | None:
    """Return the way to a notable question beside those asked, if these are fewer than `most`."""
    done = len(asked & model.informative)
    if done >= most:
        return None
    came: StepResult = {}
    step = next(notable_steps(model, row, asked, came, TEST / (1 + done), floor), None)
    return None if step is None else way_to(came, step, TEST, TESTED)


def notable_steps(
    model: EmpiricalModel,
    row: int,
    asked: set[Query],
    came: StepResult,
    use: float = TEST,
    floor: float = 0.0,
) -> Iterator[tuple[int, int]]:
    """Go through the steps that ask a notable question beside those asked, the nearest first.

    Only labels that open no other context are read on the way. It ends where the use for each
    step is no more than the floor. `came` is filled with the step that each situation was
    reached by.
    """
    came[row] = None
    waiting = deque([(row, 0)])
    while waiting:
        here, far = waiting.popleft()
        if use / (far + 1) <= floor or far > FARTHEST:
            return
        observation = model.augmented_states[here][0]
        for action, led in enumerate(model.next_row[here]):
            if led == UNKNOWN:
                continue
            question = observation, action
            if question not in asked and question in model.informative:
                yield here, action
            if (
                led >= 0
                and led not in came
                and model.label_read[here][action] in model.neutral_labels
            ):
                came[led] = here, action
                waiting.append((led, far + 1))


def way_to(came: StepResult, last: tuple[int, int], use: float, why: str) -> Path:
    """Return the steps that lead to one, by what each situation was reached from."""
    steps, here = [last], last[0]
    while (before := came[here]) is not None:
        steps.append(before)
        here = before[0]
    return Path(tuple(reversed(steps)), use, why, here)


def worth(model: EmpiricalModel, hopes: ValueBounds, row: int, action: int) -> tuple[float, str]:
    """Return of how much use an unknown step is, and what for."""
    level = hopes.level(row, action)
    if not level:
        return 0.0, ""
    observation, *states = model.augmented_states[row]
    likely = model.last_outcome.get((observation, action))
    if likely is not None:
        label = model.label_of.get(likely, -2)
        if label >= 0 and model.next_states(states, label) is None:
            return UNREAD, "a label that was never read there"
    use, why = USES[level]
    if level == 2 and row < len(hopes.novelty):
        use = max(use * float(hopes.novelty[row, action]), USES[1][0])
    return use, why


def largest_gap(model: EmpiricalModel, hopes: ValueBounds) -> float:
    """Return by how much acting otherwise could be better, at most, from any of the starts."""
    rows = [row for row in model.starts if row < len(hopes.value)]
    if not rows:
        return float("inf")
    return float((hopes.at_most[rows] - hopes.value[rows]).max())


def promised(model: EmpiricalModel, hopes: ValueBounds) -> tuple[float, float]:
    """Return what acting by the plan is worth on average over the starts, and the gap."""
    rows = np.array(list(model.starts), np.int64)
    weights = np.array(list(model.starts.values()), np.float64)
    inside = rows < len(hopes.value)
    if not inside.any():
        return 0.0, float("inf")
    rows, weights = rows[inside], weights[inside]
    gaps = hopes.at_most[rows] - hopes.value[rows]
    return float(np.average(hopes.value[rows], weights=weights)), float(
        np.average(gaps, weights=weights)
    )


__all__ = ["ValueBounds", "PayingCycle", "Path", "nearest", "promised", "worth"]
