"""Engines: merging of states, in the compiled core or in Python, and the compiled search.

Input: samples, and a strategy or an automaton that explains them. Output: an automaton that
explains them. docs/decisions/inference.md describes the methods.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from typing import Any, Final, NamedTuple

import numpy as np

from resolvent import _core
from resolvent._util.parallel import Progress, Workers
from resolvent.errors import TimeLimitReached
from resolvent.inference.context import LEAST_SECONDS, seconds_left
from resolvent.inference.fit import FOUND, STOPPED, UNDECIDED, Attempt
from resolvent.inference.merge_order import StrategyCalls
from resolvent.inference.state_merging import (
    RedBlue,
    Watch,
    Watcher,
    automaton_of_search,
    build_prefix_tree,
    complete_search,
)
from resolvent.inference.strategy import (
    BACKTRACKING,
    LIKELIHOOD,
    Strategy,
    engine_for,
    strategy_named,
)
from resolvent.machines.build import (
    RawAutomaton,
    StateLimitExceeded,
    WorkLimitExceeded,
    automaton_from_columns,
)
from resolvent.preprocess.samples import ContradictoryRows, SampleSet
from resolvent.traces.vocabulary import Codes, Vocabulary

_NATIVE_NAMES = {LIKELIHOOD.name: "telling", BACKTRACKING.name: "rethink"}
"""Names of merge orders in the compiled core, where they differ."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one run of an engine, and the listener for its progress.

    When time is over, the best automaton so far is returned. Beyond `most_states` merging raises
    `StateLimitExceeded`, beyond `most_work`, which only the native engine counts,
    `WorkLimitExceeded`.
    """

    time_limit: float | None = None
    listener: Watcher | None = None
    most_states: int | None = None
    most_work: int | None = None


NO_LIMITS: Final = Limits()


def merge(
    samples: SampleSet,
    order: str | Strategy = "edsm",
    engine: str = "native",
    limits: Limits = NO_LIMITS,
) -> RawAutomaton:
    """Infer an automaton from samples by merging states.

    Raises:
        ContradictoryRows: when no machine can explain the samples.
    """
    strategy = strategy_named(order)
    if engine_for(strategy, engine) == "python":
        return _merge_in_python(samples, strategy, limits)
    name = _NATIVE_NAMES.get(strategy.name, strategy.name)
    most_states, most_work = limits.most_states, limits.most_work or 0
    learner = partial(_core.learn, order=name, most_states=most_states, most_work=most_work)
    return _run_native(learner, samples, limits)


def _run_native(
    learner: Callable[..., dict[str, Any]], samples: SampleSet, limits: Limits
) -> RawAutomaton:
    """Run a learner of the compiled core, and raise the failure that it reports."""
    tree, listener = samples.histories.tree, limits.listener
    outcome = learner(
        tree,
        samples.alpha,
        samples.output,
        time_limit=limits.time_limit or 0.0,
        progress=None if listener is None else lambda *numbers: listener(Progress(*numbers)),
    )
    if "contradiction" in outcome:
        raise ContradictoryRows(*outcome["contradiction"])
    if "given_up" in outcome:
        raise StateLimitExceeded if outcome["given_up"] == "states" else WorkLimitExceeded
    return automaton_from_columns(outcome, len(tree))


def _merge_in_python(samples: SampleSet, strategy: Strategy, limits: Limits) -> RawAutomaton:
    watch = Watch(limits.time_limit, limits.listener)
    tree = build_prefix_tree(samples)
    calls = StrategyCalls(strategy, samples, tree)
    search = RedBlue(tree, watch, calls.fits if calls.has_own_fits else None)
    try:
        search.run(calls.order(), limits.most_states)
    except TimeLimitReached:
        return complete_search(samples, search)
    return automaton_of_search(search)


SEARCH_BUDGET: Final = 6_000_000_000
"""Maximum number of nodes that a search visits: 20 to 40 s at 10,000 steps if it finds nothing."""

SEEDS: Final = 4
"""Number of seeds tried in parallel. A constant: if it were the number of workers, results would
depend on it."""

EASY: Final = 1 / 64
"""Share of the effort that is first spent in one search: half a second at most. If that proves its
machine smallest, no worker is needed."""

REPAIR_BUDGET: Final = 30_000_000
"""Maximum number of nodes that a repair visits: about a second."""

PROOF_WORK: Final = 200_000
"""Number of nodes compared for a lower bound, besides one for each node of the tree."""


def search(
    samples: SampleSet,
    *,
    seed: int = 0,
    effort: float = 1.0,
    limits: Limits = NO_LIMITS,
    known: Codes | None = None,
    merges: bool = True,
) -> RawAutomaton:
    """Search for the smallest automaton that explains the samples; never larger than edsm's.

    The same samples, seed and effort give the same automaton; a time limit gives the best so far.
    `effort` is a factor for the number of nodes visited. `known` is the table [state, label] of a
    machine that explains the samples, −1 where a label is never read; the result is never larger.
    With `merges` the search starts from merging even then.
    """
    learner = partial(_core.search, seed=seed, budget=int(effort * SEARCH_BUDGET))
    if known is not None and known.size:
        table = np.ascontiguousarray(known.ravel())
        learner = partial(learner, known=table, labels=known.shape[1], merges=merges)
    return _run_native(learner, samples, limits)


def repair_automaton(
    samples: SampleSet,
    automaton: RawAutomaton,
    *,
    seed: int = 0,
    effort: float = 1.0,
    limits: Limits = NO_LIMITS,
) -> RawAutomaton:
    """Return a smaller automaton near this one that explains the samples too, if there is one.

    States are removed one by one, the weakest first: another state takes their place, and the few
    transitions that this makes wrong are changed, the rarest first. A state stays if outputs agree
    no better without it than by chance.
    """
    columns, budget = _columns_of(automaton), int(effort * REPAIR_BUDGET)
    repair = partial(_core.repair, **columns, seed=seed, budget=budget)
    smaller = _run_native(repair, samples, limits)
    return smaller if smaller.states < automaton.states else automaton


def min_states_bound(samples: SampleSet, automaton: RawAutomaton) -> int:
    """Return a lower bound on the number of states of any automaton that explains the samples.

    This number of label histories, of different states of the automaton, have outputs that differ
    pairwise. The automaton guides the search for them and is no part of the proof; labels that it
    does not read count as loops.
    """
    tree, columns = samples.histories.tree, _columns_of(automaton)
    work = PROOF_WORK + len(tree)
    return _core.min_states_bound(tree, samples.alpha, samples.output, **columns, work=work)


def explains(samples: SampleSet, table: Codes) -> bool:
    """Return whether a machine with this complete table [state, label] explains all samples."""
    columns = samples.alpha, samples.output, samples.beta, samples.offsets
    return _core.first_conflict(table.ravel(), table.shape[1], *columns) is None


def automaton_of_table(samples: SampleSet, table: Codes) -> RawAutomaton:
    """Return the automaton with this table [state, label] and the outputs of all samples."""
    tree = samples.histories.tree
    columns = _core.merge_as(tree, samples.alpha, samples.output, table.ravel(), table.shape[1])
    return automaton_from_columns(columns, len(tree))


def _columns_of(automaton: RawAutomaton) -> dict[str, Any]:
    return {
        "states": automaton.states,
        "state": automaton.transition_state,
        "label": automaton.transition_label,
        "target": automaton.transition_target,
    }


# ---- restarts ----------------------------------------------------------------


def search_with_restarts(
    samples: SampleSet,
    workers: Workers,
    *,
    seed: int = 0,
    effort: float = 1.0,
    limits: Limits = NO_LIMITS,
    known: Codes | None = None,
) -> tuple[RawAutomaton, list[Attempt]]:
    """Search with several seeds in parallel; return the smallest automaton and all attempts.

    The first seed is `seed` itself, so the result is never larger than that of `search`; if it has
    the same size, it is the same. A search whose automaton is proven smallest stops those after it,
    so the result does not depend on which ends first.
    """
    time_limit, started = limits.time_limit, time.perf_counter()
    deadline = None if time_limit is None else time.time() + time_limit
    find = partial(search, known=known)
    probe = find(samples, seed=seed, effort=effort * EASY, limits=Limits(time_limit))
    if _is_smallest(samples, probe):
        rest = replace(limits, time_limit=seconds_left(time_limit, started))
        return find(samples, seed=seed, effort=effort, limits=rest), []
    seeds, is_smallest = seeds_from(seed), dict[int, bool]()

    def is_over(outcome: _SearchOutcome) -> bool:
        # Of equals the first seed wins, so a proof counts once all searches before it have ended.
        is_smallest[outcome.seed] = outcome.is_smallest
        ended = [*takewhile(is_smallest.__contains__, seeds)]
        return len(ended) == len(seeds) or any(map(is_smallest.__getitem__, ended))

    run = partial(_search_once, find, _without_names(samples), effort, deadline)
    outcomes = workers.map_until(run, seeds, is_over, called="searching")
    attempts, automata = [], []
    for number, outcome in zip(seeds, outcomes, strict=True):
        ended, seconds = STOPPED, 0.0
        if outcome is not None:
            ended, seconds = FOUND if outcome.automaton.finished else UNDECIDED, outcome.seconds
            automata.append(outcome.automaton)
        attempts.append(Attempt(f"search, seed {number}", ended, None, None, seconds, workers.name))
    best = min(automata, key=lambda automaton: (not automaton.finished, automaton.states))
    return best, attempts  # the first of equals


def seeds_from(seed: int) -> list[int]:
    """Return a seed and the seeds of the other searches, which follow from it."""
    drawn = np.random.SeedSequence((seed, 3)).generate_state(SEEDS - 1, np.uint64)
    return [seed, *drawn.tolist()]


class _SearchOutcome(NamedTuple):
    seed: int
    automaton: RawAutomaton
    is_smallest: bool
    seconds: float


def _search_once(
    find: Callable[..., RawAutomaton],
    samples: SampleSet,
    effort: float,
    deadline: float | None,
    seed: int,
) -> _SearchOutcome:
    """Search with one seed, on a worker; the deadline is in wall-clock time, which all share."""
    started = time.perf_counter()
    seconds = None if deadline is None else max(deadline - time.time(), LEAST_SECONDS)
    automaton = find(samples, seed=seed, effort=effort, limits=Limits(seconds))
    is_smallest = _is_smallest(samples, automaton)
    return _SearchOutcome(seed, automaton, is_smallest, time.perf_counter() - started)


def _is_smallest(samples: SampleSet, automaton: RawAutomaton) -> bool:
    return automaton.finished and min_states_bound(samples, automaton) >= automaton.states


def _without_names(samples: SampleSet) -> SampleSet:
    """Return the part of the samples that a search needs: no vocabularies and no derived data."""
    nothing: Vocabulary[Any] = Vocabulary(())
    labels: Vocabulary[Any] = Vocabulary(range(len(samples.labels)))
    histories = replace(samples.histories, labels=labels)
    keys = np.empty(0, np.int64)
    return SampleSet(samples.alpha, samples.output, histories, keys, nothing, nothing, nothing)
