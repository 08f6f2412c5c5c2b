"""Find the machine for one output by the strategy of the options, or by a portfolio of strategies.

`ENTRANTS` lists the portfolio of strategy "auto". An entrant is one line: a name, the turn in
which it runs, a function that finds a candidate or gives up, and a condition. The candidate with
the shortest description wins; an `Attempt` says of each why it lost.
docs/decisions/inference.md says why these, and how they were measured.

Input: a `ReducedTask`. Output: the best `Candidate`, and all attempts.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Event as Flag
from typing import Any, Final, TypeAlias

import numpy as np

from resolvent._util.math import log2
from resolvent._util.progress import Progress
from resolvent.inference.context import seconds_left
from resolvent.inference.engine import (
    MergeLimits,
    merge,
    repair_automaton,
    search,
    search_with_restarts,
)
from resolvent.inference.exact_search import minimal_automaton
from resolvent.inference.exact_solver import require_sat_solver
from resolvent.inference.fit import (
    CHOSEN,
    GIVEN_UP,
    LONGER,
    OUT_OF_TIME,
    Attempt,
    MinimalityProof,
)
from resolvent.inference.strategy import (
    AUTO,
    BACKTRACKING,
    EDSM,
    LIKELIHOOD,
    RPNI,
    Strategy,
)
from resolvent.inference.task import (
    Candidate,
    ReducedTask,
    choose_trivial_labels,
    work_before_search,
)
from resolvent.machines.automaton import BudgetExceeded, RawAutomaton, WorkLimitExceeded

FIRST: Final = EDSM
"""The merge order that always runs."""

EXTRA_WORK: Final = 20_000_000
"""Work of each other merge order in excess of that of the first: about 0.2 s."""

SEARCH_SHARE: Final = 0.05
"""Share of the work of strategy "search" that its entrant may use: about a second."""

MEMORIZED: Final = 5
"""Nodes of the prefix tree for each label in each state below which a machine memorizes the traces
instead of explaining them, as merging does with one long log."""

NODES_FOR_LABEL: Final = 250
"""Nodes for each label from which such a machine is worth a longer search: fewer do not determine
the transitions of a few states."""

SEARCH_SHARE_IF_MEMORIZED: Final = 0.2
"""Share of the work of strategy "search" that its entrant may use in that case."""

QUERIES_FOR_LABEL: Final = 1.5
"""Ratio of queries to labels from which the search runs. States with few queries besides their
transitions, as in logs of protocols, leave the search little that merging does not find."""

MOST_TO_BACKTRACK: Final = 10_000_000
"""Maximum of nodes of the prefix tree times states for merge orders that backtrack: beyond that
each reconsidered merge takes long, and there is time for few."""

SURE: Final = 4.0
"""Outputs that must agree for a merge to be beyond doubt, besides one for each doubling of the
number of merges: if each agrees by chance half of the time, all merges are right but for a chance
of one in sixteen."""

MORE_STATES: Final = 8
"""Number of states by which a machine may exceed the best one, or be twice as large, before it is
given up: regular transitions may save the bits for more states, but not for many."""

WORTH_A_THREAD: Final = 2_000
"""Nodes of the prefix tree below which entrants run one after another: a thread takes longer to
start than they take."""

FEWEST: Final = 2
"""Least number of states of a machine whose outputs vary."""

Find: TypeAlias = Callable[[ReducedTask, Candidate | None, MergeLimits], Candidate]
"""Finds a candidate within limits, given the best one so far; raises `BudgetExceeded` if none can
win."""


@dataclass(frozen=True)
class Entrant:
    """A strategy of the portfolio.

    Entrants of the same `turn` run side by side, and get the best candidate of earlier turns.
    `applies` returns whether to run it at all, given that candidate.
    """

    name: str
    turn: int
    find: Find
    applies: Callable[[ReducedTask, Candidate], bool] = lambda reduced, best: True


def find_candidate(reduced: ReducedTask) -> tuple[Candidate, tuple[Attempt, ...]]:
    """Find a machine by the strategy of the options; return all attempts as well.

    Raises:
        ContradictoryRows: when no machine can explain the samples.
    """
    started = time.perf_counter()
    strategy = reduced.task.options.strategy
    if strategy == AUTO:
        first = first_candidate(reduced)
        return best_candidate(reduced, first, time.perf_counter() - started)
    attempts: Sequence[Attempt] = ()
    if strategy.proves:
        candidate, attempts = _minimal(reduced)
    elif strategy.searches:
        automaton, attempts = _searched(reduced, reduced.task.time_share())
        candidate = reduced.candidate(strategy.name, automaton, reduced.trivial)
    else:
        limits = MergeLimits(most_states=reduced.task.data.most_states)
        automaton = (reduced.labels.automaton if strategy == EDSM else None) or reduced.task.merge(
            reduced.without(reduced.trivial), strategy, limits
        )
        candidate = reduced.candidate(strategy.name, automaton, reduced.trivial)
    seconds = time.perf_counter() - started
    chosen = Attempt(strategy.name, CHOSEN, candidate.machine.states, candidate.bits, seconds)
    return candidate, (chosen, *attempts)


# ---- strategy auto -----------------------------------------------------------


def _merging(order: Strategy) -> Find:
    """Return a function that merges in an order while the machine may still be the best."""

    def find(reduced: ReducedTask, best: Candidate | None, limits: MergeLimits) -> Candidate:
        if best is not None:
            work = int(reduced.task.options.effort * EXTRA_WORK) + best.automaton.work
            states = most_states(best.machine.states)
            limits = replace(limits, most_states=states, most_work=work)
        automaton = reduced.task.merge(reduced.without(reduced.trivial), order, limits)
        return reduced.candidate(order.name, automaton, reduced.trivial)

    return find


def _searching(reduced: ReducedTask, best: Candidate | None, limits: MergeLimits) -> Candidate:
    """Search for a smaller machine than the best so far; it reads all labels."""
    options, known, share, doubt = reduced.task.options, None, SEARCH_SHARE, 1.0
    if best is not None:
        doubt = uncertainty(best.automaton)
        if best.automaton.finished:
            known = best.machine.transitions
        if _memorizes(reduced, best):
            share = SEARCH_SHARE_IF_MEMORIZED
    automaton = search(
        reduced.without(reduced.looping),
        seed=options.seed,
        effort=share * options.effort * doubt,
        time_limit=limits.time_limit,
        listener=limits.listener,
        known=known,
        merges=False,
    )
    return reduced.candidate("search", automaton, reduced.looping)


def _repairing(reduced: ReducedTask, best: Candidate | None, limits: MergeLimits) -> Candidate:
    """Remove states from the best machine so far, the weakest first."""
    if best is None or not best.automaton.finished:
        raise WorkLimitExceeded
    automaton = repair_automaton(
        reduced.without(best.without),
        best.automaton,
        seed=reduced.task.options.seed,
        effort=reduced.task.options.effort,
        time_limit=limits.time_limit,
        listener=limits.listener,
    )
    return reduced.candidate("repair", automaton, best.without)


def _is_small(reduced: ReducedTask, best: Candidate) -> bool:
    return best.machine.states * len(reduced.samples.histories.tree) <= MOST_TO_BACKTRACK


def _memorizes(reduced: ReducedTask, best: Candidate) -> bool:
    """Return whether a machine has about as many transitions as there are label sequences."""
    labels = len(reduced.samples.labels) - len(reduced.looping)
    nodes = best.automaton.tree_nodes
    return NODES_FOR_LABEL * labels <= nodes < MEMORIZED * best.machine.states * labels


def _may_be_searched(reduced: ReducedTask, best: Candidate) -> bool:
    """Return whether a search may find what merging does not."""
    if best.machine.states <= FEWEST:
        return False
    queries = len(np.unique(reduced.samples.alpha[reduced.samples.alpha >= 0]))
    labels = len(reduced.samples.labels) - len(reduced.looping)
    has_many_queries = queries >= QUERIES_FOR_LABEL * labels
    return has_many_queries or not best.automaton.finished or _memorizes(reduced, best)


ENTRANTS: Final[tuple[Entrant, ...]] = (
    Entrant(RPNI.name, 1, _merging(RPNI)),
    Entrant(LIKELIHOOD.name, 1, _merging(LIKELIHOOD)),
    Entrant(BACKTRACKING.name, 2, _merging(BACKTRACKING), _is_small),
    Entrant("repair", 3, _repairing),
    Entrant("search", 4, _searching, _may_be_searched),
)
"""The strategies that run if `FIRST` leaves doubt."""


def most_states(states: int) -> int:
    """Return the number of states above which no machine is shorter than one of this size.

    >>> most_states(2), most_states(400)
    (10, 800)
    """
    return states + max(MORE_STATES, states)


def uncertainty(automaton: RawAutomaton) -> float:
    """Return the uncertainty of an automaton: 0 if every merge has much evidence, up to 1.

    If an eighth of the merges have little evidence, all of it may be wrong. Two states are not in
    doubt: if outputs vary, no machine has fewer.
    """
    scores = [event.score for event in automaton.events if event.red is not None]
    if not automaton.finished:
        return 1.0
    if automaton.states <= FEWEST or not scores:
        return 0.0
    weak = sum(score < SURE + log2(len(scores)) for score in scores)
    return min(8 * weak / len(scores), 1.0)


def first_candidate(reduced: ReducedTask) -> Candidate:
    """Return the machine of the first merge order, or if that takes long that of a search."""
    merged, share = reduced.labels.automaton, reduced.task.time_share()
    if merged is None:
        limits = MergeLimits(
            # If it is cut short, the search may do better.
            None if share is None else share / 2,
            most_states=reduced.task.data.most_states,
            most_work=work_before_search(reduced.samples),
        )
        try:
            merged = reduced.task.merge(reduced.without(reduced.trivial), FIRST, limits)
        except WorkLimitExceeded:
            return _searching(
                reduced, None, MergeLimits(reduced.task.time_share(), reduced.task.listener)
            )
    return reduced.candidate(FIRST.name, merged, reduced.trivial)


def best_candidate(
    reduced: ReducedTask, first: Candidate, seconds: float, entrants: Sequence[Entrant] = ENTRANTS
) -> tuple[Candidate, tuple[Attempt, ...]]:
    """Return the candidate with the shortest description, and all attempts.

    `first` took this number of `seconds`. Of equals the earlier attempt wins. The result depends
    neither on the number of cores nor on which entrant finishes first; only on a time limit.
    """
    best = first
    runs = [_Run(first.strategy, first, seconds)]
    for turn in sorted({entrant.turn for entrant in entrants}):
        if best.strategy == "search" or not uncertainty(best.automaton):
            break
        ready = [
            entrant
            for entrant in entrants
            if entrant.turn == turn and entrant.applies(reduced, best)
        ]
        runs += _run_together(reduced, best, ready) if ready else []
        best = min((run.candidate for run in runs if run.candidate), key=lambda found: found.rank)
    return best, tuple(_attempt(run, best) for run in runs)


@dataclass(frozen=True)
class _Run:
    name: str
    candidate: Candidate | None
    seconds: float


def _run_together(reduced: ReducedTask, best: Candidate, entrants: Sequence[Entrant]) -> list[_Run]:
    """Run entrants in threads, the first of them in this one: it calls the listener."""
    stopped = Flag()
    share, listener = reduced.task.time_share(), reduced.task.listener

    def run(entrant: Entrant, listen: Callable[[Progress], object] | None) -> _Run:
        started, candidate = time.perf_counter(), None
        with suppress(BudgetExceeded):
            candidate = entrant.find(reduced, best, MergeLimits(share, listen))
        return _Run(entrant.name, candidate, time.perf_counter() - started)

    def stop_if_told(progress: Progress) -> None:
        if stopped.is_set():
            raise _Stopped

    first, *rest = entrants
    if not reduced.task.data.context.in_time():
        return []
    if share is None and len(reduced.samples.histories.tree) < WORTH_A_THREAD:
        return [run(entrant, listener) for entrant in entrants]
    with ThreadPoolExecutor(max(len(rest), 1)) as threads:
        try:
            futures = [threads.submit(run, entrant, stop_if_told) for entrant in rest]
            return [run(first, listener), *(future.result() for future in futures)]
        except BaseException:
            stopped.set()
            raise


class _Stopped(Exception):  # noqa: N818
    """Another thread has failed."""


def _attempt(run: _Run, best: Candidate) -> Attempt:
    """Return a run as plain data, with its outcome."""
    candidate = run.candidate
    if candidate is None:
        return Attempt(run.name, GIVEN_UP, seconds=run.seconds)
    outcome = CHOSEN
    if candidate is not best:
        outcome = LONGER if candidate.automaton.finished else OUT_OF_TIME
    return Attempt(run.name, outcome, candidate.machine.states, candidate.bits, run.seconds)


# ---- strategies search and exact ---------------------------------------------


def _searched(
    reduced: ReducedTask, time_limit: float | None
) -> tuple[RawAutomaton, Sequence[Attempt]]:
    """Search for the smallest machine, never larger than that of merging without labels.

    The search reads labels that merging would drop, and merging that reads them may find many
    more states. So the search starts from the better of both.
    """
    options, workers = reduced.task.options, reduced.task.data.context.workers
    initial, started = None, time.perf_counter()
    if reduced.task.data.named_trivial is None and options.remove_trivial:
        quarter = None if time_limit is None else time_limit / 4
        labels = choose_trivial_labels(
            reduced.task.within(quarter),
            reduced.samples,
            only_no_event=False,
            most_work=work_before_search(reduced.samples),
        )
        merged = labels.automaton
        if labels.codes != reduced.trivial and merged is not None and merged.finished:
            initial = reduced.build(merged, labels.codes).transitions
    settings: dict[str, Any] = {
        "seed": options.seed,
        "effort": options.effort,
        "time_limit": seconds_left(time_limit, started),
        "listener": reduced.task.listener,
        "known": initial,
    }
    samples = reduced.without(reduced.trivial)
    if workers.name == "threads":  # would run restarts one after another
        return search(samples, **settings), ()
    return search_with_restarts(samples, workers, **settings)


def _minimal(reduced: ReducedTask) -> tuple[Candidate, Sequence[Attempt]]:
    """Search for a small machine, then close in on the smallest from below."""
    require_sat_solver()
    samples, share = reduced.without(reduced.trivial), reduced.task.time_share()
    started, workers = time.perf_counter(), reduced.task.data.context.workers
    # To find a machine is worth more than to prove that there is none.
    upper, attempts = _searched(reduced, None if share is None else 0.75 * share)
    if not upper.finished:
        # A bound on the gap needs some machine.
        upper = merge(samples, EDSM, reduced.task.options.engine)
    minimal = minimal_automaton(
        samples,
        upper,
        time_limit=seconds_left(share, started),
        listener=reduced.task.listener,
        workers=None if workers.name == "threads" else workers,
    )
    alternative = None
    if minimal.alternative is not None:
        alternative = reduced.build(minimal.alternative, reduced.trivial)
    candidate = reduced.candidate("exact", minimal.automaton, reduced.trivial)
    proof = MinimalityProof(
        minimal.automaton.states, minimal.lower_bound, minimal.unique, alternative
    )
    return replace(candidate, proof=proof), (*attempts, *minimal.attempts)
