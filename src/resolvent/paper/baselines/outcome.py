"""What baselines share: a clock with a limit, results, and tables as machines with edge rewards."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.errors import OptionError, TimeLimitReached, TraceError
from resolvent.machines import EdgeRewardMachine, MachinePair
from resolvent.machines.memory import number_states
from resolvent.preprocess.timing import NONE
from resolvent.traces.symbols import Label
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes

Status: TypeAlias = Literal["found", "time limit", "no solution"]

now: Callable[[], float] = time.monotonic
"""The seconds that limits count. A process that runs only one method may use its CPU seconds, which
do not depend on the load of the machine."""


class Clock:
    """Counts the seconds since it was made, against a limit if there is one."""

    def __init__(self, time_limit: float | None) -> None:
        if time_limit is not None and not time_limit > 0:
            raise OptionError(f"time_limit={time_limit}: give the method some seconds, or None")
        self._limit = time_limit
        self._started = now()

    @property
    def seconds(self) -> float:
        """The seconds since the start."""
        return now() - self._started

    @property
    def left(self) -> float | None:
        """The seconds that are left, at least 0; None if there is no limit."""
        return None if self._limit is None else max(0.0, self._limit - self.seconds)

    def check(self) -> None:
        """Raise `TimeLimitReached` after the limit."""
        if self.left == 0:
            raise TimeLimitReached(f"time ran out after {self._limit:g} seconds")


@dataclass(frozen=True)
class Outcome:
    """The result of one method on some traces.

    Methods that learn a task return an `EdgeRewardMachine`, a method that learns both machines a
    `MachinePair`. A run that reached its limit has the status "time limit", and its best machine so
    far if any. `details` are JSON values specific to the method, such as the number of variables.
    """

    method: str
    status: Status
    seconds: float
    machine: EdgeRewardMachine | MachinePair | None
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def states(self) -> int | None:
        """The number of nonterminal states; of a pair, those of the Reward Machine."""
        if self.machine is None:
            return None
        if isinstance(self.machine, MachinePair):
            return self.machine.reward.states
        return len(self.machine.states - self.machine.terminal)


def check_not_empty(traces: TraceSet) -> None:
    """Refuse an empty trace set."""
    if not len(traces):
        raise TraceError("there are no traces to learn from: collect or read at least one")


# --- Tables of states and labels, and machines with rewards on their edges -----------------------


def states_before(table: Codes, labels: Codes, offsets: NDArray[np.int64]) -> Codes:
    """Return the state before each step, 0 at first; `table` is total."""
    read = np.empty_like(labels)
    read[1:] = labels[:-1]
    read[offsets[:-1]] = NONE
    return _core.walk_states(np.ascontiguousarray(table.ravel()), table.shape[1], read, offsets)


def renumbered(table: Codes) -> Codes:
    """Number the reachable states of a table breadth-first; missing edges become self-loops."""
    targets, order, _ = number_states(table)
    stays = np.arange(len(order), dtype=np.int32)[:, None]
    return np.ascontiguousarray(np.where(targets == NONE, stays, targets))


def machine_of_table(table: Codes, traces: TraceSet) -> tuple[EdgeRewardMachine, int]:
    """Return the machine of a total table, and the number of its edges with several rewards.

    It has the states and edges that traces use. Guards hold for exactly the labels that take an
    edge. If each step on an edge ended its episode, it leads to an added terminal state. Its
    reward is the mean observed one.
    """
    labels = traces.after_step(traces.label_codes)
    states = states_before(table, labels, traces.offsets)
    visited = np.full_like(table, NONE)
    visited[states, labels] = table[states, labels]
    table = renumbered(visited)
    states = states_before(table, labels, traces.offsets)
    rewards = np.array(list(traces.rewards))[traces.reward_codes]
    edges, first, edge = np.unique(
        states.astype(np.int64) * table.shape[1] + labels, return_index=True, return_inverse=True
    )
    differs = np.bincount(edge, rewards != rewards[first][edge]) > 0
    # A mean would be inexact where all rewards are the same.
    mean = np.where(differs, np.bincount(edge, rewards) / np.bincount(edge), rewards[first])
    continues = np.ones(traces.steps, bool)
    continues[traces.offsets[1:] - 1] = ~traces.terminated
    source, label = np.divmod(edges, table.shape[1])
    target = np.where(np.bincount(edge, continues) == 0, len(table), table[source, label])
    labels_of: dict[tuple[int, int, float], list[Label]] = {}
    columns = (column.tolist() for column in (source, target, mean, label))
    for start, end, reward, code in zip(*columns, strict=True):
        labels_of.setdefault((start, end, reward), []).append(traces.labels[code])
    names = frozenset[str]().union(*traces.labels)
    machine = EdgeRewardMachine.of_labels(labels_of, names, len(table))
    return machine, int(np.count_nonzero(differs))


def edge_tables(
    machine: EdgeRewardMachine, labels: Iterable[Label]
) -> tuple[Codes, NDArray[np.float64]]:
    """Return the targets and rewards of a machine by state and label.

    State 0 is the initial one; in the last one, the episode is over.
    """
    labels = list(labels)
    states = sorted(
        machine.states - machine.terminal, key=lambda state: (state != machine.initial, state)
    )
    if machine.has_ended(machine.initial):
        states = []
    ended = len(states)
    number = {state: code for code, state in enumerate(states)}
    targets = np.full((ended + 1, len(labels)), ended, np.int32)
    rewards = np.zeros(targets.shape)
    for state, code in number.items():
        for column, label in enumerate(labels):
            target, rewards[code, column] = machine.step(state, label)
            targets[code, column] = number.get(target, ended)
    return targets, rewards


def wrong_rewards(machine: EdgeRewardMachine, traces: TraceSet) -> int:
    """Count the steps whose reward a machine predicts wrongly when it reads l_1, l_2 and so on.

    Where it has ended before the trace does, it predicts 0.
    """
    targets, rewards = edge_tables(machine, traces.labels)
    labels = traces.after_step(traces.label_codes)
    predicted = rewards[states_before(targets, labels, traces.offsets), labels]
    observed = np.array(list(traces.rewards))[traces.reward_codes]
    return int(np.count_nonzero(predicted != observed))
