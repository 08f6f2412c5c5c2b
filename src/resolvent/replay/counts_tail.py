"""What traces show of machines, as plain columns that add up."""

import numpy as np
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from numpy.typing import NDArray
from resolvent.replay.coded_shard import Alphabets
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
    and which trace stands for it; they are by state, question and output. State −1 is
    "not known". Where a question has more than one answer in a state, the traces conflict.
    `moves` are by state and label; one whose output is −1 has no target in the machine,
    and where it was met the state is not known any more.
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
    def known(self) -> Rows:
        """The answers in states that are known."""
        return self.answers[int(np.searchsorted(self.answers["state"], 0)) :]

    @cached_property
    def conflicts(self) -> Rows:
        """The answers of which there is more than one for a state and question.

        They are by state, question, and the length and key of the trace that shows them.
        """
        rows = self.known
        same = (rows["state"][1:] == rows["state"][:-1]) & (
            rows["question"][1:] == rows["question"][:-1]
        )
        differs = np.zeros(len(rows), bool)
        differs[1:] = same
        differs[:-1] |= same
        found: Rows = rows[differs]
        return found[_by(found, "state", "question", "length", "key", "output")]

    @property
    def missing(self) -> Rows:
        """The moves for which the machine has no target."""
        return self.moves[self.moves["output"] < 0]

    def __add__(self, other: "Sightings") -> "Sightings":
        return Sightings(
            _added(self.answers, other.answers, ("state", "question", "output")),
            _added(self.moves, other.moves, ("state", "label")),
            self.unasked + other.unasked,
        )


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

    @cached_property
    def endings(self) -> Rows:
        """The situations in which traces were terminated, with how often each was met."""
        ended = self.situations[self.situations["ended"] > 0].copy()
        if self.counted:
            kind, last = list(self.machines.items())[-1]
            known = last.known
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
        for size in (len(self.alphabets.actions), *reversed(list(self.sizes.values()))):
            numbers, part = np.divmod(numbers, size)
            parts.append(part)
        return (numbers, *reversed(parts))

    @property
    def unexplained(self) -> frozenset[str]:
        """The machines that do not explain all traces, by their kind."""
        each = self.machines.items()
        return frozenset(kind for kind, one in each if len(one.conflicts) or len(one.missing))

    @property
    def consistent(self) -> bool:
        """Whether the machines can explain every step of every trace."""
        return not self.unexplained

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
    return answers[_by(answers, "state", "question", "output")]


def _by(rows: Rows, *fields: str) -> NDArray[np.int64]:
    return np.lexsort([rows[field] for field in reversed(fields)])


def _added(one: Rows, other: Rows, keys: tuple[str, ...]) -> Rows:
    """Put rows together that are sorted by their keys, none of which occurs twice.

    Of rows with equal keys the counts are summed and the better places kept. It costs a
    copy of the longer rows, and little more if the others are few.
    """
    if len(one) < len(other):
        one, other = other, one
    if len(other) == 0:
        return one
    at, found = _places(one, other, keys)
    out, rows, more = one.copy(), at[found], other[found]
    out["count"][rows] += more["count"]
    for names, order in (
        (("trace", "step", "length", "key"), ("length", "key", "trace")),
        (("early_trace", "early_step"), ("early_step", "early_trace")),
    ):
        better = _before(more, out[rows], order)
        for name in names:
            out[name][rows[better]] = more[name][better]
    return np.insert(out, at[~found], other[~found])


def _places(
    one: Rows, other: Rows, keys: tuple[str, ...]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return where rows belong among others, all sorted by their keys, and which are there."""
    least = [min(int(rows[key].min()) for rows in (one, other)) for key in keys]
    sizes = [
        max(int(rows[key].max()) for rows in (one, other)) - low + 1
        for key, low in zip(keys, least, strict=True)
    ]
    if prod(sizes) > np.iinfo(np.int64).max:
        return _places_one_by_one(one, other, keys)

    def numbers(rows: Rows) -> NDArray[np.int64]:
        total = np.zeros(len(rows), np.int64)
        for key, low, size in zip(keys, least, sizes, strict=True):
            total = total * size + (rows[key] - low)
        return total

    known, wanted = numbers(one), numbers(other)
    at = np.searchsorted(known, wanted)
    return at, known[np.minimum(at, len(known) - 1)] == wanted


def _places_one_by_one(
    one: Rows, other: Rows, keys: tuple[str, ...]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Do what `_places` does where keys are too large to be put into one number."""
    known, wanted = (
        list(zip(*(rows[key].tolist() for key in keys), strict=True)) for rows in (one, other)
    )
    at = [bisect_left(known, key) for key in wanted]
    found = [
        place < len(known) and known[place] == key for place, key in zip(at, wanted, strict=True)
    ]
    return np.array(at, np.int64), np.array(found, bool)


def _before(one: Rows, other: Rows, order: tuple[str, ...]) -> NDArray[np.bool_]:
    """Return which rows come before those beside them."""
    before, same = np.zeros(len(one), bool), np.ones(len(one), bool)
    for name in order:
        before |= same & (one[name] < other[name])
        same &= one[name] == other[name]
    return before


def _tallied(situations: Rows) -> Rows:
    if len(situations) == 0:
        return situations
    situations = situations[np.argsort(situations["number"], kind="stable")]
    start = np.flatnonzero(np.diff(situations["number"], prepend=-1))
    out = situations[start].copy()
    for name in ("count", "ended"):
        out[name] = np.add.reduceat(situations[name], start)
    return out
