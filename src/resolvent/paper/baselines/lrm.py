"""LRM: traces → a machine that predicts the next label; rewards are averaged afterwards.

Toro Icarte, Waldie, Klassen, Valenzano, Castro and McIlraith, "Learning Reward
Machines for Partially Observable Reinforcement Learning" (2019).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Final

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent._util.math import log
from resolvent._util.validation import check_at_least
from resolvent.errors import TimeLimitReached
from resolvent.paper.baselines.outcome import (
    Clock,
    Outcome,
    Status,
    check_not_empty,
    machine_of_table,
    renumbered,
)
from resolvent.preprocess.timing import NONE
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes

Table = Codes  # the target of each state and label; a label without a transition stays
_TABU: Final = 10_000  # number of recent machines that the search does not return to, as published


def lrm(
    traces: TraceSet,
    *,
    most_states: int = 10,
    steps: int = 100,
    first_counts: bool = True,
    seed: int = 0,
    time_limit: float | None = None,
) -> Outcome:
    """Search for a machine whose state best predicts the next label.

    The cost of a machine is Σ log |N_{x, l}| over all labels l that are followed by
    another, x being the state once l is read and N_{x, l} the labels that ever follow l
    in x. Rewards do not count; the reward of each edge is the mean of its observed rewards.
    A tabu search starts at the machine of one state and goes to the best machine with
    one transition more or less that is not tabu, even if it is worse than the last one.

    Args:
        traces: The traces. Immediate repetitions of a label are dropped.
        most_states: The maximal number of states.
        steps: The number of steps of the search.
        first_counts: Treat a trace's first label like all others, as published: then
            the first state has no transition with a first label, since it may be repeated.
            Otherwise it is replaced by a label that never occurs again, which fits
            worlds whose episodes begin anywhere with nothing done yet; if traces begin
            with every label, the published rule leaves only one state.
        seed: Chooses between equally good neighbors.
        time_limit: Seconds for everything. After them the status is "time limit", and
            the machine the best so far.

    Returns:
        An outcome whose details name the cost, that of one state, the numbers of steps
        made and machines evaluated, and the number of edges whose rewards differ.

    >>> import gymnasium as gym, resolvent as rs
    >>> traces = rs.collect(gym.make("resolvent/PhaseGrid3-v0"), episodes=20, seed=0)
    >>> outcome = lrm(traces, most_states=2, steps=5)
    >>> outcome.details["cost"] <= outcome.details["cost_of_one_state"]
    True
    """
    check_at_least(1, most_states=most_states)
    check_at_least(0, steps=steps)
    check_not_empty(traces)
    clock = Clock(time_limit)
    search = _Search(Compressed.of(traces, first_counts), most_states, Random(seed))  # noqa: S311
    status: Status = "found"
    try:
        while search.steps < steps and search.step(clock):
            pass
    except TimeLimitReached:
        status = "time limit"
    machine, varying_edges = machine_of_table(search.best[:, : len(traces.labels)], traces)
    return Outcome(
        method="lrm",
        status=status,
        seconds=clock.seconds,
        machine=machine,
        details={
            "cost": search.best_cost,
            "cost_of_one_state": search.first_cost,
            "steps": search.steps,
            "machines": search.machines,
            "labels": len(search.data.read),
            "edges_with_several_rewards": varying_edges,
            "first_counts": first_counts,
            "seed": seed,
        },
    )


@dataclass(frozen=True, eq=False)
class Compressed:
    """Labels of traces without immediate repetitions.

    By row: the label that is `read`, −1 at the first of a trace; and as a `pair`
    label · labels + the next label, −1 at the last. `first` marks the first labels of traces.
    """

    read: Codes
    pair: NDArray[np.int64]
    offsets: NDArray[np.int64]
    labels: int
    first: NDArray[np.bool_]

    @classmethod
    def of(cls, traces: TraceSet, first_counts: bool = True) -> "Compressed":
        """Drop labels equal to their predecessor; replace uncounted first labels by a new code."""
        starts = traces.offsets[:-1] + np.arange(len(traces))
        codes, labels = traces.label_codes, len(traces.labels)
        if not first_counts:
            codes, labels = codes.copy(), labels + 1
            codes[starts] = labels - 1
        is_change = np.ones(len(codes), bool)
        is_change[1:] = codes[1:] != codes[:-1]
        is_change[starts] = True
        now = codes[is_change]
        offsets = np.concatenate(
            [[0], np.cumsum(np.add.reduceat(is_change.astype(np.int64), starts))]
        )
        pair = now.astype(np.int64) * labels + np.append(now[1:], 0)
        pair[offsets[1:] - 1] = NONE
        read = now.copy()
        read[offsets[:-1]] = NONE
        first = np.zeros(labels, bool)
        first[now[offsets[:-1]]] = True
        return cls(read, pair, offsets, labels, first)

    def states(self, table: Table) -> Codes:
        """Return the state at each row."""
        return _core.walk_states(table.ravel(), self.labels, self.read, self.offsets)

    def cost(self, states: Codes) -> float:
        """Return Σ log |N_{x, l}|; a label with one successor costs nothing."""
        followed = self._followed
        case = states[followed] * np.int64(self.labels**2) + self.pair[followed]
        seen = np.bincount(case, minlength=1)
        seen = np.append(seen, np.zeros(-len(seen) % self.labels, np.int64))
        seen = seen.reshape(-1, self.labels)
        distinct = np.maximum(np.count_nonzero(seen, axis=1), 1)
        # Rounded: machines that cost the same must not differ by the order of a sum.
        return round(float((seen.sum(axis=1) * log(distinct)).sum()), 6)

    def used(self, states: Codes, count: int) -> NDArray[np.bool_]:
        """Return by state and label whether any trace reads the label in the state."""
        before = np.roll(states, 1)[self._reading].astype(np.int64)
        case = before * self.labels + self.read[self._reading]
        used = np.bincount(case, minlength=count * self.labels) > 0
        return used.reshape(count, self.labels)

    @cached_property
    def _followed(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.pair != NONE)

    @cached_property
    def _reading(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.read != NONE)


class _Search:
    """The current machine of the search, the best one so far, and the tabu list."""

    def __init__(self, data: Compressed, most_states: int, random: Random) -> None:
        self.data, self.most_states, self.random = data, most_states, random
        self.current = self.best = np.zeros((1, data.labels), np.int32)
        self.first_cost = self.best_cost = data.cost(data.states(self.current))
        self.steps, self.machines = 0, 1
        self._tabu: dict[bytes, None] = {}  # in the order of visits

    def step(self, clock: Clock) -> bool:
        """Go to the best neighbor; return False if all are tabu."""
        self._tabu[self.current.tobytes()] = None
        while len(self._tabu) > _TABU:
            del self._tabu[next(iter(self._tabu))]
        cost_of: dict[bytes, float] = {}
        tables: dict[bytes, Table] = {}
        for neighbor in neighbors(self.current, self.data, self.most_states):
            clock.check()
            states = self.data.states(neighbor)
            used = self.data.used(states, len(neighbor))
            table = renumbered(np.where(used, neighbor, np.int32(NONE)))
            name = table.tobytes()
            if name not in self._tabu and name not in cost_of:
                cost_of[name], tables[name] = self.data.cost(states), table
                self.machines += 1
        if not cost_of:
            return False
        least = min(cost_of.values())
        chosen = self.random.choice([name for name, cost in cost_of.items() if cost == least])
        self.current = tables[chosen]
        self.steps += 1
        if least < self.best_cost:
            self.best, self.best_cost = self.current, least
        return True


def neighbors(table: Table, data: Compressed, most_states: int) -> Iterator[Table]:
    """Yield the machines with one transition more or less.

    A label has no transition in a state that it leads to, since repeated labels were dropped;
    for the same reason the first state has none with a first label. Transitions that no trace
    uses are skipped, and one unused state represents all.
    """
    used = data.used(data.states(table), len(table))
    stays = np.arange(len(table), dtype=np.int32)[:, None]
    leads = table != stays
    for state, label in np.argwhere(leads).tolist():
        fewer = table.copy()
        fewer[state, label] = state
        yield fewer
    one_more = np.full((1, data.labels), len(table), np.int32)
    room = np.vstack([table, one_more]) if len(table) < most_states else table
    for state, label in np.argwhere(used & ~leads).tolist():
        if (state == 0 and data.first[label]) or state in table[leads[:, label], label]:
            continue
        for target in range(len(room)):
            if target != state and room[target, label] == target:
                more = room.copy()
                more[state, label] = target
                yield more
