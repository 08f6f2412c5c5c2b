"""What traces show of machines, as plain columns that add up."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from resolvent.replay.coded import Alphabets
from resolvent.traces import Codes
from resolvent.traces.vocabulary import DENSE

Rows = NDArray[np.void]
"""A structured array: one record a row."""

_SEEN = [
    ("output", np.int32),
    ("count", np.int64),
    ("trace", np.int64),  # the one that stands for it: that of least length, and then of least key
    ("step", np.int32),
    ("length", np.int64),
    ("key", np.int64),
    ("early_trace", np.int64),  # where the fewest steps lie before it, if that was asked for
    ("early_step", np.int32),
]
ANSWER = np.dtype([("state", np.int32), ("question", np.int64), *_SEEN])
MOVE = np.dtype([("state", np.int32), ("label", np.int32), *_SEEN])
SITUATION = np.dtype([("number", np.int64), ("count", np.int64), ("ended", np.int64)])


@dataclass(frozen=True, eq=False)
class Sightings:
    """What traces show of one machine.

    A row of `answers` says how often a question was asked in a state and answered so,
    and which trace stands for it; they are by state, question, and the length and key of
    that trace. State −1 is "not known". Where a question has more than one answer in a
    state, the traces conflict. `moves` are by state and label; one whose output is −1 has
    no target in the machine, and where it was met the state is not known any more.
    `unasked` counts steps at which a supplemented machine could not be asked, since the
    Transition Machine's state was not known.
    """

    answers: Rows
    moves: Rows
    unasked: int = 0

    @classmethod
    def nothing(cls) -> "Sightings":
        """Return what no traces at all show."""
        return cls(np.empty(0, ANSWER), np.empty(0, MOVE))

    @property
    def conflicts(self) -> Rows:
        """The answers of which there is more than one for a state and question."""
        rows = self.answers[self.answers["state"] >= 0]
        same = (rows["state"][1:] == rows["state"][:-1]) & (
            rows["question"][1:] == rows["question"][:-1]
        )
        found: Rows = rows[np.append(False, same) | np.append(same, False)]
        return found

    @property
    def missing(self) -> Rows:
        """The moves for which the machine has no target."""
        return self.moves[self.moves["output"] < 0]

    def __add__(self, other: "Sightings") -> "Sightings":
        unasked = self.unasked + other.unasked
        if len(self.answers) == len(self.moves) == 0:
            return Sightings(other.answers, other.moves, unasked)
        answers = _summed([self.answers, other.answers], ("state", "question", "output"))
        moves = _summed([self.moves, other.moves], ("state", "label"))
        return Sightings(answers[_by(answers, *_IN_ORDER)], moves, unasked)


_IN_ORDER = ("state", "question", "length", "key", "output")


@dataclass(frozen=True, eq=False)
class Replay:
    """What traces show of some machines, in the codes of `alphabets`.

    A question is observation code × number of actions + action code; to a
    supplemented machine the observation's code is observation code × number of
    transition states + transition state. A situation is an observation, the states of
    all machines in order, and an action, as one number: `situations` say how often each
    was met, and how often the trace was terminated then. Where the answers of the last
    machine tell how often (`counted`), only situations that ended are listed.

    `sizes` are the numbers of states. `states` are those at every step, of traces that
    were replayed together and if that was asked for.
    """

    alphabets: Alphabets
    machines: Mapping[str, Sightings]
    sizes: Mapping[str, int]
    situations: Rows
    counted: bool
    traces: int
    steps: int
    states: Mapping[str, Codes] = field(default_factory=dict)

    @property
    def endings(self) -> Rows:
        """The situations in which traces were terminated, with how often each was met."""
        ended = self.situations[self.situations["ended"] > 0].copy()
        if self.counted:
            kind, last = list(self.machines.items())[-1]
            known = last.answers[last.answers["state"] >= 0]
            seen, action = np.divmod(known["question"], len(self.alphabets.actions))
            met = (seen * self.sizes[kind] + known["state"]) * len(self.alphabets.actions) + action
            order = np.argsort(met, kind="stable")
            total = np.append(0, np.cumsum(known["count"][order]))
            bounds = (
                np.searchsorted(met, ended["number"], side, sorter=order)
                for side in ("left", "right")
            )
            first, after = bounds
            ended["count"] = total[after] - total[first]
        return ended

    def situation(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
        """Return the observation, the states and the action that situations consist of."""
        parts = []
        for size in (len(self.alphabets.actions), *reversed(self.sizes.values())):
            numbers, part = np.divmod(numbers, size)
            parts.append(part)
        return (numbers, *reversed(parts))

    @property
    def consistent(self) -> bool:
        """Whether the machines can explain every step of every trace."""
        return not any(len(one.conflicts) or len(one.missing) for one in self.machines.values())

    def __add__(self, other: "Replay") -> "Replay":
        """Put together what two shards show; the order of the two makes no difference."""
        if other.alphabets is not self.alphabets and other.alphabets != self.alphabets:
            raise ValueError("two replays add up only in the same codes")
        return Replay(
            self.alphabets,
            {kind: one + other.machines[kind] for kind, one in self.machines.items()},
            self.sizes,
            _tallied(np.concatenate([self.situations, other.situations])),
            self.counted,
            self.traces + other.traces,
            self.steps + other.steps,
        )


def answers_vary(question: NDArray[np.int64], output: Codes, questions: int) -> NDArray[np.bool_]:
    """Return for each row whether its question has another answer in some other row."""
    if questions > DENSE:
        question = np.unique(question, return_inverse=True)[1]
        questions = int(question.max(initial=-1)) + 1
    some = np.empty(questions, np.int32)
    some[question] = output  # any one of a question's answers
    varies = np.zeros(questions, bool)
    varies[question[output != some[question]]] = True
    found: NDArray[np.bool_] = varies[question]
    return found


def sort_answers(answers: Rows) -> Rows:
    """Return answers in the order in which `Sightings` hold them."""
    return answers[_by(answers, *_IN_ORDER)]


def _by(rows: Rows, *fields: str) -> NDArray[np.int64]:
    return np.lexsort([rows[field] for field in reversed(fields)])


def _starts(rows: Rows, keys: tuple[str, ...]) -> NDArray[np.int64]:
    """Return where rows with new keys begin; rows with equal keys are neighbours."""
    new = np.zeros(len(rows), bool)
    new[:1] = True
    for key in keys:
        new[1:] |= rows[key][1:] != rows[key][:-1]
    return np.flatnonzero(new)


def _summed(parts: list[Rows], keys: tuple[str, ...]) -> Rows:
    """Make one row of all with equal keys: counts summed, the best places kept."""
    rows = np.concatenate(parts)
    if len(rows) == 0:
        return rows
    early = rows[_by(rows, *keys, "early_step", "early_trace")]
    rows = rows[_by(rows, *keys, "length", "key", "trace")]
    start = _starts(rows, keys)
    out = rows[start].copy()
    out["count"] = np.add.reduceat(rows["count"], start)
    for name in ("early_trace", "early_step"):
        out[name] = early[name][start]
    return out


def _tallied(situations: Rows) -> Rows:
    if len(situations) == 0:
        return situations
    situations = situations[np.argsort(situations["number"], kind="stable")]
    start = _starts(situations, ("number",))
    out = situations[start].copy()
    for name in ("count", "ended"):
        out[name] = np.add.reduceat(situations[name], start)
    return out
