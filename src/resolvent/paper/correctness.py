"""A machine and the world it was learned in → its number of wrong and unseen answers.

Nothing is sampled: machine and world are explored together, with every action from
every start. If this relates the states of the machine one to one to the true states,
the machine is the true one up to the names of states, as far as it was observed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.errors import ModelError
from resolvent.machines import EdgeRewardMachine, Machine, MachinePair
from resolvent.traces.vocabulary import Vocabulary
from resolvent.worlds.mechanics import Mechanics

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Judgement:
    """The numbers of wrong and unseen answers among all that the world can ask.

    A question is one action in one joint state of world and machine. A pair of machines is
    wrong if either one is, and otherwise unseen if either one is. `true_states` says
    whether its states correspond one to one to the true states.
    """

    answers: int
    wrong: int
    unseen: int
    true_states: bool

    @property
    def verdict(self) -> str:
        """Summarize the judgement in a word or two.

        Answers can be wrong even with the true states: a question whose answer was always the
        same in the traces is given that answer everywhere.

        >>> Judgement(100, 0, 3, True).verdict, Judgement(100, 0, 0, False).verdict
        ('true states', 'right, other states')
        """
        if self.true_states:
            return "true states" if self.wrong or self.unseen else "exact"
        return "wrong" if self.wrong else "right, other states"


def judge_pair(pair: MachinePair, world: Mechanics) -> Judgement:
    """Compare the predictions of both machines with the world.

    >>> from resolvent.worlds import House
    >>> judge_pair(House().machines(), House().mechanics).verdict
    'exact'
    """
    if pair.timing.lag:
        raise ModelError("machines that read labels a step late cannot be compared with a world")
    parts: tuple[Machine, ...] = (pair.transition, pair.reward)
    tables = [_steps(machine, world) for machine in parts]
    starts = np.unique(world.starts).astype(np.int64)
    first = [np.zeros(len(starts), np.int64) for _ in parts]
    if pair.timing.first == 0:
        labels = world.label_of[starts]
        first = [table[state, labels] for table, state in zip(tables, first, strict=True)]
    true, q, u = _reached(world, [starts, *first], tables)

    seen = _codes(pair.transition.observations, world.observations)[world.observation_of]
    shown_with_state = _paired(pair, world)
    led_to = _codes(pair.transition.outputs, world.observations)[world.observation_of]
    rewards, codes = np.unique(world.reward, return_inverse=True)
    paid = _codes(pair.reward.outputs, rewards.tolist())[codes.reshape(world.reward.shape)]
    wrong = unseen = 0
    for action, name in enumerate(world.actions):
        moved = _answered(pair.transition, q, seen[true], name)
        pays = _answered(pair.reward, u, shown_with_state[world.observation_of[true], q], name)
        failed = (moved >= 0) & (moved != led_to[world.following[true, action]])
        failed |= (pays >= 0) & (pays != paid[true, action])
        wrong += int(np.count_nonzero(failed))
        unseen += int(np.count_nonzero(((moved < 0) | (pays < 0)) & ~failed))
    defined = (q < pair.transition.states) & (u < pair.reward.states)
    same = _one_for_one(world.transition_memory[true[defined]], q[defined])
    same = same and _one_for_one(world.reward_memory[true[defined]], u[defined])
    return Judgement(len(true) * len(world.actions), wrong, unseen, same)


def judge_edges(machine: EdgeRewardMachine, world: Mechanics) -> Judgement:
    """Compare the rewards and the end of a machine with those of the world.

    It reads no label at the start. After a premature end it is not asked again.
    """
    states = sorted(machine.states - machine.terminal)
    ended = len(states)
    table = np.full((ended + 1, len(world.labels)), ended, np.int64)
    pays = np.zeros(table.shape)
    for number, state in enumerate(states):
        for code, label in enumerate(world.labels):
            target, pays[number, code] = machine.step(state, label)
            if not machine.has_ended(target):
                table[number, code] = states.index(target)
    starts = np.unique(world.starts).astype(np.int64)
    first = ended if machine.has_ended(machine.initial) else states.index(machine.initial)
    true, u = _reached(world, [starts, np.full(len(starts), first)], [table])
    true, u = true[u < ended], u[u < ended]
    wrong = 0
    for action in range(len(world.actions)):
        read = world.label_of[world.following[true, action]]
        failed = pays[u, read] != world.reward[true, action]
        failed |= (table[u, read] == ended) != world.ends[true, action]
        wrong += int(np.count_nonzero(failed))
    early = int(first == ended)
    # A machine of the true states that pays something else is not the true one.
    same = not wrong + early and _one_for_one(world.reward_memory[true], u)
    return Judgement(len(true) * len(world.actions) + early, wrong + early, 0, same)


def _one_for_one(left: NDArray[Any], right: NDArray[Any]) -> bool:
    """Whether two columns are equal up to renaming.

    >>> _one_for_one(np.array([0, 1, 1]), np.array([7, 3, 3]))
    True
    """
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
        keys = []
        for action in range(len(world.actions)):
            on = ~world.ends[true, action]
            after = world.following[true[on], action].astype(np.int64)
            read = world.label_of[after]
            moved = [table[column[on], read] for table, column in zip(tables, states, strict=True)]
            keys.append(np.ravel_multi_index((after, *moved), sizes))
        successors = np.concatenate(keys)
        frontier = np.unique(successors[~reached[successors]])
    columns = np.unravel_index(np.flatnonzero(reached), sizes)
    return [np.asarray(column, np.int64) for column in columns]


def _steps(machine: Machine, world: Mechanics) -> Integers:
    """Return the target of each label in each state; the last state is "unseen"."""
    table = np.full((machine.states + 1, len(world.labels)), machine.states, np.int64)
    for code, label in enumerate(world.labels):
        label_code = machine.labels.get(label)
        if label_code is not None:
            targets = machine.transitions[:, label_code]
            table[:-1, code] = np.where(targets < 0, machine.states, targets)
    return table


def _codes(vocabulary: Vocabulary[Any], values: Iterable[Any]) -> Integers:
    """Return the code of each value, −1 if it is not in the vocabulary."""
    codes = (vocabulary.get(value) for value in values)
    return np.array([-1 if code is None else code for code in codes], np.int64)


def _paired(pair: MachinePair, world: Mechanics) -> Integers:
    """Return the Reward Machine's code of each observation in each Transition Machine state."""
    states = pair.transition.states
    vocabulary = pair.reward.observations
    if not pair.reward.supplemented:
        return np.repeat(_codes(vocabulary, world.observations)[:, None], states + 1, axis=1)
    pairs = (
        (observation, state)
        for observation in world.observations
        for state in (*range(states), None)
    )
    return _codes(vocabulary, pairs).reshape(len(world.observations), states + 1)


def _answered(machine: Machine, states: Integers, observations: Integers, action: Any) -> Integers:
    """Return the codes of a machine's answers, −1 for unknown ones."""
    done = machine.actions.get(action)
    if done is None:
        return np.full(len(states), -1, np.int64)
    questions = np.where(observations < 0, -1, observations * len(machine.actions) + done)
    memory = np.where(states == machine.states, -1, states).astype(np.int32)
    return machine.answer_many(memory, questions).astype(np.int64)
