"""Several strategies for one machine: which are tried when, and which machine is taken.

`CONTENDERS` lists them. One more is one more line there: a name, a function that finds an
automaton or gives up, and the round in which it is its turn. docs/decisions/auto.md says why
these, and how they were measured.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from threading import Event as Flag
from typing import Final

import numpy as np

from resolvent.arithmetic import log2
from resolvent.learning.lesson import NO_TIME, Lesson
from resolvent.machines import Machine
from resolvent.machines.description import description_bits
from resolvent.merging import (
    STRATEGIES,
    Automaton,
    GivenUp,
    Strategy,
    TooMuchWork,
    repaired,
    search,
)
from resolvent.merging.tried import CHOSEN, GIVEN_UP, LONGER, OUT_OF_TIME, Tried
from resolvent.progress import Progress
from resolvent.reduction import remove_trivial
from resolvent.samples import Histories, SampleSet

FIRST: Final = STRATEGIES["edsm"]
"""The order of merging that is always tried."""

PATIENCE: Final = 100_000_000
"""Work after which merging is put off until the search has been tried, at least: about a second."""

PATIENCE_FOR_NODE: Final = 2_000
"""The same for each node of the prefix tree. So much work is never needed but where hardly any
two histories are alike, as in one long log."""

WORK: Final = 20_000_000
"""Work that each other order may take besides what the first one took: about 0.2 s."""

SEARCH_SHARE: Final = 0.05
"""The part of what strategy "search" tries at most that is tried here: about a second."""

BY_HEART: Final = 5
"""Nodes of the prefix tree for each label in each state, below which a machine knows the traces by
heart instead of explaining them, as merging finds for one long log."""

NODES_FOR_LABEL: Final = 250
"""Nodes for each label from which on it is worth while to search for what is behind them: fewer
do not tell the moves of a few states."""

SHARE_BY_HEART: Final = 0.2
"""The part of what strategy "search" tries at most that is tried in that case."""

QUESTIONS_FOR_LABEL: Final = 1.5
"""The search is tried where there are so many times as many questions as labels: where states
are asked little more than where they lead, as in logs of protocols, it hardly finds anything
in seconds that merging does not."""

MOST_TO_RETHINK: Final = 10_000_000
"""Nodes of the prefix tree times states up to which merges are thought over: beyond that each
second thought takes long, and there is time for few."""

SURE: Final = 4.0
"""Answers that must agree for a merge to be beyond doubt, besides one for each doubling of the
number of merges: if each agrees by chance half of the time, all merges are right but for a
chance of one in sixteen."""

MORE_STATES: Final = 8
"""A machine may have so many more states than the best one, or twice as many, before it is
given up: regular moves may save the bits for more states, but not for so many."""


WORTH_A_THREAD: Final = 2_000
"""Nodes of the prefix tree below which strategies run one after another: a thread takes longer to
begin than they take."""

FEWEST: Final = 2
"""States that a machine has at least where answers vary."""


@dataclass(frozen=True)
class Proposal:
    """A machine that a strategy found, and what speaks for it.

    `histories` are those it was found from: labels that it was found without are left out.
    """

    strategy: str
    automaton: Automaton
    machine: Machine
    histories: Histories
    bits: float

    @property
    def rank(self) -> tuple[bool, int, float]:
        """What proposals are compared by: a machine that explains everything comes first."""
        return (not self.automaton.finished, self.automaton.wrong, self.bits)


@dataclass(frozen=True)
class Contest:
    """What strategies compete for: the machine that explains some samples.

    `trivial` are the labels that merging does without, `known` those of them that loop in every
    state, seen or not. `build` makes a machine of an automaton and the labels that it was
    found without.
    """

    lesson: Lesson
    samples: SampleSet
    trivial: tuple[int, ...]
    known: tuple[int, ...]
    build: Callable[[Automaton, tuple[int, ...]], Machine]
    _histories: dict[tuple[int, ...], Histories] = field(default_factory=dict)

    @property
    def asks_much(self) -> bool:
        """Whether states are asked more than where they lead."""
        asked = len(np.unique(self.samples.alpha[self.samples.alpha >= 0]))
        return asked >= QUESTIONS_FOR_LABEL * (len(self.samples.labels) - len(self.known))

    def without(self, labels: tuple[int, ...]) -> SampleSet:
        """Return the samples with some labels left out of the histories."""
        if labels not in self._histories:
            self._histories[labels] = remove_trivial(self.samples.histories, labels)
        return replace(self.samples, histories=self._histories[labels])

    def proposal(self, strategy: str, automaton: Automaton, without: tuple[int, ...]) -> Proposal:
        """Build the machine, and count the bits that it takes."""
        machine = self.build(automaton, without)
        histories = self.without(without).histories
        return Proposal(strategy, automaton, machine, histories, description_bits(machine))


Find = Callable[[Contest, Proposal | None, float | None, Callable[[Progress], object]], Proposal]


@dataclass(frozen=True)
class Contender:
    """A strategy that takes part, and how it finds a machine.

    Those of the same `turn` run side by side, and are told the best machine of earlier turns.
    `find` raises `GivenUp` where it finds nothing that can win. `pays` says whether to try it
    at all, given that machine.
    """

    name: str
    turn: int
    find: Find
    pays: Callable[[Contest, Proposal], bool] = lambda contest, best: True


def _merging(order: Strategy) -> Find:
    """Return what merges in an order, as long as the machine may still be the best."""

    def find(
        contest: Contest,
        best: Proposal | None,
        time_limit: float | None,
        listener: Callable[[Progress], object],
    ) -> Proposal:
        lesson = replace(contest.lesson, listener=listener)
        states = None if best is None else most_states(best.machine.states)
        work = None if best is None else int(lesson.options.effort * WORK) + best.automaton.work
        automaton = lesson.merged(
            contest.without(contest.trivial),
            order,
            time_limit,
            most_states=states,
            most_work=work,
        )
        return contest.proposal(order.name, automaton, contest.trivial)

    return find


def _searching(
    contest: Contest,
    best: Proposal | None,
    time_limit: float | None,
    listener: Callable[[Progress], object],
) -> Proposal:
    """Search for a smaller machine than the best so far, which reads all labels."""
    options = contest.lesson.options
    share = SHARE_BY_HEART if best is not None and _by_heart(contest, best) else SEARCH_SHARE
    automaton = search(
        contest.without(contest.known),
        seed=options.seed,
        effort=share * options.effort * (1 if best is None else doubt(best.automaton)),
        time_limit=time_limit,
        listener=listener,
        known=best.machine.transitions if best is not None and best.automaton.finished else None,
        merges=False,
    )
    return contest.proposal("search", automaton, contest.known)


def _repairing(
    contest: Contest,
    best: Proposal | None,
    time_limit: float | None,
    listener: Callable[[Progress], object],
) -> Proposal:
    """Take states out of the best machine so far, the weakest first."""
    if best is None or not best.automaton.finished:
        raise TooMuchWork
    options = contest.lesson.options
    automaton = repaired(
        replace(contest.samples, histories=best.histories),
        best.automaton,
        seed=options.seed,
        effort=options.effort,
        time_limit=time_limit,
        listener=listener,
    )
    kept = best.histories is contest.without(contest.known).histories
    return contest.proposal("repair", automaton, contest.known if kept else contest.trivial)


def _rethinking_pays(contest: Contest, best: Proposal) -> bool:
    return best.machine.states * len(contest.samples.histories.tree) <= MOST_TO_RETHINK


def _by_heart(contest: Contest, best: Proposal) -> bool:
    """Whether a machine has about as many moves as there are histories."""
    labels = len(contest.samples.labels) - len(contest.known)
    nodes = best.automaton.tree_nodes
    return NODES_FOR_LABEL * labels <= nodes < BY_HEART * best.machine.states * labels


def _search_pays(contest: Contest, best: Proposal) -> bool:
    unexplained = not best.automaton.finished or _by_heart(contest, best)
    return best.machine.states > FEWEST and (contest.asks_much or unexplained)


CONTENDERS: Final[tuple[Contender, ...]] = (
    *(
        Contender(one.name, 2, _merging(one), _rethinking_pays)
        if one.rethinks
        else Contender(one.name, 1, _merging(one))
        for one in STRATEGIES.values()
        if one.merges and not one.chooses and one != FIRST
    ),
    Contender("repair", 3, _repairing),
    Contender("search", 4, _searching, _search_pays),
)
"""All that are tried where `FIRST` leaves doubt."""


def most_states(states: int) -> int:
    """Return the number of states above which no machine is shorter than one of so many.

    >>> most_states(2), most_states(400)
    (10, 800)
    """
    return states + max(MORE_STATES, states)


def doubt(automaton: Automaton) -> float:
    """Return how much of an automaton is in doubt: 0 if every merge has much for it, up to 1.

    Where an eighth of the merges have little for them, all of it may be wrong. Two states are
    not in doubt: where answers vary, no machine has fewer.
    """
    scores = [event.score for event in automaton.events if event.red is not None]
    if not automaton.finished:
        return 1.0
    if automaton.states <= FEWEST or not scores:
        return 0.0
    weak = sum(score < SURE + log2(len(scores)) for score in scores)
    return min(8 * weak / len(scores), 1.0)


def patience(samples: SampleSet) -> int:
    """Return the work after which merging is put off until the search has been tried."""
    return max(PATIENCE, PATIENCE_FOR_NODE * len(samples.histories.tree))


def first_proposal(contest: Contest, merged: Automaton | None) -> Proposal:
    """Return what the first order of merging finds, or where that takes long what a search does.

    `merged` is what merging has found already, if it has.
    """
    lesson, share = contest.lesson, contest.lesson.share()
    if merged is None:
        try:
            merged = lesson.merged(
                contest.without(contest.trivial),
                FIRST,
                # If it is cut short, the search may do better.
                None if share is None else share / 2,
                most_states=lesson.most_states,
                most_work=patience(contest.samples),
            )
        except TooMuchWork:
            return _searching(contest, None, lesson.share(), lesson.listener or _nobody)
    return contest.proposal(FIRST.name, merged, contest.trivial)


def best_of(
    contest: Contest,
    first: Proposal,
    seconds: float,
    contenders: Sequence[Contender] = CONTENDERS,
) -> tuple[Proposal, tuple[Tried, ...]]:
    """Return the machine with the shortest description, and all that was tried.

    `first` took so many `seconds`. Of equals the one that was tried first is taken. What is
    found depends neither on how many cores there are nor on which contender is done first;
    only on time, where there is a limit.
    """
    best = first
    entries: list[tuple[str, Proposal | None, float]] = [(first.strategy, first, seconds)]
    for turn in sorted({one.turn for one in contenders}):
        if best.strategy == "search" or not doubt(best.automaton):
            break
        paying = [one for one in contenders if one.turn == turn and one.pays(contest, best)]
        found = _side_by_side(contest, best, paying) if paying else []
        entries += found
        best = min([best, *(one for _, one, _ in found if one is not None)], key=_rank)
    return best, tuple(_told(entries, best))


def _nobody(progress: Progress) -> None:
    """Listen to nothing."""


def _rank(proposal: Proposal) -> tuple[bool, int, float]:
    return proposal.rank


def _side_by_side(
    contest: Contest, best: Proposal, contenders: Sequence[Contender]
) -> list[tuple[str, Proposal | None, float]]:
    """Run contenders in threads, the first of them in this one: it tells the listener."""
    stopped = Flag()
    share = contest.lesson.share()
    listen = contest.lesson.listener

    def run(
        contender: Contender, listener: Callable[[Progress], object]
    ) -> tuple[str, Proposal | None, float]:
        started = time.perf_counter()
        try:
            found = contender.find(contest, best, share, listener)
        except GivenUp:
            return contender.name, None, time.perf_counter() - started
        return contender.name, found, time.perf_counter() - started

    def hear(progress: Progress) -> None:
        if stopped.is_set():
            raise _Stopped

    first, *others = contenders
    if share is not None and share <= NO_TIME:
        return []
    if share is None and len(contest.samples.histories.tree) < WORTH_A_THREAD:
        return [run(one, listen or _nobody) for one in contenders]
    with ThreadPoolExecutor(max(len(others), 1)) as threads:
        try:
            beside = [threads.submit(run, one, hear) for one in others]
            found = run(first, listen or _nobody)
            return [found, *(one.result() for one in beside)]
        except BaseException:
            stopped.set()
            raise


class _Stopped(Exception):  # noqa: N818
    """Another thread has given up."""


def _told(entries: Iterable[tuple[str, Proposal | None, float]], best: Proposal) -> Iterable[Tried]:
    for name, found, seconds in entries:
        if found is None:
            yield Tried(name, GIVEN_UP, seconds=seconds)
        else:
            outcome = CHOSEN if found is best else LONGER
            if not found.automaton.finished and found is not best:
                outcome = OUT_OF_TIME
            yield Tried(name, outcome, found.machine.states, found.bits, seconds)
