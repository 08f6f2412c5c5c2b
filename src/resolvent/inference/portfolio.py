"""Find the machine for one output by the strategy of the options, or by a portfolio of strategies.

`ENTRANTS` lists the portfolio of strategy "auto". The candidate with the shortest description wins;
an `Attempt` says of each why it lost. docs/decisions/inference.md says why these, and how they were
measured.

Input: a reduced `Task`. Output: the best `Candidate`, and all attempts.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Event as Flag
from typing import Final, TypeAlias

import numpy as np

from resolvent._util.math import log2
from resolvent._util.parallel import Progress
from resolvent.inference.context import seconds_left
from resolvent.inference.engine import (
    Limits,
    automaton_of_table,
    explains,
    merge,
    repair_automaton,
    search,
    search_with_restarts,
)
from resolvent.inference.exact_search import minimal_automaton
from resolvent.inference.exact_solver import require_sat_solver
from resolvent.inference.fit import CHOSEN, GIVEN_UP, LONGER, OUT_OF_TIME, Attempt, MinimalityProof
from resolvent.inference.state_merging import Watcher
from resolvent.inference.strategy import AUTO, BACKTRACKING, EDSM, LIKELIHOOD, RPNI, Strategy
from resolvent.inference.task import Task, choose_trivial_labels, work_before_search
from resolvent.machines import Machine
from resolvent.machines.build import BudgetExceeded, RawAutomaton, WorkLimitExceeded
from resolvent.machines.likelihood import description_bits
from resolvent.traces import Codes

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

RARE: Final = 0.1
"""Share of outputs other than the usual one of their query up to which they are rare. Merging then
hardly ever meets a contradiction, and the search runs whatever the number of queries."""

MOST_TO_LOOP: Final = 20_000_000
"""Maximum number of samples times transitions that change the state for which loops are tried."""

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


@dataclass(frozen=True)
class Candidate:
    """An automaton that explains the samples of a task without some labels, and its machine.

    `bits` is the length of the machine's description.
    """

    strategy: str
    automaton: RawAutomaton
    without: tuple[int, ...]
    machine: Machine
    bits: float
    proof: MinimalityProof | None = None

    @classmethod
    def of(
        cls, task: Task, strategy: str, automaton: RawAutomaton, without: tuple[int, ...]
    ) -> "Candidate":
        """Undo the reduction, and compute the description length of the machine."""
        machine = task.restore(automaton, without)
        return cls(strategy, automaton, without, machine, description_bits(machine))

    @property
    def rank(self) -> tuple[bool, int, float]:
        """Sort key of candidates: a machine that explains everything comes first."""
        return (not self.automaton.finished, self.automaton.wrong, self.bits)


def find_candidate(task: Task) -> tuple[Candidate, tuple[Attempt, ...]]:
    """Return the machine that the strategy of the options finds, and all attempts."""
    started, strategy = time.perf_counter(), task.options.strategy
    if strategy == AUTO:
        return best_candidate(task, first_candidate(task), time.perf_counter() - started)
    parts: Sequence[Attempt] = ()
    if strategy.proves:
        candidate, parts = find_minimal(task)
    elif strategy.searches:
        automaton, parts = search_smallest(task, task.limits())
        candidate = Candidate.of(task, strategy.name, automaton, task.trivial)
    else:
        candidate = find_by_merging(task, strategy, task.limits())
    seconds = time.perf_counter() - started
    chosen = Attempt(strategy.name, CHOSEN, candidate.machine.states, candidate.bits, seconds)
    return candidate, (chosen, *parts)


def find_by_merging(task: Task, order: Strategy, limits: Limits) -> Candidate:
    """Merge states, or take the result of merging from the comparison of labels."""
    automaton = task.merged if order == EDSM else None
    if automaton is None:
        # "auto" runs on the Python engine, too, but these two orders do not.
        engine = "native" if order in (LIKELIHOOD, BACKTRACKING) else task.options.engine
        automaton = merge(task.without(task.trivial), order, engine, limits)
    return Candidate.of(task, order.name, automaton, task.trivial)


# ---- strategy auto -----------------------------------------------------------

Find: TypeAlias = Callable[[Task, Candidate, Limits], Candidate]
"""Finds a candidate within limits, given the best one so far; raises `BudgetExceeded` if none can
win."""


@dataclass(frozen=True)
class Entrant:
    """A strategy of the portfolio.

    Entrants of the same `turn` run in parallel, and get the best candidate of earlier turns.
    `applies` returns whether to run it at all, given that candidate.
    """

    name: str
    turn: int
    find: Find
    applies: Callable[[Task, Candidate], bool] = lambda task, best: True


def _merging(order: Strategy) -> Find:
    """Return a function that merges in an order while the machine may still be the best."""

    def find(task: Task, best: Candidate, limits: Limits) -> Candidate:
        work = int(task.options.effort * EXTRA_WORK) + best.automaton.work
        states = most_states(best.machine.states)
        return find_by_merging(task, order, replace(limits, most_states=states, most_work=work))

    return find


def _search(task: Task, effort: float, limits: Limits, known: Codes | None = None) -> Candidate:
    """Search for a machine that reads all labels, from merging or from a `known` machine."""
    automaton = search(
        task.without(task.looping),
        seed=task.options.seed,
        effort=effort,
        limits=limits,
        known=known,
        merges=False,
    )
    return Candidate.of(task, "search", automaton, task.looping)


def _searching(task: Task, best: Candidate, limits: Limits) -> Candidate:
    """Search for a smaller machine than the best so far."""
    share = SEARCH_SHARE_IF_MEMORIZED if _memorizes(task, best) else SEARCH_SHARE
    effort = share * task.options.effort * uncertainty(best.automaton, task.output_bits)
    known = best.machine.transitions if best.automaton.finished else None
    return _search(task, effort, limits, known)


def _repairing(task: Task, best: Candidate, limits: Limits) -> Candidate:
    """Remove states from the best machine so far, the weakest first."""
    if not best.automaton.finished:
        raise WorkLimitExceeded
    seed, effort, samples = task.options.seed, task.options.effort, task.without(best.without)
    automaton = repair_automaton(samples, best.automaton, seed=seed, effort=effort, limits=limits)
    return Candidate.of(task, "repair", automaton, best.without)


def _looping(task: Task, best: Candidate, limits: Limits) -> Candidate:
    """Turn transitions of the best machine so far into loops where this shortens its description.

    A transition that leaves its state needs a reason in the traces; the rarest are tried first.
    """
    if not best.automaton.finished:
        raise WorkLimitExceeded
    samples, automaton, best = task.without(best.without), best.automaton, replace(best)
    states = np.arange(automaton.states, dtype=np.int32)
    table = np.repeat(states[:, None], len(samples.labels), axis=1)
    source, label = automaton.transition_state, automaton.transition_label
    table[source, label] = automaton.transition_target
    for row in np.argsort(automaton.transition_count, kind="stable").tolist():
        cell = int(source[row]), int(label[row])
        if table[cell] != cell[0]:
            changed = table.copy()
            changed[cell] = cell[0]
            if explains(samples, changed):
                candidate = Candidate.of(
                    task, "loops", automaton_of_table(samples, changed), best.without
                )
                if candidate.bits < best.bits:
                    best, table = candidate, changed
    return best


def _may_loop(task: Task, best: Candidate) -> bool:
    """Return whether labels are events, most of which change nothing, and loops are soon tried."""
    changes = np.count_nonzero(best.automaton.transition_state != best.automaton.transition_target)
    return bool(changes * len(task.reduced.alpha) <= MOST_TO_LOOP) and _has_many_queries(task)


def _is_small(task: Task, best: Candidate) -> bool:
    return best.machine.states * len(task.reduced.histories.tree) <= MOST_TO_BACKTRACK


def _memorizes(task: Task, best: Candidate) -> bool:
    """Return whether a machine has about as many transitions as there are label sequences."""
    labels = len(task.reduced.labels) - len(task.looping)
    nodes = best.automaton.tree_nodes
    return NODES_FOR_LABEL * labels <= nodes < MEMORIZED * best.machine.states * labels


def _may_be_searched(task: Task, best: Candidate) -> bool:
    """Return whether a search may find what merging does not."""
    if best.machine.states <= FEWEST:
        return False
    has_rare_outputs = task.rare_outputs <= RARE
    is_memory = _memorizes(task, best)
    return _has_many_queries(task) or has_rare_outputs or not best.automaton.finished or is_memory


def _has_many_queries(task: Task) -> bool:
    """Return whether there are more queries than labels, so that labels are but events."""
    queries = len(np.unique(task.reduced.alpha[task.reduced.alpha >= 0]))
    return queries >= QUERIES_FOR_LABEL * (len(task.reduced.labels) - len(task.looping))


ENTRANTS: Final[tuple[Entrant, ...]] = (
    Entrant(RPNI.name, 1, _merging(RPNI)),
    Entrant(LIKELIHOOD.name, 1, _merging(LIKELIHOOD)),
    Entrant(BACKTRACKING.name, 2, _merging(BACKTRACKING), _is_small),
    Entrant("repair", 3, _repairing),
    Entrant("search", 4, _searching, _may_be_searched),
    Entrant("loops", 5, _looping, _may_loop),
)
"""The strategies that run if `FIRST` leaves doubt."""


def most_states(states: int) -> int:
    """Return the number of states above which no machine is shorter than one of this size.

    >>> most_states(2), most_states(400)
    (10, 800)
    """
    return states + max(MORE_STATES, states)


def uncertainty(automaton: RawAutomaton, output_bits: float = 1.0) -> float:
    """Return the uncertainty of an automaton: 0 if every merge has much evidence, up to 1.

    If an eighth of the merges have little evidence, all of it may be wrong. An output that agrees
    counts `output_bits`. Two states are not in doubt: if outputs vary, no machine has fewer.
    """
    scores = [event.score for event in automaton.events if event.red is not None]
    if not automaton.finished:
        return 1.0
    if automaton.states <= FEWEST or not scores:
        return 0.0
    weak = sum(score * output_bits < SURE + log2(len(scores)) for score in scores)
    return min(8 * weak / len(scores), 1.0)


def first_candidate(task: Task) -> Candidate:
    """Return the machine of the first merge order, or if that takes long that of a search."""
    limits = task.limits()
    # If merging is cut short, the search may do better.
    half = None if limits.time_limit is None else limits.time_limit / 2
    limits = replace(limits, time_limit=half, most_work=work_before_search(task))
    try:
        return find_by_merging(task, FIRST, limits)
    except WorkLimitExceeded:
        return _search(task, SEARCH_SHARE * task.options.effort, task.limits())


_Run: TypeAlias = tuple[str, Candidate | None, float]
"""The name of an entrant, what it found, and its seconds."""


def best_candidate(
    task: Task, first: Candidate, seconds: float, entrants: Sequence[Entrant] = ENTRANTS
) -> tuple[Candidate, tuple[Attempt, ...]]:
    """Return the candidate with the shortest description, and all attempts.

    `first` took this number of `seconds`. Of equals the earlier attempt wins. The result depends
    neither on the number of cores nor on which entrant finishes first; only on a time limit.
    """
    best = first
    runs: list[_Run] = [(first.strategy, first, seconds)]
    for turn in sorted({entrant.turn for entrant in entrants}):
        is_searched = best.strategy == "search" and best is first
        if is_searched or not uncertainty(best.automaton, task.output_bits):
            break
        ready = [
            entrant for entrant in entrants if entrant.turn == turn and entrant.applies(task, best)
        ]
        if ready and task.data.context.in_time():
            runs += _run_together(task, best, ready)
        candidates = (candidate for _, candidate, _ in runs if candidate is not None)
        best = min(candidates, key=lambda candidate: candidate.rank)
    return best, tuple(_attempt(*run, best) for run in runs)


def _run_together(task: Task, best: Candidate, entrants: Sequence[Entrant]) -> list[_Run]:
    """Run entrants in threads, the first of them in this one: it calls the listener."""
    stopped, limits = Flag(), task.limits()

    def run(entrant: Entrant, listener: Watcher | None) -> _Run:
        started, candidate = time.perf_counter(), None
        with suppress(BudgetExceeded):
            candidate = entrant.find(task, best, replace(limits, listener=listener))
        return entrant.name, candidate, time.perf_counter() - started

    def stop_if_failed(progress: Progress) -> None:
        if stopped.is_set():
            raise _Stopped

    first, *rest = entrants
    if limits.time_limit is None and len(task.reduced.histories.tree) < WORTH_A_THREAD:
        return [run(entrant, limits.listener) for entrant in entrants]
    with ThreadPoolExecutor(max(len(rest), 1)) as threads:
        try:
            futures = [threads.submit(run, entrant, stop_if_failed) for entrant in rest]
            return [run(first, limits.listener), *(future.result() for future in futures)]
        except BaseException:
            stopped.set()
            raise


class _Stopped(Exception):  # noqa: N818
    """Another thread has failed."""


def _attempt(name: str, candidate: Candidate | None, seconds: float, best: Candidate) -> Attempt:
    """Return a run as plain data, with its outcome."""
    if candidate is None:
        return Attempt(name, GIVEN_UP, seconds=seconds)
    outcome = LONGER if candidate.automaton.finished else OUT_OF_TIME
    outcome = CHOSEN if candidate is best else outcome
    return Attempt(name, outcome, candidate.machine.states, candidate.bits, seconds)


# ---- strategies search and exact ---------------------------------------------


def search_smallest(task: Task, limits: Limits) -> tuple[RawAutomaton, Sequence[Attempt]]:
    """Search for the smallest machine, never larger than that of merging without labels.

    The search reads labels that merging would drop, and merging that reads them may find many
    more states. So the search starts from the better of both.
    """
    started, options, workers = time.perf_counter(), task.options, task.data.context.workers
    samples, known = task.without(task.trivial), None
    if task.data.named_trivial is None and options.remove_trivial:
        quarter = None if limits.time_limit is None else limits.time_limit / 4
        reduced = choose_trivial_labels(
            task.within(quarter), only_no_event=False, most_work=work_before_search(task)
        )
        merged = reduced.merged
        if reduced.trivial != task.trivial and merged is not None and merged.finished:
            known = task.restore(merged, reduced.trivial).transitions
    seed, effort = options.seed, options.effort
    limits = replace(limits, time_limit=seconds_left(limits.time_limit, started))
    if workers.name == "threads":  # would run restarts one after another
        return search(samples, seed=seed, effort=effort, limits=limits, known=known), ()
    return search_with_restarts(
        samples, workers, seed=seed, effort=effort, limits=limits, known=known
    )


def find_minimal(task: Task) -> tuple[Candidate, Sequence[Attempt]]:
    """Search for a small machine, then close in on the smallest from below."""
    require_sat_solver()
    started, workers = time.perf_counter(), task.data.context.workers
    samples, limits = task.without(task.trivial), task.limits()
    # To find a machine is worth more than to prove that there is none.
    share = None if limits.time_limit is None else 0.75 * limits.time_limit
    upper, attempts = search_smallest(task, replace(limits, time_limit=share))
    if not upper.finished:  # a bound on the gap needs some machine
        upper = merge(samples, EDSM, task.options.engine)
    minimal = minimal_automaton(
        samples,
        upper,
        limits=replace(limits, time_limit=seconds_left(limits.time_limit, started)),
        workers=None if workers.name == "threads" else workers,
    )
    alternative = None
    if minimal.alternative is not None:
        alternative = task.restore(minimal.alternative, task.trivial)
    candidate = Candidate.of(task, "exact", minimal.automaton, task.trivial)
    states = minimal.automaton.states
    proof = MinimalityProof(states, minimal.lower_bound, minimal.unique, alternative)
    return replace(candidate, proof=proof), (*attempts, *minimal.attempts)
