"""Steps of traces → the label read after a step, and whether it ends the episode.

Both also predict steps that were never taken, as far as the steps that were taken determine them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from resolvent.errors import ModelError
from resolvent.machines import Machines
from resolvent.machines.augmented_state import ACTING_MACHINES
from resolvent.planning.steps import Keys, Lookup, StateSpace, Steps, are_known, pack
from resolvent.preprocess.timing import LabelTiming
from resolvent.replay.counts import GroupedCounts
from resolvent.traces import label_text
from resolvent.traces.vocabulary import Codes

StepColumns: TypeAlias = tuple[Codes, Sequence[Codes], Codes, Codes]
"""Observation, states, action and next observation of steps; −1 where not known."""

_NEXT_OBSERVATION: Final = "next observation"
_STEP: Final = "step"
_STATE_AND_ACTION: Final = "state and action"
_OBSERVATION: Final = "observation"
"""What a label may be a function of; a lagged one only of the observation before the step."""


@dataclass(frozen=True, slots=True, eq=False)
class LabelModel:
    """Predicts the label read after a step; `by` names what it depends on."""

    by: str
    table: Lookup
    space: StateSpace

    @classmethod
    def of(
        cls, steps: Steps, timing: LabelTiming, space: StateSpace, transitions: Sequence[Codes]
    ) -> "LabelModel | None":
        """Find the simplest function that gives the labels of the traces, None if there is none.

        It is a function of the next observation; else of the step (observation, action, next
        observation); else of the augmented state and the action, with labels of the same
        `transitions` counted as one if needed. First labels that the timing ignores do not count.

        Raises:
            ModelError: when a lagged label does not follow from the observation before it.
        """
        if timing.lag:
            return cls(_OBSERVATION, _lagged_labels(steps, space, transitions), space)
        observation, label = _observed_labels(steps, timing)
        table = Lookup.of(GroupedCounts.of(observation, label))
        if table is not None:
            return cls(_NEXT_OBSERVATION, table, space)
        columns = steps.observation, steps.states, steps.action, steps.next_observation
        for by in (_STEP, _STATE_AND_ACTION):
            keys = _keys(by, columns, space)
            rows = np.flatnonzero(keys >= 0)
            table = Lookup.of(GroupedCounts.of(keys[rows], steps.label[rows]))
            if table is not None:
                return cls(by, table, space)
        rows = rows[~steps.ended[rows]]
        labels = _equivalent_labels(steps, rows, space, transitions)
        table = Lookup.of(GroupedCounts.of(keys[rows], labels))
        return None if table is None else cls(_STATE_AND_ACTION, table, space)

    def __call__(self, columns: StepColumns) -> Codes:
        """Return the code of the label read after each step, −1 where it is not known."""
        return self.table(_keys(self.by, columns, self.space))


def _keys(by: str, columns: StepColumns, space: StateSpace) -> Keys:
    """Return one number a step for what its label depends on, below 0 where that is not known."""
    observation, states, action, next_observation = columns
    if by == _OBSERVATION:
        return observation.astype(np.int64)
    if by == _NEXT_OBSERVATION:
        return next_observation.astype(np.int64)
    actions = len(space.actions)
    if by == _STEP:
        parts = observation, action, next_observation
        keys = pack(parts, (0, actions, len(space.observations)))
        return np.where(next_observation < 0, np.int64(-1), keys)
    return np.where(are_known(states), space.number(observation, states) * actions + action, -1)


def _observed_labels(steps: Steps, timing: LabelTiming) -> tuple[Codes, Codes]:
    """Return the distinct observations with their labels; starts first, if their labels count."""
    if timing.first:
        return steps.next_observation, steps.label
    starts = steps.starts
    return (
        np.concatenate([starts.observation, steps.next_observation]),
        np.concatenate([starts.label, steps.label]),
    )


def _lagged_labels(steps: Steps, space: StateSpace, transitions: Sequence[Codes]) -> Lookup:
    """Return the label of each observation, labels with the same transitions counted as one."""
    observation, label = _observed_labels(steps, LabelTiming.LAGGED)
    for labels in (label, _label_classes(transitions)[label]):
        counts = GroupedCounts.of(observation, labels)
        table = Lookup.of(counts)
        if table is not None:
            return table
    varying = int(counts.key[np.argmax(counts.size > 1)])
    rows = np.flatnonzero(observation == varying)
    rows = rows[[0, int(np.argmax(labels[rows] != labels[rows[0]]))]]
    locations = (
        f"trace {trace}, label {position} ({label_text(steps.labels[int(label[row])])})"
        for row, (trace, position) in zip(rows, _label_locations(steps, rows), strict=True)
    )
    raise ModelError(
        f"{' and '.join(locations)} differ with the same observation; with timing "
        f"{LabelTiming.LAGGED} a label is read one step late, so planning needs labels that "
        f"depend on the observation alone: use timing current or current-with-initial"
    )


def _label_locations(steps: Steps, rows: Keys) -> list[tuple[int, int]]:
    """Return trace and position of some labels, numbered with the starts first."""
    trace = np.concatenate([steps.starts.trace, steps.trace])
    position = np.concatenate([np.zeros(len(steps.starts.trace), np.int64), steps.step + 1])
    return list(zip(trace[rows].tolist(), position[rows].tolist(), strict=True))


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
    target = space.number(0, after)
    target[~are_known(after)] = -1 - label[~are_known(after)]  # not known: each its own class
    both = np.stack([space.number(0, states), target])
    groups, group = np.unique(both, axis=1, return_inverse=True)
    first = np.full(groups.shape[1], len(steps.labels), np.int32)
    np.minimum.at(first, group.ravel(), label)
    return first[group.ravel()]


CONTINUES: Final = 0
ENDS: Final = 1
SOMETIMES_ENDS: Final = 2
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
        step = space.number(o, states) * len(space.actions) + a
        has_states = are_known(states)
        return cls(_endings(step[has_states], ended[has_states]), _endings(query, ended), space)

    def __call__(self, observation: Codes, states: Sequence[Codes], action: Codes) -> Codes:
        """Return `ENDS`, `CONTINUES`, `SOMETIMES_ENDS` or `UNKNOWN` for each step."""
        actions = len(self.space.actions)
        of_step = self.of_step(self.space.number(observation, states) * actions + action)
        of_query = self.of_query(np.int64(observation) * actions + action)
        # Neither in these traces nor among the endings that are stored.
        of_query[of_query == UNKNOWN] = CONTINUES
        of_query[of_query == SOMETIMES_ENDS] = UNKNOWN
        return np.where(of_step == UNKNOWN, of_query, of_step)


def _stored_endings(machines: Machines, space: StateSpace) -> NDArray[np.int32]:
    """Return the endings stored with the machines: observation, states, action, ended.

    Only the states of machines that matter for acting are returned.
    """
    acting = [index for index, name in enumerate(machines, 1) if name in ACTING_MACHINES]
    endings = [(ending, True) for ending in machines.termination.ends]
    endings += [
        (ending, ended) for ending in machines.termination.ambiguous for ended in (True, False)
    ]
    coded = [
        (
            space.observations.code(ending[0]),
            *(ending[index] for index in acting),
            space.actions.code(ending[-1]),
            ended,
        )
        for ending, ended in endings
    ]
    return np.array(coded, np.int32).reshape(len(coded), len(acting) + 3).T


def _endings(keys: Keys, ended: NDArray[np.int32]) -> Lookup:
    counts = GroupedCounts.of(keys, ended)
    ending = np.where(counts.size > 1, SOMETIMES_ENDS, counts.value[counts.offset[:-1]])
    return Lookup(counts.key, ending.astype(np.int32))
