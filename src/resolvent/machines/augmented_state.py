"""Augmented states: an observation and the states of machines; ends of episodes, uncertain states.

The machines are those that matter for acting: the Transition Machine, the Reward Machine and,
if present, the machine that predicts when episodes end. Where labels are noisy or initial states
hidden, a `Belief` turns the steps of an episode into a probability for each state of each machine.
"""

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Annotated, Any, Final, Self, TypeAlias

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from resolvent import _core
from resolvent._util.math import product
from resolvent._util.text import amount
from resolvent.errors import ModelError
from resolvent.machines.likelihood import output_probabilities, smoothing_of
from resolvent.preprocess.samples import rounded
from resolvent.preprocess.timing import NONE, LabelReader
from resolvent.traces.schema import TERMINATED
from resolvent.traces.symbols import NO_EVENT, Label, Symbol, as_label, label_text, symbol_text
from resolvent.traces.vocabulary import Codes, Vocabulary

if TYPE_CHECKING:
    from resolvent.machines.machine_set import Machines

AugmentedState: TypeAlias = tuple[Any, ...]
"""An observation and the states of the machines that matter, in the order of `ACTING_MACHINES`."""

Share: TypeAlias = Annotated[float, Meta(ge=0)]

Shares = NDArray[np.float64]
MAX_JOINT_STATES: Final = 2_000  # maximum number of joint states of a belief
_MAX_CACHED: Final = 20_000  # maximum number of cached likelihoods of steps

ACTING_MACHINES: Final = ("transition", "reward", TERMINATED)
"""Names of the machines that matter for acting; the last one is optional."""


def by_name(augmented_state: AugmentedState) -> dict[str, Any]:
    """Return an augmented state as named values, for files and JSON."""
    observation, *states = augmented_state
    names = (f"{name}_state" for name in ACTING_MACHINES)
    return {"observation": observation, **dict(zip(names, states, strict=False))}


def augmented_state_text(augmented_state: AugmentedState) -> str:
    """Return an augmented state as text."""
    observation, *states = augmented_state
    return f"{symbol_text(observation)} ({states_text(states)})"


def states_text(states: Iterable[int]) -> str:
    """Return the states of an augmented state as text."""
    return ", ".join(
        f"{name} state {state}" for name, state in zip(ACTING_MACHINES, states, strict=False)
    )


@dataclass(frozen=True)
class Termination:
    """The steps that ended an episode, always (`ends`) or only sometimes (`ambiguous`).

    A step is a tuple of the observation, the state of each machine of the set, and the action.
    Termination is not part of the paper's Reward Machine, but planning needs it.
    """

    ends: frozenset[tuple[Any, ...]] = field(default_factory=frozenset)
    ambiguous: frozenset[tuple[Any, ...]] = field(default_factory=frozenset)

    def after(self, *step: Any) -> bool | None:
        """Return whether a step ends the episode; None if it sometimes did.

        False means that no observed episode ended with it.

        >>> Termination(frozenset({("hall", 0, 1, "sit")})).after("hall", 0, 1, "sit")
        True
        """
        return None if step in self.ambiguous else step in self.ends

    def __str__(self) -> str:
        if self.ambiguous:
            does, ends = ("does", "ends") if len(self.ambiguous) == 1 else ("do", "end")
            return (
                f"{amount(len(self.ambiguous), 'step')} sometimes {ends} the episode and sometimes "
                f"{does} not: termination does not follow from observation, states and action"
            )
        return f"{amount(len(self.ends), 'step')} end{'s' * (len(self.ends) == 1)} the episode"


@dataclass(frozen=True)
class LabelNoise:
    """Rates of wrong labels, as shares of the steps at which each kind of error is possible.

    Attributes:
        missed: Share of the steps with an event that are recorded without one.
        false: Share of the steps without an event that are recorded with one.
        swapped: Share of the steps with an event that are recorded with another event.
    """

    missed: Share
    false: Share
    swapped: Share

    def shares(self) -> dict[str, float]:
        """Return the rates by the names that `result.noise` has for them."""
        return {f"{name} labels": share for name, share in asdict(self).items()}

    @classmethod
    def of_shares(cls, shares: Mapping[str, float]) -> "LabelNoise | None":
        """Return the rates among the entries of `result.noise`; None unless all are there."""
        names = [f"{field.name} labels" for field in fields(cls)]
        return cls(*map(shares.__getitem__, names)) if shares.keys() >= {*names} else None

    def as_dict(self) -> dict[str, float]:
        """Return the rates as JSON values."""
        return asdict(self)

    def __str__(self) -> str:
        return ", ".join(f"{100 * share:.2g}% {name}" for name, share in asdict(self).items())


@dataclass(frozen=True)
class StateUncertainty:
    """Why labels do not determine the state, and the probabilities needed to infer it.

    Attributes:
        label_noise: Rates at which recorded labels differ from the true ones, which machines
            read; None if labels are exact.
        label_shares: Share of each true label among all, if labels are noisy.
        starts: Probability of each hidden initial state, given as the label that leads the
            machines there from state 0; no trace records it. Empty if all episodes begin in
            state 0.
    """

    label_noise: LabelNoise | None = None
    label_shares: Mapping[Label, float] = field(default_factory=dict)
    starts: Mapping[Label, float] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.label_noise is not None or bool(self.starts)

    def __hash__(self) -> int:
        return hash((self.label_noise, tuple(self.starts.items())))

    def __str__(self) -> str:
        reasons = []
        if self.label_noise is not None:
            reasons.append(f"noisy labels: {self.label_noise}")
        if self.starts:
            shares = (f"{label_text(start)} {share:.2g}" for start, share in self.starts.items())
            reasons.append(f"hidden starts: {', '.join(shares)}")
        return "; ".join(reasons) or "none"


class Belief:
    """Probability of each state of each machine of a set, given the steps of an episode so far.

    Call `reset` with the label of an episode's first observation, and with each step `weigh` and
    then `read`. `machines.state_uncertainty` holds the rates of wrong labels and the probabilities
    of hidden initial states; if it is empty, the belief is in one state.
    """

    def __init__(self, machines: "Machines") -> None:
        self.machines = machines
        symbols = (label for machine in machines.values() for label in machine.labels)
        self._labels = Vocabulary(dict.fromkeys(symbols))
        self._next_state = [
            machine.transitions_for(self._labels, unseen="stay", others=True)
            for machine in machines.values()
        ]
        self.joint = _joint_states(self._next_state)
        """All reachable joint states of the machines: a row each, a column for each machine."""
        self._row = {tuple(states): row for row, states in enumerate(self.joint.tolist())}
        self._true_label_chances = _true_label_chances(machines.state_uncertainty)
        self._matrices: dict[Label, Shares | None] = {}
        self._smoothing = {name: smoothing_of(machine) for name, machine in machines.items()}
        self._likelihoods: dict[tuple[str, Symbol, Symbol, Any], Shares] = {}
        self.initial = self._initial()
        """Probability of each joint state at the start of an episode."""
        self._restart()

    def restarted(self) -> Self:
        """Return a belief about another episode of the same machines."""
        belief = copy.copy(self)
        belief._restart()
        return belief

    def _restart(self) -> None:
        self._shares = self.initial
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
        if read is not None and not self.machines.state_uncertainty.starts:
            self._read(read)

    def weigh(self, observation: Symbol, action: Symbol, outcomes: Mapping[str, Any]) -> None:
        """Update by the likelihood of a step's outcomes, by column, in each state."""
        for name, machine in self.machines.items():
            if machine.predicts in outcomes:
                value = outcomes[machine.predicts]
                self._shares = self._shares * self._likelihood(name, observation, action, value)
        self._shares = self._shares / self._shares.sum()

    def read(self, label: Any) -> None:
        """Update by the label that was recorded after a step."""
        self._read(self._reader.step(as_label(label)))

    def transition_matrix(self, label: Label) -> Shares | None:
        """Return the transition matrix over joint states for a recorded label; None if unknown."""
        if label not in self._matrices:
            self._matrices[label] = self._matrix(label)
        return self._matrices[label]

    def _read(self, label: Label) -> None:
        matrix = self.transition_matrix(label)
        if matrix is None:
            self.unseen += 1
        else:
            self._shares = product(self._shares, matrix)

    def _matrix(self, recorded: Label) -> Shares | None:
        chances = self._true_label_chances.get(recorded)
        if chances is None:
            if recorded and recorded not in self._labels:
                return None
            chances = {recorded: 1.0}
        rows = np.arange(len(self.joint))
        matrix = np.zeros((len(rows), len(rows)))
        for label, chance in chances.items():
            targets = _step(self._next_state, self.joint, self._labels.get(label)).tolist()
            matrix[rows, [self._row[tuple(states)] for states in targets]] += chance
        return matrix

    def _initial(self) -> Shares:
        shares = np.zeros(len(self.joint))
        starts = self.machines.state_uncertainty.starts or {NO_EVENT: 1.0}
        for label, share in starts.items():
            states = np.zeros((1, len(self.machines)), np.int64)
            if label:
                states = _step(self._next_state, states, self._labels.get(label))
            shares[self._row[tuple(states[0].tolist())]] += share
        return shares

    def _likelihood(self, name: str, observation: Symbol, action: Symbol, value: Any) -> Shares:
        """Return the probability of a machine's output in each joint state."""
        key = name, observation, action, value
        if key in self._likelihoods:
            return self._likelihoods[key]
        if len(self._likelihoods) >= _MAX_CACHED:
            self._likelihoods.clear()
        machine = self.machines[name]
        states = self.joint[:, list(self.machines).index(name)].astype(np.int32)
        if machine.supplemented:  # with states of the Transition Machine, the first one
            symbols = [(observation, q) for q in range(self.machines.transition.states)]
            by_state = np.array([machine.query_number(symbol, action) for symbol in symbols])
            queries = by_state[self.joint[:, 0]]
        else:
            queries = np.full(len(states), machine.query_number(observation, action), np.int64)
        code = machine.outputs.get(rounded([value], machine.digits)[0])
        output = np.full(len(states), NONE if code is None else code, np.int32)
        chance = output_probabilities(machine, self._smoothing[name], states, queries, output)
        self._likelihoods[key] = fill_unknown(chance.reshape(1, -1)).ravel()
        return self._likelihoods[key]


def fill_unknown(chance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Replace nan in [output, state] by the mean of the known probabilities of the output."""
    is_known = ~np.isnan(chance)
    number = is_known.sum(axis=1)
    mean = np.where(is_known, chance, 0.0).sum(axis=1) / np.maximum(number, 1)
    return np.where(is_known, chance, np.where(number > 0, mean, 1.0)[:, None])


def _true_label_chances(uncertainty: StateUncertainty) -> dict[Label, dict[Label, float]]:
    """Return the probability of each true label by the recorded one; nothing without noise."""
    noise, labels = uncertainty.label_noise, list(uncertainty.label_shares)
    if noise is None:
        return {}
    table = _core.true_label_probabilities(
        len(labels),
        no_event=labels.index(NO_EVENT) if NO_EVENT in labels else NONE,
        missed=noise.missed,
        added=noise.false,
        swapped=noise.swapped,
        shares=np.array(list(uncertainty.label_shares.values())),
    )
    rows = table.reshape(len(labels), len(labels))  # [recorded, true]
    chances = (dict(zip(labels, row, strict=True)) for row in rows)
    return dict(zip(labels, chances, strict=True))


def _step(tables: Sequence[Codes], joint: NDArray[np.int64], code: int | None) -> NDArray[np.int64]:
    """Return the joint states after a label; a machine without a transition stays.

    The last column of the tables is for unknown labels, whose code is None.
    """
    column = -1 if code is None else code
    after = [table[states, column] for table, states in zip(tables, joint.T, strict=True)]
    return np.stack(after, axis=1).astype(np.int64)


def _joint_states(tables: Sequence[Codes]) -> NDArray[np.int64]:
    """Return all reachable joint states of machines, breadth first."""
    reached = {(0,) * len(tables): None}
    frontier = list(reached)
    while frontier:
        rows = np.array(frontier, np.int64)
        frontier = []
        for code in range(tables[0].shape[1] - 1):
            for states in map(tuple, _step(tables, rows, code).tolist()):
                if states not in reached:
                    reached[states] = None
                    frontier.append(states)
        if len(reached) > MAX_JOINT_STATES:
            raise ModelError(
                f"the machines have more than {amount(MAX_JOINT_STATES, 'state')} together, too "
                f"many for a belief about them: use fewer machines, or another mode"
            )
    return np.array(list(reached), np.int64)
