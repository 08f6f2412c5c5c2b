"""What traces say about machines, as records: how sure each state, move and answer is, and why."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent import notebook
from resolvent.machines import Machine
from resolvent.noise import Rivals
from resolvent.replay import Replay
from resolvent.traces import Label, label_text, symbol_text
from resolvent.trust.completeness import Completeness
from resolvent.trust.counting import AnswersSeen, MovesSeen
from resolvent.trust.experiments import NextExperiments
from resolvent.trust.holdout import Holdout
from resolvent.trust.notable import Examples
from resolvent.trust.passing import Passed
from resolvent.trust.separation import Place, Question, Separation, Separations, question_of
from resolvent.trust.weakness import Weakness
from resolvent.trust.weighing import WeighedSeparations
from resolvent.wording import amount, odds_text, short, visible

_MOST_WEAK = 1_000
"""States that rest on little, of which JSON tells."""


@dataclass(frozen=True)
class SeenTransition:
    """A transition that the traces take, how often, and where first.

    In a noisy machine `other` is where it likeliest else leads, and `log_odds` the logarithm
    of how many times as likely that is.
    """

    state: int
    label: Label
    target: int
    count: int
    place: Place
    other: int | None = None
    log_odds: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
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
        where = f"trace {self.place[0]}, step {self.place[1]}"
        read = f"state {self.state} reads {label_text(self.label)} → {self.target}"
        seen = f"{read}: seen {_times(self.count)} ({where})"
        if self.log_odds is None:
            return seen
        return f"{seen}; to {self.other}: {odds_text(self.log_odds)}"


@dataclass(frozen=True)
class SeenAnswer:
    """An answer that depends on the state, how often the traces give it, and where first.

    `asked` is how often the question was asked there, in a noisy machine.
    """

    state: int
    question: Question
    output: Any
    count: int
    place: Place
    asked: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "state": self.state,
            "question": self.question._asdict(),
            "output": self.output,
            "count": self.count,
            **({} if self.asked is None else {"asked": self.asked}),
            "trace": self.place[0],
            "step": self.place[1],
        }

    def __str__(self) -> str:
        where = f"trace {self.place[0]}, step {self.place[1]}"
        answer = f"state {self.state} answers {self.question} with {symbol_text(self.output)}"
        often = _times(self.count)
        if self.asked is not None:
            often = f"{self.count:,} of {_times(self.asked)}"
        return f"{answer}: seen {often} ({where})"


@dataclass(frozen=True, eq=False)
class MachineEvidence:
    """What some traces say about one machine.

    `answers` and `moves` are columns, one row for each answer and transition
    that the traces show, with how often and where first. `rivals` say how sure the moves
    of a noisy machine are; they are None without noise. `weakness` names the states that few
    label histories reach.
    """

    machine: Machine = field(repr=False)
    answers: AnswersSeen = field(repr=False)
    moves: MovesSeen = field(repr=False)
    separations: Separations
    completeness: Completeness
    experiments: NextExperiments
    rivals: Rivals | None = field(default=None, repr=False)
    weakness: Weakness = field(default_factory=Weakness, repr=False)

    def __eq__(self, other: object) -> bool:
        """Whether two say the same; what tells states apart follows from the answers."""
        return isinstance(other, MachineEvidence) and (
            (self.machine, self.answers, self.moves, self.completeness)
            == (other.machine, other.answers, other.moves, other.completeness)
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def inseparable(self) -> tuple[Separation, ...]:
        """The pairs of states that nothing in the traces tells apart."""
        return self.separations.inseparable

    @property
    def assumed(self) -> int:
        """How many answers the machine gives that the traces never show in that state.

        They are to questions that have one answer wherever the traces ask them.
        """
        machine = self.machine
        asked = np.isin(self.answers.question, machine.constant_question)
        shown = len(
            np.unique(np.stack([self.answers.state, self.answers.question])[:, asked], axis=1).T
        )
        return machine.states * len(machine.constant_question) - shown

    def transitions(self, most: int | None = None) -> list[SeenTransition]:
        """Return transitions seen, trivial labels left out, the least supported first.

        Of a noisy machine those come first that are least sure.
        """
        moves = self.moves
        rows = np.flatnonzero(~np.isin(moves.label, self.machine.trivial))
        rows = rows[np.argsort(moves.count[rows], kind="stable")]
        if self.rivals is not None:
            log_odds = self.rivals.log_odds[moves.state[rows], moves.label[rows]]
            unrivalled = self.rivals.target[moves.state[rows], moves.label[rows]] < 0
            rows = rows[np.lexsort((log_odds, unrivalled))]
        return [
            SeenTransition(
                int(moves.state[row]),
                self.machine.labels[int(moves.label[row])],
                int(moves.target[row]),
                int(moves.count[row]),
                (int(moves.trace[row]), int(moves.step[row])),
                *self._rival(int(moves.state[row]), int(moves.label[row])),
            )
            for row in rows[:most]
        ]

    def _rival(self, state: int, code: int) -> tuple[int | None, float | None]:
        rivals = self.rivals
        if rivals is None or rivals.target[state, code] < 0:
            return None, None
        return int(rivals.target[state, code]), -float(rivals.log_odds[state, code])

    def outputs(self, most: int | None = None) -> list[SeenAnswer]:
        """Return answers seen that depend on the state, the least supported first.

        Of a noisy machine these are the most frequent ones, and those come first that hardly
        came more often than others.
        """
        answers = self.answers
        rows = np.flatnonzero(~np.isin(answers.question, self.machine.constant_question))
        asked = None
        if self.machine.is_noisy and len(rows):
            rows, ahead, asked = _usual(answers, rows)
            order = np.argsort(ahead, kind="stable")[:most]
            rows, asked = rows[order], asked[order]
        else:
            rows = rows[np.argsort(answers.count[rows], kind="stable")][:most]
        return [
            SeenAnswer(
                int(answers.state[row]),
                question_of(self.machine, int(answers.question[row])),
                self.machine.outputs[int(answers.output[row])],
                int(answers.count[row]),
                (int(answers.trace[row]), int(answers.step[row])),
                None if asked is None else int(asked[place]),
            )
            for place, row in enumerate(rows)
        ]

    def as_dict(self, most: int = 20) -> dict[str, Any]:
        """Return it as JSON values, with at most so many of the least supported answers."""
        return {
            "states": self.machine.states,
            "separations": [one.as_dict() for one in self.separations],
            "separations_left_out": self.separations.left_out,
            "completeness": self.completeness.as_dict(),
            "assumed_answers": self.assumed,
            "transitions": [one.as_dict() for one in self.transitions()],
            "least_supported_outputs": [one.as_dict() for one in self.outputs(most)],
            "weak": self.weakness.as_dict(_MOST_WEAK),
            "next": [one.as_dict() for one in self.experiments],
        }

    def __str__(self) -> str:
        lines = [f"{visible(self.machine.kind)} machine: {amount(self.machine.states, 'state')}"]
        lines += [f"  {one}" for one in _weakest(self.separations)]
        lines += [f"  {line}" for line in str(self.completeness).splitlines()]
        for least in (self.transitions(1), self.outputs(1)):
            lines += [f"  least support: {one}" for one in least]
        lines += [f"  next: {one}" for one in self.experiments[:1]]
        return "\n".join(lines)


@dataclass(frozen=True)
class Evidence(Mapping[str, MachineEvidence]):
    """What some traces say about machines, by kind.

    `holdout` is None where nothing could be held out. `passed` is what the traces showed as
    they were gone through, `examples` are some of them that are worth looking at, and `known`
    says whether the machines were inferred from these very traces.
    """

    traces: int
    steps: int
    machines: dict[str, MachineEvidence]
    holdout: Holdout | None
    passed: Passed = field(repr=False, compare=False)
    examples: Examples = field(repr=False, compare=False)
    known: bool = field(repr=False, compare=False)

    def __getitem__(self, kind: str) -> MachineEvidence:
        return self.machines[kind]

    def __iter__(self) -> Iterator[str]:
        return iter(self.machines)

    def __len__(self) -> int:
        return len(self.machines)

    @property
    def shown(self) -> Replay:
        """What the replay of the traces showed."""
        return self.passed.shown

    @property
    def transition(self) -> MachineEvidence:
        """What they say about the Transition Machine."""
        return self.machines["transition"]

    @property
    def reward(self) -> MachineEvidence:
        """What they say about the Reward Machine."""
        return self.machines["reward"]

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            **{kind: one.as_dict() for kind, one in self.machines.items()},
            "holdout": None if self.holdout is None else self.holdout.as_dict(),
        }

    def __repr__(self) -> str:
        states = ", ".join(f"{kind} {one.machine.states}" for kind, one in self.items())
        held = "nothing held out"
        if self.holdout is not None:
            held = f"{self.holdout.failures} of {self.holdout.traces} held-out traces fail"
            if self.holdout.foretold is not None:
                held = "right within noise" if self.holdout.within_noise else "not within noise"
        told = f"{amount(self.traces, 'trace')}, {amount(self.steps, 'step')}; states: {states}"
        return short(f"Evidence({told}; {held})", 250)

    def _repr_html_(self) -> str:
        """Show it in a notebook: a row for each machine, and the details in words."""
        header = ["machine", "states", "told apart", "histories, moves", "structure complete"]
        rows = (
            [
                kind,
                one.machine.states,
                "no" if one.inseparable else "yes",
                _converging(one.completeness),
                "yes" if one.completeness.structure_complete else "no",
            ]
            for kind, one in self.items()
        )
        return notebook.panel(
            "what the traces say about the machines",
            notebook.table(header, rows, len(self)),
            notebook.lines(str(self)),
        )

    def __str__(self) -> str:
        counts = f"{amount(self.traces, 'trace')}, {amount(self.steps, 'step')}"
        bound = "no traces could be held out" if self.holdout is None else str(self.holdout)
        return "\n".join([counts, *map(str, self.machines.values()), f"hold-out: {bound}"])


def _weakest(separations: Separations, most: int = 3) -> list[str]:
    """Say what tells states apart, for the pairs where it is least."""
    lines = [str(one) for one in separations.weakest(most)]
    if separations.left_out:
        lines.append(f"what tells states apart is left out: {separations.left_out}")
    if len(separations) > most:
        more = "surer" if isinstance(separations, WeighedSeparations) else "with more support"
        lines.append(f"and {amount(len(separations) - most, 'pair')} of states {more}")
    return lines


def _usual(
    answers: AnswersSeen, rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows of the most frequent answers among some, by state and question.

    Also by how much each is ahead of the next frequent one, and how often it was asked.
    """
    count = answers.count[rows]
    rows = rows[np.lexsort((-count, answers.question[rows], answers.state[rows]))]
    new = np.ones(len(rows), bool)
    new[1:] = (np.diff(answers.state[rows]) != 0) | (np.diff(answers.question[rows]) != 0)
    first = np.flatnonzero(new)
    count = answers.count[rows]
    asked = np.add.reduceat(count, first)
    second = np.append(count, 0)[np.minimum(first + 1, len(rows))]
    second[np.diff(first, append=len(rows)) == 1] = 0
    return rows[first], count[first] - second, asked


def _converging(found: Completeness) -> str:
    if found.moves is not None:
        return f"{found.moves - len(found.open_moves):,} of {found.moves:,} moves sure"
    return f"{found.converging:,} of {found.histories:,} converge"


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number:,} times"
