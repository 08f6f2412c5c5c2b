"""Evidence of traces for machines, as records that read as text, JSON and in notebooks.

Input: counts and separations of each machine. Output: the support of each transition, output
and state, the least supported first.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from resolvent._util import html as notebook
from resolvent._util.text import amount, odds_text, short, visible
from resolvent.evaluation.completeness import Completeness
from resolvent.evaluation.evidence_pass import EvidenceCounts, NotableExamples
from resolvent.evaluation.experiments import NextExperiments
from resolvent.evaluation.holdout import Holdout
from resolvent.evaluation.observed import (
    Location,
    Numbers,
    ObservedOutputs,
    ObservedTransitions,
    Query,
    query_of,
)
from resolvent.evaluation.separation import Separation, Separations
from resolvent.evaluation.weakness import Weakness
from resolvent.evaluation.weighing import WeighedSeparations
from resolvent.machines import Machine
from resolvent.noise import AlternativeTransitions
from resolvent.replay import ReplayCounts
from resolvent.traces import Label, label_text, symbol_text

_MAX_WEAK_STATES: Final = 1_000
"""Maximum number of weak states in JSON."""


@dataclass(frozen=True)
class TransitionSupport:
    """A transition of the traces, its count, and its first location.

    In a noisy machine `other` is the most likely alternative target, and `log_odds` its
    log-likelihood ratio to `target`.
    """

    state: int
    label: Label
    target: int
    count: int
    place: Location
    other: int | None = None
    log_odds: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the record as JSON values."""
        return {
            "state": self.state,
            "label": sorted(self.label),
            "target": self.target,
            "count": self.count,
            "trace": self.place[0],
            "step": self.place[1],
            **({} if self.log_odds is None else {"other": self.other, "log_odds": self.log_odds}),
        }

    def __str__(self) -> str:
        read = f"state {self.state} reads {label_text(self.label)} → {self.target}"
        text = f"{read}: seen {_times(self.count)} {_location_text(self.place)}"
        if self.log_odds is None:
            return text
        return f"{text}; to {self.other}: {odds_text(self.log_odds)}"


@dataclass(frozen=True)
class OutputSupport:
    """An output of the traces that depends on the state, its count, and its first location.

    In a noisy machine `total` is the number of times the query was observed in that state.
    """

    state: int
    question: Query
    output: Any
    count: int
    place: Location
    total: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the record as JSON values."""
        return {
            "state": self.state,
            "question": self.question._asdict(),
            "output": self.output,
            "count": self.count,
            **({} if self.total is None else {"asked": self.total}),
            "trace": self.place[0],
            "step": self.place[1],
        }

    def __str__(self) -> str:
        answer = f"state {self.state} answers {self.question} with {symbol_text(self.output)}"
        count = _times(self.count)
        if self.total is not None:
            count = f"{self.count:,} of {_times(self.total)}"
        return f"{answer}: seen {count} {_location_text(self.place)}"


@dataclass(frozen=True, eq=False)
class MachineEvidence:
    """The evidence of some traces for one machine.

    `answers` and `moves` are columns with one row for each output and transition that the
    traces show, its count and first location. `rivals` weigh the transitions of a noisy machine;
    they are None without noise. `weakness` names the states that few label histories reach.
    """

    machine: Machine = field(repr=False)
    answers: ObservedOutputs = field(repr=False)
    moves: ObservedTransitions = field(repr=False)
    separations: Separations
    completeness: Completeness
    experiments: NextExperiments
    rivals: AlternativeTransitions | None = field(default=None, repr=False)
    weakness: Weakness = field(default_factory=Weakness, repr=False)

    def __eq__(self, other: object) -> bool:
        """Return whether both have the same figures; separations follow from the outputs."""
        return isinstance(other, MachineEvidence) and (
            (self.machine, self.answers, self.moves, self.completeness)
            == (other.machine, other.answers, other.moves, other.completeness)
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def inseparable(self) -> tuple[Separation, ...]:
        """The pairs of states that nothing in the traces distinguishes."""
        return self.separations.inseparable

    @property
    def assumed(self) -> int:
        """The number of generalized outputs: those that the traces never show in that state.

        Their queries have the same output wherever the traces show them.
        """
        machine = self.machine
        is_constant = np.isin(self.answers.question, machine.constant_question)
        cells = np.stack([self.answers.state, self.answers.question])[:, is_constant]
        observed = len(np.unique(cells, axis=1).T)
        return machine.states * len(machine.constant_question) - observed

    def transitions(self, most: int | None = None) -> list[TransitionSupport]:
        """Return the nontrivial transitions of the traces, the least supported first.

        For a noisy machine, the least certain ones come first.
        """
        moves, alternatives = self.moves, self.rivals
        rows = np.flatnonzero(~np.isin(moves.label, self.machine.trivial))
        rows = rows[np.argsort(moves.count[rows], kind="stable")]
        if alternatives is not None:
            cells = moves.state[rows], moves.label[rows]
            rows = rows[np.lexsort((alternatives.log_odds[cells], alternatives.target[cells] < 0))]
        return [
            TransitionSupport(
                int(moves.state[row]),
                self.machine.labels[int(moves.label[row])],
                int(moves.target[row]),
                int(moves.count[row]),
                moves.location(row),
                *self._alternative(int(moves.state[row]), int(moves.label[row])),
            )
            for row in rows[:most].tolist()
        ]

    def _alternative(self, state: int, label: int) -> tuple[int | None, float | None]:
        alternatives = self.rivals
        if alternatives is None or alternatives.target[state, label] < 0:
            return None, None
        return int(alternatives.target[state, label]), -float(alternatives.log_odds[state, label])

    def outputs(self, most: int | None = None) -> list[OutputSupport]:
        """Return the outputs of the traces that depend on the state, the least supported first.

        For a noisy machine these are the most frequent outputs, those with the smallest lead
        over the next frequent one first.
        """
        answers = self.answers
        rows = np.flatnonzero(~np.isin(answers.question, self.machine.constant_question))
        total = None
        if self.machine.is_noisy and len(rows):
            rows, lead, total = _most_frequent(answers, rows)
            order = np.argsort(lead, kind="stable")[:most]
            rows, total = rows[order], total[order]
        else:
            rows = rows[np.argsort(answers.count[rows], kind="stable")][:most]
        return [
            OutputSupport(
                int(answers.state[row]),
                query_of(self.machine, int(answers.question[row])),
                self.machine.outputs[int(answers.output[row])],
                int(answers.count[row]),
                answers.location(row),
                None if total is None else int(total[index]),
            )
            for index, row in enumerate(rows.tolist())
        ]

    def as_dict(self, most: int = 20) -> dict[str, Any]:
        """Return JSON values with at most `most` of the least supported outputs."""
        return {
            "states": self.machine.states,
            "separations": [separation.as_dict() for separation in self.separations],
            "separations_left_out": self.separations.left_out,
            "completeness": self.completeness.as_dict(),
            "assumed_answers": self.assumed,
            "transitions": [transition.as_dict() for transition in self.transitions()],
            "least_supported_outputs": [output.as_dict() for output in self.outputs(most)],
            "weak": self.weakness.as_dict(_MAX_WEAK_STATES),
            "next": [experiment.as_dict() for experiment in self.experiments],
        }

    def __str__(self) -> str:
        lines = [f"{visible(self.machine.kind)} machine: {amount(self.machine.states, 'state')}"]
        lines += [f"  {line}" for line in _weakest_separations(self.separations)]
        lines += [f"  {line}" for line in str(self.completeness).splitlines()]
        for least in (self.transitions(1), self.outputs(1)):
            lines += [f"  least support: {support}" for support in least]
        lines += [f"  next: {experiment}" for experiment in self.experiments[:1]]
        return "\n".join(lines)


@dataclass(frozen=True)
class Evidence(Mapping[str, MachineEvidence]):
    """The evidence of some traces for machines, by machine.

    `holdout` is None if nothing could be held out. `passed` are the counts of all traces,
    `examples` are notable ones, and `known` is whether the machines were inferred from exactly
    these traces.
    """

    traces: int
    steps: int
    machines: dict[str, MachineEvidence]
    holdout: Holdout | None
    passed: EvidenceCounts = field(repr=False, compare=False)
    examples: NotableExamples = field(repr=False, compare=False)
    known: bool = field(repr=False, compare=False)

    def __getitem__(self, kind: str) -> MachineEvidence:
        return self.machines[kind]

    def __iter__(self) -> Iterator[str]:
        return iter(self.machines)

    def __len__(self) -> int:
        return len(self.machines)

    @property
    def shown(self) -> ReplayCounts:
        """The replay of the traces."""
        return self.passed.shown

    @property
    def transition(self) -> MachineEvidence:
        """The evidence for the Transition Machine."""
        return self.machines["transition"]

    @property
    def reward(self) -> MachineEvidence:
        """The evidence for the Reward Machine."""
        return self.machines["reward"]

    def as_dict(self) -> dict[str, Any]:
        """Return the evidence as JSON values."""
        return {
            **{kind: evidence.as_dict() for kind, evidence in self.machines.items()},
            "holdout": None if self.holdout is None else self.holdout.as_dict(),
        }

    def __repr__(self) -> str:
        states = ", ".join(f"{kind} {evidence.machine.states}" for kind, evidence in self.items())
        held = "nothing held out"
        if self.holdout is not None:
            held = f"{self.holdout.failures} of {self.holdout.traces} held-out traces fail"
            if self.holdout.foretold is not None:
                held = "right within noise" if self.holdout.within_noise else "not within noise"
        return short(f"Evidence({self._size}; states: {states}; {held})", 250)

    def _repr_html_(self) -> str:
        """Show a table with a row for each machine, and the details as text."""
        header = ["machine", "states", "told apart", "histories, moves", "structure complete"]
        rows = (
            [
                kind,
                evidence.machine.states,
                "no" if evidence.inseparable else "yes",
                _convergence_text(evidence.completeness),
                "yes" if evidence.completeness.structure_complete else "no",
            ]
            for kind, evidence in self.items()
        )
        return notebook.panel(
            "what the traces say about the machines",
            notebook.table(header, rows, len(self)),
            notebook.lines(str(self)),
        )

    def __str__(self) -> str:
        bound = "no traces could be held out" if self.holdout is None else str(self.holdout)
        return "\n".join([self._size, *map(str, self.machines.values()), f"hold-out: {bound}"])

    @property
    def _size(self) -> str:
        return f"{amount(self.traces, 'trace')}, {amount(self.steps, 'step')}"


def _weakest_separations(separations: Separations, most: int = 3) -> list[str]:
    """Return lines about the pairs of states with the weakest separation."""
    lines = [str(separation) for separation in separations.weakest(most)]
    if separations.left_out:
        lines.append(f"what tells states apart is left out: {separations.left_out}")
    if len(separations) > most:
        more = "surer" if isinstance(separations, WeighedSeparations) else "with more support"
        lines.append(f"and {amount(len(separations) - most, 'pair')} of states {more}")
    return lines


def _most_frequent(answers: ObservedOutputs, rows: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Return the rows of the most frequent outputs among `rows`, by state and query.

    With them return their lead over the next frequent output, and the count of the query.
    """
    count = answers.count[rows]
    rows = rows[np.lexsort((-count, answers.question[rows], answers.state[rows]))]
    is_new = np.ones(len(rows), bool)
    is_new[1:] = (np.diff(answers.state[rows]) != 0) | (np.diff(answers.question[rows]) != 0)
    first = np.flatnonzero(is_new)
    count = answers.count[rows]
    total = np.add.reduceat(count, first)
    second = np.append(count, 0)[np.minimum(first + 1, len(rows))]
    second[np.diff(first, append=len(rows)) == 1] = 0
    return rows[first], count[first] - second, total


def _convergence_text(completeness: Completeness) -> str:
    if completeness.moves is not None:
        certain = completeness.moves - len(completeness.open_moves)
        return f"{certain:,} of {completeness.moves:,} moves sure"
    return f"{completeness.converging:,} of {completeness.histories:,} converge"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _location_text(location: Location) -> str:
    return f"(trace {location[0]}, step {location[1]})"
