"""Find the machine for one output by the strategy of the options, or by a portfolio of strategies.

`ENTRANTS` lists the portfolio of strategy "auto". An entrant is one line: a name, the round in
which it runs, a function that finds a candidate or gives up, and a condition.
docs/decisions/inference.md says why these, and how they were measured.

Input: a `Portfolio`, the reduced samples of one output. Output: the best `Candidate`.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from threading import Event as Flag
from typing import Any, Final

import numpy as np

from resolvent._util.math import log2
from resolvent._util.parallel import Workers
from resolvent._util.progress import Progress
from resolvent.inference.attempts import CHOSEN, GIVEN_UP, LONGER, OUT_OF_TIME, Attempt, WorkerRun
from resolvent.inference.context import NO_SECONDS_LEFT
from resolvent.inference.engine import merge, search
from resolvent.inference.exact.certificate import MinimalityProof
from resolvent.inference.exact.search import minimal_automaton
from resolvent.inference.exact.solver import require_sat_solver
from resolvent.inference.label_choice import WEIGHING, LabelChoice, choose_labels
from resolvent.inference.learning_task import LearningTask
from resolvent.inference.restarts import repair_automaton, search_with_restarts
from resolvent.inference.strategy import STRATEGIES, Strategy
from resolvent.machines import Machine
from resolvent.machines.automaton import BudgetExceeded, RawAutomaton, WorkLimitExceeded
from resolvent.machines.build import description_bits
from resolvent.preprocess.reduction import remove_trivial
from resolvent.preprocess.samples import Histories, SampleSet
from resolvent.traces import Label

FIRST: Final = STRATEGIES["edsm"]
"""The merge order that always runs."""

PATIENCE: Final = 100_000_000
"""Least work after which merging is put off until the search has run: about a second."""

PATIENCE_FOR_NODE: Final = 2_000
"""The same for each node of the prefix tree. That much work is needed only if hardly any two
histories are alike, as in one long log."""

WORK: Final = 20_000_000
"""Work of each other merge order in excess of that of the first: about 0.2 s."""

SEARCH_SHARE: Final = 0.05
"""Share of the work of strategy "search" that its entrant may use: about a second."""

BY_HEART: Final = 5
"""Nodes of the prefix tree for each label in each state below which a machine memorizes the traces
instead of explaining them, as merging does with one long log."""

NODES_FOR_LABEL: Final = 250
"""Nodes for each label from which such a machine is worth a longer search: fewer do not determine
the transitions of a few states."""

SHARE_BY_HEART: Final = 0.2
"""Share of the work of strategy "search" that its entrant may use in that case."""

QUESTIONS_FOR_LABEL: Final = 1.5
"""Ratio of queries to labels from which the search runs. States with few queries besides their
transitions, as in logs of protocols, leave the search little that merging does not find."""

MOST_TO_RETHINK: Final = 10_000_000
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
    """A machine that a strategy found, and its score.

    `histories` are those it was found from, without the labels that were left out.
    """

    strategy: str
    automaton: RawAutomaton
    machine: Machine
    histories: Histories
    bits: float

    @property
    def rank(self) -> tuple[bool, int, float]:
        """Sort key of candidates: a machine that explains everything comes first."""
        return (not self.automaton.finished, self.automaton.wrong, self.bits)


@dataclass(frozen=True)
class Portfolio:
    """The samples that strategies compete to explain.

    `trivial` are the labels that merging leaves out, `known` those of them that loop in every
    state, seen or not. `build` makes a machine of an automaton and the labels that it was found
    without.
    """

    task: LearningTask
    samples: SampleSet
    trivial: tuple[int, ...]
    known: tuple[int, ...]
    build: Callable[[RawAutomaton, tuple[int, ...]], Machine]
    _histories: dict[tuple[int, ...], Histories] = field(default_factory=dict)

    @property
    def has_many_queries(self) -> bool:
        """Whether states have more queries than transitions."""
        queries = len(np.unique(self.samples.alpha[self.samples.alpha >= 0]))
        return queries >= QUESTIONS_FOR_LABEL * (len(self.samples.labels) - len(self.known))

    def without(self, labels: tuple[int, ...]) -> SampleSet:
        """Return the samples with some labels left out of the histories."""
        if labels not in self._histories:
            self._histories[labels] = remove_trivial(self.samples.histories, labels)
        return replace(self.samples, histories=self._histories[labels])

    def candidate(
        self, strategy: str, automaton: RawAutomaton, without: tuple[int, ...]
    ) -> Candidate:
        """Build the machine of an automaton, and compute its description length."""
        machine = self.build(automaton, without)
        histories = self.without(without).histories
        return Candidate(strategy, automaton, machine, histories, description_bits(machine))


Listen = Callable[[Progress], object]
Find = Callable[[Portfolio, Candidate | None, float | None, Listen], Candidate]


@dataclass(frozen=True)
class Entrant:
    """A strategy of the portfolio.

    Entrants of the same `turn` run side by side, and get the best machine of earlier turns.
    `find` raises `BudgetExceeded` if it finds nothing that can win. `pays` returns whether to run
    it at all, given that machine.
    """

    name: str
    turn: int
    find: Find
    pays: Callable[[Portfolio, Candidate], bool] = lambda portfolio, best: True


def _merging(order: Strategy) -> Find:
    """Return a function that merges in an order while the machine may still be the best."""

    def find(
        portfolio: Portfolio, best: Candidate | None, time_limit: float | None, listener: Listen
    ) -> Candidate:
        task = replace(portfolio.task, listener=listener)
        states = None if best is None else most_states(best.machine.states)
        work = None if best is None else int(task.options.effort * WORK) + best.automaton.work
        automaton = task.merged(
            portfolio.without(portfolio.trivial),
            order,
            time_limit,
            most_states=states,
            most_work=work,
        )
        return portfolio.candidate(order.name, automaton, portfolio.trivial)

    return find


def _searching(
    portfolio: Portfolio, best: Candidate | None, time_limit: float | None, listener: Listen
) -> Candidate:
    """Search for a smaller machine than the best so far; it reads all labels."""
    options = portfolio.task.options
    by_heart = best is not None and _memorizes(portfolio, best)
    share = SHARE_BY_HEART if by_heart else SEARCH_SHARE
    automaton = search(
        portfolio.without(portfolio.known),
        seed=options.seed,
        effort=share * options.effort * (1 if best is None else uncertainty(best.automaton)),
        time_limit=time_limit,
        listener=listener,
        known=best.machine.transitions if best is not None and best.automaton.finished else None,
        merges=False,
    )
    return portfolio.candidate("search", automaton, portfolio.known)


def _repairing(
    portfolio: Portfolio, best: Candidate | None, time_limit: float | None, listener: Listen
) -> Candidate:
    """Remove states from the best machine so far, the weakest first."""
    if best is None or not best.automaton.finished:
        raise WorkLimitExceeded
    options = portfolio.task.options
    automaton = repair_automaton(
        replace(portfolio.samples, histories=best.histories),
        best.automaton,
        seed=options.seed,
        effort=options.effort,
        time_limit=time_limit,
        listener=listener,
    )
    reads_all = best.histories is portfolio.without(portfolio.known).histories
    without = portfolio.known if reads_all else portfolio.trivial
    return portfolio.candidate("repair", automaton, without)


def _backtracking_pays(portfolio: Portfolio, best: Candidate) -> bool:
    return best.machine.states * len(portfolio.samples.histories.tree) <= MOST_TO_RETHINK


def _memorizes(portfolio: Portfolio, best: Candidate) -> bool:
    """Return whether a machine has about as many transitions as there are histories."""
    labels = len(portfolio.samples.labels) - len(portfolio.known)
    nodes = best.automaton.tree_nodes
    return NODES_FOR_LABEL * labels <= nodes < BY_HEART * best.machine.states * labels


def _search_pays(portfolio: Portfolio, best: Candidate) -> bool:
    is_unexplained = not best.automaton.finished or _memorizes(portfolio, best)
    return best.machine.states > FEWEST and (portfolio.has_many_queries or is_unexplained)


ENTRANTS: Final[tuple[Entrant, ...]] = (
    *(
        Entrant(order.name, 2, _merging(order), _backtracking_pays)
        if order.rethinks
        else Entrant(order.name, 1, _merging(order))
        for order in STRATEGIES.values()
        if order.merges and not order.chooses and order != FIRST
    ),
    Entrant("repair", 3, _repairing),
    Entrant("search", 4, _searching, _search_pays),
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


def patience(samples: SampleSet) -> int:
    """Return the work after which merging is put off until the search has run."""
    return max(PATIENCE, PATIENCE_FOR_NODE * len(samples.histories.tree))


def first_candidate(portfolio: Portfolio, merged: RawAutomaton | None) -> Candidate:
    """Return the machine of the first merge order, or if that takes long that of a search.

    `merged` is the automaton of that order, if it was found before.
    """
    task, share = portfolio.task, portfolio.task.share()
    if merged is None:
        try:
            merged = task.merged(
                portfolio.without(portfolio.trivial),
                FIRST,
                # If it is cut short, the search may do better.
                None if share is None else share / 2,
                most_states=task.most_states,
                most_work=patience(portfolio.samples),
            )
        except WorkLimitExceeded:
            return _searching(portfolio, None, task.share(), task.listener or _ignore)
    return portfolio.candidate(FIRST.name, merged, portfolio.trivial)


def best_of(
    portfolio: Portfolio, first: Candidate, seconds: float, entrants: Sequence[Entrant] = ENTRANTS
) -> tuple[Candidate, tuple[Attempt, ...]]:
    """Return the machine with the shortest description, and all attempts.

    `first` took this number of `seconds`. Of equals the earlier attempt wins. The result depends
    neither on the number of cores nor on which entrant finishes first; only on a time limit.
    """
    best = first
    attempts: list[tuple[str, Candidate | None, float]] = [(first.strategy, first, seconds)]
    for turn in sorted({entrant.turn for entrant in entrants}):
        if best.strategy == "search" or not uncertainty(best.automaton):
            break
        paying = [
            entrant
            for entrant in entrants
            if entrant.turn == turn and entrant.pays(portfolio, best)
        ]
        new = _side_by_side(portfolio, best, paying) if paying else []
        attempts += new
        candidates = [best, *(candidate for _, candidate, _ in new if candidate is not None)]
        best = min(candidates, key=lambda candidate: candidate.rank)
    return best, tuple(_described(attempts, best))


def _ignore(progress: Progress) -> None:
    """Ignore progress."""


def _side_by_side(
    portfolio: Portfolio, best: Candidate, entrants: Sequence[Entrant]
) -> list[tuple[str, Candidate | None, float]]:
    """Run entrants in threads, the first of them in this one: it calls the listener."""
    stopped = Flag()
    share = portfolio.task.share()
    listen = portfolio.task.listener

    def run(entrant: Entrant, listener: Listen) -> tuple[str, Candidate | None, float]:
        started = time.perf_counter()
        try:
            candidate = entrant.find(portfolio, best, share, listener)
        except BudgetExceeded:
            return entrant.name, None, time.perf_counter() - started
        return entrant.name, candidate, time.perf_counter() - started

    def stop_if_told(progress: Progress) -> None:
        if stopped.is_set():
            raise _Stopped

    first, *rest = entrants
    if share is not None and share <= NO_SECONDS_LEFT:
        return []
    if share is None and len(portfolio.samples.histories.tree) < WORTH_A_THREAD:
        return [run(entrant, listen or _ignore) for entrant in entrants]
    with ThreadPoolExecutor(max(len(rest), 1)) as threads:
        try:
            futures = [threads.submit(run, entrant, stop_if_told) for entrant in rest]
            attempt = run(first, listen or _ignore)
            return [attempt, *(future.result() for future in futures)]
        except BaseException:
            stopped.set()
            raise


class _Stopped(Exception):  # noqa: N818
    """Another thread has failed."""


def _described(
    attempts: Iterable[tuple[str, Candidate | None, float]], best: Candidate
) -> Iterable[Attempt]:
    """Return attempts as plain data, with their outcomes."""
    for name, candidate, seconds in attempts:
        if candidate is None:
            yield Attempt(name, GIVEN_UP, seconds=seconds)
        else:
            outcome = CHOSEN if candidate is best else LONGER
            if not candidate.automaton.finished and candidate is not best:
                outcome = OUT_OF_TIME
            yield Attempt(name, outcome, candidate.machine.states, candidate.bits, seconds)


@dataclass(frozen=True)
class StrategyRun:
    """The machine of a strategy, the attempts at it, and the runs of workers side by side.

    `certificate` is the proof of a strategy that proves; None for all others.
    """

    candidate: Candidate
    tried: tuple[Attempt, ...]
    ran: tuple[WorkerRun, ...] = ()
    certificate: MinimalityProof[Machine] | None = None


def run_strategy(
    portfolio: Portfolio,
    choice: LabelChoice,
    named: frozenset[Label] | None,
    workers: Workers | None,
) -> StrategyRun:
    """Find a machine by the strategy of the options.

    Args:
        portfolio: The samples to explain.
        choice: The labels left out, and automata found while labels were weighed.
        named: Labels that the user names as trivial; None if they are judged.
        workers: Workers on which a search runs several restarts side by side.
    """
    task, trivial = portfolio.task, portfolio.trivial
    strategy, merged = task.options.strategy, choice.automaton
    started = time.perf_counter()
    ran: tuple[WorkerRun, ...] = ()
    certificate: MinimalityProof[Machine] | None = None
    if strategy.proves:
        automaton, proof, ran = _minimal(portfolio, named, workers)
        alternative = (
            None if proof.alternative is None else portfolio.build(proof.alternative, trivial)
        )
        certificate = MinimalityProof(
            proof.states, proof.lower_bound, proof.unique, alternative, proof.effort
        )
    elif strategy.chooses:
        first = first_candidate(portfolio, merged)
        return StrategyRun(*best_of(portfolio, first, time.perf_counter() - started))
    elif strategy.searches:
        automaton, ran = _searched(portfolio, named, workers, task.share())
    elif strategy == WEIGHING and merged is not None:
        automaton = merged
    else:
        samples = portfolio.without(trivial)
        automaton = task.merged(samples, strategy, most_states=task.most_states)
    candidate = portfolio.candidate(strategy.name, automaton, trivial)
    seconds = time.perf_counter() - started
    attempt = Attempt(strategy.name, CHOSEN, candidate.machine.states, candidate.bits, seconds)
    return StrategyRun(candidate, (attempt,), ran, certificate)


def _searched(
    portfolio: Portfolio,
    named: frozenset[Label] | None,
    workers: Workers | None,
    time_limit: float | None,
) -> tuple[RawAutomaton, tuple[WorkerRun, ...]]:
    """Search for the smallest machine, never larger than that of merging without labels.

    The search reads labels that merging would drop, and merging that reads them may find many
    more states. So the search starts from the better of both.
    """
    task, options = portfolio.task, portfolio.task.options
    initial, began = None, time.perf_counter()
    if named is None and options.remove_trivial:
        quarter = None if time_limit is None else time_limit / 4
        part = replace(task, listener=None, later=0, time_left=lambda: quarter)
        choice = choose_labels(
            part, portfolio.samples, None, keeps_labels=False, most_work=patience(portfolio.samples)
        )
        merged = choice.automaton
        if choice.trivial != portfolio.trivial and merged is not None and merged.finished:
            initial = portfolio.build(merged, choice.trivial).transitions
    if time_limit is not None:
        time_limit = max(time_limit - (time.perf_counter() - began), NO_SECONDS_LEFT)
    settings: dict[str, Any] = {
        "seed": options.seed,
        "effort": options.effort,
        "time_limit": time_limit,
        "listener": task.listener,
        "known": initial,
    }
    samples = portfolio.without(portfolio.trivial)
    if workers is None:
        return search(samples, **settings), ()
    automaton, ran = search_with_restarts(samples, workers, **settings)
    return automaton, tuple(ran)


def _minimal(
    portfolio: Portfolio, named: frozenset[Label] | None, workers: Workers | None
) -> tuple[RawAutomaton, MinimalityProof[RawAutomaton], tuple[WorkerRun, ...]]:
    """Search for a small machine, then close in on the smallest from below."""
    require_sat_solver()
    samples, share = portfolio.without(portfolio.trivial), portfolio.task.share()
    started = time.perf_counter()
    # To find a machine is worth more than to prove that there is none.
    upper, ran = _searched(portfolio, named, workers, None if share is None else 0.75 * share)
    if not upper.finished:
        # A bound on the gap needs some machine.
        upper = merge(samples, order=WEIGHING, engine=portfolio.task.options.engine)
    if share is not None:
        share = max(share - (time.perf_counter() - started), NO_SECONDS_LEFT)
    automaton, certificate = minimal_automaton(
        samples, upper, time_limit=share, listener=portfolio.task.listener, workers=workers
    )
    if certificate.effort is not None:
        ran += tuple(certificate.effort.ran)
    return automaton, certificate, ran
