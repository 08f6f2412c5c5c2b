"""How many bits it takes to write a machine down: what machines that explain traces are chosen by.

Machines that explain the same traces tell every answer in them, so that nothing has to be
written down but the machine: how many states it has, where each label that was read in a state
leads, and what each state answers to each question that it was asked. What was never seen is
not written down. docs/decisions/inference.md says why, and what it finds.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from resolvent._core import binary_log, log_gamma, log_gammas, natural_log, power
from resolvent.machines.machine import Machine

_HALF: Final = 0.5
"""How often each symbol is taken to have been seen before the first: Krichevsky and Trofimov's."""


def description_bits(machine: Machine) -> float:
    """Return how many bits it takes to write down a machine; the fewer, the likelier it is true.

    Labels named as trivial cost nothing, and neither do questions with one answer throughout:
    these are the same for all machines that explain the same traces.

    >>> import gymnasium as gym, resolvent as rs
    >>> house = rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
    >>> few = rs.infer(house, strategy="rpni").machines.transition
    >>> many = rs.infer(house[:10], strategy="rpni").machines.transition
    >>> few.states, many.states, description_bits(few) < description_bits(many)
    (2, 3, True)
    """
    table = np.delete(machine.transitions, list(machine.trivial), axis=1)
    size = 2 * binary_log(machine.states) + 1
    answers = _answers_bits(machine.output_question, machine.output_value)
    return size + _moves_bits(table) + answers


def _moves_bits(table: NDArray[np.int32]) -> float:
    """Return the bits for where labels lead, in a table [state, label] with −1 for never read.

    First which moves are loops: by state, since all labels loop in a sink, or by label,
    since those that change nothing loop in all states. Then where the others lead, by how often
    moves of all labels, of the same label or from the same state lead there. Half of the belief
    lies with each of two ways, a third with each of three. How the states are numbered does
    not have to be told.
    """
    states = len(table)
    if states == 1:
        return 0.0
    state, label = np.nonzero(table >= 0)
    target = table[state, label]
    loops = (target == state).astype(np.int64)
    flags = _either(
        _adaptive(state, loops, 2, states).sum(), _adaptive(label, loops, 2, table.shape[1]).sum()
    )
    moving = loops == 0
    state, label, target = state[moving], label[moving], target[moving]
    leads = _either(
        _adaptive(np.zeros_like(label), target, states, 1).sum(),
        _adaptive(label, target, states, table.shape[1]).sum(),
        _adaptive(state, target, states, states).sum(),
    )
    return flags + leads - log_gamma(states) / natural_log(2)


def _answers_bits(question: NDArray[np.int64], answer: NDArray[np.int32]) -> float:
    """Return the bits for what states answer: each question has its usual answers."""
    if not len(answer):
        return 0.0
    _, asked = np.unique(question, return_inverse=True)
    known, told = np.unique(answer, return_inverse=True)
    return float(_adaptive(asked, told, len(known), int(asked.max()) + 1).sum())


def _adaptive(
    context: NDArray[np.int64], symbol: NDArray[np.int64], symbols: int, contexts: int
) -> NDArray[np.float64]:
    """Return for each context the bits of its symbols, each by how often it came there before.

    The order of the symbols makes no difference: this is their probability under a Dirichlet
    prior. In all, `symbols` different ones are taken to have been seen half a time before; but
    of many never more than one time together, so that a new one is as dear as naming it.
    """
    prior = min(_HALF, 1 / symbols)
    pairs, count = np.unique(context * symbols + symbol, return_counts=True)
    each = _log_rising(count, prior)
    gained = np.zeros(contexts)
    np.add.at(gained, pairs // symbols, each)
    spent = _log_rising(np.bincount(context, minlength=contexts), prior * symbols)
    return np.asarray((spent - gained) / natural_log(2))


def _log_rising(count: NDArray[np.int64], start: float) -> NDArray[np.float64]:
    """Return ln of start · (start + 1) · …, of so many factors."""
    values = log_gammas(start + np.arange(int(count.max(initial=0)) + 1.0)) - log_gamma(start)
    return np.asarray(values[count])


def _either(*bits: float) -> float:
    """Return the bits of what may be written in several ways, each believed in equally.

    >>> round(_either(8.0, 8.0), 3), _either(8.0, 1000.0)
    (8.0, 9.0)
    """
    least = min(bits)
    return float(
        least + binary_log(len(bits)) - binary_log(sum(power(2.0, least - one) for one in bits))
    )
