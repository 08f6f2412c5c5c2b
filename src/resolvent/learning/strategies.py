"""Samples → the machine that the strategy asked for finds, and what was tried for it."""

import time
from dataclasses import dataclass, replace
from typing import Any

from resolvent.exact import Certificate, import_solvers, minimal_automaton
from resolvent.learning.contest import Contest, Proposal, best_of, first_proposal, patience
from resolvent.learning.labels import WEIGHING, LabelChoice, choose_labels
from resolvent.learning.lesson import NO_TIME
from resolvent.machines import Machine
from resolvent.merging import Automaton, merge, search, search_side_by_side
from resolvent.merging.ran import Ran
from resolvent.merging.tried import CHOSEN, Tried
from resolvent.traces import Label
from resolvent.workers import Workers


@dataclass(frozen=True)
class Proposed:
    """A machine, which strategies were tried for it, and what ran side by side.

    `certificate` says what a strategy that proves has proven of it; None for all others.
    """

    proposal: Proposal
    tried: tuple[Tried, ...]
    ran: tuple[Ran, ...] = ()
    certificate: Certificate[Machine] | None = None


def proposed(
    contest: Contest,
    choice: LabelChoice,
    named: frozenset[Label] | None,
    workers: Workers | None,
) -> Proposed:
    """Find a machine as the strategy has it.

    `choice` says which labels it is looked for without, and what merging found while labels were
    weighed. `named` are the labels that a user names as trivial; None if they are to be judged.
    With `workers`, strategies that search try several ways side by side.
    """
    lesson, trivial = contest.lesson, contest.trivial
    strategy, merged = lesson.options.strategy, choice.merged.get(frozenset(trivial))
    started = time.perf_counter()
    ran: tuple[Ran, ...] = ()
    certificate: Certificate[Machine] | None = None
    if strategy.proves:
        automaton, proven, ran = _minimal(contest, named, workers)
        other = proven.alternative
        certificate = Certificate(
            proven.states,
            proven.lower_bound,
            proven.unique,
            None if other is None else contest.build(other, trivial),
            proven.effort,
        )
    elif strategy.chooses:
        first = first_proposal(contest, merged)
        return Proposed(*best_of(contest, first, time.perf_counter() - started))
    elif strategy.searches:
        automaton, ran = _searched(contest, named, workers, lesson.share())
    elif strategy == WEIGHING and merged is not None:
        automaton = merged
    else:
        samples = contest.without(trivial)
        automaton = lesson.merged(samples, strategy, most_states=lesson.most_states)
    found = contest.proposal(strategy.name, automaton, trivial)
    seconds = time.perf_counter() - started
    one = Tried(strategy.name, CHOSEN, found.machine.states, found.bits, seconds)
    return Proposed(found, (one,), ran, certificate)


def _searched(
    contest: Contest,
    named: frozenset[Label] | None,
    workers: Workers | None,
    time_limit: float | None,
) -> tuple[Automaton, tuple[Ran, ...]]:
    """Search for the smallest machine; never larger than what merging finds without labels.

    The search keeps labels that merging would drop, and merging that keeps them may find
    many more states. So the search begins with the better of both.
    """
    lesson, options = contest.lesson, contest.lesson.options
    known, began = None, time.perf_counter()
    if named is None and options.remove_trivial:
        quarter = None if time_limit is None else time_limit / 4
        part = replace(lesson, listener=None, later=0, time_left=lambda: quarter)
        choice = choose_labels(
            part,
            contest.samples,
            None,
            keeps_labels=False,
            most_work=patience(contest.samples),
        )
        merged = choice.merged.get(frozenset(choice.trivial))
        if choice.trivial != contest.trivial and merged is not None and merged.finished:
            known = contest.build(merged, choice.trivial).transitions
    if time_limit is not None:
        time_limit = max(time_limit - (time.perf_counter() - began), NO_TIME)
    how: dict[str, Any] = {
        "seed": options.seed,
        "effort": options.effort,
        "time_limit": time_limit,
        "listener": lesson.listener,
        "known": known,
    }
    samples = contest.without(contest.trivial)
    if workers is None:
        return search(samples, **how), ()
    found, ran = search_side_by_side(samples, workers, **how)
    return found, tuple(ran)


def _minimal(
    contest: Contest, named: frozenset[Label] | None, workers: Workers | None
) -> tuple[Automaton, Certificate[Automaton], tuple[Ran, ...]]:
    """Search for a small machine, then close in on the smallest from below."""
    import_solvers()
    samples, share = contest.without(contest.trivial), contest.lesson.share()
    started = time.perf_counter()
    # To find a machine is worth more than to prove that there is none.
    upper, ran = _searched(contest, named, workers, None if share is None else 0.75 * share)
    if not upper.finished:
        # Some machine is needed to say how far it is proven minimal.
        upper = merge(samples, order=WEIGHING, engine=contest.lesson.options.engine)
    if share is not None:
        share = max(share - (time.perf_counter() - started), NO_TIME)
    found, certificate = minimal_automaton(
        samples,
        upper,
        time_limit=share,
        listener=contest.lesson.listener,
        workers=workers,
    )
    if certificate.effort is not None:
        ran += tuple(certificate.effort.ran)
    return found, certificate, ran
