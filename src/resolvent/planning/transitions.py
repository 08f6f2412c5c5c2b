"""Machines → the outcome of every action in many augmented states, and all reachable ones.

Input: numbers of augmented states in a `StateSpace`. Output: a table with a row for each and a
column for each action.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from resolvent._util.validation import check_table
from resolvent.machines import Machine, Machines
from resolvent.planning.label_model import (
    ENDS,
    GOES_ON,
    SOMETIMES,
    UNKNOWN,
    LabelModel,
    TerminationModel,
)
from resolvent.planning.steps import Keys, Lookup, StateSpace, Steps, are_known
from resolvent.traces.schema import TERMINATED
from resolvent.traces.vocabulary import Codes, codes_of

Flags = NDArray[np.bool_]

_STEP_BYTES: Final = 40
"""Bytes of one step: its entries in a `StepTable`, and as much again while it is built."""


class HasFollowing(Protocol):
    """Outcomes of steps, with the numbers of the next augmented states; below 0 for none."""

    @property
    def following(self) -> Keys:
        """The next augmented states."""


T = TypeVar("T", bound=HasFollowing)


def reachable(
    starts: Keys, predict: Callable[[Keys], T], space: StateSpace
) -> tuple[Keys, list[T]]:
    """Return all augmented states reachable from the starts, and the outcomes of each layer."""
    met: set[int] = set()
    frontier, layers, outcomes = starts, list[Keys](), list[T]()
    while len(frontier):
        met.update(frontier.tolist())
        layers.append(frontier)
        check_table(len(met), len(space.actions), _STEP_BYTES, "situations by actions")
        outcomes.append(predict(frontier))
        following = np.unique(outcomes[-1].following).tolist()
        frontier = np.array([state for state in following if state >= 0 and state not in met], int)
    return np.concatenate(layers), outcomes


@dataclass(frozen=True, slots=True, eq=False)
class StepTable:
    """The outcomes of steps: a row for each augmented state, a column for each action.

    `following` holds numbers of a `StateSpace`, −1 for none. `read` is the label read after the
    step, −1 for none or for several.
    """

    following: Keys
    reward: NDArray[np.float64]
    ends: Flags
    known: Flags
    sometimes_ends: Flags
    read: Codes

    @classmethod
    def concatenate(cls, tables: Sequence["StepTable"]) -> "StepTable":
        """Return the rows of all tables."""
        names = cls.__slots__
        return cls(*(np.concatenate([getattr(table, name) for table in tables]) for name in names))


class StepPredictor:
    """Predicts the outcome of every action by the machines' outputs."""

    def __init__(
        self,
        machines: Machines,
        steps: Steps,
        space: StateSpace,
        labels: LabelModel,
        termination: TerminationModel | None,
        trust_constants: bool,
    ) -> None:
        self._machines, self._space, self._trust_constants = machines, space, trust_constants
        self._labels, self._termination = labels, termination
        self._queries = {
            name: _Queries(machine, machines, space) for name, machine in machines.items()
        }
        self._transitions = steps.transitions(machines)
        # In these, index −1 is the last entry, for outputs that are not known.
        transition, reward = machines.transition, machines.reward
        self._observations = np.append(codes_of(transition.outputs, space.observations, -1), -1)
        self._rewards = np.array([*reward.outputs, np.nan])
        ends = machines[TERMINATED].outputs if termination is None else ()
        self._endings = np.array([*(ENDS if end else GOES_ON for end in ends), UNKNOWN], np.int32)

    def __call__(self, situations: Keys) -> StepTable:
        """Return the outcome of each action in each augmented state."""
        actions = len(self._space.actions)
        shape = len(situations), actions
        observation, states = self._space.parts(situations)
        o, s = np.repeat(observation, actions), [np.repeat(column, actions) for column in states]
        a = np.tile(np.arange(actions, dtype=np.int32), len(situations))
        outputs = {
            name: machine.answer_many(
                own, self._queries[name](o, s[0], a), assumed=self._trust_constants
            )
            for (name, machine), own in zip(self._machines.items(), s, strict=True)
        }
        following = self._observations[outputs["transition"]]
        reward = self._rewards[outputs["reward"]]
        if self._termination is None:  # a machine predicts it
            ending = self._endings[outputs[TERMINATED]]
        else:
            ending = self._termination(o, s, a)
        label = self._labels((o, s, a, following))
        after = [table[own, label] for table, own in zip(self._transitions, s, strict=True)]
        ends = (ending == ENDS) & ~np.isnan(reward)
        goes_on = (ending == GOES_ON) & ~np.isnan(reward) & (following >= 0) & are_known(after)
        is_known = ends | goes_on
        return StepTable(
            np.where(goes_on, self._space.situation(following, after), -1).reshape(shape),
            np.where(is_known, reward, np.nan).reshape(shape),
            ends.reshape(shape),
            is_known.reshape(shape),
            (ending == SOMETIMES).reshape(shape),
            np.where(goes_on, label, -1).astype(np.int32).reshape(shape),
        )


class _Queries:
    """Turns observations, states of the Transition Machine and actions into a machine's queries."""

    def __init__(self, machine: Machine, machines: Machines, space: StateSpace) -> None:
        self._width = len(machine.actions)
        self._actions = codes_of(space.actions, machine.actions, -1)
        self._states = machines.transition.states if machine.supplemented else None
        if self._states is None:
            keys = np.arange(len(space.observations))
            codes = codes_of(space.observations, machine.observations, -1)
        else:
            pairs: list[Any] = list(machine.observations)
            seen = codes_of((symbol for symbol, _ in pairs), space.observations, -1)
            keys = np.int64(seen) * self._states + np.array([own for _, own in pairs], np.int64)
            keys = keys[seen >= 0]
            codes = np.arange(len(pairs), dtype=np.int32)[seen >= 0]
        self._observations = Lookup.of(keys, codes)

    def __call__(self, observation: Codes, transition_state: Codes, action: Codes) -> Keys:
        """Return the numbers of the machine's queries, −1 where it never met them."""
        keys = observation.astype(np.int64)
        if self._states is not None:
            keys = keys * self._states + transition_state
        seen, done = self._observations(keys), self._actions[action]
        queries = np.int64(seen) * self._width + done
        queries[(seen < 0) | (done < 0)] = -1
        return queries
