"""Fit a model with hidden states (a POMDP) to traces by expectation maximization.

Each observation has a number of hidden variants; an observation and its variant are a state. The
next observation and variant, the reward and an end of the episode depend on the state and the
action: an input–output hidden Markov model with cloned observations (George et al. 2021), of which
form every finite POMDP is.

Input: traces; their labels are not read. Output: a `HiddenStateModel`, which predicts from beliefs.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from resolvent._util.math import log
from resolvent.traces import TraceSet

Numbers = NDArray[np.float64]
Rows = NDArray[np.int64]

VARIANTS: Final = (1, 2, 3, 4, 6, 8)  # numbers of hidden variants that are tried, in this order
REWARD_WEIGHT: Final = 8.0  # weight of rewards against observations in the likelihood
_INERTIA: Final = (0.0, 0.9, 0.0, 0.98, 0.0, 0.9)  # of variants, by random start
_FIRST_SWEEPS: Final = 30  # maximum number of sweeps of all random starts
_SWEEPS: Final = 300  # the same for the best of them
_MIN_GAIN: Final = 1e-5  # gain of a sweep, in nats per step, below which fitting ends
_PRIOR: Final = 0.5  # weight of the prior, in steps: what follows an observation in any variant
_TEST_SHARE: Final = 4  # one of so many traces is held out
_MIN_TEST_GAIN: Final = 5.0  # gain on held-out traces, in nats, that justifies more variants
_STEPS_PER_KIND: Final = 5  # minimum mean number of steps of each kind
_TINY: Final = 1e-300
_UNLIKELY: Final = 1e-6  # least probability of a step that a model has not learned from


@dataclass(frozen=True, eq=False)
class StepKinds:
    """The distinct steps of traces, as parallel columns; `rewards` are the rewards by code.

    `query` numbers their pairs of observation and action, `move` all but the reward.
    """

    observation: Rows
    action: Rows
    next_observation: Rows
    reward: Rows
    ended: NDArray[np.bool_]
    query: Rows
    move: Rows
    observations: int
    actions: int
    rewards: Numbers

    @classmethod
    def of(cls, traces: TraceSet) -> tuple["StepKinds", Rows]:
        """Return the distinct steps, and the kind of each step."""
        values, code = np.unique(np.array(traces.rewards, float), return_inverse=True)
        ended = np.zeros(traces.steps, bool)
        ended[traces.offsets[1:] - 1] = traces.terminated
        columns = (
            traces.at_step(traces.observation_codes),
            traces.action_codes,
            np.delete(traces.observation_codes, traces.offsets[:-1] + np.arange(len(traces))),
            code[traces.reward_codes],
            ended,
        )
        steps = np.stack([np.asarray(column, np.int64) for column in columns])
        distinct, kind = np.unique(steps, axis=1, return_inverse=True)
        o, a, following, reward, end = distinct
        sizes = len(traces.observations), len(traces.actions)
        _, query = np.unique(o * sizes[1] + a, return_inverse=True)
        _, move = np.unique(distinct[[0, 1, 2, 4]], axis=1, return_inverse=True)
        kinds = cls(o, a, following, reward, end > 0, query, move.ravel(), *sizes, values)
        return kinds, kind.ravel()


@dataclass(frozen=True, eq=False)
class HiddenStateModel:
    """A POMDP whose states are pairs of an observation and a hidden variant of it.

    `chance` is [kind of step, variant, next variant]: the probability of the step and the next
    variant, given the state and the action. `initial` is [observation, variant]: the probability
    of the variant at a start with that observation. `count` is [query, variant]: the expected
    number of steps. `keep` is [variant, next variant], the prior.
    """

    kinds: StepKinds
    chance: Numbers
    initial: Numbers
    count: Numbers
    keep: Numbers

    @property
    def variants(self) -> int:
        """The number of hidden variants of each observation."""
        return len(self.keep)

    @cached_property
    def kinds_of(self) -> dict[tuple[int, int], Rows]:
        """The kinds of steps by observation and action."""
        groups: dict[tuple[int, int], list[int]] = {}
        pairs = zip(self.kinds.observation.tolist(), self.kinds.action.tolist(), strict=True)
        for kind, query in enumerate(pairs):
            groups.setdefault(query, []).append(kind)
        return {query: np.array(members) for query, members in groups.items()}

    def outcomes(self, observation: int, belief: Numbers, action: int) -> tuple[Rows, Numbers]:
        """Return the kinds of steps that may follow, and [kind, next variant].

        An entry is the probability of the kind and the next variant together.
        """
        kinds = self.kinds_of.get((observation, action), np.empty(0, np.int64))
        joint: Numbers = (belief[None, :, None] * self.chance[kinds]).sum(axis=1)
        return kinds, joint

    def usual(self, observation: int) -> Numbers:
        """Return the probability of each variant of an observation at any time."""
        queries = np.unique(self.kinds.query[self.kinds.observation == observation])
        count = self.count[queries].sum(axis=0) + _TINY
        share: Numbers = count / count.sum()
        return share


def has_rare_steps(traces: TraceSet) -> bool:
    """Return whether steps are too rare for their probabilities to be estimated."""
    kinds, kind = StepKinds.of(traces)
    return len(kinds.query) * _STEPS_PER_KIND > len(kind)


def held_out(traces: TraceSet) -> NDArray[np.bool_]:
    """Return which traces are not learned from where models are compared."""
    is_held_out: NDArray[np.bool_] = np.arange(len(traces)) % _TEST_SHARE == _TEST_SHARE - 1
    return is_held_out


def fit_hidden_states(traces: TraceSet, seed: int = 0) -> HiddenStateModel:
    """Return a model of the traces that are not held out.

    Its number of variants is the one that predicts the held-out traces best.
    """
    kinds, kind = StepKinds.of(traces)
    is_test = held_out(traces)
    training, test = (_Episodes.of(traces, kinds, kind, part) for part in (~is_test, is_test))
    best, best_score = _random_fit(training, VARIANTS[0], seed), np.full(len(test.first), -np.inf)
    for variants in VARIANTS:
        fit = _random_fit(training, variants, seed)
        for sweeps in (_FIRST_SWEEPS, _SWEEPS):
            fit = _improve(training, fit, sweeps, REWARD_WEIGHT).best()
        score = _scores(test, fit)
        if _is_surely_better(score, best_score):
            best, best_score = fit, score
        elif variants > 2 * best.keep.shape[-1]:
            break
    return _improve(training, best, _SWEEPS).model(kinds)


def refit(model: HiddenStateModel, traces: TraceSet) -> HiddenStateModel:
    """Return a model that was fitted to a part of traces, fitted to all of them."""
    kinds, kind = StepKinds.of(traces)
    data = _Episodes.of(traces, kinds, kind, np.ones(len(traces), bool))
    # Steps that occur in no other trace have the probability 0 so far, which would stay 0.
    fit = _Fit(model.chance[None] + _UNLIKELY, model.initial[None], model.keep[None])
    return _improve(data, fit, _SWEEPS).model(kinds)


# --- Expectation maximization --------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Episodes:
    """Episodes side by side, longest first: the kinds of their steps, by time.

    The steps at time t lie from `at[t]` up to `at[t + 1]`, and belong to the first episodes.
    """

    kinds: StepKinds
    kind: Rows
    at: Rows
    first: Rows

    @classmethod
    def of(
        cls, traces: TraceSet, kinds: StepKinds, kind: Rows, chosen: NDArray[np.bool_]
    ) -> "_Episodes":
        """Return the chosen episodes of traces."""
        length = np.diff(traces.offsets)
        episodes = np.flatnonzero(chosen)
        order = episodes[np.argsort(-length[episodes], kind="stable")]
        times = range(int(length[order].max(initial=0)))
        steps = [traces.offsets[order[length[order] > time]] + time for time in times]
        at = np.cumsum([0, *map(len, steps)])
        first = traces.observation_codes[traces.offsets[order] + order].astype(np.int64)
        return cls(kinds, kind[np.concatenate([*steps, np.empty(0, np.int64)])], at, first)


@dataclass(frozen=True, eq=False)
class _Fit:
    """Parameters for each random start, along the first axis, and expected counts of steps.

    `moves` is [start, kind, variant, next variant]; it is empty before the first sweep.
    """

    chance: Numbers
    initial: Numbers
    keep: Numbers
    moves: Numbers | None = None
    log_likelihood: Numbers | None = None

    def best(self) -> "_Fit":
        """Return the fit of the most likely start."""
        if self.moves is None or self.log_likelihood is None:
            return self
        start = int(np.argmax(self.log_likelihood))
        columns = (self.chance, self.initial, self.keep, self.moves, self.log_likelihood)
        return _Fit(*(column[start : start + 1] for column in columns))

    def model(self, kinds: StepKinds) -> HiddenStateModel:
        """Return the model of the first start."""
        moves = np.zeros((1, *self.chance.shape[1:])) if self.moves is None else self.moves
        count = _sums(moves.sum(-1), kinds.query)[0]
        return HiddenStateModel(kinds, self.chance[0], self.initial[0], count, self.keep[0])


def _random_fit(data: _Episodes, variants: int, seed: int) -> _Fit:
    rng = np.random.default_rng((seed, variants))
    inertia = np.array(_INERTIA if variants > 1 else _INERTIA[:1])[:, None, None]
    keep = inertia * np.eye(variants) + (1 - inertia) / variants
    count = np.bincount(data.kind, minlength=len(data.kinds.query))[None, :, None, None] + _TINY
    moves = count * keep[:, None] * rng.gamma(1.0, size=(len(keep), count.size, variants, variants))
    first = rng.gamma(1.0, size=(len(keep), data.kinds.observations, variants))
    return _Fit(*_maximize(data.kinds, moves, first, keep), keep)


def _improve(data: _Episodes, fit: _Fit, sweeps: int, weight: float = 1.0) -> _Fit:
    """Repeat expectation and maximization until the likelihood hardly grows.

    A reward at the end of an episode is one number beside many observations, and matters more: with
    a weight, each reward counts as if it were observed several times.
    """
    last = -np.inf
    for _ in range(sweeps):
        moves, first, likelihood = _expect(
            data, _weighted(data.kinds, fit.chance, weight), fit.initial
        )
        chance, initial = _maximize(data.kinds, moves, first, fit.keep)
        fit = _Fit(chance, initial, fit.keep, moves, likelihood)
        highest = float(likelihood.max())
        if highest - last < _MIN_GAIN * len(data.kind):
            break
        last = highest
    return fit


def _rows_times(rows: Numbers, tables: Numbers) -> Numbers:
    """Return the product of each row and its table, summed from the first to the last."""
    product: Numbers = rows[..., 0, None] * tables[..., 0, :]
    for number in range(1, rows.shape[-1]):
        product += rows[..., number, None] * tables[..., number, :]
    return product


def _forward(data: _Episodes, chance: Numbers, initial: Numbers) -> tuple[Numbers, Numbers]:
    """Return the belief before each step, and the probability of each step."""
    before = np.empty((len(chance), len(data.kind), chance.shape[-1]))
    scale = np.empty(before.shape[:2])
    belief = initial[:, data.first]
    for start, end in zip(data.at[:-1].tolist(), data.at[1:].tolist(), strict=True):
        before[:, start:end] = belief = belief[:, : end - start]
        after = _rows_times(belief, chance[:, data.kind[start:end]])
        scale[:, start:end] = total = np.maximum(after.sum(-1), _TINY)
        # After a step that the model excludes, every variant is possible.
        after[total <= _TINY] = _TINY / chance.shape[-1]
        belief = after / total[..., None]
    return before, scale


def _expect(data: _Episodes, chance: Numbers, initial: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Return expected counts of steps and of first variants, and the log likelihood.

    This is the forward–backward algorithm (Baum et al. 1970).
    """
    before, scale = _forward(data, chance, initial)
    later = np.empty_like(before)  # the likelihood of all later steps, by the variant after a step
    ahead = np.ones((len(chance), len(data.first), chance.shape[-1]))
    for start, end in zip(data.at[-2::-1].tolist(), data.at[:0:-1].tolist(), strict=True):
        active = slice(0, end - start)
        later[:, start:end] = ahead[:, active] / scale[:, start:end, None]
        reversed_chance = chance[:, data.kind[start:end]].swapaxes(-1, -2)
        ahead[:, active] = _rows_times(later[:, start:end], reversed_chance)
    order = np.argsort(data.kind, kind="stable")
    present, first_of = np.unique(data.kind[order], return_index=True)
    moves = np.zeros_like(chance)
    if len(order):
        for each, b, c in zip(moves, before[:, order], later[:, order], strict=True):
            each[present] = np.add.reduceat(b[:, :, None] * c[:, None, :], first_of)
    first = np.zeros_like(initial)
    for each, share in zip(first, initial[:, data.first] * ahead, strict=True):
        np.add.at(each, data.first, share)
    return moves * chance, first, log(scale).sum(-1)


def _maximize(
    kinds: StepKinds, moves: Numbers, first: Numbers, keep: Numbers
) -> tuple[Numbers, Numbers]:
    """Return the most likely probabilities for expected counts and a weak prior."""
    total = moves.sum(axis=(2, 3))
    share = total / np.maximum(_sums(total, kinds.query)[:, kinds.query], _TINY)
    moves = moves + _PRIOR * share[:, :, None, None] * keep[:, None]
    row = _sums(moves.sum(-1), kinds.query)[:, kinds.query, :, None]
    first = first + _PRIOR / keep.shape[-1]
    return moves / np.maximum(row, _TINY), first / first.sum(-1, keepdims=True)


def _weighted(kinds: StepKinds, chance: Numbers, weight: float) -> Numbers:
    """Return the probabilities as if each reward were observed several times."""
    of_move = _sums(chance, kinds.move)[:, kinds.move]
    weighted: Numbers = of_move * (chance / np.maximum(of_move, _TINY)) ** weight
    return weighted


def _scores(data: _Episodes, fit: _Fit) -> Numbers:
    """Return the log likelihood of each episode, with weighted rewards."""
    _, scale = _forward(data, _weighted(data.kinds, fit.chance, REWARD_WEIGHT), fit.initial)
    episode = np.arange(len(data.kind)) - np.repeat(data.at[:-1], np.diff(data.at))
    scores = np.bincount(episode, log(np.maximum(scale[0], _UNLIKELY)), len(data.first))
    return scores.astype(float, copy=False)


def _is_surely_better(scores: Numbers, before: Numbers) -> bool:
    """Return whether episodes have higher scores than before by more than chance."""
    gain = scores - before
    if not np.isfinite(before).all():
        return True
    return bool(gain.sum() > _MIN_TEST_GAIN + 2 * np.sqrt(len(gain)) * gain.std())


def _sums(values: Numbers, group: Rows) -> Numbers:
    """Sum the second axis by group."""
    result = np.zeros((values.shape[0], int(group.max(initial=-1)) + 1, *values.shape[2:]))
    for total, each in zip(result, values, strict=True):
        np.add.at(total, group, each)
    return result
