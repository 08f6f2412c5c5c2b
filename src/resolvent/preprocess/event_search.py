"""Search for the transition table with the shortest description: `EventSteps` → `Table`.

Two methods compete. Growing starts from one state and adds the transition that shortens the
description most, until none does; then it removes parts of the table at random and grows them
again, as long as that helps. A mixture suits worlds with many events that each reveal little: by
expectation maximization, each source is a mixture of classes. Class 0 changes no state, each other
class is a distribution of targets for each state. In the end each source has its likeliest class,
and each class one row of the table.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent._util.math import exp, log, product
from resolvent.preprocess.event_steps import Counts, DescriptionLength, EventSteps, Table
from resolvent.preprocess.timing import NONE

MOST_STATES: Final = 24  # maximum number of states of a grown table; the mixture suits larger ones
FEW_SOURCES: Final = 24  # maximum number of sources for which a single attempt is enough
_MAX_TRIED: Final = 6  # number of most promising transitions tried before the best is taken
_TABLE_WORK: Final = 100_000  # work of evaluating a table besides its steps, in steps
_MIN_GAIN: Final = 3.0  # minimum gain of a transition in nats, about its own description
_CYCLES: Final = (2, 3, 4, 5)  # lengths of the cycles in which a source may count
_MAX_COUNTERS: Final = 4  # number of the best counters from which tables grow
_MAX_FAILURES: Final = 150  # number of successive failures that ends the search
_MAX_FAILURES_EXPLAINED: Final = 15  # the same once all outputs are explained
_NEAR: Final = 0.1  # maximum relative excess of a table that is trimmed
_MIN_IMPROVEMENT: Final = 1e-6  # smallest difference of two lengths that is not rounding
_RESTART: Final = 0.3  # probability of growing from one of the first tables, not the best
_RANDOMNESS: Final = 0.6  # maximum random relative reduction of a transition's gain
_WORK: Final = 10_000_000_000  # maximum number of steps evaluated in growing
_ATTEMPTS: Final = 4  # maximum number of tables grown, with different seeds
_MAX_GROWN_SIZE: Final = 20_000_000  # maximum number of pairs of a source and an output
_DENSE: Final = 0.05  # share of informative steps from which on mixtures are tried
_MANY_STEPS: Final = 20_000  # number of informative steps from which on mixtures are tried first
_ROUNDS: Final = 1_000  # maximum number of rounds of fitting a mixture
_MIXTURE_SIZES: Final = ((8, 8), (12, 10))  # numbers of states and classes; some become equal
_GROWN_STEPS: Final = 300_000  # maximum number of steps that a table is grown on at first
_MIXTURE_STEPS: Final = 500_000  # maximum number of steps that a mixture is fitted on at first

_PRIOR_NO_EVENT: Final = 0.75  # initial probability of each source to be no event
_EXTRA_NO_EVENT: Final = 1.0  # count added to each source's readings without effect
_EXTRA_EVENT: Final = 0.5  # count added to each source's readings as an event, over all classes
_PRIOR_COUNT: Final = 0.02  # count added to each transition and to each output
_NOISE: Final = 0.01  # initial difference of states; if large, regions may number them differently

_FIRST_POWER: Final = 0.7  # power of the outputs' probabilities in the first round; it rises to 1
_WARM_UP: Final = 50  # number of rounds in which the power rises
_CHECK_INTERVAL: Final = 20  # number of rounds between two tests of convergence
_CONVERGED: Final = 1e-4  # maximum relative rise of the log likelihood at convergence

Probabilities: TypeAlias = NDArray[np.float64]


class SearchOptions(NamedTuple):
    """The seed of a search, its effort, and a function that returns whether time is left."""

    seed: int
    effort: float
    in_time: Callable[[], bool]


class Candidate(NamedTuple):
    """A table, the length of the description with it, and the counts of outputs by state."""

    length: float
    table: Table
    counts: Counts


class _Transition(NamedTuple):
    """Reading `source` in `state` leads to `target`, which may be a new state."""

    gain: float
    state: int
    source: int
    target: int


def best_table(steps: EventSteps, options: SearchOptions) -> Table:
    """Return the table with the shortest description found."""
    best = np.zeros((steps.n_sources, 1), np.int64)
    if not steps.n_outputs:
        return best
    methods = [_grown_tables] if steps.n_sources * steps.n_outputs <= _MAX_GROWN_SIZE else []
    if len(steps.informative) >= _DENSE * len(steps.source):
        is_first = len(steps.informative) >= _MANY_STEPS
        methods.insert(0 if is_first else len(methods), _mixture_tables)
    description = DescriptionLength(steps)
    best_length = np.inf
    for method in methods:
        for table in method(steps, options):
            length = description.of(table, steps.output_counts(table))
            if length < best_length:
                best, best_length = table, length
            if not steps.count_unexplained(table):
                return best
    return best


def _grown_tables(steps: EventSteps, options: SearchOptions) -> Iterator[Table]:
    """Grow tables on some traces; grow the best on all if it does not explain all of them."""
    is_small = steps.n_sources <= FEW_SOURCES
    attempts = 1 if is_small else _ATTEMPTS
    work = int(options.effort * _WORK) // (_ATTEMPTS if is_small else 1)
    sample = steps.first(_GROWN_STEPS)
    tables = []
    for attempt in range(attempts):
        seed = _ATTEMPTS * options.seed + attempt
        tables.append(grown_table(sample, seed=seed, work=work, in_time=options.in_time))
        if not sample.count_unexplained(tables[-1].table):
            break
        yield tables[-1].table
    best = min(tables, key=lambda table: table.length).table
    yield best
    if len(sample.offsets) < len(steps.offsets):
        yield grown_table(
            steps, seed=options.seed, work=work, start=best, in_time=options.in_time
        ).table


def _mixture_tables(steps: EventSteps, options: SearchOptions) -> Iterator[Table]:
    """Fit mixtures on some traces, and then on all."""
    rounds = max(1, int(options.effort * _ROUNDS))
    sample = steps.first(_MIXTURE_STEPS)
    for states, classes in _MIXTURE_SIZES:
        random = np.random.default_rng(options.seed)
        mixture = first_mixture(sample, states=states, classes=classes, random=random)
        mixture = fit_mixture(sample, mixture, rounds, in_time=options.in_time)
        yield mixture.table
        if len(sample.offsets) < len(steps.offsets):
            mixture = fit_mixture(steps, mixture, rounds, warm_up=0, in_time=options.in_time)
            yield mixture.table


def grown_table(
    steps: EventSteps,
    *,
    seed: int,
    work: int,
    start: Table | None = None,
    in_time: Callable[[], bool] = lambda: True,
) -> Candidate:
    """Grow a short table from `start` or one state; `work` limits the steps evaluated in all."""
    random = np.random.default_rng(seed)
    search = _Growth(steps, random, work, in_time, DescriptionLength(steps))
    first = np.zeros((steps.n_sources, 1), np.int64) if start is None else start
    starts = [search.evaluate(first)]
    best = search.trimmed(search.climb(starts[0]))
    if start is None and steps.count_unexplained(best.table):
        starts += search.counters()
        for counter in starts[1:]:
            best = search.shorter(best, search.climb(counter))
    failures, most = 0, _MAX_FAILURES
    while failures < most and not search.is_spent:
        if failures == 0:
            best = search.regrown(best)
            is_explained = not steps.count_unexplained(best.table)
            most = _MAX_FAILURES_EXPLAINED if is_explained else _MAX_FAILURES
        candidate = search.climb(search.random_start(best, starts), _RANDOMNESS)
        previous, best = best, search.shorter(best, candidate)
        failures = failures + 1 if best is previous else 0
    return best


@dataclass
class _Growth:
    """One search by growing: the steps, and the limits of the work."""

    steps: EventSteps
    random: np.random.Generator
    max_work: int
    in_time: Callable[[], bool]
    description: DescriptionLength
    work_done: int = 0

    @property
    def is_spent(self) -> bool:
        return self.work_done >= self.max_work or not self.in_time()

    def evaluate(self, table: Table) -> Candidate:
        counts = self.steps.output_counts(table)
        self.work_done += len(self.steps.source) + _TABLE_WORK
        return Candidate(self.description.of(table, counts), table, counts)

    def shorter(self, best: Candidate, candidate: Candidate) -> Candidate:
        """Return the shorter candidate, after trimming one that is near the best."""
        if candidate.length < best.length + _NEAR * (1.0 + best.length):
            candidate = self.trimmed(candidate)
        return candidate if candidate.length < best.length - _MIN_IMPROVEMENT else best

    def climb(self, best: Candidate, randomness: float = 0.0) -> Candidate:
        """Add transitions while they help: the best of a few; if random, the first that helps."""
        while not self.is_spent:
            better = best
            for transition in self._promising(best, randomness)[:_MAX_TRIED]:
                candidate = self.evaluate(_with(best.table, transition))
                if candidate.length < better.length - _MIN_IMPROVEMENT:
                    better = candidate
                    if randomness:
                        break
            if better is best:
                break
            best = better
        return best

    def counters(self) -> list[Candidate]:
        """Return the best tables in which one source counts modulo some number.

        Adding single transitions finds no counters if a source is read often: each count is rare.
        """
        candidates: list[Candidate] = []
        sources = np.unique(self.steps.source)
        limit = self.work_done + (self.max_work - self.work_done) // 2
        for source in self.random.permutation(sources[sources != NONE]).tolist():
            for length in _CYCLES:
                if self.work_done >= limit:
                    break
                table = np.tile(np.arange(length), (self.steps.n_sources, 1))
                table[source] = np.roll(table[source], -1)
                candidates.append(self.evaluate(table))
        candidates.sort(key=lambda x: (x.length, np.argwhere(x.table[:, 0]).tolist()))
        return candidates[:_MAX_COUNTERS]

    def regrown(self, best: Candidate) -> Candidate:
        """Remove single transitions and grow the table again, as long as that helps."""
        previous = None
        while best is not previous:
            previous = best
            for source, state in _transitions(best.table):
                if self.is_spent:
                    return best
                table = best.table.copy()
                table[source, state] = state
                best = self.shorter(best, self.climb(self.evaluate(table)))
                if best is not previous:
                    break
        return best

    def random_start(self, best: Candidate, starts: Sequence[Candidate]) -> Candidate:
        """Return a table to grow from: mostly the best after mutation, or one of the first."""
        if self.random.random() < _RESTART:
            return starts[int(self.random.integers(len(starts)))]
        return self.evaluate(self._mutated(best.table))

    def _mutated(self, table: Table) -> Table:
        """Remove a state, or some of the transitions, and add transitions at random."""
        states = table.shape[1]
        transitions = np.argwhere(table != np.arange(states))
        table = table.copy()
        if states > 1 and self.random.random() < 0.3:
            return without_state(table, int(self.random.integers(1, states)))
        if len(transitions):
            n_removed = int(self.random.integers(1, len(transitions) // 2 + 2))
            for source, state in self.random.permutation(transitions)[:n_removed]:
                table[source, state] = state
        if self.random.random() < 0.5:
            n_added = int(self.random.integers(1, 4))
            sources = self.random.integers(0, len(table), n_added)
            table[sources, self.random.integers(0, states, n_added)] = self.random.integers(
                0, states, n_added
            )
        return table

    def _promising(self, candidate: Candidate, randomness: float) -> list[_Transition]:
        """Return transitions, those first that shorten the description of outputs most."""
        counts = candidate.counts
        n_states = candidate.table.shape[1]
        length = self.description.of_outputs(counts)
        states = self.steps.states(candidate.table)
        transitions: list[_Transition] = []
        for state in np.flatnonzero(length > _MIN_GAIN).tolist():
            self.work_done += len(self.steps.source)
            after = self.steps.counts_after(states, state)
            sources = np.flatnonzero(after.any(1))
            after = after[sources]
            self.work_done += after.size * (n_states + 1)
            saved = length[state] - self.description.of_outputs(counts[state] - after)
            for target in range(n_states + (n_states < MOST_STATES)):
                if target == state:
                    continue
                is_new = target == n_states
                joined = self.description.of_outputs(after + (0 if is_new else counts[target]))
                gain = saved - joined - 1.0 if is_new else saved + length[target] - joined
                transitions.extend(
                    _Transition(float(gain[index]), state, int(sources[index]), target)
                    for index in np.flatnonzero(gain > _MIN_GAIN).tolist()
                )
        if randomness and transitions:
            factors = 1.0 - randomness * self.random.random(len(transitions))
            transitions = [
                transition._replace(gain=transition.gain * float(factor))
                for transition, factor in zip(transitions, factors, strict=True)
            ]
        return sorted(transitions, key=lambda transition: (-transition.gain, *transition[1:]))

    def trimmed(self, best: Candidate) -> Candidate:
        """Redirect or remove transitions, and join or remove states, as long as that helps."""
        previous = None
        while best is not previous and not self.is_spent:
            previous = best
            for table in self._neighbors(best.table):
                candidate = self.evaluate(table)
                if candidate.length < best.length - _MIN_IMPROVEMENT:
                    best = candidate
                if best is candidate or self.is_spent:
                    break
        return best

    def _neighbors(self, table: Table) -> Iterator[Table]:
        """Yield tables with one change."""
        n_states = table.shape[1]
        rooted = self.steps.rooted(table)
        if rooted is not None:
            yield rooted
        for state in np.flatnonzero(~self.steps.is_entered(table)).tolist():
            yield without_state(table, state)
        for joined, target in permutations(range(n_states), 2):
            if joined > 0:
                yield without_state(np.where(table == joined, target, table), joined)
        for source, state in _transitions(table):
            for target in range(n_states):
                if target != table[source, state]:
                    changed = table.copy()
                    changed[source, state] = target
                    yield changed


def _transitions(table: Table) -> list[list[int]]:
    """Return the pairs of a source and a state that it changes."""
    transitions: list[list[int]] = np.argwhere(table != np.arange(table.shape[1])).tolist()
    return transitions


def _with(table: Table, transition: _Transition) -> Table:
    """Return the table with one more transition; a new state behaves like the one before it."""
    n_states = table.shape[1]
    _, state, source, target = transition
    table = table.copy()
    if target == n_states:
        old = table[:, state]
        table = np.column_stack([table, np.where(old == state, n_states, old)])
        table[source, n_states] = n_states
    table[source, state] = target
    return table


def without_state(table: Table, state: int) -> Table:
    """Return the table without a state; transitions to it become none."""
    table = np.where(table == state, np.arange(table.shape[1]), table)
    table = np.delete(table, state, axis=1)
    return table - (table > state)


@dataclass(frozen=True, eq=False)
class Mixture:
    """The probabilities of each source's classes, of their transitions, and of the states' outputs.

    `classes` is [source, class], `transitions` is [class, before, after], and `outputs` is
    [output, state].
    """

    classes: Probabilities
    transitions: Probabilities
    outputs: Probabilities

    @property
    def table(self) -> Table:
        """The most likely transitions of each source's most likely class."""
        return np.asarray(self.transitions.argmax(2)[self.classes.argmax(1)], np.int64)

    def expect(self, steps: EventSteps, power: float = 1.0) -> tuple[float, "Mixture"]:
        """Return the log likelihood, and expected counts of classes, transitions and outputs."""
        states = self.transitions.shape[1]
        by_class = self.transitions.reshape(len(self.transitions), -1)
        by_source = product(self.classes, by_class)
        log_likelihood, transition_counts, output_counts = _core.expected_transitions(
            steps.source,
            steps.output,
            steps.offsets,
            states=states,
            transitions=by_source.astype(np.float32).ravel(),
            outputs=exp(power * log(self.outputs)).astype(np.float32).ravel(),
        )
        share = transition_counts.reshape(by_source.shape) / np.maximum(by_source, 1e-30)
        classes = product(share, by_class.T) * self.classes
        transitions = (
            product(self.classes.T, share).reshape(self.transitions.shape) * self.transitions
        )
        return log_likelihood, Mixture(classes, transitions, output_counts.reshape(-1, states))

    def normalized(self, query_of: NDArray[np.int64]) -> "Mixture":
        """Return the probabilities that maximize the likelihood of these counts."""
        classes = self.classes + _EXTRA_EVENT / max(self.classes.shape[1] - 1, 1)
        classes[:, 0] += _EXTRA_NO_EVENT
        transitions = self.transitions + _PRIOR_COUNT
        transitions /= transitions.sum(2, keepdims=True)
        transitions[0] = np.eye(transitions.shape[1])
        outputs = _by_query(self.outputs + _PRIOR_COUNT, query_of)
        return Mixture(classes / classes.sum(1, keepdims=True), transitions, outputs)


def first_mixture(
    steps: EventSteps, *, states: int, classes: int, random: np.random.Generator
) -> Mixture:
    """Return a random mixture with different classes and nearly equal states and sources."""
    stay = np.eye(states)
    transitions = 0.2 * stay + 0.8 / states + random.random((classes, states, states))
    transitions /= transitions.sum(2, keepdims=True)
    events = 1.0 + _NOISE * random.random((steps.n_sources, classes))
    events *= (1.0 - _PRIOR_NO_EVENT) / events.sum(1, keepdims=True)
    counts = np.bincount(steps.output[steps.informative], minlength=steps.n_outputs)[:, None]
    noise = random.standard_normal((steps.n_outputs, states)).clip(-3.0, 3.0)
    return Mixture(
        np.column_stack([np.full(steps.n_sources, _PRIOR_NO_EVENT), events]),
        np.concatenate([stay[None], transitions]),
        _by_query((counts + _PRIOR_COUNT) * (1.0 + _NOISE * noise), steps.query_of),
    )


def fit_mixture(
    steps: EventSteps,
    mixture: Mixture,
    rounds: int,
    *,
    warm_up: int = _WARM_UP,
    in_time: Callable[[], bool] = lambda: True,
) -> Mixture:
    """Maximize the likelihood of all outputs in at most this number of rounds."""
    last = -np.inf
    for number in range(rounds):
        power = _FIRST_POWER + (1.0 - _FIRST_POWER) * number / warm_up if warm_up else 1.0
        log_likelihood, counts = mixture.expect(steps, min(power, 1.0))
        mixture = counts.normalized(steps.query_of)
        if not in_time():
            break
        if number > warm_up and number % _CHECK_INTERVAL == 0:
            has_converged = log_likelihood - last < _CONVERGED * abs(log_likelihood)
            if has_converged or not steps.count_unexplained(mixture.table):
                break
            last = log_likelihood
    return mixture


def _by_query(counts: Probabilities, query_of: NDArray[np.int64]) -> Probabilities:
    """Divide the counts of outputs by those of their queries."""
    query_counts = np.zeros((int(query_of.max(initial=-1)) + 1, counts.shape[1]))
    np.add.at(query_counts, query_of, counts)
    return counts / query_counts[query_of]
