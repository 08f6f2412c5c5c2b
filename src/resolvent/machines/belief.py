"""Belief tracking: the steps of an episode → a probability for each state of each machine."""

import copy
from collections.abc import Mapping
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent._util.math import product
from resolvent._util.text import amount
from resolvent.errors import ModelError
from resolvent.machines.likelihood import output_probabilities, smoothing_of
from resolvent.machines.machine_set import Machines
from resolvent.preprocess.samples import rounded
from resolvent.preprocess.timing import NONE, LabelReader
from resolvent.traces.symbols import NO_EVENT, Label, Symbol, as_label

Shares = NDArray[np.float64]

MOST_TOGETHER: Final = 2_000
"""Maximum number of joint states of a belief."""

_MAX_CACHED: Final = 20_000
"""Maximum number of cached likelihoods of steps."""


class Belief:
    """Probability of each state of each machine of a set, given the steps of an episode so far.

    Call `reset` with the label of an episode's first observation, and `step` with each step.
    `machines.doubt` holds the rates of wrong labels and the probabilities of hidden initial
    states; if it is empty, the belief is in one state, unless no state explains the outputs.

    >>> from resolvent.worlds import House
    >>> from resolvent.machines.uncertainty import StateUncertainty, LabelNoise
    >>> starts = {frozenset(): 0.5, frozenset({"key"}): 0.5}
    >>> uncertainty = StateUncertainty(LabelNoise(0.5, 0.0, 0.0), starts)
    >>> belief = Belief(House().machines().replacing(doubt=uncertainty))
    >>> belief.reset(None)
    >>> belief.step("corridor", "left", {"observation": "orangeroom", "reward": 0.0}, None)
    >>> belief.probabilities["transition"].round(2).tolist()
    [0.67, 0.33]
    """

    def __init__(self, machines: Machines) -> None:
        self.machines = machines
        self.joint = _joint_states(machines)
        """All reachable joint states of the machines: a row each, a column for each machine."""
        self._row = {tuple(states): row for row, states in enumerate(self.joint.tolist())}
        self._labels = list(machines.doubt.label_shares)
        self._true_label_chances = self._label_chances()
        self._matrices: dict[Label, NDArray[np.float64] | None] = {}
        self._smoothing = {name: smoothing_of(machine) for name, machine in machines.items()}
        self._likelihoods: dict[tuple[str, Symbol, Symbol, Any], Shares] = {}
        self.begin = self._initial()
        """Probability of each joint state at the start of an episode."""
        self._restart()

    def another(self) -> Self:
        """Return a belief about another episode of the same machines."""
        belief = copy.copy(self)
        belief._restart()
        return belief

    def _restart(self) -> None:
        self._shares = self.begin
        self._reader = LabelReader(self.machines.timing)
        self.unseen = 0
        """Number of labels read that no machine knows."""

    @property
    def probabilities(self) -> dict[str, Shares]:
        """Probability of each state of each machine, by the machine's name."""
        return {
            name: np.bincount(self.joint[:, column], self._shares, machine.states).astype(float)
            for column, (name, machine) in enumerate(self.machines.items())
        }

    @property
    def likeliest(self) -> tuple[int, ...]:
        """The most probable joint state."""
        return tuple(self.joint[int(np.argmax(self._shares))].tolist())

    def reset(self, label: Any) -> None:
        """Begin an episode whose first observation has this label."""
        self._restart()
        read = self._reader.reset(as_label(label))
        if read is not None and not self.machines.doubt.starts:
            self._read(read)

    def step(
        self, observation: Symbol, action: Symbol, outcomes: Mapping[str, Any], label: Any
    ) -> None:
        """Update by a step: its outcomes by column name, and its label."""
        self.weigh(observation, action, outcomes)
        self.read(label)

    def weigh(self, observation: Symbol, action: Symbol, outcomes: Mapping[str, Any]) -> None:
        """Update by the likelihood of a step's outcomes in each state."""
        for name, machine in self.machines.items():
            if machine.predicts in outcomes:
                value = outcomes[machine.predicts]
                self._shares = self._shares * self._likelihood(name, observation, action, value)
        self._shares = self._shares / self._shares.sum()

    def read(self, label: Any) -> None:
        """Update by the label that was recorded after a step."""
        self._read(self._reader.step(as_label(label)))

    def through(self, label: Label) -> NDArray[np.float64] | None:
        """Return the transition matrix over joint states for a recorded label; None if unknown."""
        if label not in self._matrices:
            self._matrices[label] = self._matrix(label)
        return self._matrices[label]

    def _read(self, label: Label) -> None:
        matrix = self.through(label)
        if matrix is None:
            self.unseen += 1
        else:
            self._shares = product(self._shares, matrix)

    def _matrix(self, recorded: Label) -> NDArray[np.float64] | None:
        chances = {recorded: 1.0}
        if self._true_label_chances is not None and recorded in self._labels:
            row = self._true_label_chances[self._labels.index(recorded)]
            chances = dict(zip(self._labels, row, strict=True))
        elif recorded and not any(recorded in machine.labels for machine in self.machines.values()):
            return None
        rows = np.arange(len(self.joint))
        matrix = np.zeros((len(rows), len(rows)))
        for label, chance in chances.items():
            targets = _next_states(self.machines, self.joint, label).tolist()
            matrix[rows, [self._row[tuple(states)] for states in targets]] += chance
        return matrix

    def _initial(self) -> Shares:
        shares = np.zeros(len(self.joint))
        for label, share in (self.machines.doubt.starts or {NO_EVENT: 1.0}).items():
            states = np.zeros((1, len(self.machines)), np.int64)
            if label:
                states = _next_states(self.machines, states, label)
            shares[self._row[tuple(states[0].tolist())]] += share
        return shares

    def _label_chances(self) -> NDArray[np.float64] | None:
        """Return the probability of each true label given the recorded one: [recorded, true]."""
        uncertainty = self.machines.doubt
        noise = uncertainty.label_noise
        if noise is None:
            return None
        silence = self._labels.index(NO_EVENT) if NO_EVENT in self._labels else NONE
        table = _core.true_label_chances(
            len(self._labels),
            silence=silence,
            missed=noise.missed,
            added=noise.false,
            swapped=noise.swapped,
            shares=np.array(list(uncertainty.label_shares.values())),
        )
        return table.reshape(len(self._labels), len(self._labels))

    def _likelihood(self, name: str, observation: Symbol, action: Symbol, value: Any) -> Shares:
        """Return the probability of a machine's output in each joint state."""
        key = name, observation, action, value
        if key not in self._likelihoods:
            if len(self._likelihoods) >= _MAX_CACHED:
                self._likelihoods.clear()
            self._likelihoods[key] = self._output_chances(*key)
        return self._likelihoods[key]

    def _output_chances(self, name: str, observation: Symbol, action: Symbol, value: Any) -> Shares:
        machine = self.machines[name]
        states = self.joint[:, list(self.machines).index(name)].astype(np.int32)
        if machine.supplemented:  # with states of the Transition Machine, the first one
            symbols = [(observation, q) for q in range(self.machines.transition.states)]
            by_state = np.array([machine._query(symbol, action) for symbol in symbols], np.int64)
            queries = by_state[self.joint[:, 0]]
        else:
            queries = np.full(len(states), machine._query(observation, action), np.int64)
        if machine.digits is not None:
            value = rounded([value], machine.digits)[0]
        code = machine.outputs.get(value)
        output = np.full(len(states), NONE if code is None else code, np.int32)
        smoothing = self._smoothing[name]
        chance = output_probabilities(machine, smoothing, states, queries, output)
        return fill_unknown(chance.reshape(1, -1)).ravel()


def fill_unknown(chance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Replace unknown probabilities (nan) of each output by the mean of the known ones.

    There is a row for each output and a column for each state.

    >>> fill_unknown(np.array([[0.2, np.nan, 0.6], [np.nan] * 3])).tolist()
    [[0.2, 0.4, 0.6], [1.0, 1.0, 1.0]]
    """
    is_known = ~np.isnan(chance)
    number = is_known.sum(axis=1)
    mean = np.where(is_known, chance, 0.0).sum(axis=1) / np.maximum(number, 1)
    return np.where(is_known, chance, np.where(number > 0, mean, 1.0)[:, None])


def _next_states(machines: Machines, states: NDArray[np.int64], label: Label) -> NDArray[np.int64]:
    """Return the states after reading a label; a machine without such a transition stays."""
    after = states.copy()
    for column, machine in enumerate(machines.values()):
        code = machine.labels.get(label)
        if code is not None:
            targets = machine.transitions[states[:, column], code]
            after[:, column] = np.where(targets < 0, states[:, column], targets)
    return after


def _joint_states(machines: Machines) -> NDArray[np.int64]:
    """Return all reachable joint states of machines, breadth first."""
    labels = list(dict.fromkeys(label for machine in machines.values() for label in machine.labels))
    reached = {(0,) * len(machines): None}
    frontier = list(reached)
    while frontier:
        rows = np.array(frontier, np.int64)
        frontier = []
        for label in labels:
            for states in map(tuple, _next_states(machines, rows, label).tolist()):
                if states not in reached:
                    reached[states] = None
                    frontier.append(states)
        if len(reached) > MOST_TOGETHER:
            raise ModelError(
                f"the machines have more than {amount(MOST_TOGETHER, 'state')} together, too many "
                f"for a belief about them: use fewer machines, or another mode"
            )
    return np.array(list(reached), np.int64)
