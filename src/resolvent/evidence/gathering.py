"""Machines + traces → all that speaks for the machines, and what is missing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from resolvent.errors import ModelError
from resolvent.evidence.completeness import Completeness, check_completeness
from resolvent.evidence.counting import Answers, Moves, Places, count_answers, count_moves
from resolvent.evidence.experiments import Experiment, next_experiments
from resolvent.evidence.holdout import Holdout, hold_out, split
from resolvent.evidence.separation import (
    Place,
    Question,
    Separation,
    Separations,
    Table,
    question_of,
)
from resolvent.evidence.telling import Listener, Teller
from resolvent.machines import Machine, MachinePair, TransitionMachine
from resolvent.machines.score import StepsAsked, steps_asked
from resolvent.traces import Label, TraceSet, label_text, symbol_text
from resolvent.wording import amount


@dataclass(frozen=True)
class SeenTransition:
    """A transition that the traces take, how often, and where first."""

    state: int
    label: Label
    target: int
    count: int
    place: Place

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "state": self.state,
            "label": sorted(self.label),
            "target": self.target,
            "count": self.count,
            "trace": self.place[0],
            "step": self.place[1],
        }

    def __str__(self) -> str:
        where = f"trace {self.place[0]}, step {self.place[1]}"
        read = f"state {self.state} reads {label_text(self.label)} → {self.target}"
        return f"{read}: seen {_times(self.count)} ({where})"


@dataclass(frozen=True)
class SeenAnswer:
    """An answer that depends on the state, how often the traces give it, and where first."""

    state: int
    question: Question
    output: Any
    count: int
    place: Place

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "state": self.state,
            "question": self.question._asdict(),
            "output": self.output,
            "count": self.count,
            "trace": self.place[0],
            "step": self.place[1],
        }

    def __str__(self) -> str:
        where = f"trace {self.place[0]}, step {self.place[1]}"
        answer = f"state {self.state} answers {self.question} with {symbol_text(self.output)}"
        return f"{answer}: seen {_times(self.count)} ({where})"


@dataclass(frozen=True, eq=False)
class MachineEvidence:
    """What some traces say about one machine.

    `answers` and `moves` are columns, one row for each answer and transition
    that the traces show, with how often and where first.
    """

    machine: Machine = field(repr=False)
    answers: Answers = field(repr=False)
    moves: Moves = field(repr=False)
    separations: Separations
    completeness: Completeness
    experiments: Sequence[Experiment]

    @property
    def inseparable(self) -> tuple[Separation, ...]:
        """The pairs of states that nothing in the traces tells apart."""
        return self.separations.inseparable

    def transitions(self, most: int | None = None) -> list[SeenTransition]:
        """Return transitions seen, trivial labels left out, the least supported first."""
        moves = self.moves
        rows = np.flatnonzero(~np.isin(moves.label, self.machine.trivial))
        rows = rows[np.argsort(moves.count[rows], kind="stable")][:most]
        return [
            SeenTransition(
                int(moves.state[row]),
                self.machine.labels[int(moves.label[row])],
                int(moves.target[row]),
                int(moves.count[row]),
                (int(moves.trace[row]), int(moves.step[row])),
            )
            for row in rows
        ]

    def outputs(self, most: int | None = None) -> list[SeenAnswer]:
        """Return answers seen that depend on the state, the least supported first."""
        answers = self.answers
        rows = np.flatnonzero(~np.isin(answers.question, self.machine.constant_question))
        rows = rows[np.argsort(answers.count[rows], kind="stable")][:most]
        return [
            SeenAnswer(
                int(answers.state[row]),
                question_of(self.machine, int(answers.question[row])),
                self.machine.outputs[int(answers.output[row])],
                int(answers.count[row]),
                (int(answers.trace[row]), int(answers.step[row])),
            )
            for row in rows
        ]

    def as_dict(self, most: int = 20) -> dict[str, Any]:
        """Return it as JSON values, with at most so many of the least supported answers."""
        return {
            "states": self.machine.states,
            "separations": [one.as_dict() for one in self.separations],
            "completeness": self.completeness.as_dict(),
            "transitions": [one.as_dict() for one in self.transitions()],
            "least_supported_outputs": [one.as_dict() for one in self.outputs(most)],
            "next": [one.as_dict() for one in self.experiments],
        }

    def __str__(self) -> str:
        lines = [f"{self.machine.kind} machine: {amount(self.machine.states, 'state')}"]
        lines += [f"  {one}" for one in _weakest(self.separations)]
        lines += [f"  {line}" for line in str(self.completeness).splitlines()]
        for least in (self.transitions(1), self.outputs(1)):
            lines += [f"  least support: {one}" for one in least]
        lines += [f"  next: {one}" for one in self.experiments[:1]]
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class Evidence:
    """What some traces say about a pair of machines.

    `holdout` is None where nothing could be held out.
    """

    traces: int
    steps: int
    transition: MachineEvidence
    reward: MachineEvidence
    holdout: Holdout | None

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "transition": self.transition.as_dict(),
            "reward": self.reward.as_dict(),
            "holdout": None if self.holdout is None else self.holdout.as_dict(),
        }

    def __str__(self) -> str:
        counts = f"{amount(self.traces, 'trace')}, {amount(self.steps, 'step')}"
        bound = "no traces could be held out" if self.holdout is None else str(self.holdout)
        return "\n".join([counts, str(self.transition), str(self.reward), f"hold-out: {bound}"])


def gather(
    pair: MachinePair,
    traces: TraceSet,
    *,
    infer: Callable[[TraceSet], MachinePair] | None = None,
    delta: float = 0.05,
    progress: Listener | None = None,
) -> Evidence:
    """Gather what traces say about machines, and what they leave open.

    Traces that the machines were not inferred from are themselves the hold-out.
    Otherwise `infer`, which must infer machines as these were, is called with a
    share of them, and the rest is held out; without it nothing is. `progress` is
    told now and then what is being done and how much of that is done.

    >>> import gymnasium as gym, resolvent as rs
    >>> traces = rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
    >>> evidence = gather(rs.infer(traces).machines, traces)
    >>> print(evidence.transition.separations[0])
    states 0 and 1: 1 question asked 469 times, such as (corridor, up): corridor (trace 2, step 0) \
against cyanroom (trace 99, step 2)
    """
    if len(traces) == 0:
        raise ModelError("there are no traces to gather evidence from")
    teller = Teller(progress)
    teller.begin("replaying the traces")
    both = steps_asked(pair.transition, pair.reward, pair.timing, traces)
    if not any(np.any((asked.states >= 0) & (asked.questions >= 0)) for asked in both):
        raise ModelError(
            "the machines know no step of these traces: they were inferred from another world"
        )
    places = Places.of(traces.offsets)
    transition, reward = (
        _about(asked, places, pair.transition, teller.of(f"{asked.machine.kind} machine"))
        for asked in both
    )
    known = pair.provenance is not None and pair.provenance.traces_sha256 == traces.digest
    holdout = None
    teller.begin("testing on held-out traces")
    if not known:
        holdout = hold_out(pair, traces, delta)
    elif infer is not None:
        holdout = split(pair, traces, infer, delta)
    return Evidence(len(traces), traces.steps, transition, reward, holdout)


def _about(
    asked: StepsAsked, places: Places, transition: TransitionMachine, teller: Teller
) -> MachineEvidence:
    teller.begin("counting answers")
    answers, moves = count_answers(asked, places), count_moves(asked, places)
    table = Table(asked.machine, answers)
    separations = Separations(table, teller.begin("telling states apart"))
    going = teller.begin("checking label histories")
    completeness = check_completeness(asked, places.offsets, moves, table, going)
    return MachineEvidence(
        asked.machine,
        answers,
        moves,
        separations,
        completeness,
        next_experiments(completeness, table, separations, transition),
    )


def _weakest(separations: Separations, most: int = 3) -> list[str]:
    """Say what tells states apart, for the pairs where it is least."""
    lines = [str(one) for one in separations.weakest(most)]
    if len(separations) > most:
        lines.append(f"and {amount(len(separations) - most, 'pair')} of states with more support")
    return lines


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number:,} times"
