"""The memory of many live episodes side by side: columns of labels → columns of states."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.control.wrapping.memory import (
    OnUnseen,
    check_on_unseen,
    known_labels,
    next_states,
    place_of,
    unseen_error,
)
from resolvent.errors import ModelError, TraceError, locating
from resolvent.machines import Machine, Machines
from resolvent.traces.live.vector_naming import Mask
from resolvent.traces.symbols import Label, as_label

Numbers = NDArray[np.int64]


class VectorMemory:
    """The states of all machines of a set in many live episodes, as `Memory` is for one.

    The columns of `states` and `unseen` have an entry for each environment; they
    are replaced and never written into.
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
        labels = known_labels(machines)
        self._codes = _LabelCodes(labels)
        self._tables = [_Moves(machine, labels) for machine in machines.values()]
        self._lagged = machines.timing.lag > 0
        self._reads_at_reset = machines.timing.reads_at_reset and not machines.doubt.starts
        self._last: Numbers = np.zeros(environments, np.int64)

    @property
    def states(self) -> dict[str, Numbers]:
        """The states of each machine, by its kind."""
        return dict(zip(self.machines, self.values, strict=True))

    @property
    def transition_state(self) -> Numbers:
        """The states of the Transition Machine; `ModelError` if there is none."""
        return self.values[place_of(self.machines, "transition")]

    @property
    def reward_state(self) -> Numbers:
        """The states of the Reward Machine; `ModelError` if there is none."""
        return self.values[place_of(self.machines, "reward")]

    def reset(self, labels: Sequence[Any], mask: Mask) -> None:
        """Begin episodes in the masked environments, whose first observations have these labels."""
        keep = ~mask
        self.values = tuple(column * keep for column in self.values)
        self.unseen = self.unseen * keep
        if self._reads_at_reset:
            self._read(self._codes.of(labels), mask, None)
        elif self._lagged:
            self._last = np.where(mask, self._codes.of(labels), self._last)

    def step(self, labels: Sequence[Any], mask: Mask | None, terminated: Mask) -> None:
        """Take the labels that steps led to, in the masked environments or in all."""
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
        following = []
        for table, states in zip(self._tables, self.values, strict=True):
            at = table.entry(states, codes)
            unseen |= table.unseen.take(at)
            after = table.following.take(at)
            following.append(after if mask is None else np.where(mask, after, states))
        if mask is not None:
            unseen &= mask
        if unseen.any():
            if terminated is not None:
                unseen &= ~terminated
            if self._raises and unseen.any():
                raise self._error(int(np.argmax(unseen)), codes)
            self.unseen = self.unseen + unseen
        self.values = tuple(following)

    def _error(self, number: int, codes: Numbers) -> ModelError:
        label = self._codes.labels[int(codes[number])]
        states = [int(column[number]) for column in self.values]
        return ModelError(f"environment {number}: {unseen_error(self.machines, label, states)}")


class _LabelCodes(dict[Any, int]):
    """Labels as environments spell them → codes; those the machines do not know come last."""

    def __init__(self, known: Sequence[Label]) -> None:
        super().__init__((label, code) for code, label in enumerate(known))
        self.labels = list(known)

    def of(self, labels: Sequence[Any]) -> Numbers:
        if isinstance(labels, np.ndarray):
            if labels.dtype.kind in "iu" and labels.ndim == 1:
                values, places = np.unique(labels, return_inverse=True)
                return self.of(values.tolist())[places]
            labels = labels.tolist()
        try:
            return np.fromiter(map(self.__getitem__, labels), np.int64, len(labels))
        except (TypeError, TraceError):  # sets and lists cannot be looked up as they are
            return np.array([self._code(*one) for one in enumerate(labels)], np.int64)

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


class _Moves:
    """Where each label leads from each state, the state itself where that was never seen.

    Both columns are laid out by state, then label, with one place more for all
    labels that the machines do not know.
    """

    def __init__(self, machine: Machine, labels: Sequence[Label]) -> None:
        rows = np.array([*(next_states(machine, label) for label in labels), [-1] * machine.states])
        table = rows.T
        states = np.arange(machine.states)[:, None]
        self.unseen = np.ascontiguousarray(table < 0).ravel()
        self.following: Numbers = np.where(table < 0, states, table).astype(np.int64).ravel()
        self._known = len(labels)

    def entry(self, states: Numbers, codes: Numbers) -> Numbers:
        """Return where in the columns these states and labels are found."""
        return states * (self._known + 1) + np.minimum(codes, self._known)
