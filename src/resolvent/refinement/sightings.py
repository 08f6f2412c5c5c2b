"""Two machines + all traces → what the traces show of every answer and every move.

Each shard is replayed by the compiled core; what the shards show is put
together, so that a conflict between two of them is found as well.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.machines import Machine, MachinePair
from resolvent.refinement.corpus import THREADS, Alphabets, CodedShard, Corpus
from resolvent.samples import LabelTiming
from resolvent.traces import Codes, Label
from resolvent.traces.vocabulary import DENSE, codes_of

Rows = NDArray[np.void]
"""A structured array: one record a row."""

_SEEN = [
    ("output", np.int32),
    ("count", np.int64),
    ("trace", np.int64),  # the shortest trace that shows it, if that was asked for; then by key
    ("step", np.int32),
    ("length", np.int64),
    ("key", np.int64),
]
ANSWER = np.dtype([("state", np.int32), ("question", np.int64), *_SEEN])
MOVE = np.dtype([("state", np.int32), ("label", np.int32), *_SEEN])
SITUATION = np.dtype(
    [("state", np.int32), ("question", np.int64), ("count", np.int64), ("ended", np.int64)]
)


@dataclass(frozen=True, eq=False)
class Sightings:
    """What traces show of one machine.

    `answers` are by state, question, and the length and key of the first trace
    that shows each; where a question has more than one answer in a state, the
    traces conflict. `moves` are by state and label; one whose output is −1 has no
    target in the machine, and the rest of its traces was not looked at.
    """

    answers: Rows
    moves: Rows

    @property
    def conflicts(self) -> Rows:
        """The answers of which there is more than one for a state and question."""
        rows = self.answers
        same = (rows["state"][1:] == rows["state"][:-1]) & (
            rows["question"][1:] == rows["question"][:-1]
        )
        found: Rows = rows[np.append(False, same) | np.append(same, False)]
        return found

    @property
    def missing(self) -> Rows:
        """The moves for which the machine has no target."""
        return self.moves[self.moves["output"] < 0]


@dataclass(frozen=True, eq=False)
class PairSightings:
    """What traces show of a Transition Machine and a Reward Machine.

    A question is observation code × number of actions + action code. To a
    supplemented Reward Machine, and in `situations`, the observation's code is
    observation code × number of transition states + transition state.

    `situations` say how often a reward state met a question, and how often the
    trace was terminated then. Where the Reward Machine is supplemented, its
    answers say how often; then only situations that ended are listed.
    """

    transition: Sightings
    reward: Sightings
    situations: Rows
    supplemented: bool

    @classmethod
    def nothing(cls) -> "PairSightings":
        """Return what no traces at all show."""
        none = Sightings(np.empty(0, ANSWER), np.empty(0, MOVE))
        return cls(none, none, np.empty(0, SITUATION), True)

    @property
    def endings(self) -> Rows:
        """The situations in which traces were terminated, with how often each was met."""
        ended = self.situations[self.situations["ended"] > 0].copy()
        if self.supplemented:
            state, question, count = (
                np.ascontiguousarray(self.reward.answers[name])
                for name in ("state", "question", "count")
            )
            size = int(question.max(initial=0)) + 1
            met = state.astype(np.int64) * size + question  # rising
            wanted = ended["state"].astype(np.int64) * size + ended["question"]
            total = np.append(0, np.cumsum(count))
            first, last = (np.searchsorted(met, wanted, side) for side in ("left", "right"))
            ended["count"] = total[last] - total[first]
        return ended

    @property
    def consistent(self) -> bool:
        """Whether the machines can explain every step of every trace."""
        return not any(
            len(one.conflicts) or len(one.missing) for one in (self.transition, self.reward)
        )


@dataclass(frozen=True, eq=False)
class Tables:
    """Both machines as the core replays them: next states by state and common label code."""

    transition: Codes
    reward: Codes
    supplemented: bool
    timing: LabelTiming

    @classmethod
    def of(
        cls, pair: MachinePair, alphabets: Alphabets, trivial: Collection[Label] = ()
    ) -> "Tables":
        """Return the tables of two machines, in the codes of the alphabets.

        Trivial labels loop on every state, also where the machines do not know them.
        """
        return cls(
            _table(pair.transition, alphabets, trivial),
            _table(pair.reward, alphabets, trivial),
            pair.reward.supplemented,
            pair.timing,
        )


def _table(machine: Machine, alphabets: Alphabets, trivial: Collection[Label]) -> Codes:
    codes = codes_of(alphabets.labels, machine.labels, len(machine.labels))
    unseen = np.full((machine.states, 1), -1, np.int32)
    table = np.hstack([machine.transitions, unseen])[:, codes]
    loops = [alphabets.labels.code(label) for label in trivial]
    table[:, loops] = np.arange(machine.states, dtype=np.int32)[:, None]
    return np.ascontiguousarray(table.ravel())


def replay(
    pair: MachinePair,
    corpus: Corpus,
    trivial: Collection[Label] = (),
    reward_codes: Codes | None = None,
    progress: Callable[[int], None] | None = None,
    shortest: bool = True,
) -> PairSightings:
    """Replay all traces through both machines.

    Trivial labels change no state, whether the machines know them or not.
    `reward_codes` stand for the codes of the rewards, as where these are rounded.
    With `shortest` off, any trace may stand for what it shows, which is faster.
    """
    tables = Tables.of(pair, corpus.alphabets, trivial)
    together = PairSightings.nothing()
    for number, shard in enumerate(corpus, 1):
        together = merged(together, replay_shard(tables, shard, reward_codes, shortest))
        if progress:
            progress(number)
    return together


def replay_shard(
    tables: Tables,
    shard: CodedShard,
    reward_codes: Codes | None = None,
    shortest: bool = True,
) -> PairSightings:
    """Replay one shard: a pure function of tables and columns, to be run anywhere."""
    # Memory is gone through fastest as it lies; the first that shows a thing is kept.
    order = shard.order if shortest else np.arange(len(shard.traces), dtype=np.int32)
    found = shard.columns(reward_codes).gather(
        order=order,
        first=tables.timing.first,
        lag=tables.timing.lag,
        transition=tables.transition,
        reward=tables.reward,
        supplemented=tables.supplemented,
        threads=THREADS,
    )
    situations = np.empty(len(found["situation_state"]), SITUATION)
    for name in SITUATION.names or ():
        situations[name] = found[f"situation_{name}"]
    return PairSightings(
        _sightings(found["transition"], shard),
        _sightings(found["reward"], shard),
        situations,
        tables.supplemented,
    )


def _sightings(found: dict[str, Any], shard: CodedShard) -> Sightings:
    answers = _rows(ANSWER, found, "answer", shard)
    clashes = _rows(ANSWER, found, "clash", shard)
    if len(clashes):
        answers = np.concatenate([answers, clashes])
        answers = answers[_by(answers, "state", "question", "length", "key")]
    return Sightings(answers, _rows(MOVE, found, "move", shard))


def _rows(kind: np.dtype[np.void], found: dict[str, Any], name: str, shard: CodedShard) -> Rows:
    rows = np.empty(len(found[f"{name}_state"]), kind)
    for field in kind.names or ():
        if f"{name}_{field}" in found:
            rows[field] = found[f"{name}_{field}"]
    rows["length"], rows["key"] = shard.length[rows["trace"]], shard.key[rows["trace"]]
    rows["trace"] += shard.first
    return rows


def merged(one: PairSightings, other: PairSightings) -> PairSightings:
    """Put together what two shards show; the order of the two makes no difference."""
    situations = np.concatenate([one.situations, other.situations])
    return PairSightings(
        _merged(one.transition, other.transition),
        _merged(one.reward, other.reward),
        _summed(situations, ("state", "question"), ("count", "ended")),
        other.supplemented,
    )


def _merged(one: Sightings, other: Sightings) -> Sightings:
    if len(one.answers) == len(one.moves) == 0:
        return other
    answers = np.concatenate([one.answers, other.answers])
    answers = answers[_by(answers, "length", "key")]
    answers = _summed(answers, ("state", "question", "output"), ("count",))
    moves = np.concatenate([one.moves, other.moves])
    moves = _summed(moves[_by(moves, "length", "key")], ("state", "label"), ("count",))
    return Sightings(answers[_by(answers, "state", "question", "length", "key")], moves)


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


def _by(rows: Rows, *fields: str) -> NDArray[np.int64]:
    return np.lexsort([rows[field] for field in reversed(fields)])


def _starts(rows: Rows, keys: tuple[str, ...]) -> NDArray[np.int64]:
    """Return where rows with new keys begin; rows with equal keys are neighbours."""
    new = np.zeros(len(rows), bool)
    new[:1] = True
    for key in keys:
        new[1:] |= rows[key][1:] != rows[key][:-1]
    return np.flatnonzero(new)


def _summed(rows: Rows, keys: tuple[str, ...], sums: tuple[str, ...]) -> Rows:
    """Make one row, the first, of all with equal keys, and sum their counts."""
    if len(rows) == 0:
        return rows
    rows = rows[_by(rows, *keys)]
    start = _starts(rows, keys)
    out = rows[start].copy()
    for name in sums:
        out[name] = np.add.reduceat(rows[name], start)
    return out
