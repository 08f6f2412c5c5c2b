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
    unseen_error,
)
from resolvent.errors import ModelError, TraceError, locating
from resolvent.machines import Machine, MachinePair
from resolvent.traces.symbols import Label, as_label
from resolvent.traces.vector_live import Mask

Numbers = NDArray[np.int64]


class VectorMemory:
    """The states of both machines in many live episodes, as `Memory` is for one.

    `transition_state`, `reward_state` and `unseen` have an entry for each
    environment; they are replaced and never written into.
    """

    def __init__(
        self, machines: MachinePair, environments: int, *, on_unseen: OnUnseen = "stay"
    ) -> None:
        check_on_unseen(on_unseen)
        self.machines = machines
        self.transition_state: Numbers = np.zeros(environments, np.int64)
        self.reward_state = self.unseen = self.transition_state
        self._raises = on_unseen == "raise"
        labels = known_labels(machines)
        self._codes = _LabelCodes(labels)
        self._transition = _Table(machines.transition, labels)
        self._reward = _Table(machines.reward, labels)
        self._lagged = machines.timing.lag > 0
        self._reads_at_reset = machines.timing.reads_at_reset
        self._last: Numbers = np.zeros(environments, np.int64)

    def reset(self, labels: Sequence[Any], mask: Mask) -> None:
        """Begin episodes in the masked environments, whose first observations have these labels."""
        keep = ~mask
        self.transition_state = self.transition_state * keep
        self.reward_state = self.reward_state * keep
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
        at_transition = self._transition.entry(self.transition_state, codes)
        at_reward = self._reward.entry(self.reward_state, codes)
        unseen = self._transition.unseen.take(at_transition)
        unseen |= self._reward.unseen.take(at_reward)
        transition_state = self._transition.following.take(at_transition)
        reward_state = self._reward.following.take(at_reward)
        if mask is not None:
            unseen &= mask
            transition_state = np.where(mask, transition_state, self.transition_state)
            reward_state = np.where(mask, reward_state, self.reward_state)
        if unseen.any():
            if terminated is not None:
                unseen &= ~terminated
            if self._raises and unseen.any():
                raise self._error(int(np.argmax(unseen)), codes)
            self.unseen = self.unseen + unseen
        self.transition_state = transition_state
        self.reward_state = reward_state

    def _error(self, number: int, codes: Numbers) -> ModelError:
        error = unseen_error(
            self.machines,
            self._codes.labels[int(codes[number])],
            int(self.transition_state[number]),
            int(self.reward_state[number]),
        )
        return ModelError(f"environment {number}: {error}")


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


class _Table:
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
