"""Steps of traces → the label read after a step, and whether it ends the episode.

Both also predict steps that were never taken, as far as the steps that were taken determine them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from resolvent.errors import ModelError
from resolvent.machines import Machines
from resolvent.machines.situations import ACTING_MACHINES
from resolvent.planning.steps import Keys, Lookup, StateSpace, Steps, are_known, as_lookup
from resolvent.preprocess.timing import LabelTiming
from resolvent.traces import label_text
from resolvent.traces.vocabulary import Codes, distinct_numbers

Columns: TypeAlias = tuple[Codes, Sequence[Codes], Codes, Codes]
"""Observation, the states, action, next observation; −1 where not known."""

LabelPlace: TypeAlias = tuple[int, int, int]
"""A trace, the place of a label in it, and the label's code."""


class StochasticLabels(ModelError):  # noqa: N818
    """The labels are not a function of observations, states and actions."""


@dataclass(frozen=True, slots=True, eq=False)
class LabelModel:
    """Predicts the label read after a step; `by` names what it depends on."""

    by: str
    table: Lookup
    space: StateSpace

    @classmethod
    def of(
        cls, steps: Steps, timing: LabelTiming, space: StateSpace, transitions: Sequence[Codes]
    ) -> "LabelModel":
        """Find the simplest function that gives the labels of the traces.

        It is a function of the next observation; else of the step (observation, action, next
        observation); else of the augmented state and the action, with labels of the same
        `transitions` counted as one if needed. First labels that the timing ignores are left out.
        With a lag, the label read after a step has to follow from the observation before it.

        Raises `StochasticLabels` if there is no such function.
        """
        by_observation = _labels_of_observations(steps, timing, space)
        if timing.lag:
            if not isinstance(by_observation, Lookup):
                classes = _label_classes(transitions)
                by_observation = _labels_of_observations(steps, timing, space, classes)
            if isinstance(by_observation, Lookup):
                return cls("observation", by_observation, space)
            raise ModelError(
                f"{_disagreement(steps, *by_observation, 'observation')}; with timing {timing} "
                f"a label is read one step late: the observation and the states do not tell which "
                f"one comes next, so planning needs labels that depend on the observation alone; "
                f"machines that read labels in time can explain the same: use timing current or "
                f"current-with-initial"
            )
        if isinstance(by_observation, Lookup):
            return cls("next observation", by_observation, space)
        columns: Columns = (steps.observation, steps.states, steps.action, steps.following)
        for by in ("step", "situation and action"):
            keys = _KEYS[by](columns, space)
            rows = np.flatnonzero(keys >= 0)
            table = as_lookup(keys[rows], steps.label[rows], _SIZES[by](space))
            if isinstance(table, Lookup):
                return cls(by, table, space)
        rows = rows[~steps.ended[rows]]
        equivalent = _equivalent_labels(steps, rows, space, transitions)
        table = as_lookup(keys[rows], equivalent, _SIZES[by](space))
        if isinstance(table, Lookup):
            return cls(by, table, space)
        first, second = (
            (int(steps.trace[row]), int(steps.step[row]) + 1, int(steps.label[row]))
            for row in rows[list(table)]
        )
        raise StochasticLabels(
            f"{_disagreement(steps, first, second, by)}: the labels do not follow from "
            f"what the machines know, so that no plan can foresee them; "
            f"label what makes the difference, or plan with machines inferred from these traces"
        )

    def __call__(self, columns: Columns) -> Codes:
        """Return the code of the label read after each step, −1 where it is not known."""
        return self.table(_KEYS[self.by](columns, self.space))


def _labels_of_observations(
    steps: Steps, timing: LabelTiming, space: StateSpace, classes: Codes | None = None
) -> Lookup | tuple[LabelPlace, LabelPlace]:
    """Return labels as a function of their observation, or two places that disagree.

    `classes` maps each label to the one that it counts as.
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
    counted = labels if classes is None else classes[labels]
    table = as_lookup(seen.astype(np.int64), counted, len(space.observations))
    if isinstance(table, Lookup):
        return table
    first, second = ((int(trace[row]), int(at[row]), int(labels[row])) for row in table)
    return first, second


def _label_classes(transitions: Sequence[Codes]) -> Codes:
    """Return for each label the first with the same transitions from everywhere.

    >>> _label_classes([np.array([[1, 0, 1, -1], [1, 1, 1, -1]])]).tolist()  # the last: unknown
    [0, 1, 0, 3]
    """
    _, first, place = np.unique(
        np.vstack(transitions), axis=1, return_index=True, return_inverse=True
    )
    classes: Codes = first[place.ravel()].astype(np.int32)
    return classes


def _equivalent_labels(
    steps: Steps, rows: Keys, space: StateSpace, transitions: Sequence[Codes]
) -> Codes:
    """Return for each step the first label that leads to the same states as its own does."""
    label, states = steps.label[rows], [column[rows] for column in steps.states]
    after = [table[own, label] for table, own in zip(transitions, states, strict=True)]
    there = space.situation(0, after)
    there[~are_known(after)] = -1 - label[~are_known(after)]  # not known: each its own class
    both = np.stack([space.situation(0, states), there])
    groups, group = np.unique(both, axis=1, return_inverse=True)
    first = np.full(groups.shape[1], len(steps.labels), np.int32)
    np.minimum.at(first, group.ravel(), label)
    return first[group.ravel()]


def _disagreement(steps: Steps, first: LabelPlace, second: LabelPlace, by: str) -> str:
    """Return a text on two places whose labels differ although `by` does not."""
    (place, label), (other_place, other_label) = (
        (f"trace {trace}, label {at}", label_text(steps.labels[code]))
        for trace, at, code in (first, second)
    )
    return f"{place} and {other_place} differ ({label} and {other_label}) with the same {by}"


def _by_step(columns: Columns, space: StateSpace) -> Keys:
    observation, _, action, following = columns
    keys = np.int64(observation) * len(space.actions) + action
    keys = keys * len(space.observations) + following
    return np.where(following < 0, np.int64(-1), keys)


def _by_situation(columns: Columns, space: StateSpace) -> Keys:
    observation, states, action, _ = columns
    keys = space.situation(observation, states) * len(space.actions) + action
    return np.where(are_known(states), keys, np.int64(-1))


_KEYS: Final[dict[str, Callable[[Columns, StateSpace], Keys]]] = {
    "observation": lambda columns, _: columns[0].astype(np.int64),
    "next observation": lambda columns, _: columns[3].astype(np.int64),
    "step": _by_step,
    "situation and action": _by_situation,
}

_SIZES: Final[dict[str, Callable[[StateSpace], int]]] = {
    "step": lambda space: len(space.observations) ** 2 * len(space.actions),
    "situation and action": lambda space: space.situations * len(space.actions),
}


GOES_ON: Final = 0
ENDS: Final = 1
SOMETIMES: Final = 2
UNKNOWN: Final = -1


@dataclass(frozen=True, slots=True, eq=False)
class TerminationModel:
    """Predicts whether a step ends the episode.

    A step in the traces ended it always, never, or sometimes. Any other step is predicted by its
    observation and action in other states, and is unknown if these vary.
    """

    of_step: Lookup
    of_query: Lookup
    space: StateSpace

    @classmethod
    def of(cls, machines: Machines, steps: Steps, space: StateSpace) -> "TerminationModel":
        """Combine the endings stored with the machines with those of the traces."""
        o, *states, a, ended = (
            np.concatenate([column, more])
            for column, more in zip(
                (steps.observation, *steps.states, steps.action, steps.ended),
                _stored_endings(machines, space),
                strict=True,
            )
        )
        query = np.int64(o) * len(space.actions) + a
        step = space.situation(o, states) * len(space.actions) + a
        has_states, ended = are_known(states), ended.astype(bool)
        size = len(space.observations) * len(space.actions)
        return cls(
            _endings(step[has_states], ended[has_states], space.situations * len(space.actions)),
            _endings(query, ended, size),
            space,
        )

    def __call__(self, observation: Codes, states: Sequence[Codes], action: Codes) -> Codes:
        """Return `ENDS`, `GOES_ON`, `SOMETIMES` or `UNKNOWN` for each step."""
        actions = len(self.space.actions)
        of_step = self.of_step(self.space.situation(observation, states) * actions + action)
        of_query = self.of_query(np.int64(observation) * actions + action)
        # Neither in these traces nor among the endings that are stored.
        of_query[of_query == UNKNOWN] = GOES_ON
        of_query[of_query == SOMETIMES] = UNKNOWN
        return np.where(of_step == UNKNOWN, of_query, of_step)


def _stored_endings(machines: Machines, space: StateSpace) -> NDArray[np.int32]:
    """Return the endings stored with the machines: observation, states, action, ended.

    Only the states of machines that matter for acting are returned.
    """
    places = [place for place, name in enumerate(machines, 1) if name in ACTING_MACHINES]
    endings = [(ending, True) for ending in machines.termination.ends]
    endings += [
        (ending, ended) for ending in machines.termination.ambiguous for ended in (True, False)
    ]
    coded = [
        (
            space.observations.code(ending[0]),
            *(ending[place] for place in places),
            space.actions.code(ending[-1]),
            ended,
        )
        for ending, ended in endings
    ]
    return np.array(coded, np.int32).reshape(len(coded), len(places) + 3).T


def _endings(keys: Keys, ended: NDArray[np.bool_], size: int) -> Lookup:
    distinct, place = distinct_numbers(keys, size)
    count = np.bincount(place, minlength=len(distinct))
    ends = np.bincount(place, ended, len(distinct))
    ending = np.where(ends == 0, GOES_ON, np.where(ends == count, ENDS, SOMETIMES))
    return Lookup(distinct, ending.astype(np.int32))
