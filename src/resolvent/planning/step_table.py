"""Machines and steps of traces → a table of all steps, each with one outcome.

Input: the augmented states that traces begin in. Output: all reachable augmented states, and for
each of their steps the label read, the next state, the reward, and whether it ends the episode.
Labels and endings of steps that were never taken are predicted as far as the others determine them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from resolvent._util.validation import check_table
from resolvent.errors import ModelError
from resolvent.machines import Machine, Machines
from resolvent.machines.augmented_state import ACTING_MACHINES
from resolvent.planning.steps import Keys, Lookup, StateSpace, Steps, are_known, positions
from resolvent.preprocess.timing import LabelTiming
from resolvent.replay.counts import GroupedCounts
from resolvent.traces import Symbol, label_text
from resolvent.traces.schema import LABEL, OBSERVATION, TERMINATED
from resolvent.traces.vocabulary import Codes, codes_of

# --- Labels --------------------------------------------------------------------------------------

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
            return cls(_OBSERVATION, _lagged_labels(steps, transitions), space)
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
    if by == _STEP:
        is_known, keys = next_observation >= 0, space.move(observation, action, next_observation)
    else:
        is_known, keys = are_known(states), space.step(observation, states, action)
    return np.where(is_known, keys, -1)


def _observed_labels(steps: Steps, timing: LabelTiming) -> tuple[Codes, Codes]:
    """Return the distinct observations with their labels; starts first, if their labels count."""
    if timing.first:
        return steps.next_observation, steps.label
    starts = steps.starts
    return (
        np.concatenate([starts[OBSERVATION], steps.next_observation]),
        np.concatenate([starts[LABEL], steps.label]),
    )


def _lagged_labels(steps: Steps, transitions: Sequence[Codes]) -> Lookup:
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
    trace = np.concatenate([steps.starts.locations[0], steps.trace])
    position = np.concatenate([steps.starts.locations[1], steps.step + 1])
    locations = (
        f"trace {trace[row]}, label {position[row]} ({label_text(steps.labels[int(label[row])])})"
        for row in rows
    )
    raise ModelError(
        f"{' and '.join(locations)} differ with the same observation; with timing "
        f"{LabelTiming.LAGGED} a label is read one step late, so planning needs labels that "
        f"depend on the observation alone: use timing current or current-with-initial"
    )


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


# --- Endings -------------------------------------------------------------------------------------

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
        step, has_states = space.step(o, states, a), are_known(states)
        return cls(_endings(step[has_states], ended[has_states]), _endings(query, ended), space)

    def __call__(self, observation: Codes, states: Sequence[Codes], action: Codes) -> Codes:
        """Return `ENDS`, `CONTINUES`, `SOMETIMES_ENDS` or `UNKNOWN` for each step."""
        of_step = self.of_step(self.space.step(observation, states, action))
        of_query = self.of_query(np.int64(observation) * len(self.space.actions) + action)
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


# --- Steps ---------------------------------------------------------------------------------------

Flags = NDArray[np.bool_]

NOT_KNOWN: Final = -2  # as a next state: the traces do not show where this leads
_STEP_BYTES: Final = 40
"""Bytes of one step: its entries in a `StepTable`, and as much again while it is built."""


@dataclass(frozen=True, eq=False)
class KnownSteps:
    """What machines and traces show about steps; `labels` is None if labels are random.

    `transitions` are each machine's next states by state and label code; the last column is −1.
    """

    machines: Machines
    steps: Steps
    space: StateSpace
    transitions: Sequence[Codes]
    labels: LabelModel | None
    termination: TerminationModel
    trust_constants: bool

    def label(self, columns: StepColumns) -> Codes:
        """Return the code of the label read after each step, −1 where it is not known."""
        if self.labels is None:
            return np.full(len(columns[0]), -1, np.int32)
        return self.labels(columns)

    def next_state(self, observation: Any, states: Sequence[Codes], label: Any) -> Keys:
        """Return the augmented state after reading a label, `NOT_KNOWN` where it is not known.

        Observation and label are −1 where they are not known.
        """
        after = [table[own, label] for table, own in zip(self.transitions, states, strict=True)]
        is_known = are_known(after) & (observation >= 0)
        return np.where(is_known, self.space.number(observation, after), NOT_KNOWN)


def reachable(starts: Keys, next_states: Callable[[Keys], Keys], actions: int) -> Keys:
    """Return all augmented states reachable from the starts, layer by layer.

    `next_states` are those of some states in any order; below 0 for none.
    """
    visited: set[int] = set()
    frontier, layers = starts, list[Keys]()
    while len(frontier):
        visited.update(frontier.tolist())
        check_table(len(visited), actions, _STEP_BYTES, "augmented states by actions")
        layers.append(frontier)
        after = np.unique(next_states(frontier)).tolist()
        frontier = np.array([state for state in after if state >= 0 and state not in visited], int)
    return np.concatenate(layers)


@dataclass(frozen=True, eq=False)
class StepTable:
    """The columns of a `Model` with a row for each augmented state and a column for each action."""

    next_state: NDArray[Any]
    reward: NDArray[np.float64]
    ends: Flags
    known: Flags
    sometimes_ends: Flags
    label_read: Codes

    @classmethod
    def of(cls, actions: int, *columns: NDArray[Any]) -> "StepTable":
        """Return the table of columns with an entry for each step."""
        return cls(*(column.reshape(-1, actions) for column in columns))


def tabulate_steps(starts: Keys, known: KnownSteps) -> tuple[Keys, StepTable]:
    """Return all reachable augmented states, and the outcomes of their steps by the machines."""
    predict = _StepPredictor(known)
    states = reachable(
        starts, lambda numbers: predict(numbers).next_state, len(known.space.actions)
    )
    table = predict(states)
    return states, replace(table, next_state=positions(table.next_state, states))


class _StepPredictor:
    """Predicts the outcome of every action by the machines' outputs."""

    def __init__(self, known: KnownSteps) -> None:
        self._known = known
        machines, space = known.machines, known.space
        self._queries = [_Queries(machine, machines, space) for machine in machines.values()]
        # In these, index −1 is the last entry, for outputs that are not known.
        outputs = machines.transition.outputs
        self._observations = np.append(codes_of(outputs, space.observations, -1), -1)
        self._rewards = np.array([*machines.reward.outputs, np.nan])
        ends = machines[TERMINATED].outputs if TERMINATED in machines else ()
        self._endings = np.array([*(ENDS if end else CONTINUES for end in ends), UNKNOWN], np.int32)

    def __call__(self, numbers: Keys) -> StepTable:
        """Return the outcome of each action in each augmented state."""
        known = self._known
        o, s, a = known.space.all_steps(numbers)
        outputs = [
            machine.predict(own, queries(o, s[0], a), generalized=known.trust_constants)
            for machine, own, queries in zip(known.machines.values(), s, self._queries, strict=True)
        ]
        next_observation, reward = self._observations[outputs[0]], self._rewards[outputs[1]]
        if TERMINATED in known.machines:
            ending = self._endings[outputs[2]]
        else:
            ending = known.termination(o, s, a)
        label = known.label((o, s, a, next_observation))
        next_state = known.next_state(next_observation, s, label)
        ends = (ending == ENDS) & ~np.isnan(reward)
        continues = (ending == CONTINUES) & ~np.isnan(reward) & (next_state >= 0)
        return StepTable.of(
            len(known.space.actions),
            np.where(continues, next_state, -1),
            np.where(ends | continues, reward, np.nan),
            ends,
            ends | continues,
            ending == SOMETIMES_ENDS,
            np.where(continues, label, -1).astype(np.int32),
        )


class _Queries:
    """Turns observations, states of the Transition Machine and actions into a machine's queries."""

    def __init__(self, machine: Machine, machines: Machines, space: StateSpace) -> None:
        self._width = len(machine.actions)
        self._actions = codes_of(space.actions, machine.actions, -1)
        self._states = machines.transition.states if machine.supplemented else 1
        symbols, own_states = observations_of(machine)
        codes = codes_of(symbols, space.observations, -1)
        keys = self._keys(codes, own_states)
        order = np.argsort(keys)[np.count_nonzero(codes < 0) :]
        self._observations = Lookup(keys[order], order.astype(np.int32))

    def _keys(self, observation: Codes, transition_state: Any) -> Keys:
        own_state = transition_state if self._states > 1 else 0
        return observation.astype(np.int64) * self._states + own_state

    def __call__(self, observation: Codes, transition_state: Codes, action: Codes) -> Keys:
        """Return the numbers of the machine's queries, −1 where it never met them."""
        seen = self._observations(self._keys(observation, transition_state))
        done = self._actions[action]
        return np.where((seen < 0) | (done < 0), -1, np.int64(seen) * self._width + done)


def observations_of(machine: Machine) -> tuple[list[Symbol], NDArray[np.int64]]:
    """Return the symbols of a machine's observations, and their states of the Transition Machine.

    The latter are 0 unless the machine is supplemented.
    """
    if not machine.supplemented:
        return list(machine.observations), np.zeros(len(machine.observations), np.int64)
    pairs: list[Any] = list(machine.observations)
    return [symbol for symbol, _ in pairs], np.array([state for _, state in pairs], np.int64)
