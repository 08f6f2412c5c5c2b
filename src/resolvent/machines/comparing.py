"""Comparing machines: isomorphism, minimality, and states that nothing tells apart."""

from math import gcd
from typing import Any

import numpy as np

from resolvent._util.validation import check_arguments
from resolvent.machines.machine import Machine
from resolvent.machines.unseen import UNSEEN
from resolvent.traces.symbols import Symbol


def is_isomorphic(first: Machine, second: Machine) -> bool:
    """Whether two machines are the same but for the names of their states.

    They must know the same: what is unseen in one must be unseen in the other.
    Alphabets are compared by the values that the machines have answers or
    transitions for, so a letter that one merely lists makes no difference. Of answers
    that vary, the most likely ones are compared: shares of noise differ between any two
    sets of traces.
    """
    check_arguments(is_isomorphic, locals())
    if first.states != second.states:
        return False
    partner = {0: 0}
    queue = [0]
    labels = set(first.labels) | set(second.labels)
    questions = _questions(first) | _questions(second)
    for state in queue:
        twin = partner[state]
        for question in questions:
            mine, yours = first.output(state, *question), second.output(twin, *question)
            if mine is not yours and (mine is UNSEEN or yours is UNSEEN or mine != yours):
                return False
        for label in labels:
            target, its_twin = first.step(state, label), second.step(twin, label)
            if target is UNSEEN or its_twin is UNSEEN:
                if target is not its_twin:
                    return False
            elif target not in partner:
                partner[target] = its_twin
                queue.append(target)
            elif partner[target] != its_twin:
                return False
    return len(set(partner.values())) == len(partner)


def is_minimal(machine: Machine) -> bool:
    """Whether no two states behave the same, "unseen" taken as a behaviour of its own.

    By partition refinement: states are split by their answers, then by where
    labels lead them, until nothing splits any more. States whose answers vary behave
    the same if every answer has the same share in both.
    """
    check_arguments(is_minimal, locals())
    answers: list[dict[int, Any]] = [{} for _ in range(machine.states)]
    for (state, question), value in machine._answers.items():
        answers[state][question] = value
    for (state, question), several in machine.spread.rows.items():
        divisor = gcd(*(count for _, count in several))
        answers[state][question] = tuple((value, count // divisor) for value, count in several)
    blocks = _numbered([tuple(sorted(one.items())) for one in answers])
    while True:
        moves = np.where(machine.transitions >= 0, blocks[machine.transitions], -1)
        finer = _numbered([(int(b), *row) for b, row in zip(blocks, moves.tolist(), strict=True)])
        if finer.max() == blocks.max():
            return int(blocks.max()) + 1 == machine.states
        blocks = finer


def _questions(machine: Machine) -> set[tuple[Symbol, Symbol]]:
    return {(answer.observation, answer.action) for answer in machine.answers()}


def _numbered(keys: list[tuple[Any, ...]]) -> np.ndarray[Any, np.dtype[np.int64]]:
    numbers: dict[tuple[Any, ...], int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)
