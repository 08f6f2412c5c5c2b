"""Which labels a machine is looked for without: named, judged by the traces, or weighed."""

from dataclasses import dataclass, field, replace
from math import inf
from typing import Final

from resolvent.contradiction import fitting_timing
from resolvent.learning.lesson import Lesson
from resolvent.merging import STRATEGIES, Automaton, Contradiction, TooManyStates, TooMuchWork
from resolvent.reduction import (
    Basis,
    LabelVerdict,
    Verdict,
    given_verdicts,
    judge_labels,
    remove_trivial,
)
from resolvent.samples import SampleSet
from resolvent.traces import NO_EVENT, Label

WEIGHING: Final = STRATEGIES["edsm"]
"""The strategy that says whether a machine grows when a label is dropped: a fast one."""

WEIGHED_NODES: Final = 200_000
"""Undecided labels are weighed only in prefix trees of so many nodes: each takes a search, and
with so many histories merging finds the loops by itself."""

WEIGHED_IN_ALL: Final = 400_000
"""Nodes of all prefix trees together in which labels are weighed, one tree at least."""


@dataclass
class LabelChoice:
    """The labels that one machine is looked for without, and why.

    `merged` holds what merging found while labels were weighed, by the labels left out.
    """

    trivial: tuple[int, ...] = ()
    verdicts: tuple[LabelVerdict, ...] = ()
    merged: dict[frozenset[int], Automaton] = field(default_factory=dict)


def choose_labels(
    lesson: Lesson,
    samples: SampleSet,
    named: frozenset[Label] | None,
    *,
    keeps_labels: bool,
    most_work: int | None = None,
) -> LabelChoice:
    """Decide which labels the search for a machine does without, and say why.

    `named` are the labels that a user names as trivial; None if they are to be judged. With
    `keeps_labels` none but "no event" is judged. No merge that labels are weighed by may take
    more than `most_work`.
    """
    labels, options = samples.labels, lesson.options
    if not options.remove_trivial:
        return LabelChoice()
    if named is not None:
        codes = tuple(code for code, label in enumerate(labels) if label in named)
        return LabelChoice(codes, given_verdicts(labels, codes))
    choice = LabelChoice()
    judged = judge_labels(samples, beyond_no_event=not keeps_labels, in_time=lesson.in_time)
    if not keeps_labels and lesson.in_time():
        judged = _weighed(lesson, samples, judged, choice.merged, most_work)
    choice.verdicts = tuple(verdict.renumbered(lesson.numbers) for verdict in judged)
    found = [code for code, one in enumerate(judged) if one.verdict is Verdict.TRIVIAL]
    silence = labels.get(NO_EVENT)
    # With "no event" kept a machine can count steps, and explain away that
    # labels are read at the wrong time: that is for the user to know.
    if (
        silence is not None
        and silence not in found
        and fitting_timing(lesson.traces, lesson.asking, options.timing, (silence,)) is not None
    ):
        found.append(silence)
    choice.trivial = tuple(sorted(found))
    return choice


def _weighed(
    lesson: Lesson,
    samples: SampleSet,
    verdicts: tuple[LabelVerdict, ...],
    merged: dict[frozenset[int], Automaton],
    most_work: int | None,
) -> tuple[LabelVerdict, ...]:
    """Let merging have the last word on labels that were not proven needed.

    The smallest machine never grows when a label that changes no state is
    deleted, and few searches find the loops of many such labels. So one that
    was dropped on evidence is taken back if the machine is smaller with it; one
    that was undecided is dropped if the machine is smaller without it.
    """
    trivial = {code for code, one in enumerate(verdicts) if one.verdict is Verdict.TRIVIAL}
    dropped = [code for code in sorted(trivial) if verdicts[code].basis is Basis.EVIDENCE]
    undecided = [
        code
        for code, one in enumerate(verdicts)
        if one.verdict is Verdict.UNDECIDED and one.basis is Basis.EVIDENCE
    ]
    if not dropped and not undecided:
        return verdicts

    def states(without: set[int], below: float = inf) -> float:
        histories = remove_trivial(samples.histories, sorted(without))
        counted = replace(samples, histories=histories)
        least = min(below - 1, inf if lesson.most_states is None else lesson.most_states)
        most = None if least == inf else int(least)
        try:
            found = lesson.merged(counted, WEIGHING, most_states=most, most_work=most_work)
        except (Contradiction, TooManyStates):
            return inf  # or not below what is to be undercut
        merged[frozenset(without)] = found
        return found.states if found.finished else inf

    before = set(trivial)
    try:
        fewest = states(trivial)
    except TooMuchWork:
        return verdicts
    first = merged.get(frozenset(trivial))
    if first is not None and not first.finished:
        return verdicts
    # Where answers vary at all, no machine has fewer than two states.
    for code in _to_weigh(0 if first is None else first.tree_nodes, dropped, undecided, verdicts):
        if fewest <= 2:
            break
        try:
            found = states(trivial ^ {code}, fewest)
        except TooMuchWork:
            break
        if found < fewest:
            trivial, fewest = trivial ^ {code}, found
    verdict = {True: Verdict.TRIVIAL, False: Verdict.UNDECIDED}
    changed = trivial ^ before
    return tuple(
        replace(one, verdict=verdict[code in trivial], basis=Basis.SEARCH)
        if code in changed
        else one
        for code, one in enumerate(verdicts)
    )


def _to_weigh(
    nodes: int,
    dropped: list[int],
    undecided: list[int],
    verdicts: tuple[LabelVerdict, ...],
) -> list[int]:
    """Return the labels to weigh: all, or if that takes long those that least is known of."""
    if nodes > WEIGHED_NODES:
        undecided = []
    most = max(WEIGHED_IN_ALL // max(nodes, 1), 1)
    if len(dropped) + len(undecided) <= most:
        return dropped + undecided
    doubted = sorted(dropped, key=lambda code: (verdicts[code].agreements, code))
    return (doubted + undecided)[:most]
