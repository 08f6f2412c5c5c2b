"""Traces + machines → their steps in the codes of a model, and lookups by packed numbers.

Input: the replay of traces. Output: the distinct steps and starts, with the observation, the
states of the machines that matter for acting, and the place of the first occurrence.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent._util.text import listed
from resolvent.errors import ModelError
from resolvent.machines import Machines, machines_of
from resolvent.machines.situations import ACTING_MACHINES
from resolvent.machines.tables import TransitionTable, look_up
from resolvent.replay.coded_shard import Alphabets, CodedShard
from resolvent.replay.counts import CountTable, ReplayCounts
from resolvent.replay.replaying import WITHOUT_ALPHABETS, MachineTables, replay_shard
from resolvent.replay.steps import count_starts, count_steps, reward_codes_at_steps, state_of
from resolvent.traces import Label, Symbol, Vocabulary, label_text
from resolvent.traces.symbols import symbol_order
from resolvent.traces.vocabulary import Codes, codes_of, distinct_numbers

Keys = NDArray[np.int64]
"""Numbers of augmented states, or of steps."""


def acting_machines(machines: Machines) -> Machines:
    """Return the machines that matter for acting, without their knowledge of endings.

    >>> from resolvent.worlds import House
    >>> list(acting_machines(House().machines()))
    ['transition', 'reward']
    """
    for name, output in (("transition", "observation"), ("reward", "reward")):
        if name not in machines:
            raise ModelError(
                f"planning needs a {name.capitalize()} Machine, and here is "
                f'{listed(machines)}: infer with "{output}" among outputs='
            )
    acting = machines_of(
        (machines[name] for name in ACTING_MACHINES if name in machines), machines.timing
    )
    return acting.replacing(doubt=machines.doubt)


@dataclass(frozen=True)
class StateSpace:
    """All possible augmented states and steps, numbered.

    `sizes` are the numbers of states of the machines that matter, in their order.
    """

    observations: Vocabulary[Symbol]
    actions: Vocabulary[Symbol]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, machines: Machines, alphabets: Alphabets) -> "StateSpace":
        """Return the space of all symbols that the machines or the traces name."""
        transition = machines.transition
        return cls(
            _union(alphabets.observations, transition.observations, transition.outputs),
            _union(alphabets.actions, *(machine.actions for machine in machines.values())),
            tuple(machine.states for machine in machines.values()),
        )

    @property
    def situations(self) -> int:
        """The number of possible augmented states."""
        return len(self.observations) * prod(self.sizes)

    def situation(self, observation: Any, states: Sequence[Any]) -> Any:
        """Return the number of an augmented state, or of many."""
        number = np.int64(observation)
        for size, state in zip(self.sizes, states, strict=True):
            number = number * size + state
        return number

    def parts(self, situation: Keys) -> tuple[Codes, tuple[Codes, ...]]:
        """Return the observation and the states of augmented states."""
        states: list[Codes] = []
        for size in reversed(self.sizes):
            situation, state = np.divmod(situation, size)
            states.append(state.astype(np.int32))
        return situation.astype(np.int32), tuple(reversed(states))


def _union(*vocabularies: Vocabulary[Symbol]) -> Vocabulary[Symbol]:
    values = dict.fromkeys(value for vocabulary in vocabularies for value in vocabulary)
    return Vocabulary(sorted(values, key=symbol_order))


@dataclass(frozen=True, eq=False)
class StepCounts:
    """The replay of a shard, its distinct steps, and its distinct starts."""

    shown: ReplayCounts
    steps: CountTable
    starts: CountTable

    def __add__(self, other: "StepCounts") -> "StepCounts":
        return StepCounts(
            self.shown + other.shown, self.steps + other.steps, self.starts + other.starts
        )


@dataclass(frozen=True, eq=False)
class StepPass:
    """Counts the distinct steps of a shard; it can be pickled, to run anywhere.

    With `pays` steps with different rewards are distinct. `paid`, if given, is a column of codes
    for the rewards of the only shard.
    """

    tables: MachineTables
    pays: bool = False
    paid: Codes | None = None

    def __call__(self, shard: CodedShard) -> StepCounts:
        """Return the steps of a shard, without the alphabets, which the caller has."""
        replay = replay_shard(self.tables, shard, shortest=False, unknown_states=True, states=True)
        paid = reward_codes_at_steps(shard) if self.pays and self.paid is None else self.paid
        return StepCounts(
            replace(replay, states={}, alphabets=WITHOUT_ALPHABETS),
            count_steps(shard, replay.states, paid=paid, lag=bool(self.tables.timing.lag)),
            count_starts(shard, replay.states),
        )


@dataclass(frozen=True, eq=False)
class Starts:
    """The distinct starts of traces: their number of traces, and the first trace."""

    observation: Codes
    states: tuple[Codes, ...]
    label: Codes
    count: Keys
    trace: Keys


@dataclass(frozen=True, eq=False)
class Steps:
    """The distinct steps of traces, in the codes of a space, in order of first occurrence.

    States are −1 where the machines do not know them. `label` is that of the next observation,
    in the codes of the traces; `read` is the one read for it, which with a lag is the label
    before. `paid` are codes of rewards, all 0 unless rewards matter.
    """

    observation: Codes
    states: tuple[Codes, ...]
    action: Codes
    following: Codes
    label: Codes
    read: Codes
    ended: NDArray[np.bool_]
    paid: Codes
    count: Keys
    trace: Keys
    step: Keys
    starts: Starts
    labels: Vocabulary[Label]

    @classmethod
    def of(cls, counts: StepCounts, alphabets: Alphabets, space: StateSpace) -> "Steps":
        """Return the steps of traces, with the states that a replay of them found."""
        names = [state_of(name) for name in counts.shown.sizes]
        steps, starts = counts.steps.by_first_place(), counts.starts.by_first_place()
        observations = codes_of(alphabets.observations, space.observations, -1)
        (trace, step), (start_trace, _) = steps.places, starts.places
        return cls(
            observations[steps["observation"]],
            tuple(steps[name] for name in names),
            codes_of(alphabets.actions, space.actions, -1)[steps["action"]],
            observations[steps["following"]],
            steps["label"],
            steps.columns.get("read", steps["label"]),
            steps["ended"].astype(bool),
            steps.columns.get("paid", np.zeros(len(steps), np.int32)),
            steps.count,
            trace,
            step,
            Starts(
                observations[starts["observation"]],
                tuple(starts[name] for name in names),
                starts["label"],
                starts.count,
                start_trace,
            ),
            alphabets.labels,
        )

    def transitions(self, machines: Machines) -> list[Codes]:
        """Return each machine's next states by state and label code; the last column is −1."""
        return [
            TransitionTable(machine.transitions, machine.labels).for_labels(
                self.labels, others=True
            )
            for machine in machines.values()
        ]


def are_known(states: Sequence[Codes]) -> NDArray[np.bool_]:
    """Return where the states of all machines are known."""
    has_states: NDArray[np.bool_] = np.min(states, axis=0) >= 0
    return has_states


@dataclass(frozen=True, slots=True, eq=False)
class Lookup:
    """A partial function from numbers to codes."""

    keys: Keys
    values: Codes

    @classmethod
    def of(cls, keys: Keys, values: Codes) -> "Lookup":
        """Make a lookup of distinct keys, in any order."""
        order = np.argsort(keys)
        return cls(keys[order], values[order])

    def __call__(self, numbers: Keys) -> Codes:
        """Return the value at each number, −1 where there is none."""
        return look_up(self.keys, self.values, numbers)


def as_lookup(keys: Keys, values: Codes, size: int) -> Lookup | tuple[int, int]:
    """Return the lookup that rows of keys and values define, or the first two that disagree.

    Keys are below `size`.

    >>> as_lookup(np.array([7, 3, 7]), np.int32([1, 0, 1]), 8).values.tolist()
    [0, 1]
    >>> as_lookup(np.array([7, 3, 7]), np.int32([1, 0, 2]), 8)
    (0, 2)
    """
    distinct, place = distinct_numbers(keys, size)
    first = np.empty(len(distinct), np.int64)
    first[place[::-1]] = np.arange(len(keys))[::-1]  # of equal places, the last one written stays
    differing = np.flatnonzero(values[first][place] != values)
    if len(differing):
        return int(first[place[differing[0]]]), int(differing[0])
    return Lookup(distinct, values[first])


def start_states(steps: Steps, space: StateSpace) -> tuple[Keys, Keys, Codes]:
    """Return the initial augmented states of traces, their counts, and the first labels."""
    starts = steps.starts
    lost = np.flatnonzero(~are_known(starts.states))
    if len(lost):
        row = int(lost[0])
        first = label_text(steps.labels[int(starts.label[row])])
        raise ModelError(
            f"trace {starts.trace[row]} begins with label {first}, which the machines were never "
            f"shown there: infer them from traces that begin so"
        )
    situations = space.situation(starts.observation, starts.states)
    distinct, begins, place = np.unique(situations, return_index=True, return_inverse=True)
    count = np.zeros(len(distinct), np.int64)
    np.add.at(count, place, starts.count)
    return distinct, count, starts.label[begins]


def place_of(numbers: Keys, situations: Keys) -> Codes:
    """Return the place of each number among the situations; −1 stays."""
    order = np.argsort(situations)
    place = order[np.searchsorted(situations, numbers, sorter=order) % len(situations)]
    return np.where(numbers < 0, -1, place).astype(np.int32)
