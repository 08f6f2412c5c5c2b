"""Machines + traces → counts of what the traces show of the machines."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import reduce
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.errors import ModelError
from resolvent.machines import Machine, Machines
from resolvent.replay.coded_shard import Alphabets, CodedShard
from resolvent.replay.corpus import CodedPieces, Corpus
from resolvent.replay.counts import ANSWER, MOVE, SITUATION, Replay, Rows, Sightings, sort_answers
from resolvent.samples import LabelTiming
from resolvent.traces import Codes, Label, TraceSet, Vocabulary
from resolvent.traces.column_names import OBSERVATION, TERMINATED
from resolvent.traces.vocabulary import codes_of, distinct_numbers
from resolvent.wording import listed, short
from resolvent.workers import Threads, Workers, cores


@dataclass(frozen=True, eq=False)
class MachineTable:
    """Next states by state and common label code, and what the machine answers with."""

    kind: str
    transitions: Codes
    states: int
    column: int
    supplemented: bool


@dataclass(frozen=True, eq=False)
class Tables:
    """Some machines as the core replays them."""

    machines: tuple[MachineTable, ...]
    timing: LabelTiming

    @classmethod
    def of(
        cls, machines: Machines, alphabets: Alphabets, trivial: Collection[Label] = ()
    ) -> "Tables":
        """Return the tables of machines, in the codes of the alphabets.

        Trivial labels loop on every state, also where the machines do not know them.
        """
        return cls(
            tuple(
                MachineTable(
                    kind,
                    _table(machine, alphabets, trivial),
                    machine.states,
                    alphabets.column_number(machine.predicts),
                    machine.supplemented,
                )
                for kind, machine in machines.items()
            ),
            machines.timing,
        )

    def transitions(self, kind: str) -> Codes:
        """Return the next states of one machine, a row for each state."""
        one = next(table for table in self.machines if table.kind == kind)
        return one.transitions.reshape(one.states, -1)


def _table(machine: Machine, alphabets: Alphabets, trivial: Collection[Label]) -> Codes:
    codes = codes_of(alphabets.labels, machine.labels, len(machine.labels))
    unseen = np.full((machine.states, 1), -1, np.int32)
    table = np.hstack([machine.transitions, unseen])[:, codes]
    loops = [alphabets.labels.code(label) for label in trivial]
    table[:, loops] = np.arange(machine.states, dtype=np.int32)[:, None]
    return np.ascontiguousarray(table.ravel())


REPLAYING = "replaying"
"""What going through pieces of files with machines is called."""

WITHOUT_ALPHABETS = Alphabets(Vocabulary(()), Vocabulary(()), Vocabulary(()), {})


_AS_THEY_LIE = np.empty(0, np.int32)


def replay(
    machines: Machines,
    corpus: Corpus,
    trivial: Collection[Label] = (),
    *,
    since: int = 0,
    shortest: bool = True,
    progress: Callable[[int], None] | None = None,
) -> Replay:
    """Replay all traces of a corpus through machines, or those from shard `since` on.

    Trivial labels change no state, whether the machines know them or not. What the
    traces show is witnessed by the shortest of them; with `shortest` off by the first,
    which is faster.
    """
    tables = Tables.of(machines, corpus.alphabets, trivial)
    numbers = range(since, len(corpus.shards))
    if not numbers:
        raise ModelError("there are no traces to replay")
    if corpus.in_memory:
        shown = []
        for number, shard in enumerate(corpus.coded(since), since + 1):
            shown.append(replay_shard(tables, shard, shortest=shortest))
            if progress:
                progress(number)
        return reduce(Replay.__add__, shown)
    # Traces that came later are in memory.
    workers: Workers = Threads() if since else corpus.workers
    work = Replaying(corpus.pieces, tables, shortest)
    together = workers.together(work, numbers, Replay.__add__, called=REPLAYING, report=progress)
    return replace(together, alphabets=corpus.alphabets)


@dataclass(frozen=True, eq=False)
class Replaying:
    """Replays one piece, wherever that is done.

    What it returns is without alphabets: whoever asks has them, and they may be large.
    """

    pieces: CodedPieces
    tables: Tables
    shortest: bool

    def __call__(self, number: int) -> Replay:
        """Read and replay a piece."""
        shown = replay_shard(self.tables, self.pieces.read(number), shortest=self.shortest)
        return replace(shown, alphabets=WITHOUT_ALPHABETS)


def replay_traces(
    machines: Machines,
    traces: TraceSet,
    *,
    unknown_states: bool = True,
    earliest: bool = False,
    states: bool = False,
) -> Replay:
    """Replay traces in memory, which may be of another world, through machines.

    `unknown_states`: count answers also where a label left the state unknown; `earliest`:
    find for all that is shown the place with the fewest steps before it, too; `states`:
    keep the state of every machine at every step.

    >>> import gymnasium as gym, resolvent as rs
    >>> traces = rs.collect(gym.make("resolvent/House-v0"), episodes=20, seed=0)
    >>> shown = replay_traces(rs.infer(traces).machines, traces)
    >>> shown.traces, shown.consistent, int(shown.machines["reward"].answers["count"].sum())
    (20, True, 769)
    """
    shard = CodedShard.alone(traces, rounding_of(machines))
    check_columns(machines, shard.alphabets)
    return replay_shard(
        Tables.of(machines, shard.alphabets),
        shard,
        shortest=False,
        unknown_states=unknown_states,
        earliest=earliest,
        states=states,
    )


def states_at_steps(machines: Machines, traces: TraceSet) -> dict[str, Codes]:
    """Return the state of every machine at every step of traces; −1 where it is not known."""
    shard = CodedShard.alone(traces)
    check_columns(machines, shard.alphabets)
    tables = Tables.of(machines, shard.alphabets)
    return dict(replay_shard(tables, shard, shortest=False, answers=False, states=True).states)


def rounding_of(machines: Machines) -> dict[str, int]:
    """Return to how many decimals machines see the columns that they predict."""
    return {
        machine.predicts: machine.digits
        for machine in machines.values()
        if machine.digits is not None
    }


def check_columns(machines: Machines, alphabets: Alphabets) -> None:
    """Refuse traces that lack a column which one of the machines predicts."""
    known = (OBSERVATION, TERMINATED, *alphabets.columns)
    for kind, machine in machines.items():
        if machine.predicts not in known:
            raise ModelError(
                f"the {short(kind)} machine predicts {short(machine.predicts)}, which these "
                f"traces do not have (they have {listed(known)}): read that column with them"
            )


def replay_shard(
    tables: Tables,
    shard: CodedShard,
    *,
    shortest: bool = True,
    answers: bool = True,
    unknown_states: bool = False,
    earliest: bool = False,
    states: bool = False,
) -> Replay:
    """Replay one shard: a pure function of tables and columns, to be run anywhere."""
    if not len(shard.alphabets.labels):  # there are no traces, and no columns in the tables
        return _nothing(tables, shard, states)
    numbered = answers and _can_number_situations(tables, shard)
    found = shard.columns.replay(
        [(one.transitions, one.column, one.supplemented) for one in tables.machines],
        rank=shard.rank if shortest else _AS_THEY_LIE,
        first=tables.timing.first,
        lag=tables.timing.lag,
        answers=answers,
        situations=numbered,
        unknown_states=unknown_states,
        earliest=earliest,
        states=states,
        threads=cores(),
    )
    situations = np.empty(len(found["situation_number"]), SITUATION)
    for name in SITUATION.names or ():
        situations[name] = found[f"situation_{name}"]
    kinds = [one.kind for one in tables.machines]
    return Replay(
        shard.alphabets,
        {
            kind: _sightings(one, shard, shortest)
            for kind, one in zip(kinds, found["machines"], strict=True)
        },
        {one.kind: one.states for one in tables.machines},
        situations,
        found["counted"],
        len(shard.traces),
        shard.traces.steps,
        {kind: one["states"] for kind, one in zip(kinds, found["machines"], strict=True)}
        if states
        else {},
    )


def _nothing(tables: Tables, shard: CodedShard, states: bool) -> Replay:
    """Return what no traces at all show."""
    kinds = [one.kind for one in tables.machines]
    return Replay(
        shard.alphabets,
        {kind: Sightings.nothing() for kind in kinds},
        {one.kind: one.states for one in tables.machines},
        np.empty(0, SITUATION),
        counted=False,
        traces=0,
        steps=0,
        states={kind: np.empty(0, np.int32) for kind in kinds} if states else {},
    )


def _can_number_situations(tables: Tables, shard: CodedShard) -> bool:
    """Whether each observation, state of every machine and action fits into one number.

    They hardly ever do not. Then it is known where no episode ends that none does; else the
    machines are too many.
    """
    sizes = [one.states for one in tables.machines]
    questions = len(shard.alphabets.observations) * len(shard.alphabets.actions)
    if prod(sizes) * questions < 2**63:
        return True
    if shard.traces.terminated.any():
        raise ModelError(
            f"{len(sizes)} machines have {' × '.join(map(str, sizes))} states together, too many "
            f"to tell where episodes end: infer them in several calls, with fewer outputs each"
        )
    return False


def _sightings(found: dict[str, Any], shard: CodedShard, shortest: bool) -> Sightings:
    answers = _rows(ANSWER, found, "answer", shard, shortest)
    clashes = _rows(ANSWER, found, "clash", shard, shortest)
    if len(clashes) or np.any(answers["state"][-1:] < 0):
        answers = sort_answers(np.concatenate([answers, clashes]))
    return Sightings(answers, _rows(MOVE, found, "move", shard, shortest), found["unasked"])


def _rows(
    kind: np.dtype[np.void], found: dict[str, Any], name: str, shard: CodedShard, shortest: bool
) -> Rows:
    rows = np.zeros(len(found[f"{name}_state"]), kind)
    for field in kind.names or ():
        if f"{name}_{field}" in found:
            rows[field] = found[f"{name}_{field}"]
    if shortest:
        rows["length"], rows["key"] = shard.length[rows["trace"]], shard.key[rows["trace"]]
    else:  # of traces in different shards, the first stands for what they show
        rows["key"] = rows["trace"] + shard.first
    rows["trace"] += shard.first
    if f"{name}_early_trace" in found:
        rows["early_trace"] += shard.first
    return rows


@dataclass(frozen=True, slots=True, eq=False)
class InMachineCodes:
    """Columns beside rows of answers: `question` is −1 and `output` −1 where a machine has none."""

    question: NDArray[np.int64]
    output: Codes


def in_machine_codes(
    machine: Machine, answers: Rows, alphabets: Alphabets, transition_states: int
) -> InMachineCodes:
    """Say what a machine calls the questions and outputs of some answers.

    To a supplemented machine a question is about a pair of an observation and one of
    `transition_states`.
    """
    seen, done = np.divmod(answers["question"], len(alphabets.actions))
    observed = observation_codes(machine, seen, alphabets, transition_states)
    action = codes_of(alphabets.actions, machine.actions, -1)[done]
    question = observed.astype(np.int64) * len(machine.actions) + action
    question[(observed < 0) | (action < 0)] = -1
    values = alphabets.outputs(machine.predicts)
    return InMachineCodes(question, codes_of(values, machine.outputs, -1)[answers["output"]])


def observation_codes(
    machine: Machine, seen: NDArray[np.int64], alphabets: Alphabets, transition_states: int
) -> Codes:
    """Return what a machine calls observations, or pairs of them and states; −1 for unknown."""
    if not machine.supplemented:
        return codes_of(alphabets.observations, machine.observations, -1)[seen]
    occurring, place = distinct_numbers(seen, len(alphabets.observations) * transition_states)
    observation, state = np.divmod(occurring, transition_states)
    named = map(list(alphabets.observations).__getitem__, observation.tolist())
    pairs = zip(named, state.tolist(), strict=True)
    return codes_of(pairs, machine.observations, -1)[place]
