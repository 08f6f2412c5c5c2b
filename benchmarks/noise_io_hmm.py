"""An input-output hidden Markov model by expectation maximisation, as a peer under noise.

Hidden states move when a label is read, with chances p(state after | state, label), and answer
questions with chances p(answer | state, question). Episodes begin in state 0, and "no event"
moves nothing, as our machines are told, too: rows between two events then share their state,
so that the forward and backward passes go from event to event.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from resolvent.errors import TimeLimitReached
from resolvent.paper.baselines.clock import Clock
from resolvent.preprocess.samples import SampleSet
from resolvent.preprocess.timing import NONE

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_ROUNDS = 300
CLOSE = 1e-7
"""A fit has converged when a round adds less than this share of the log-likelihood."""
LITTLE = 0.01
"""Answers and moves taken to have been seen besides those that were: chances are never 0."""


@dataclass(frozen=True)
class Stretches:
    """Samples cut where a label is read, and put side by side by how many events came before.

    `first` is the first row of each stretch, ordered by trace; `label` the one it reads (`NONE`
    at a trace's beginning). `ranks[k]` are the stretches with k events before them, of traces
    in one order throughout, longest first: those that go on at k are the first ones at k - 1.
    """

    first: Ints
    label: Ints
    ranks: tuple[Ints, ...]
    of_row: Ints

    @classmethod
    def of(cls, samples: SampleSet) -> "Stretches":
        """Cut the samples of some traces."""
        begins = samples.beta != NONE
        begins[samples.offsets[:-1]] = True
        first = np.flatnonzero(begins)
        label = samples.beta[first].astype(np.int64)
        bounds = np.searchsorted(first, samples.offsets)
        number = np.diff(bounds)
        longest = np.argsort(-number, kind="stable")
        ranks = tuple(
            bounds[:-1][longest[: np.count_nonzero(number > k)]] + k for k in range(number.max())
        )
        return cls(first, label, ranks, np.cumsum(begins) - 1)


@dataclass(frozen=True)
class Fit:
    """A fitted model: moves [label, state, state], expected answers [state, pair]; how likely.

    A pair is a question and an answer it had.
    """

    moves: Floats
    answers: Floats
    log_likelihood: float

    @classmethod
    def certain(cls, table: NDArray[np.int32], samples: SampleSet) -> "Fit":
        """Make the model of a table of moves [state, label], with the answers of its states.

        A move that was never made leads to any state.
        """
        moves = np.where(table[:, :, None] == np.arange(len(table)), 1.0, 0.0)
        moves[table < 0] = 1 / len(table)
        stretches, asked = Stretches.of(samples), Asked.of(samples)
        state = np.zeros(len(stretches.first), np.int64)
        for past, here in pairwise(stretches.ranks):
            state[here] = table[state[past[: len(here)]], stretches.label[here]]
        weights = np.eye(len(table))[state]
        return cls(moves.swapaxes(0, 1), _answers(weights[stretches.of_row], asked), np.nan)

    @property
    def table(self) -> NDArray[np.int32]:
        """The likeliest moves, as [state, label]."""
        return self.moves.argmax(2).T.astype(np.int32)


@dataclass(frozen=True)
class Asked:
    """Rows as pairs of a question and an answer, and the question of each pair."""

    pair: Ints
    question: Ints
    pairs: Ints

    @classmethod
    def of(cls, samples: SampleSet) -> "Asked":
        """Number the pairs that occur."""
        keys = samples.alpha.astype(np.int64) * len(samples.outputs) + samples.output
        pairs, pair = np.unique(keys, return_inverse=True)
        return cls(pair, pairs // len(samples.outputs), pairs)


def fit(samples: SampleSet, states: int, restarts: int, seed: int, clock: Clock) -> Fit:
    """Return the likeliest of several fits, each from a random beginning; of the time there is."""
    stretches, asked = Stretches.of(samples), Asked.of(samples)
    random = np.random.default_rng(seed)
    best: Fit | None = None
    for _ in range(restarts):
        weights = random.dirichlet(np.ones(states), len(stretches.first))
        moves = random.dirichlet(np.ones(states), (len(samples.labels), states))
        found = Fit(moves, _answers(weights[stretches.of_row], asked), -np.inf)
        for _ in range(MOST_ROUNDS):
            before = found.log_likelihood
            found = _round(found, stretches, asked)
            if best is not None and clock.left == 0:
                return best
            if found.log_likelihood - before < CLOSE * abs(found.log_likelihood):
                break
        if best is None or found.log_likelihood > best.log_likelihood:
            best = found
    if best is None:
        raise TimeLimitReached("no time for a single fit")
    return best


def _answers(weights: Floats, asked: Asked) -> Floats:
    size = len(asked.pairs)
    return np.stack([np.bincount(asked.pair, one, size) for one in weights.T])


def _chances(answers: Floats, asked: Asked) -> Floats:
    """Return p(answer | state, question) of each pair."""
    some = answers + LITTLE
    total = np.stack([np.bincount(asked.question, one) for one in some])
    return some / total[:, asked.question]


def _round(before: Fit, stretches: Stretches, asked: Asked) -> Fit:
    """Expect and maximise once; the log-likelihood is that of the fit before."""
    logs = np.log(_chances(before.answers, asked)).T
    told = np.add.reduceat(logs[asked.pair], stretches.first)
    most = told.max(1, keepdims=True)
    told = np.exp(told - most)
    forward, scale = np.empty_like(told), np.empty(len(told))
    for k, here in enumerate(stretches.ranks):
        if k == 0:
            coming = np.zeros((len(here), told.shape[1]))
            coming[:, 0] = 1.0
        else:
            past = forward[stretches.ranks[k - 1][: len(here)]]
            coming = np.einsum("ni,nij->nj", past, before.moves[stretches.label[here]])
        joint = coming * told[here]
        scale[here] = joint.sum(1)
        forward[here] = joint / scale[here, None]
    moved = np.full_like(before.moves, LITTLE)
    backward = np.ones_like(told)
    for k in range(len(stretches.ranks) - 1, 0, -1):
        here = stretches.ranks[k]
        past = stretches.ranks[k - 1][: len(here)]
        ahead = told[here] * backward[here] / scale[here, None]
        chance = before.moves[stretches.label[here]]
        backward[past] = np.einsum("nij,nj->ni", chance, ahead)
        both = forward[past][:, :, None] * chance * ahead[:, None, :]
        np.add.at(moved, stretches.label[here], both)
    weights = forward * backward
    return Fit(
        moved / moved.sum(2, keepdims=True),
        _answers(weights[stretches.of_row], asked),
        float(np.log(scale).sum() + most.sum()),
    )


def log_loss(found: Fit, learned: SampleSet, fresh: SampleSet, lent: float) -> float:
    """Return the mean of −ln p over all fresh rows, each foretold from those before it.

    A state's answers to a question are mixed with `lent` answers of all states to it, and these
    with half an answer among all outputs. Questions never asked before cost the logarithm of
    the number of outputs. Both sets must have the same codes.
    """
    asked, outputs = Asked.of(learned), len(learned.outputs)
    questions = max(int(learned.alpha.max()), int(fresh.alpha.max())) + 1
    times = np.bincount(asked.question, np.bincount(asked.pair), questions)
    totals = np.stack([np.bincount(asked.question, one, questions) for one in found.answers])
    keys = fresh.alpha.astype(np.int64) * outputs + fresh.output
    place = np.minimum(np.searchsorted(asked.pairs, keys), len(asked.pairs) - 1)
    known = asked.pairs[place] == keys
    all_states = np.where(known, np.bincount(asked.pair)[place], 0) + 0.5 / outputs
    pooled = all_states / (times[fresh.alpha] + 0.5)
    own = np.where(known, found.answers[:, place], 0.0)
    chances = ((own + lent * pooled) / (totals[:, fresh.alpha] + lent)).T
    chances[times[fresh.alpha] == 0] = 1 / outputs
    number = np.diff(fresh.offsets)
    longest = np.argsort(-number, kind="stable")
    belief = np.zeros((len(number), found.moves.shape[1]))
    belief[:, 0] = 1.0
    loss = 0.0
    for step in range(number.max()):
        rows = fresh.offsets[:-1][longest[: np.count_nonzero(number > step)]] + step
        belief = belief[: len(rows)]
        moving = np.flatnonzero(fresh.beta[rows] != NONE)
        chance = found.moves[fresh.beta[rows[moving]]]
        belief[moving] = np.einsum("ni,nij->nj", belief[moving], chance)
        joint = belief * chances[rows]
        total = joint.sum(1)
        loss -= np.log(total).sum()
        belief = joint / total[:, None]
    return loss / len(fresh.alpha)
