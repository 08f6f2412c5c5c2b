"""A machine and the world it was learned in → its number of wrong and unseen outputs.

Nothing is sampled: machine and world are explored together, with every action from
every start. If this relates the states of the machine one to one to the true states,
the machine is the true one up to the names of states, as far as it was observed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.errors import ModelError
from resolvent.machines import EdgeRewardMachine, Machine, MachinePair
from resolvent.paper.baselines.outcome import edge_tables
from resolvent.replay.steps import query_numbers
from resolvent.traces.vocabulary import codes_of
from resolvent.worlds.mechanics import Mechanics

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Correctness:
    """The numbers of wrong and unseen outputs among all that can occur in the world.

    A query is one action in one joint state of world and machine. For a pair of machines, its
    output is wrong if either one is, and otherwise unseen if either one is. `true_states` says
    whether its states correspond one to one to the true states.
    """

    queries: int
    wrong: int
    unseen: int
    true_states: bool

    def __str__(self) -> str:
        """Summarize it; a query taken to be redundant may be wrong even with the true states."""
        if self.true_states:
            return "true states" if self.wrong or self.unseen else "exact"
        return "wrong" if self.wrong else "right, other states"


def compare_pair(pair: MachinePair, world: Mechanics) -> Correctness:
    """Compare the predictions of both machines with the world."""
    if pair.timing.lag:
        raise ModelError("machines that read labels a step late cannot be compared with a world")
    machines: tuple[Machine, ...] = (pair.transition, pair.reward)
    tables = [_transitions(machine, world) for machine in machines]
    starts = np.unique(world.starts).astype(np.int64)
    first = [np.zeros(len(starts), np.int64) for _ in machines]
    if pair.timing.first == 0:
        labels = world.label_of[starts]
        first = [table[state, labels] for table, state in zip(tables, first, strict=True)]
    true, q, u = _reached(world, [starts, *first], tables)
    q, u = np.where(q == len(tables[0]) - 1, -1, q), np.where(u == len(tables[1]) - 1, -1, u)

    alphabets = world.observations, world.actions
    distinct, codes = world.reward_codes
    next_observed = codes_of(world.observations, pair.transition.outputs, -1)[world.observation_of]
    rewards = codes_of(distinct, pair.reward.outputs, -1)[codes]
    supplement = q if pair.reward.supplemented else None
    wrong = unseen = 0
    for action in range(len(world.actions)):
        columns = world.observation_of[true], np.full(len(true), action)
        query = query_numbers(pair.transition, alphabets, columns)
        next_predicted = pair.transition.predict(q.astype(np.int32), query)
        query = query_numbers(pair.reward, alphabets, columns, supplement)
        predicted = pair.reward.predict(u.astype(np.int32), query)
        failed = (next_predicted >= 0) & (
            next_predicted != next_observed[world.next_state[true, action]]
        )
        failed |= (predicted >= 0) & (predicted != rewards[true, action])
        wrong += int(np.count_nonzero(failed))
        unseen += int(np.count_nonzero(((next_predicted < 0) | (predicted < 0)) & ~failed))
    defined = (q >= 0) & (u >= 0)
    same = _one_for_one(world.transition_memory[true[defined]], q[defined])
    same = same and _one_for_one(world.reward_memory[true[defined]], u[defined])
    return Correctness(len(true) * len(world.actions), wrong, unseen, same)


def compare_edges(machine: EdgeRewardMachine, world: Mechanics) -> Correctness:
    """Compare the rewards and the end of a machine with those of the world.

    It reads no label at the start. After a premature end there are no more queries.
    """
    codes, predicted = edge_tables(machine, world.labels)
    table = codes.astype(np.int64)
    ended = len(table) - 1
    starts = np.unique(world.starts).astype(np.int64)
    true, u = _reached(world, [starts, np.zeros_like(starts)], [table])
    true, u = true[u < ended], u[u < ended]
    label = world.label_of[world.next_state[true]]  # by joint state and action
    failed = predicted[u[:, None], label] != world.reward[true]
    failed |= (table[u[:, None], label] == ended) != world.ends[true]
    wrong, early = int(np.count_nonzero(failed)), int(ended == 0)
    # A machine of the true states with other rewards is not the true one.
    same = not wrong + early and _one_for_one(world.reward_memory[true], u)
    return Correctness(len(true) * len(world.actions) + early, wrong + early, 0, same)


def _one_for_one(left: NDArray[Any], right: NDArray[Any]) -> bool:
    """Whether two columns are equal up to renaming."""
    pairs = np.unique(np.stack([left, right]), axis=1).shape[1]
    return bool(pairs == len(np.unique(left)) == len(np.unique(right)))


def _reached(
    world: Mechanics, first: Sequence[Integers], tables: Sequence[Integers]
) -> list[Integers]:
    """Return the joint states of world and machines reachable in an episode, as columns.

    A table maps state and label to the next state; its last row is the unknown state.
    """
    sizes = (world.states, *(len(table) for table in tables))
    reached = np.zeros(np.prod(sizes), bool)
    frontier = np.unique(np.ravel_multi_index(tuple(first), sizes))
    while len(frontier):
        reached[frontier] = True
        true, *states = np.unravel_index(frontier, sizes)
        joint, action = np.nonzero(~world.ends[true])
        after = world.next_state[true[joint], action]
        label = world.label_of[after]
        targets = (table[state[joint], label] for table, state in zip(tables, states, strict=True))
        successors = np.ravel_multi_index((after, *targets), sizes)
        frontier = np.unique(successors[~reached[successors]])
    columns = np.unravel_index(np.flatnonzero(reached), sizes)
    return [np.asarray(column, np.int64) for column in columns]


def _transitions(machine: Machine, world: Mechanics) -> Integers:
    """Return the target of each label in each state; the last state is "unseen"."""
    table = machine.transitions_for(world.labels)
    unseen = len(table)
    table = np.where(table < 0, unseen, table).astype(np.int64)
    return np.pad(table, ((0, 1), (0, 0)), constant_values=unseen)
