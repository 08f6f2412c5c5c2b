"""Track the states of machines in live episodes: labels, one after the other → states.

`StateTracker` looks transitions up; `BeliefTracker` estimates the states if labels are noisy or
starts are hidden. Both have a form for many environments side by side.
"""

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, get_args

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from resolvent._util.text import listed, short
from resolvent._util.validation import shown
from resolvent.errors import ModelError, OptionError, TraceError, locating
from resolvent.machines import Machine, Machines
from resolvent.machines.belief import Belief
from resolvent.preprocess.timing import LabelReader
from resolvent.rl.env import LivePreprocessor, finite_reward
from resolvent.rl.vector_env import Mask, split
from resolvent.traces.schema import OBSERVATION, REWARD, TERMINATED
from resolvent.traces.symbols import Label, as_label, label_text

Numbers: TypeAlias = NDArray[np.int64]
OnUnseen: TypeAlias = Literal["stay", "raise"]
"""The treatment of a label that a machine has not seen in its state."""


class _ByMachine:
    """Access to the states of each machine of a set."""

    machines: Machines
    values: tuple[Any, ...]

    @property
    def states(self) -> dict[str, Any]:
        """The state of each machine, by its name."""
        return dict(zip(self.machines, self.values, strict=True))

    @property
    def transition_state(self) -> Any:
        """The state of the Transition Machine; `ModelError` if there is none."""
        return self._state("transition")

    @property
    def reward_state(self) -> Any:
        """The state of the Reward Machine; `ModelError` if there is none."""
        return self._state("reward")

    def _state(self, name: str) -> Any:
        if name not in self.machines:
            raise ModelError(
                f"there is no {short(name)} machine here, so that it has no state: there is "
                f"{listed(self.machines)}"
            )
        return self.states[name]


class StateTracker(_ByMachine):
    """The states of all machines of a set in a live episode.

    Call `reset` with the label of an episode's first observation and `step` with the label of
    each next observation. `states` are then the states for the prediction of the next step, by the
    set's label timing.

    A label that a machine has not seen in its state leaves that state unchanged and is counted in
    `unseen`, or raises `ModelError` if `on_unseen` is "raise". Machines do not learn from the last
    label of a terminated episode: pass `terminated` with it, and it is neither counted nor raised.

    >>> import gymnasium as gym, resolvent as rs
    >>> traces = rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
    >>> memory = StateTracker(rs.infer(traces).machines)
    >>> memory.reset(None)
    >>> memory.step({"key"})
    >>> memory.states, memory.transition_state, memory.unseen
    ({'transition': 1, 'reward': 0}, 1, 0)
    """

    def __init__(self, machines: Machines, *, on_unseen: OnUnseen = "stay") -> None:
        check_on_unseen(on_unseen)
        self.machines = machines
        self.values: tuple[int, ...] = (0,) * len(machines)
        """The states in the order of the machines."""
        self.unseen = 0
        self._raises = on_unseen == "raise"
        self._reader = LabelReader(machines.timing)
        self._transitions = {
            label: tuple(_next_states(machine, label) for machine in machines.values())
            for label in _all_labels(machines)
        }
        self._no_transitions = tuple([-1] * machine.states for machine in machines.values())
        # The next states of all machines together: one look-up for each step.
        self._next: dict[tuple[Label, tuple[int, ...]], tuple[int, ...]] = {}

    def reset(self, label: Any) -> None:
        """Begin an episode whose first observation has this label."""
        self.values = (0,) * len(self.values)
        self.unseen = 0
        read = self._reader.reset(as_label(label))
        if read is not None and not self.machines.doubt.starts:
            self._read(read, False)

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
        transitions = self._transitions.get(label, self._no_transitions)
        next_states = tuple(map(list.__getitem__, transitions, self.values))
        if min(next_states) >= 0:
            self._next[label, self.values] = next_states
            return next_states
        if not terminated:
            if self._raises:
                raise _unseen_error(self.machines, label, self.values)
            self.unseen += 1
        pairs = zip(self.values, next_states, strict=True)
        return tuple(before if after < 0 else after for before, after in pairs)


class VectorStateTracker(_ByMachine):
    """The states of all machines of a set in many live episodes: `StateTracker` for arrays.

    The arrays in `states` and `unseen` have an entry for each environment; they are replaced
    and never written into.
    """

    def __init__(
        self, machines: Machines, environments: int, *, on_unseen: OnUnseen = "stay"
    ) -> None:
        check_on_unseen(on_unseen)
        self.machines = machines
        self.unseen: Numbers = np.zeros(environments, np.int64)
        self.values: tuple[Numbers, ...] = (self.unseen,) * len(machines)
        """The columns of states in the order of the machines."""
        self._raises = on_unseen == "raise"
        labels = _all_labels(machines)
        self._codes = _LabelCodes(labels)
        self._tables = [_Transitions(machine, labels) for machine in machines.values()]
        self._lagged = machines.timing.lag > 0
        self._reads_at_reset = machines.timing.reads_at_reset and not machines.doubt.starts
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

    def step(self, labels: Sequence[Any], mask: Mask | None, terminated: Mask) -> None:
        """Read the labels that steps led to, in the masked environments or in all."""
        codes = self._codes.of(labels)
        if self._lagged:
            read, self._last = self._last, codes
            if mask is not None:
                self._last = np.where(mask, codes, read)
        else:
            read = codes
        self._read(read, mask, terminated)

    def _read(self, codes: Numbers, mask: Mask | None, terminated: Mask | None) -> None:
        unseen = np.zeros(len(codes), bool)
        next_states = []
        for table, states in zip(self._tables, self.values, strict=True):
            at = table.index(states, codes)
            unseen |= table.unseen.take(at)
            after = table.next_state.take(at)
            next_states.append(after if mask is None else np.where(mask, after, states))
        if mask is not None:
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
        return ModelError(f"environment {number}: {_unseen_error(self.machines, label, states)}")


class BeliefTracker:
    """The states of all machines in a live episode, estimated instead of read: see `Belief`.

    Use it like `StateTracker`, and call `took` with each step before its label. `values` are the
    jointly most likely states, `shown` the probabilities of each machine's states. A label counts
    as unseen if no machine has it at all.

    >>> from resolvent.worlds import House
    >>> house = House()
    >>> tracker = BeliefTracker(house.machines(), LivePreprocessor(house, house.machines().senses))
    >>> tracker.reset(None)
    >>> tracker.took(0, 2, 0.0, 1, False)
    >>> tracker.step({"key"})
    >>> tracker.values, tracker.shown[0].tolist()
    ((1, 0), [0.0, 1.0])
    """

    def __init__(
        self,
        machines: Machines,
        live: LivePreprocessor,
        *,
        on_unseen: OnUnseen = "stay",
        belief: Belief | None = None,
    ) -> None:
        check_on_unseen(on_unseen)
        self.machines = machines
        self._live = live
        self._raises = on_unseen == "raise"
        self.belief = Belief(machines) if belief is None else belief.another()

    @property
    def values(self) -> tuple[int, ...]:
        """The jointly most likely states, in the order of the machines."""
        return self.belief.likeliest

    @property
    def unseen(self) -> int:
        """The number of labels of this episode that no machine has."""
        return self.belief.unseen

    @property
    def shown(self) -> list[NDArray[np.float32]]:
        """The probability of each state of each machine, in the order of the machines."""
        return [column.astype(np.float32) for column in self.belief.probabilities.values()]

    def reset(self, label: Any) -> None:
        """Begin an episode whose first observation has this label."""
        self.belief.reset(label)
        self._check(label, 0)

    def took(
        self, observation: Any, action: Any, reward: Any, next_observation: Any, terminated: bool
    ) -> None:
        """Weigh the states by a step, in values of the environment."""
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


class VectorBeliefTracker:
    """A `BeliefTracker` for each of many environments, used as `VectorStateTracker` is."""

    def __init__(
        self,
        machines: Machines,
        environments: int,
        live: LivePreprocessor,
        *,
        on_unseen: OnUnseen = "stay",
    ) -> None:
        belief = Belief(machines)
        self._trackers = [
            BeliefTracker(machines, live, on_unseen=on_unseen, belief=belief)
            for _ in range(environments)
        ]

    @property
    def values(self) -> tuple[Numbers, ...]:
        """For each machine a column of its most likely states."""
        rows = np.array([tracker.values for tracker in self._trackers], np.int64)
        return tuple(np.ascontiguousarray(column) for column in rows.T)

    @property
    def unseen(self) -> Numbers:
        """The number of labels in each environment's episode that no machine has."""
        return np.array([tracker.unseen for tracker in self._trackers], np.int64)

    @property
    def shown(self) -> list[NDArray[np.float32]]:
        """For each machine the probability of its states, with a row for each environment."""
        rows = [tracker.shown for tracker in self._trackers]
        return [np.stack(column) for column in zip(*rows, strict=True)]

    def of(self, number: int) -> BeliefTracker:
        """Return the tracker of one environment."""
        return self._trackers[number]

    def reset(self, labels: Sequence[Any], mask: Mask) -> None:
        """Begin episodes in the masked environments, whose first observations have these labels."""
        for number in np.flatnonzero(mask).tolist():
            self._trackers[number].reset(labels[number])

    def took(
        self,
        spaces: tuple[gym.Space[Any], gym.Space[Any]],
        observations: Any,
        actions: Any,
        rewards: Any,
        next_observations: Sequence[Any],
        terminated: Mask,
        mask: Mask,
    ) -> None:
        """Weigh by the steps of the masked environments, with the batched spaces of both."""
        each_observation, each_action = split(spaces[0], observations), split(spaces[1], actions)
        for number in np.flatnonzero(mask).tolist():
            self._trackers[number].took(
                each_observation[number],
                each_action[number],
                rewards[number],
                next_observations[number],
                terminated[number],
            )

    def step(self, labels: Sequence[Any], mask: Mask | None, terminated: Mask) -> None:
        """Read the labels that steps led to, in the masked environments or in all."""
        numbers = range(len(self._trackers)) if mask is None else np.flatnonzero(mask).tolist()
        for number in numbers:
            self._trackers[number].step(labels[number], bool(terminated[number]))


class _LabelCodes(dict[Any, int]):
    """Codes of labels, by any spelling; labels that no machine has get higher codes."""

    def __init__(self, labels: Sequence[Label]) -> None:
        super().__init__((label, code) for code, label in enumerate(labels))
        self.labels = list(labels)

    def of(self, labels: Sequence[Any]) -> Numbers:
        if isinstance(labels, np.ndarray):
            if labels.dtype.kind in "iu" and labels.ndim == 1:
                values, places = np.unique(labels, return_inverse=True)
                return self.of(values.tolist())[places]
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


class _Transitions:
    """The next state for each state and label; an unseen label leaves the state unchanged.

    Both columns are laid out by state, then label, with one entry more for all labels that no
    machine has.
    """

    def __init__(self, machine: Machine, labels: Sequence[Label]) -> None:
        columns = [*(_next_states(machine, label) for label in labels), [-1] * machine.states]
        table = np.array(columns).T
        states = np.arange(machine.states)[:, None]
        self.unseen = np.ascontiguousarray(table < 0).ravel()
        self.next_state: Numbers = np.where(table < 0, states, table).astype(np.int64).ravel()
        self._labels = len(labels)

    def index(self, states: Numbers, codes: Numbers) -> Numbers:
        """Return the place of these states and labels in the columns."""
        return states * (self._labels + 1) + np.minimum(codes, self._labels)


def check_on_unseen(on_unseen: str) -> None:
    """Raise `OptionError` unless `on_unseen` is one of `OnUnseen`."""
    if not isinstance(on_unseen, str) or on_unseen not in get_args(OnUnseen):
        raise OptionError(f"on_unseen={shown(on_unseen)}: use 'stay' or 'raise'")


def _all_labels(machines: Machines) -> list[Label]:
    """Return the labels of all machines, each once."""
    return list(dict.fromkeys(label for machine in machines.values() for label in machine.labels))


def _next_states(machine: Machine, label: Label) -> list[int]:
    """Return the next state for each state; −1 where the label was never seen."""
    code = machine.labels.get(label)
    if code is None:
        return [-1] * machine.states
    column: list[int] = machine.transitions[:, code].tolist()
    return column


def _unseen_error(machines: Machines, label: Label, states: Sequence[int]) -> ModelError:
    """Return an error that says which label was never seen where, and what to do."""
    never = [
        f"state {state} of the {short(name)} machine"
        for (name, machine), state in zip(machines.items(), states, strict=True)
        if _next_states(machine, label)[state] < 0
    ]
    is_known = any(label in machine.labels for machine in machines.values())
    return ModelError(
        f"label '{label_text(label)}' was never seen "
        f"{'in ' + ' and '.join(never) if is_known else 'at all'}: collect traces that show it "
        'there and infer again, or go on with on_unseen="stay"'
    )
