"""A machine → how often its questions were answered oddly, in all states together."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from resolvent.machines.columns import places
from resolvent.machines.machine import Machine
from resolvent.traces.vocabulary import Codes

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Pool:
    """The answers of all states but their main ones, as sorted columns of keys with counts."""

    width: int
    answers: Numbers
    answered: Numbers
    questions: Numbers
    asked: Numbers

    @classmethod
    def of(cls, machine: Machine) -> "Pool":
        """Add up the odd answers of a machine's states.

        >>> from resolvent.worlds import House
        >>> len(Pool.of(House().machines().transition).answers)  # a world without noise
        0
        """
        spread, width = machine.spread, len(machine.outputs)
        odd = spread.value != spread.main[spread.group]
        question, value, count = (one[odd] for one in (spread.question, spread.value, spread.count))
        return cls(width, *_sums(question * width + value, count), *_sums(question, count))

    def times_answered(self, questions: Numbers, outputs: Codes) -> Numbers:
        """Return how often questions were answered so, where that is odd."""
        known = (questions >= 0) & (outputs >= 0)
        keys = np.where(known, questions * self.width + outputs, -1)
        return _found(self.answers, self.answered, keys)

    def times_odd(self, questions: Numbers) -> Numbers:
        """Return how often questions were answered oddly."""
        return _found(self.questions, self.asked, questions)


def _sums(keys: Numbers, counts: Numbers) -> tuple[Numbers, Numbers]:
    distinct, place = np.unique(keys, return_inverse=True)
    total = np.zeros(len(distinct), np.int64)
    np.add.at(total, place, counts)
    return distinct, total


def _found(keys: Numbers, counts: Numbers, wanted: Numbers) -> Numbers:
    place = places(keys, wanted)
    found = np.zeros(len(wanted), np.int64)
    found[place >= 0] = counts[place[place >= 0]]
    return found
