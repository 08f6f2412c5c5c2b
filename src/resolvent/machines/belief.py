"""Machines + what an episode shows, step by step → how likely each machine is in each state."""

import copy
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent._util.math import product
from resolvent._util.text import amount
from resolvent.errors import ModelError
from resolvent.machines.likelihood.chances import chances
from resolvent.machines.likelihood.smoothing import smoothing_of
from resolvent.machines.machine import Machine
from resolvent.machines.machine_set import Machines
from resolvent.samples import NONE, LabelReader, rounded
from resolvent.traces.symbols import NO_EVENT, Label, Symbol, as_label

Shares = NDArray[np.float64]

MOST_TOGETHER = 2_000
"""States of all machines together that a belief may be about."""

_MOST_REMEMBERED = 20_000


class Belief:
    """How likely each machine of a set is in each of its states, given what was seen so far.

    Call `reset` with the label of an episode's first observation, and `step` with each step:
    what was seen and done, what came of it, and the label that was recorded then. Labels are
    taken to lie, and episodes to begin in hidden ways, as often as `machines.doubt` says;
    without doubt the belief is in one state for sure, unless nothing explains what came.

    >>> from resolvent.worlds import House
    >>> from resolvent.machines.uncertainty import StateUncertainty, LabelNoise
    >>> starts = {frozenset(): 0.5, frozenset({"key"}): 0.5}
    >>> doubt = StateUncertainty(LabelNoise(0.5, 0.0, 0.0), starts)
    >>> belief = Belief(House().machines().replacing(doubt=doubt))
    >>> belief.reset(None)
    >>> belief.step("corridor", "left", {"observation": "orangeroom", "reward": 0.0}, None)
    >>> belief.probabilities["transition"].round(2).tolist()
    [0.67, 0.33]
    """

    def __init__(self, machines: Machines) -> None:
        self.machines = machines
        self.joint = _reached_together(machines)
        """All states of the machines that labels lead to together: a row each, in their order."""
        self._place = {tuple(states): place for place, states in enumerate(self.joint.tolist())}
        self._labels = list(machines.doubt.label_shares)
        self._true_given = self._chances_of_true_labels()
        self._known_through: dict[Label, NDArray[np.float64] | None] = {}
        self._smoothing = {kind: smoothing_of(one) for kind, one in machines.items()}
        self._told: dict[tuple[str, Symbol, Symbol, Any], Shares] = {}
        self.begin = self._at_start()
        """How likely these are when an episode begins."""
        self._begin_again()

    def another(self) -> Self:
        """Return a belief about another episode of the same machines."""
        other = copy.copy(self)
        other._begin_again()
        return other

    def _begin_again(self) -> None:
        self._shares = self.begin
        self._reader = LabelReader(self.machines.timing)
        self.unseen = 0
        """How many labels were read that no machine knows."""

    @property
    def probabilities(self) -> dict[str, Shares]:
        """How likely each state of each machine is, by the machine's kind."""
        found: dict[str, Shares] = {}
        for place, (kind, machine) in enumerate(self.machines.items()):
            found[kind] = np.zeros(machine.states)
            np.add.at(found[kind], self.joint[:, place], self._shares)
        return found

    @property
    def likeliest(self) -> tuple[int, ...]:
        """The states of all machines that are the most likely together."""
        return tuple(self.joint[int(np.argmax(self._shares))].tolist())

    def reset(self, label: Any) -> None:
        """Begin an episode whose first observation has this label."""
        self._begin_again()
        read = self._reader.reset(as_label(label))
        if read is not None and not self.machines.doubt.starts:
            self._read(read)

    def step(
        self, observation: Symbol, action: Symbol, outcomes: Mapping[str, Any], label: Any
    ) -> None:
        """Take a step: what it came to, by the columns that machines predict, and the label."""
        self.weigh(observation, action, outcomes)
        self.read(label)

    def weigh(self, observation: Symbol, action: Symbol, outcomes: Mapping[str, Any]) -> None:
        """Hold states for the more likely, the likelier they made what a step came to."""
        for kind, machine in self.machines.items():
            if machine.predicts in outcomes:
                told = self._likely(kind, observation, action, outcomes[machine.predicts])
                self._shares = self._shares * told
        self._shares = self._shares / self._shares.sum()

    def read(self, label: Any) -> None:
        """Take the label that was recorded after a step."""
        self._read(self._reader.step(as_label(label)))

    def through(self, label: Label) -> NDArray[np.float64] | None:
        """Return how likely states follow each other where a label is recorded; None if unknown.

        Rows and columns are those of `joint`.
        """
        if label not in self._known_through:
            self._known_through[label] = self._matrix(label)
        return self._known_through[label]

    def _read(self, label: Label) -> None:
        through = self.through(label)
        if through is None:
            self.unseen += 1
        else:
            self._shares = product(self._shares, through)

    def _matrix(self, recorded: Label) -> NDArray[np.float64] | None:
        size = len(self.joint)
        matrix = np.zeros((size, size))
        rows = np.arange(size)
        if self._true_given is not None and recorded in self._labels:
            for label, chance in zip(
                self._labels, self._true_given[self._labels.index(recorded)], strict=True
            ):
                matrix[rows, self._led(label)] += chance
            return matrix
        if recorded and not any(recorded in one.labels for one in self.machines.values()):
            return None
        matrix[rows, self._led(recorded)] = 1.0
        return matrix

    def _led(self, label: Label) -> NDArray[np.int64]:
        """Return where a label leads from all states together; where it is not known, nowhere."""
        after = _following(self.machines, self.joint, label)
        return np.array([self._place[tuple(states)] for states in after.tolist()], np.int64)

    def _at_start(self) -> Shares:
        shares = np.zeros(len(self.joint))
        for label, share in (self.machines.doubt.starts or {NO_EVENT: 1.0}).items():
            first = np.zeros((1, len(self.machines)), np.int64)
            led = _following(self.machines, first, label) if label else first
            shares[self._place[tuple(led[0].tolist())]] += share
        return shares

    def _chances_of_true_labels(self) -> NDArray[np.float64] | None:
        """Return how likely each true label is, by the recorded one: [recorded, true]."""
        doubt = self.machines.doubt
        if doubt.label_noise is None:
            return None
        silence = self._labels.index(NO_EVENT) if NO_EVENT in self._labels else NONE
        table = _core.true_label_chances(
            len(self._labels),
            silence=silence,
            missed=doubt.label_noise.missed,
            added=doubt.label_noise.false,
            swapped=doubt.label_noise.swapped,
            shares=np.array(list(doubt.label_shares.values())),
        )
        return table.reshape(len(self._labels), len(self._labels))

    def _likely(self, kind: str, observation: Symbol, action: Symbol, value: Any) -> Shares:
        """Return how likely a machine's answer is in all states together."""
        key = kind, observation, action, value
        found = self._told.get(key)
        if found is None:
            if len(self._told) >= _MOST_REMEMBERED:
                self._told.clear()
            found = self._told[key] = self._asked(*key)
        return found

    def _asked(self, kind: str, observation: Symbol, action: Symbol, value: Any) -> Shares:
        machine = self.machines[kind]
        states = self.joint[:, list(self.machines).index(kind)].astype(np.int32)
        questions = self._questions(machine, observation, action)
        if machine.digits is not None:
            value = rounded([value], machine.digits)[0]
        known = machine.outputs.get(value)
        output = np.full(len(states), NONE if known is None else known, np.int32)
        chance = chances(machine, self._smoothing[kind], states, questions, output)
        return telling(chance.reshape(1, -1)).ravel()

    def _questions(
        self, machine: Machine, observation: Symbol, action: Symbol
    ) -> NDArray[np.int64]:
        first = self.joint[:, 0].tolist()  # the Transition Machine's, if there is one
        seen = [(observation, state) if machine.supplemented else observation for state in first]
        codes = [machine.observations.get(one) for one in seen]
        done = machine.actions.get(action)
        width = len(machine.actions)
        return np.array(
            [NONE if one is None or done is None else one * width + done for one in codes], np.int64
        )


def telling(chance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Fill in how likely an answer is in states that were never asked: so that it tells nothing.

    There is a row for each answer and a column for each state, nan where it was never asked.

    >>> telling(np.array([[0.2, np.nan, 0.6], [np.nan] * 3])).tolist()
    [[0.2, 0.4, 0.6], [1.0, 1.0, 1.0]]
    """
    asked = ~np.isnan(chance)
    number = asked.sum(axis=1)
    mean = np.where(asked, chance, 0.0).sum(axis=1) / np.maximum(number, 1)
    filled: NDArray[np.float64] = np.where(asked, chance, np.where(number > 0, mean, 1.0)[:, None])
    return filled


def _following(machines: Machines, states: NDArray[np.int64], label: Label) -> NDArray[np.int64]:
    """Return where a label leads from rows of states; machines that do not know it stay."""
    after = states.copy()
    for place, machine in enumerate(machines.values()):
        code = machine.labels.get(label)
        if code is not None:
            led = machine.transitions[states[:, place], code]
            after[:, place] = np.where(led < 0, states[:, place], led)
    return after


def _reached_together(machines: Machines) -> NDArray[np.int64]:
    """Return all states of machines that labels lead to together, in the order of reaching."""
    labels = list(dict.fromkeys(label for one in machines.values() for label in one.labels))
    found = {(0,) * len(machines): None}
    fresh = list(found)
    while fresh:
        rows = np.array(fresh, np.int64)
        fresh = []
        for label in labels:
            for states in map(tuple, _following(machines, rows, label).tolist()):
                if states not in found:
                    found[states] = None
                    fresh.append(states)
        if len(found) > MOST_TOGETHER:
            raise ModelError(
                f"the machines have more than {amount(MOST_TOGETHER, 'state')} together, too many "
                f"for a belief about them: use fewer machines, or another mode"
            )
    return np.array(list(found), np.int64)
