"""Track a memory in live episodes: labels, one after the other → the states of machines.

`Tracker` is the interface by which wrappers, plans and policies use a memory. `StateTracker` looks
transitions up; `BeliefTracker` estimates the states if labels are noisy or starts are hidden. For
environments side by side there are `VectorStateTracker` and, for other trackers, `SideBySide`.
"""

import copy
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from resolvent._util.text import short
from resolvent._util.validation import check_arguments
from resolvent.errors import ModelError, TraceError, locating
from resolvent.machines import Machines
from resolvent.machines.augmented_state import Belief
from resolvent.preprocess.timing import LabelReader
from resolvent.rl.env import LivePreprocessor, finite_reward
from resolvent.rl.vector_env import Mask, numbers_in
from resolvent.traces.schema import OBSERVATION, REWARD, TERMINATED
from resolvent.traces.symbols import Label, as_label, label_text

Numbers: TypeAlias = NDArray[np.int64]
Probabilities: TypeAlias = NDArray[np.float32]
OnUnseen: TypeAlias = Literal["stay", "raise"]
"""The treatment of a label that a machine has not seen in its state."""


class Tracker(Protocol):
    """The states of a memory in one live episode.

    For each step call `weigh` with its outcome, if `weighs_outcomes`, and then `step`. `values` are
    then the states for the prediction of the next step.
    """

    weighs_outcomes: ClassVar[bool]

    @property
    def values(self) -> tuple[int, ...]:
        """The state of each part of the memory, in its order."""

    @property
    def probabilities(self) -> list[Probabilities]:
        """The probability of each state of each part."""

    @property
    def unseen(self) -> int:
        """The number of labels of this episode for which the memory has no transition."""

    def reset(self, label: Any) -> None:
        """Begin an episode whose first observation has this label."""

    def weigh(
        self, observation: Any, action: Any, reward: Any, next_observation: Any, terminated: bool
    ) -> None:
        """Weigh the states by the outcome of a step, in values of the environment."""

    def step(self, label: Any, terminated: bool = False) -> None:
        """Read the label of the observation that a step led to."""


class StateTracker:
    """The states of all machines of a set in a live episode, by their label timing.

    A label that a machine has not seen in its state leaves that state unchanged and is counted in
    `unseen`, or raises `ModelError` if `on_unseen` is "raise". Machines do not learn from the last
    label of a terminated episode: pass `terminated` with it, and it is neither counted nor raised.

    >>> import gymnasium as gym, resolvent as rs
    >>> traces = rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
    >>> tracker = StateTracker(rs.infer(traces).machines)
    >>> tracker.reset(None)
    >>> tracker.step({"key"})
    >>> tracker.states
    {'transition': 1, 'reward': 0}
    """

    weighs_outcomes: ClassVar[bool] = False

    def __init__(self, machines: Machines, *, on_unseen: OnUnseen = "stay") -> None:
        check_arguments(StateTracker.__init__, locals())
        self.machines = machines
        self.values: tuple[int, ...] = (0,) * len(machines)
        self.unseen = 0
        self._raises = on_unseen == "raise"
        self._reader = LabelReader(machines.timing)
        labels = _all_labels(machines)
        self._codes = {label: code for code, label in enumerate(labels)}
        self._tables = [
            machine.transitions_for(labels, others=True).tolist() for machine in machines.values()
        ]
        # The next states of all machines together: one look-up for each step.
        self._next: dict[tuple[Label, tuple[int, ...]], tuple[int, ...]] = {}

    @property
    def states(self) -> dict[str, int]:
        """The state of each machine, by its name."""
        return dict(zip(self.machines, self.values, strict=True))

    @property
    def probabilities(self) -> list[Probabilities]:
        """The probability of each state of each machine: 1 for its state."""
        machines = zip(self.machines.values(), self.values, strict=True)
        return [np.eye(machine.states, dtype=np.float32)[state] for machine, state in machines]

    def reset(self, label: Any) -> None:
        """Begin an episode whose first observation has this label."""
        self.values = (0,) * len(self.values)
        self.unseen = 0
        read = self._reader.reset(as_label(label))
        if read is not None and not self.machines.state_uncertainty.starts:
            self._read(read, False)

    def weigh(
        self, observation: Any, action: Any, reward: Any, next_observation: Any, terminated: bool
    ) -> None:
        """Do nothing: states follow from labels alone."""

    def step(self, label: Any, terminated: bool = False) -> None:
        """Read the label of the observation that a step led to."""
        if type(label) is not frozenset:
            label = as_label(label)
        self._read(self._reader.step(label), terminated)

    def _read(self, label: Label, terminated: bool) -> None:
        next_states = self._next.get((label, self.values))
        if next_states is None:
            next_states = self._follow(label, terminated)
        self.values = next_states

    def _follow(self, label: Label, terminated: bool) -> tuple[int, ...]:
        """Return the next states of all machines, and count a label that is unseen by any."""
        code = self._codes.get(label, -1)
        pairs = list(zip(self._tables, self.values, strict=True))
        next_states = tuple(table[state][code] for table, state in pairs)
        if min(next_states) >= 0:
            self._next[label, self.values] = next_states
            return next_states
        if not terminated:
            if self._raises:
                raise _unseen_error(self.machines, label, self.values)
            self.unseen += 1
        return tuple(
            before if after < 0 else after
            for before, after in zip(self.values, next_states, strict=True)
        )


class BeliefTracker:
    """The states of all machines in a live episode, estimated instead of read: see `Belief`.

    `values` are the jointly most likely states, `probabilities` those of each machine's states. A
    label counts as unseen if no machine has it at all.

    >>> from resolvent.worlds import House
    >>> house = House()
    >>> machines = house.machines()
    >>> tracker = BeliefTracker(machines, LivePreprocessor(house, machines.preprocessor))
    >>> tracker.reset(None)
    >>> tracker.weigh(0, 2, 0.0, 1, False)
    >>> tracker.step({"key"})
    >>> tracker.values, tracker.probabilities[0].tolist()
    ((1, 0), [0.0, 1.0])
    """

    weighs_outcomes: ClassVar[bool] = True

    def __init__(
        self, machines: Machines, live: LivePreprocessor, *, on_unseen: OnUnseen = "stay"
    ) -> None:
        self.belief = Belief(machines)
        self._live, self._raises = live, on_unseen == "raise"

    def another(self) -> "BeliefTracker":
        """Return a tracker for another environment, which shares what was computed."""
        tracker = copy.copy(self)
        tracker.belief = self.belief.restarted()
        return tracker

    @property
    def values(self) -> tuple[int, ...]:
        """The jointly most likely states, in the order of the machines."""
        return self.belief.likeliest

    @property
    def unseen(self) -> int:
        """The number of labels of this episode that no machine has."""
        return self.belief.unseen

    @property
    def probabilities(self) -> list[Probabilities]:
        """The probability of each state of each machine, in the order of the machines."""
        return [column.astype(np.float32) for column in self.belief.probabilities.values()]

    def reset(self, label: Any) -> None:
        """Begin an episode whose first observation has this label."""
        self.belief.reset(label)
        self._check(label, 0)

    def weigh(
        self, observation: Any, action: Any, reward: Any, next_observation: Any, terminated: bool
    ) -> None:
        """Weigh the states by the outcome of a step, in values of the environment."""
        symbol = self._live.observations
        outcomes = {
            OBSERVATION: symbol(next_observation),
            REWARD: finite_reward(reward),
            TERMINATED: bool(terminated),
        }
        self.belief.weigh(symbol(observation), self._live.actions(action), outcomes)

    def step(self, label: Any, terminated: bool = False) -> None:
        """Read the label of the observation that a step led to."""
        before = self.belief.unseen
        self.belief.read(label)
        if not terminated:
            self._check(label, before)

    def _check(self, label: Any, before: int) -> None:
        if self._raises and self.belief.unseen > before:
            raise ModelError(
                f"label '{label_text(as_label(label))}' was never seen at all: collect traces "
                'that show it and infer again, or go on with on_unseen="stay"'
            )


def tracker_of(machines: Machines, live: LivePreprocessor) -> StateTracker | BeliefTracker:
    """Return the tracker for machines: an estimate if labels do not determine their states."""
    return BeliefTracker(machines, live) if machines.state_uncertainty else StateTracker(machines)


class VectorStateTracker:
    """The states of all machines of a set in many live episodes: `StateTracker` on arrays.

    `values` has a column of states for each machine. The arrays in `values` and `unseen` have an
    entry for each environment; they are replaced and never written into.
    """

    weighs_outcomes: ClassVar[bool] = False

    def __init__(
        self, machines: Machines, environments: int, *, on_unseen: OnUnseen = "stay"
    ) -> None:
        self.unseen: Numbers = np.zeros(environments, np.int64)
        self.values: tuple[Numbers, ...] = (self.unseen,) * len(machines)
        self._machines = machines
        self._raises = on_unseen == "raise"
        labels = _all_labels(machines)
        self._codes = _LabelCodes(labels)
        self._others = len(labels)
        """Code that stands for all labels that no machine has."""
        self._tables = [  # of next states, and whether these are unseen, by state and label
            (
                machine.transitions_for(labels, unseen="stay", others=True)
                .astype(np.int64)
                .ravel(),
                machine.transitions_for(labels, others=True).ravel() < 0,
            )
            for machine in machines.values()
        ]
        self._lagged = machines.timing.lag > 0
        self._reads_at_reset = (
            machines.timing.reads_at_reset and not machines.state_uncertainty.starts
        )
        self._last: Numbers = np.zeros(environments, np.int64)

    def reset(self, labels: Sequence[Any], mask: Mask) -> None:
        """Begin episodes in the masked environments, whose first observations have these labels."""
        going_on = ~mask
        self.values = tuple(column * going_on for column in self.values)
        self.unseen = self.unseen * going_on
        if self._reads_at_reset:
            self._read(self._codes.of(labels), mask, None)
        elif self._lagged:
            self._last = np.where(mask, self._codes.of(labels), self._last)

    def step(self, labels: Sequence[Any], mask: Mask, terminated: Mask) -> None:
        """Read the labels that steps led to, in the masked environments."""
        codes = self._codes.of(labels)
        read = codes
        if self._lagged:
            read, self._last = self._last, np.where(mask, codes, self._last)
        self._read(read, mask, terminated)

    def _read(self, codes: Numbers, mask: Mask, terminated: Mask | None) -> None:
        unseen = np.zeros(len(codes), bool)
        known_codes, is_everywhere = np.minimum(codes, self._others), mask.all()
        next_states = []
        for (next_state, is_unseen), states in zip(self._tables, self.values, strict=True):
            index = states * (self._others + 1) + known_codes
            unseen |= is_unseen.take(index)
            after = next_state.take(index)
            next_states.append(after if is_everywhere else np.where(mask, after, states))
        unseen &= mask
        if unseen.any():
            if terminated is not None:
                unseen &= ~terminated
            if self._raises and unseen.any():
                raise self._error(int(np.argmax(unseen)), codes)
            self.unseen = self.unseen + unseen
        self.values = tuple(next_states)

    def _error(self, number: int, codes: Numbers) -> ModelError:
        label = self._codes.labels[int(codes[number])]
        states = [int(column[number]) for column in self.values]
        return ModelError(f"environment {number}: {_unseen_error(self._machines, label, states)}")


class SideBySide:
    """A tracker for each of many environments, used as `VectorStateTracker` is."""

    weighs_outcomes: ClassVar[bool] = True

    def __init__(self, trackers: Sequence[Tracker]) -> None:
        self.trackers = trackers

    @property
    def values(self) -> tuple[Numbers, ...]:
        """For each part of the memory a column of states."""
        rows = np.array([tracker.values for tracker in self.trackers], np.int64)
        return tuple(np.ascontiguousarray(column) for column in rows.T)

    @property
    def unseen(self) -> Numbers:
        """The number of unseen labels in each environment's episode."""
        return np.array([tracker.unseen for tracker in self.trackers], np.int64)

    @property
    def probabilities(self) -> list[Probabilities]:
        """For each machine the probability of its states, with a row for each environment."""
        rows = [tracker.probabilities for tracker in self.trackers]
        return [np.stack(column) for column in zip(*rows, strict=True)]

    def reset(self, labels: Sequence[Any], mask: Mask) -> None:
        """Begin episodes in the masked environments, whose first observations have these labels."""
        for number in numbers_in(mask):
            self.trackers[number].reset(labels[number])

    def weigh(self, mask: Mask, *outcomes: Sequence[Any] | Mask) -> None:
        """Weigh by the steps of the masked environments; a column for each argument of `weigh`."""
        for number in numbers_in(mask):
            self.trackers[number].weigh(*(column[number] for column in outcomes))

    def step(self, labels: Sequence[Any], mask: Mask, terminated: Mask) -> None:
        """Read the labels that steps led to, in the masked environments."""
        for number in numbers_in(mask):
            self.trackers[number].step(labels[number], bool(terminated[number]))


class _LabelCodes(dict[Any, int]):
    """Codes of labels, by any spelling; labels that no machine has get higher codes."""

    def __init__(self, labels: Sequence[Label]) -> None:
        super().__init__((label, code) for code, label in enumerate(labels))
        self.labels = list(labels)

    def of(self, labels: Sequence[Any]) -> Numbers:
        if isinstance(labels, np.ndarray):
            if labels.dtype.kind in "iu" and labels.ndim == 1:
                values, codes = np.unique(labels, return_inverse=True)
                return self.of(values.tolist())[codes]
            labels = labels.tolist()
        try:
            return np.fromiter(map(self.__getitem__, labels), np.int64, len(labels))
        except (TypeError, TraceError):  # sets and lists cannot be looked up as they are
            codes = [self._code(number, spelling) for number, spelling in enumerate(labels)]
            return np.array(codes, np.int64)

    def _code(self, number: int, spelling: Any) -> int:
        with locating(f"environment {number}"):
            return self[as_label(spelling)]

    def __missing__(self, spelling: Any) -> int:
        label = as_label(spelling)
        code = self.get(label)
        if code is None:
            code = self[label] = len(self.labels)
            self.labels.append(label)
        if type(spelling) is str:
            self[spelling] = code
        return code


def _all_labels(machines: Machines) -> list[Label]:
    """Return the labels of all machines, each once."""
    return list(dict.fromkeys(label for machine in machines.values() for label in machine.labels))


def _unseen_error(machines: Machines, label: Label, states: Sequence[int]) -> ModelError:
    """Return an error that says which label was never seen where, and what to do."""
    where = "at all"
    if any(label in machine.labels for machine in machines.values()):
        where = "in " + " and ".join(
            f"state {state} of the {short(name)} machine"
            for (name, machine), state in zip(machines.items(), states, strict=True)
            if machine.transitions_for([label])[state, 0] < 0
        )
    return ModelError(
        f"label '{label_text(label)}' was never seen {where}: collect traces that show it "
        'there and infer again, or go on with on_unseen="stay"'
    )
