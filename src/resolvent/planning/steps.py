"""Count the distinct steps of traces, with the states that machines are in.

Input: machines and traces. Output: the distinct steps and starts in the codes of a `StateSpace`.
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
from resolvent.machines.augmented_state import ACTING_MACHINES
from resolvent.machines.tables import look_up
from resolvent.replay.coded_shard import Alphabets, CodedShard
from resolvent.replay.counts import CountTable, GroupedCounts, ReplayCounts
from resolvent.replay.replaying import WITHOUT_ALPHABETS, MachineTables, replay_shard
from resolvent.replay.steps import count_starts, count_steps, state_column
from resolvent.traces import Label, Symbol, Vocabulary, label_text
from resolvent.traces.schema import LABEL, OBSERVATION, REWARD
from resolvent.traces.symbols import symbol_order
from resolvent.traces.vocabulary import Codes, codes_of

Keys = NDArray[np.int64]  # numbers of augmented states, or of steps


def acting_machines(machines: Machines) -> Machines:
    """Return the machines that matter for acting, without their knowledge of endings."""
    for name, output in (("transition", "observation"), ("reward", "reward")):
        if name not in machines:
            raise ModelError(
                f"planning needs a {name.capitalize()} Machine, but there is only "
                f'{listed(machines)}: infer with "{output}" in outputs='
            )
    acting = machines_of(
        (machines[name] for name in ACTING_MACHINES if name in machines), machines.timing
    )
    return acting.replacing(state_uncertainty=machines.state_uncertainty)


def pack(parts: Sequence[Any], sizes: Sequence[int]) -> Keys:
    """Return one number for parts below their sizes; the first size is not used."""
    number = np.asarray(parts[0], np.int64)
    for part, size in zip(parts[1:], sizes[1:], strict=True):
        number = number * size + part
    return number


@dataclass(frozen=True)
class StateSpace:
    """All possible augmented states, numbered; `sizes` are the machines' numbers of states."""

    observations: Vocabulary[Symbol]
    actions: Vocabulary[Symbol]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, machines: Machines, alphabets: Alphabets) -> "StateSpace":
        """Return the space of all symbols that occur in the machines or the traces."""
        transition = machines.transition
        return cls(
            _union(alphabets.observations, transition.observations, transition.outputs),
            _union(alphabets.actions, *(machine.actions for machine in machines.values())),
            tuple(machine.states for machine in machines.values()),
        )

    @property
    def size(self) -> int:
        """The number of possible augmented states."""
        return len(self.observations) * prod(self.sizes)

    def number(self, observation: Any, states: Sequence[Any]) -> Keys:
        """Return the numbers of augmented states."""
        return pack((observation, *states), (0, *self.sizes))

    def step(self, observation: Any, states: Sequence[Any], action: Any) -> Keys:
        """Return the numbers of steps, by augmented state, then action."""
        return pack((observation, *states, action), (0, *self.sizes, len(self.actions)))

    def move(self, observation: Any, action: Any, next_observation: Any) -> Keys:
        """Return the numbers of steps from observation to observation, whatever the states."""
        parts = observation, action, next_observation
        return pack(parts, (0, len(self.actions), len(self.observations)))

    def parts(self, numbers: Keys) -> tuple[Codes, list[Codes]]:
        """Return the observation and the states of augmented states."""
        states: list[Codes] = []
        for size in reversed(self.sizes):
            numbers, state = np.divmod(numbers, size)
            states.append(state.astype(np.int32))
        return numbers.astype(np.int32), states[::-1]

    def all_steps(self, numbers: Keys) -> tuple[Codes, list[Codes], Codes]:
        """Return observation, states and action of each step from some augmented states."""
        observation, states = self.parts(np.repeat(numbers, len(self.actions)))
        action = np.tile(np.arange(len(self.actions), dtype=np.int32), len(numbers))
        return observation, states, action


def _union(*vocabularies: Vocabulary[Symbol]) -> Vocabulary[Symbol]:
    values = dict.fromkeys(value for vocabulary in vocabularies for value in vocabulary)
    return Vocabulary(sorted(values, key=symbol_order))


@dataclass(frozen=True, eq=False)
class StepCounts:
    """The replay of a shard, its distinct steps, and its distinct starts."""

    replay: ReplayCounts
    steps: CountTable
    starts: CountTable

    def __add__(self, other: "StepCounts") -> "StepCounts":
        return StepCounts(
            self.replay + other.replay, self.steps + other.steps, self.starts + other.starts
        )


@dataclass(frozen=True, eq=False)
class StepPass:
    """Counts the distinct steps of a shard; it can be pickled, to run anywhere.

    With `by_reward`, steps with different rewards are distinct. `rewards` are their codes at the
    steps of the only shard; by default they are those of the outputs of a Reward Machine.
    """

    tables: MachineTables
    by_reward: bool = False
    rewards: Codes | None = None

    def __call__(self, shard: CodedShard) -> StepCounts:
        """Return the steps of a shard, without the alphabets, which the caller has."""
        replay = replay_shard(self.tables, shard, shortest=False, unknown_states=True, states=True)
        rewards = self.rewards
        if self.by_reward and rewards is None:
            rewards = shard.rounded_codes[REWARD]
        return StepCounts(
            replace(replay, states={}, alphabets=WITHOUT_ALPHABETS),
            count_steps(shard, replay.states, reward=rewards, lag=bool(self.tables.timing.lag)),
            count_starts(shard, replay.states),
        )


@dataclass(frozen=True, eq=False)
class Steps:
    """The distinct steps of traces, in the codes of a space, in order of first occurrence.

    States are −1 where the machines do not know them. `label` is that of the next observation,
    in the codes of the traces; `read` is the one read for it, which with a lag is the label
    before. `reward` is a code. `starts` are the distinct starts of traces, as `count_starts` has
    them, with states in the order of `names`.
    """

    names: tuple[str, ...]
    observation: Codes
    states: tuple[Codes, ...]
    action: Codes
    next_observation: Codes
    label: Codes
    read: Codes
    ended: NDArray[np.bool_]
    reward: Codes
    count: Keys
    trace: Keys
    step: Keys
    starts: CountTable
    labels: Vocabulary[Label]

    @classmethod
    def of(cls, counts: StepCounts, alphabets: Alphabets, space: StateSpace) -> "Steps":
        """Return the steps counted by reward, in the codes of a space."""
        names = tuple(state_column(name) for name in counts.replay.sizes)
        steps, starts = counts.steps.by_location(), counts.starts.by_location()
        observations = codes_of(alphabets.observations, space.observations, -1)
        starts.columns[OBSERVATION] = observations[starts[OBSERVATION]]
        return cls(
            names,
            observations[steps["observation"]],
            tuple(steps[name] for name in names),
            codes_of(alphabets.actions, space.actions, -1)[steps["action"]],
            observations[steps["next_observation"]],
            steps["label"],
            steps.columns.get("label_read", steps["label"]),
            steps["ended"].astype(bool),
            steps["reward"],
            steps.count,
            *steps.locations,
            starts,
            alphabets.labels,
        )

    def initial_states(self, space: StateSpace) -> tuple[Keys, Keys, Codes]:
        """Return the augmented states that traces begin in, their counts, and the first labels."""
        starts, states = self.starts, [self.starts[name] for name in self.names]
        unknown = np.flatnonzero(~are_known(states))
        if len(unknown):
            row = int(unknown[0])
            first = label_text(self.labels[int(starts[LABEL][row])])
            raise ModelError(
                f"trace {starts.locations[0][row]} begins with label {first}, for which the "
                f"machines have no transition: infer them from traces that start with it"
            )
        numbers = space.number(starts[OBSERVATION], states)
        distinct, first_row, place = np.unique(numbers, return_index=True, return_inverse=True)
        count = np.zeros(len(distinct), np.int64)
        np.add.at(count, place, starts.count)
        return distinct, count, starts[LABEL][first_row]


def are_known(states: Sequence[Codes]) -> NDArray[np.bool_]:
    """Return where the states of all machines are known."""
    has_states: NDArray[np.bool_] = np.min(states, axis=0) >= 0
    return has_states


@dataclass(frozen=True, slots=True, eq=False)
class Lookup:
    """A partial function from sorted keys to codes."""

    keys: Keys
    values: Codes

    @classmethod
    def of(cls, counts: GroupedCounts) -> "Lookup | None":
        """Return the function that counts show, None if a key has several values."""
        if (counts.size > 1).any():
            return None
        return cls(counts.key, counts.value.astype(np.int32))

    def __call__(self, keys: Keys) -> Codes:
        """Return the value at each key, −1 where there is none."""
        return look_up(self.keys, self.values, keys)


def positions(numbers: Keys, states: Keys) -> Codes:
    """Return the position of each number among augmented states; −1 for negative numbers."""
    order = np.argsort(states)
    position = order[np.searchsorted(states, numbers, sorter=order) % len(states)]
    return np.where(numbers < 0, -1, position).astype(np.int32)
