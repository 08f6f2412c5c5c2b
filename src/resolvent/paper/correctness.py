"""A machine and the world it was learned in → on how much of that world it is right.

Nothing is sampled: machine and world are walked together, by every action from every
start, through all that can be reached. That shows which state of the machine stands
for which of the truth: if each for one and no two for the same, the machine is the
true one but for the names of its states, as far as it was shown.
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
    """How many answers are wrong or unseen, of all that the world can ask.

    A question is one action where world and machine can be at the same time. A pair
    of machines is wrong where one of them is, and else unseen where one of them is.
    `true_states` says whether its states are those of the truth, one for one.
    """

    answers: int
    wrong: int
    unseen: int
    true_states: bool

    @property
    def verdict(self) -> str:
        """Say it in a word or two.

        With the true states answers can still be wrong: a question that had one answer
        wherever it was seen is given that answer everywhere.

        >>> Judgement(100, 0, 3, True).verdict, Judgement(100, 0, 0, False).verdict
        ('true states', 'right, other states')
        """
        if self.true_states:
            return "true states" if self.wrong or self.unseen else "exact"
        return "wrong" if self.wrong else "right, other states"


def judge_pair(pair: MachinePair, world: Mechanics) -> Judgement:
    """Compare what both machines predict with what the world does.

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

    shown = _codes(pair.transition.observations, world.observations)[world.observation_of]
    shown_with_state = _paired(pair, world)
    led_to = _codes(pair.transition.outputs, world.observations)[world.observation_of]
    rewards, codes = np.unique(world.reward, return_inverse=True)
    paid = _codes(pair.reward.outputs, rewards.tolist())[codes.reshape(world.reward.shape)]
    wrong = unseen = 0
    for action, name in enumerate(world.actions):
        moved = _answered(pair.transition, q, shown[true], name)
        pays = _answered(pair.reward, u, shown_with_state[world.observation_of[true], q], name)
        failed = (moved >= 0) & (moved != led_to[world.following[true, action]])
        failed |= (pays >= 0) & (pays != paid[true, action])
        wrong += int(np.count_nonzero(failed))
        unseen += int(np.count_nonzero(((moved < 0) | (pays < 0)) & ~failed))
    known = (q < pair.transition.states) & (u < pair.reward.states)
    same = _one_for_one(world.transition_memory[true[known]], q[known])
    same = same and _one_for_one(world.reward_memory[true[known]], u[known])
    return Judgement(len(true) * len(world.actions), wrong, unseen, same)


def judge_edges(machine: EdgeRewardMachine, world: Mechanics) -> Judgement:
    """Compare what a machine pays, and when it ends, with what the world does.

    It reads no label at the start. Where it has ended too early it is asked no more.
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


def _one_for_one(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Whether two columns name the same things.

    >>> _one_for_one(np.array([0, 1, 1]), np.array([7, 3, 3]))
    True
    """
    pairs = np.unique(np.stack([one, other]), axis=1).shape[1]
    return bool(pairs == len(np.unique(one)) == len(np.unique(other)))


def _reached(
    world: Mechanics, first: Sequence[Integers], tables: Sequence[Integers]
) -> list[Integers]:
    """Return where world and machines can be together while an episode goes on, as columns.

    A table says where a label leads from a state; its last row stands for any state
    that is not known.
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
            led = world.following[true[on], action].astype(np.int64)
            read = world.label_of[led]
            moved = [table[one[on], read] for table, one in zip(tables, states, strict=True)]
            keys.append(np.ravel_multi_index((led, *moved), sizes))
        found = np.concatenate(keys)
        frontier = np.unique(found[~reached[found]])
    columns = np.unravel_index(np.flatnonzero(reached), sizes)
    return [np.asarray(column, np.int64) for column in columns]


def _steps(machine: Machine, world: Mechanics) -> Integers:
    """Return where each label of the world leads from each state; the last state is "unseen"."""
    table = np.full((machine.states + 1, len(world.labels)), machine.states, np.int64)
    for code, label in enumerate(world.labels):
        known = machine.labels.get(label)
        if known is not None:
            targets = machine.transitions[:, known]
            table[:-1, code] = np.where(targets < 0, machine.states, targets)
    return table


def _codes(vocabulary: Vocabulary[Any], values: Iterable[Any]) -> Integers:
    """Return the code of each value, −1 for one that is not known."""
    found = (vocabulary.get(value) for value in values)
    return np.array([-1 if code is None else code for code in found], np.int64)


def _paired(pair: MachinePair, world: Mechanics) -> Integers:
    """Return what the Reward Machine calls each observation in each state of the other."""
    states = pair.transition.states
    known = pair.reward.observations
    if not pair.reward.supplemented:
        return np.repeat(_codes(known, world.observations)[:, None], states + 1, axis=1)
    pairs = ((shown, state) for shown in world.observations for state in (*range(states), None))
    return _codes(known, pairs).reshape(len(world.observations), states + 1)


def _answered(machine: Machine, states: Integers, shown: Integers, action: Any) -> Integers:
    """Return the code of what a machine answers, −1 where it does not know."""
    done = machine.actions.get(action)
    if done is None:
        return np.full(len(states), -1, np.int64)
    questions = np.where(shown < 0, -1, shown * len(machine.actions) + done)
    known = np.where(states == machine.states, -1, states).astype(np.int32)
    return machine.answer_many(known, questions).astype(np.int64)
