"""An input-output hidden Markov model by expectation maximization, as a peer under noise.

Hidden states change when a label is read, with p(next state | state, label), and answer queries
with p(output | state, query). Episodes start in state 0, and "no event" changes no state, as in
our machines: rows between two events share their state, so the passes go from event to event.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from resolvent.errors import TimeLimitReached
from resolvent.paper.baselines.outcome import Clock
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

    A pair is a query and an answer it had.
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
        stretches, queries = Stretches.of(samples), Asked.of(samples)
        state = np.zeros(len(stretches.first), np.int64)
        for past, row in pairwise(stretches.ranks):
            state[row] = table[state[past[: len(row)]], stretches.label[row]]
        weights = np.eye(len(table))[state]
        return cls(moves.swapaxes(0, 1), _answers(weights[stretches.of_row], queries), np.nan)

    @property
    def table(self) -> NDArray[np.int32]:
        """The likeliest moves, as [state, label]."""
        return self.moves.argmax(2).T.astype(np.int32)


@dataclass(frozen=True)
class Asked:
    """Rows as pairs of a query and an answer, and the query of each pair."""

    pair: Ints
    query: Ints
    pairs: Ints

    @classmethod
    def of(cls, samples: SampleSet) -> "Asked":
        """Number the pairs that occur."""
        keys = samples.alpha.astype(np.int64) * len(samples.outputs) + samples.output
        pairs, pair = np.unique(keys, return_inverse=True)
        return cls(pair, pairs // len(samples.outputs), pairs)


def fit(samples: SampleSet, states: int, restarts: int, seed: int, clock: Clock) -> Fit:
    """Return the likeliest of several fits, each from a random beginning; of the time there is."""
    stretches, queries = Stretches.of(samples), Asked.of(samples)
    random = np.random.default_rng(seed)
    best: Fit | None = None
    for _ in range(restarts):
        weights = random.dirichlet(np.ones(states), len(stretches.first))
        moves = random.dirichlet(np.ones(states), (len(samples.labels), states))
        model = Fit(moves, _answers(weights[stretches.of_row], queries), -np.inf)
        for _ in range(MOST_ROUNDS):
            before = model.log_likelihood
            model = _round(model, stretches, queries)
            if best is not None and clock.left == 0:
                return best
            if model.log_likelihood - before < CLOSE * abs(model.log_likelihood):
                break
        if best is None or model.log_likelihood > best.log_likelihood:
            best = model
    if best is None:
        raise TimeLimitReached("no time for a single fit")
    return best


def _answers(weights: Floats, queries: Asked) -> Floats:
    size = len(queries.pairs)
    return np.stack([np.bincount(queries.pair, weight, size) for weight in weights.T])


def _chances(answers: Floats, queries: Asked) -> Floats:
    """Return p(answer | state, query) of each pair."""
    smoothed = answers + LITTLE
    total = np.stack(
        [np.bincount(queries.query, answers_of_state) for answers_of_state in smoothed]
    )
    return smoothed / total[:, queries.query]


def _round(before: Fit, stretches: Stretches, queries: Asked) -> Fit:
    """Expect and maximise once; the log-likelihood is that of the fit before."""
    logs = np.log(_chances(before.answers, queries)).T
    likelihood = np.add.reduceat(logs[queries.pair], stretches.first)
    largest = likelihood.max(1, keepdims=True)
    likelihood = np.exp(likelihood - largest)
    forward, scale = np.empty_like(likelihood), np.empty(len(likelihood))
    for k, rows in enumerate(stretches.ranks):
        if k == 0:
            coming = np.zeros((len(rows), likelihood.shape[1]))
            coming[:, 0] = 1.0
        else:
            past = forward[stretches.ranks[k - 1][: len(rows)]]
            coming = np.einsum("ni,nij->nj", past, before.moves[stretches.label[rows]])
        joint = coming * likelihood[rows]
        scale[rows] = joint.sum(1)
        forward[rows] = joint / scale[rows, None]
    moved = np.full_like(before.moves, LITTLE)
    backward = np.ones_like(likelihood)
    for k in range(len(stretches.ranks) - 1, 0, -1):
        rows = stretches.ranks[k]
        past = stretches.ranks[k - 1][: len(rows)]
        ahead = likelihood[rows] * backward[rows] / scale[rows, None]
        chance = before.moves[stretches.label[rows]]
        backward[past] = np.einsum("nij,nj->ni", chance, ahead)
        both = forward[past][:, :, None] * chance * ahead[:, None, :]
        np.add.at(moved, stretches.label[rows], both)
    weights = forward * backward
    return Fit(
        moved / moved.sum(2, keepdims=True),
        _answers(weights[stretches.of_row], queries),
        float(np.log(scale).sum() + largest.sum()),
    )


def log_loss(model: Fit, learned: SampleSet, fresh: SampleSet, lent: float) -> float:
    """Return the mean of −ln p over all fresh rows, each foretold from those before it.

    A state's answers to a query are mixed with `lent` answers of all states to it, and these
    with half an answer among all outputs. Queries never asked before cost the logarithm of
    the number of outputs. Both sets must have the same codes.
    """
    asked, outputs = Asked.of(learned), len(learned.outputs)
    queries = max(int(learned.alpha.max()), int(fresh.alpha.max())) + 1
    times = np.bincount(asked.query, np.bincount(asked.pair), queries)
    totals = np.stack([np.bincount(asked.query, answers, queries) for answers in model.answers])
    keys = fresh.alpha.astype(np.int64) * outputs + fresh.output
    place = np.minimum(np.searchsorted(asked.pairs, keys), len(asked.pairs) - 1)
    occurs = asked.pairs[place] == keys
    all_states = np.where(occurs, np.bincount(asked.pair)[place], 0) + 0.5 / outputs
    pooled = all_states / (times[fresh.alpha] + 0.5)
    own = np.where(occurs, model.answers[:, place], 0.0)
    chances = ((own + lent * pooled) / (totals[:, fresh.alpha] + lent)).T
    chances[times[fresh.alpha] == 0] = 1 / outputs
    number = np.diff(fresh.offsets)
    longest = np.argsort(-number, kind="stable")
    belief = np.zeros((len(number), model.moves.shape[1]))
    belief[:, 0] = 1.0
    loss = 0.0
    for step in range(number.max()):
        rows = fresh.offsets[:-1][longest[: np.count_nonzero(number > step)]] + step
        belief = belief[: len(rows)]
        moving = np.flatnonzero(fresh.beta[rows] != NONE)
        chance = model.moves[fresh.beta[rows[moving]]]
        belief[moving] = np.einsum("ni,nij->nj", belief[moving], chance)
        joint = belief * chances[rows]
        total = joint.sum(1)
        loss -= np.log(total).sum()
        belief = joint / total[:, None]
    return loss / len(fresh.alpha)
