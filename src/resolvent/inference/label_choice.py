"""Choose the trivial labels: those that a machine is learned without.

They are named by the user, judged by the traces, or weighed by merging with and without them.

Input: a learning task and its samples. Output: a `LabelChoice`.
"""

from dataclasses import dataclass, field, replace
from math import inf
from typing import Final

from resolvent.inference.learning_task import LearningTask
from resolvent.inference.strategy import STRATEGIES
from resolvent.machines.automaton import RawAutomaton, StateLimitExceeded, WorkLimitExceeded
from resolvent.preprocess.contradictions import ContradictoryRows, fitting_timing
from resolvent.preprocess.reduction import (
    Triviality,
    TrivialityBasis,
    TrivialityTest,
    assess_labels,
    declared_trivial,
    remove_trivial,
)
from resolvent.preprocess.samples import SampleSet
from resolvent.traces import NO_EVENT, Label

WEIGHING: Final = STRATEGIES["edsm"]
"""The merge order that measures whether a machine grows without a label: a fast one."""

WEIGHED_NODES: Final = 200_000
"""Maximum number of nodes of a prefix tree in which undecided labels are weighed. Each takes a
search, and with more histories merging finds the loops by itself."""

WEIGHED_IN_ALL: Final = 400_000
"""Maximum number of nodes of all prefix trees in which labels are weighed, at least one tree."""


@dataclass
class LabelChoice:
    """The labels that one machine is learned without, and why.

    `merged` holds the automata found while labels were weighed, by the labels left out.
    """

    trivial: tuple[int, ...] = ()
    verdicts: tuple[TrivialityTest, ...] = ()
    merged: dict[frozenset[int], RawAutomaton] = field(default_factory=dict)

    @property
    def automaton(self) -> RawAutomaton | None:
        """The automaton found without the trivial labels, if there is one."""
        return self.merged.get(frozenset(self.trivial))


def choose_labels(
    task: LearningTask,
    samples: SampleSet,
    named: frozenset[Label] | None,
    *,
    keeps_labels: bool,
    most_work: int | None = None,
) -> LabelChoice:
    """Choose the labels that a machine is learned without.

    Args:
        task: The learning task.
        samples: Its samples, without redundant α-inputs.
        named: Labels that the user names as trivial; None if they are to be judged.
        keeps_labels: Whether only "no event" is judged.
        most_work: Maximum work of each merge by which labels are weighed.
    """
    labels, options = samples.labels, task.options
    if not options.remove_trivial:
        return LabelChoice()
    if named is not None:
        codes = tuple(code for code, label in enumerate(labels) if label in named)
        return LabelChoice(codes, declared_trivial(labels, codes))
    choice = LabelChoice()
    tests = assess_labels(samples, beyond_no_event=not keeps_labels, in_time=task.in_time)
    if not keeps_labels and task.in_time():
        tests = _weighed(task, samples, tests, choice.merged, most_work)
    choice.verdicts = tuple(test.renumbered(task.trace_numbers) for test in tests)
    trivial = [code for code, test in enumerate(tests) if test.verdict is Triviality.TRIVIAL]
    silence = labels.get(NO_EVENT)
    # With "no event" a machine can count steps, and so explain away that labels are read at the
    # wrong time: the user has to know that.
    if (
        silence is not None
        and silence not in trivial
        and fitting_timing(task.traces, task.asking, options.timing, (silence,)) is not None
    ):
        trivial.append(silence)
    choice.trivial = tuple(sorted(trivial))
    return choice


def _weighed(
    task: LearningTask,
    samples: SampleSet,
    tests: tuple[TrivialityTest, ...],
    merged: dict[frozenset[int], RawAutomaton],
    most_work: int | None,
) -> tuple[TrivialityTest, ...]:
    """Let merging decide about labels that were not proven necessary.

    The smallest machine never grows when a label that changes no state is deleted. So a label that
    was dropped on evidence is restored if the machine is smaller with it; an undecided one is
    dropped if the machine is smaller without it.
    """
    trivial = {code for code, test in enumerate(tests) if test.verdict is Triviality.TRIVIAL}
    dropped = [code for code in sorted(trivial) if tests[code].basis is TrivialityBasis.EVIDENCE]
    undecided = [
        code
        for code, test in enumerate(tests)
        if test.verdict is Triviality.UNDECIDED and test.basis is TrivialityBasis.EVIDENCE
    ]
    if not dropped and not undecided:
        return tests

    def states(without: set[int], below: float = inf) -> float:
        histories = remove_trivial(samples.histories, sorted(without))
        least = min(below - 1, inf if task.most_states is None else task.most_states)
        most = None if least == inf else int(least)
        try:
            automaton = task.merged(
                replace(samples, histories=histories),
                WEIGHING,
                most_states=most,
                most_work=most_work,
            )
        except (ContradictoryRows, StateLimitExceeded):
            return inf  # or not below the number to beat
        merged[frozenset(without)] = automaton
        return automaton.states if automaton.finished else inf

    before = set(trivial)
    try:
        fewest = states(trivial)
    except WorkLimitExceeded:
        return tests
    first = merged.get(frozenset(trivial))
    if first is not None and not first.finished:
        return tests
    nodes = 0 if first is None else first.tree_nodes
    # If outputs vary at all, no machine has fewer than two states.
    for code in _to_weigh(nodes, dropped, undecided, tests):
        if fewest <= 2:
            break
        try:
            count = states(trivial ^ {code}, fewest)
        except WorkLimitExceeded:
            break
        if count < fewest:
            trivial, fewest = trivial ^ {code}, count
    new_verdict = {True: Triviality.TRIVIAL, False: Triviality.UNDECIDED}
    changed = trivial ^ before
    return tuple(
        replace(test, verdict=new_verdict[code in trivial], basis=TrivialityBasis.SEARCH)
        if code in changed
        else test
        for code, test in enumerate(tests)
    )


def _to_weigh(
    nodes: int, dropped: list[int], undecided: list[int], tests: tuple[TrivialityTest, ...]
) -> list[int]:
    """Return the labels to weigh: all, or if that takes long those with the least evidence."""
    if nodes > WEIGHED_NODES:
        undecided = []
    most = max(WEIGHED_IN_ALL // max(nodes, 1), 1)
    if len(dropped) + len(undecided) <= most:
        return dropped + undecided
    least_sure = sorted(dropped, key=lambda code: (tests[code].agreements, code))
    return (least_sure + undecided)[:most]
