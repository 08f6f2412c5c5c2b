"""Steps of traces → the label read after a step, and whether it ends the episode."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from resolvent.errors import ModelError
from resolvent.machines import Machines
from resolvent.planning.steps import KINDS, Keys, Lookup, Space, Steps, are_known, as_function
from resolvent.samples import LabelTiming
from resolvent.traces import label_text
from resolvent.traces.vocabulary import Codes, distinct_numbers

_Columns: TypeAlias = tuple[Codes, Sequence[Codes], Codes, Codes]
"""Observation, the states, action, next observation; −1 where not known."""

Place: TypeAlias = tuple[int, int, int]
"""A trace, the place of a label in it, and the label's code."""

Two: TypeAlias = tuple[Place, Place]


class LabelsByChance(ModelError):  # noqa: N818
    """Labels do not follow from what machines know, so that they come as if by chance."""


@dataclass(frozen=True, slots=True, eq=False)
class Labelling:
    """Tells the label read after a step; `by` says what it is taken to depend on."""

    by: str
    table: Lookup
    space: Space

    @classmethod
    def of(
        cls, steps: Steps, timing: LabelTiming, space: Space, moves: Sequence[Codes]
    ) -> "Labelling":
        """Find what the labels of traces depend on, taking the least that will do.

        That is the next observation; else the step (observation, action, next
        observation); else the situation and the action. A first label that the
        timing ignores takes no part. If not even the last will do, labels that lead to the
        same states count as one: `moves` say where each leads.

        Raises `LabelsByChance` if labels follow from none of these. With a lag the label that is
        read after a step is that of the observation before it, which has to tell it.
        """
        on_observation = _labels_of_observations(steps, timing, space)
        if timing.lag:
            if not isinstance(on_observation, Lookup):
                on_observation = _labels_of_observations(steps, timing, space, _alike(moves))
            if isinstance(on_observation, Lookup):
                return cls("observation", on_observation, space)
            raise ModelError(
                f"{_disagreement(steps, on_observation, 'observation')}; with timing {timing} "
                f"a label is read one step late: the observation and the states do not tell which "
                f"one comes next, so planning needs labels that depend on the observation alone; "
                f"machines that read labels in time can explain the same: use timing current or "
                f"current-with-initial"
            )
        if isinstance(on_observation, Lookup):
            return cls("next observation", on_observation, space)
        columns: _Columns = (steps.observation, steps.states, steps.action, steps.following)
        for by in ("step", "situation and action"):
            keys = _KEYS[by](columns, space)
            rows = np.flatnonzero(keys >= 0)
            found = as_function(keys[rows], steps.label[rows], _SIZES[by](space))
            if isinstance(found, Lookup):
                return cls(by, found, space)
        rows = rows[~steps.ended[rows]]
        alike = _one_of_those_alike(steps, rows, space, moves)
        found = as_function(keys[rows], alike, _SIZES[by](space))
        if isinstance(found, Lookup):
            return cls(by, found, space)
        one, other = (_after(steps, int(rows[row])) for row in found)
        raise LabelsByChance(
            f"{_disagreement(steps, (one, other), by)}: the labels do not follow from "
            f"what the machines know, so that no plan can foresee them; "
            f"label what makes the difference, or plan with machines inferred from these traces"
        )

    def __call__(self, columns: _Columns) -> Codes:
        """Return the code of the label read after each step, −1 where it is not known."""
        return self.table(_KEYS[self.by](columns, self.space))


def _labels_of_observations(
    steps: Steps, timing: LabelTiming, space: Space, alike: Codes | None = None
) -> Lookup | Two:
    """Return labels as a function of their observation, or two places that disagree.

    `alike` says of each label which one it counts as.
    """
    seen, labels, trace, at = steps.following, steps.label, steps.trace, steps.step + 1
    if not timing.first:
        starts = steps.starts
        seen = np.concatenate([starts.observation, seen])
        labels = np.concatenate([starts.label, labels])
        trace = np.concatenate([starts.trace, trace])
        at = np.concatenate([np.zeros(len(starts.trace), np.int64), at])
        order = np.lexsort((at, trace))
        seen, labels, trace, at = seen[order], labels[order], trace[order], at[order]
    counted = labels if alike is None else alike[labels]
    found = as_function(seen.astype(np.int64), counted, len(space.observations))
    if isinstance(found, Lookup):
        return found
    one, other = ((int(trace[row]), int(at[row]), int(labels[row])) for row in found)
    return one, other


def _alike(moves: Sequence[Codes]) -> Codes:
    """Return for each label the first that leads to the same states from everywhere.

    >>> _alike([np.array([[1, 0, 1, -1], [1, 1, 1, -1]])]).tolist()  # the last stands for unknown
    [0, 1, 0, 3]
    """
    _, first, place = np.unique(np.vstack(moves), axis=1, return_index=True, return_inverse=True)
    found: Codes = first[place.ravel()].astype(np.int32)
    return found


def _one_of_those_alike(steps: Steps, rows: Keys, space: Space, moves: Sequence[Codes]) -> Codes:
    """Return for each step the first label that leads to the same states as its own does."""
    label, states = steps.label[rows], [column[rows] for column in steps.states]
    after = [table[own, label] for table, own in zip(moves, states, strict=True)]
    there = space.situation(0, after)
    there[~are_known(after)] = -1 - label[~are_known(after)]  # nobody knows: each for itself
    both = np.stack([space.situation(0, states), there])
    groups, group = np.unique(both, axis=1, return_inverse=True)
    first = np.full(groups.shape[1], len(steps.labels), np.int32)
    np.minimum.at(first, group.ravel(), label)
    return first[group.ravel()]


def _after(steps: Steps, row: int) -> Place:
    """Return the place, among the labels, of what a step led to."""
    return int(steps.trace[row]), int(steps.step[row]) + 1, int(steps.label[row])


def _disagreement(steps: Steps, places: Two, by: str) -> str:
    """Say of two places among the labels that they differ though `by` does not."""
    (one, first), (other, second) = (
        (f"trace {trace}, label {at}", label_text(steps.labels[label]))
        for trace, at, label in places
    )
    return f"{one} and {other} differ ({first} and {second}) with the same {by}"


def _of_observation(columns: _Columns, space: Space) -> Keys:
    return columns[0].astype(np.int64)


def _of_following(columns: _Columns, space: Space) -> Keys:
    return columns[3].astype(np.int64)


def _of_step(columns: _Columns, space: Space) -> Keys:
    observation, _, action, following = columns
    keys = np.int64(observation) * len(space.actions) + action
    keys = keys * len(space.observations) + following
    return np.where(following < 0, np.int64(-1), keys)


def _of_situation(columns: _Columns, space: Space) -> Keys:
    observation, states, action, _ = columns
    keys = space.situation(observation, states) * len(space.actions) + action
    return np.where(are_known(states), keys, np.int64(-1))


_KEYS: dict[str, Callable[[_Columns, Space], Keys]] = {
    "observation": _of_observation,
    "next observation": _of_following,
    "step": _of_step,
    "situation and action": _of_situation,
}

_SIZES: dict[str, Callable[[Space], int]] = {
    "step": lambda space: len(space.observations) ** 2 * len(space.actions),
    "situation and action": lambda space: space.situations * len(space.actions),
}


GOES_ON: Final = 0
ENDS: Final = 1
SOMETIMES: Final = 2
UNKNOWN: Final = -1


@dataclass(frozen=True, slots=True, eq=False)
class Ending:
    """Tells whether a step ends the episode.

    A step that was taken ended always, never, or sometimes. One that was not is
    taken to do what its observation and action did wherever they were met; where
    that differs, it is unknown.
    """

    of_step: Lookup
    of_action: Lookup
    space: Space

    @classmethod
    def of(cls, machines: Machines, steps: Steps, space: Space) -> "Ending":
        """Put together what is stored with all machines and what these traces show."""
        o, *states, a, ended = (
            np.concatenate([column, more])
            for column, more in zip(
                (steps.observation, *steps.states, steps.action, steps.ended),
                _stored(machines, space),
                strict=True,
            )
        )
        on_action = np.int64(o) * len(space.actions) + a
        on_step = space.situation(o, states) * len(space.actions) + a
        told, ended = are_known(states), ended.astype(bool)
        size = len(space.observations) * len(space.actions)
        return cls(
            _verdicts(on_step[told], ended[told], space.situations * len(space.actions)),
            _verdicts(on_action, ended, size),
            space,
        )

    def __call__(self, observation: Codes, states: Sequence[Codes], action: Codes) -> Codes:
        """Return `ENDS`, `GOES_ON`, `SOMETIMES` or `UNKNOWN` for each step."""
        actions = len(self.space.actions)
        found = self.of_step(self.space.situation(observation, states) * actions + action)
        elsewhere = self.of_action(np.int64(observation) * actions + action)
        # Not met in these traces, nor among the endings that are stored.
        elsewhere[elsewhere == UNKNOWN] = GOES_ON
        elsewhere[elsewhere == SOMETIMES] = UNKNOWN
        return np.where(found == UNKNOWN, elsewhere, found)


def _stored(machines: Machines, space: Space) -> NDArray[np.int32]:
    """Return columns (observation, states, action, ended) of what is known to end.

    Situations are stored with the states of all machines; those that do not matter
    for acting are left out.
    """
    places = [place for place, kind in enumerate(machines, 1) if kind in KINDS]
    known = machines.termination
    rows = [(one, True) for one in known.ends]
    rows += [(one, ended) for one in known.ambiguous for ended in (True, False)]
    coded = [
        (
            space.observations.code(one[0]),
            *(one[place] for place in places),
            space.actions.code(one[-1]),
            ended,
        )
        for one, ended in rows
    ]
    return np.array(coded, np.int32).reshape(len(coded), len(places) + 3).T


def _verdicts(keys: Keys, ended: NDArray[np.bool_], size: int) -> Lookup:
    distinct, place = distinct_numbers(keys, size)
    count = np.bincount(place, minlength=len(distinct))
    ends = np.bincount(place, ended, len(distinct))
    verdict = np.where(ends == 0, GOES_ON, np.where(ends == count, ENDS, SOMETIMES))
    return Lookup(distinct, verdict.astype(np.int32))
