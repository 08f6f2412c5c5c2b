"""Samples of rewards that were taken for levels → fewer that were taken for the wrong one.

How often noise takes a reward from one level to another follows from where they are. A question
whose rewards one level explains, over all its steps and so in all states, pays that level: what
differs from it is noise, and a search for memory need not look at it.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from resolvent.arithmetic import log, product
from resolvent.noise.mixture import Floats
from resolvent.samples import SampleSet
from resolvent.senses import RewardLevels

_WORTH = 3.0
"""Several levels must explain the rewards of a question so much better than one, in nats."""

_STEPS = 50
_NEVER = 1e-6


def settled_questions(
    samples: SampleSet, asked: NDArray[np.int64], levels: RewardLevels
) -> SampleSet:
    """Return samples in which each question that pays one level is answered by it throughout.

    `asked` says for each row what was seen and done, whatever the samples pair it with. All
    other questions keep their answers.
    """
    counts = _counts(asked, samples.output, len(samples.outputs))
    mistaken = levels.mistaken(list(samples.outputs))
    pure = product(counts, log(mistaken + _NEVER).T)
    best = pure.argmax(1)
    one = pure.max(1) + _WORTH >= _mixed(counts, mistaken)
    _, question = np.unique(asked, return_inverse=True)
    output = np.where(one[question], best[question], samples.output).astype(np.int32)
    return replace(samples, output=output)


def _counts(asked: NDArray[np.int64], output: NDArray[np.int32], outputs: int) -> Floats:
    _, question = np.unique(asked, return_inverse=True)
    size = int(question.max()) + 1
    cells = question * outputs + output
    return np.bincount(cells, minlength=size * outputs).reshape(size, outputs).astype(np.float64)


def _mixed(counts: Floats, mistaken: Floats) -> Floats:
    """Return how likely each question's rewards are if it pays several levels, in logarithms."""
    total = counts.sum(1, keepdims=True)
    shares = np.full(counts.shape, 1 / counts.shape[1])
    for _ in range(_STEPS):
        expected = product(shares, mistaken) + _NEVER
        shares = shares * product(counts / expected, mistaken.T) / total
    found: Floats = (counts * log(product(shares, mistaken) + _NEVER)).sum(1)
    return found
