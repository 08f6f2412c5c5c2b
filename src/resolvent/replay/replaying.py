"""Machines + traces → counts of the machines' outputs and transitions.

The compiled core replays each shard. All shards share codes, and their counts add up, so
conflicts between shards are found too.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import reduce
from math import prod
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np

from resolvent._util.cache import cached
from resolvent._util.parallel import Threads, Workers, available_cores
from resolvent.errors import ModelError
from resolvent.machines import Machines
from resolvent.preprocess.timing import LabelTiming, labels_read
from resolvent.replay.coded_shard import Alphabets, CodedShard, check_columns, rounding_of
from resolvent.replay.corpus import REPLAYING, Corpus, ShardReader
from resolvent.replay.counts import (
    AUGMENTED_STATE_ROW,
    OUTPUT_ROW,
    TRANSITION_ROW,
    MachineCounts,
    ReplayCounts,
    Rows,
    row_order,
)
from resolvent.traces import Codes, Label, TraceSet

WITHOUT_ALPHABETS: Final = Alphabets({})  # in results of workers: the caller has them


class MachineTable(NamedTuple):
    """A machine as the core replays it: next states by state and common label code."""

    transitions: Codes
    column: int
    supplemented: bool


@dataclass(frozen=True, eq=False)
class MachineTables:
    """Several machines as the core replays them, by name."""

    machines: dict[str, MachineTable]
    timing: LabelTiming

    @classmethod
    def of(
        cls, machines: Machines, alphabets: Alphabets, trivial: Collection[Label] = ()
    ) -> "MachineTables":
        """Return the tables in the alphabets' codes; trivial labels loop, known or not."""
        loops = [alphabets.labels.code(label) for label in trivial]
        tables = {}
        for name, machine in machines.items():
            table = machine.transitions_for(alphabets.labels)
            table[:, loops] = np.arange(machine.states, dtype=np.int32)[:, None]
            column = alphabets.column_number(machine.predicts)
            tables[name] = MachineTable(table, column, machine.supplemented)
        return cls(tables, machines.timing)

    @property
    def sizes(self) -> dict[str, int]:
        """The number of states of each machine."""
        return {name: len(table.transitions) for name, table in self.machines.items()}


def replay(
    machines: Machines,
    corpus: Corpus,
    trivial: Collection[Label] = (),
    *,
    since: int = 0,
    shortest: bool = True,
    progress: Callable[[int], None] | None = None,
) -> ReplayCounts:
    """Replay all traces of a corpus, or those from shard `since` on.

    Trivial labels change no state, whether the machines know them or not. Each count refers to
    the shortest trace that shows it; with `shortest` off to the first, which is faster.
    """
    tables = MachineTables.of(machines, corpus.alphabets, trivial)
    numbers = range(since, len(corpus.shards))
    if not numbers:
        raise ModelError("there are no traces to replay")
    if corpus.in_memory:
        replays = []
        for number, shard in enumerate(corpus.coded(since), since + 1):
            replays.append(replay_shard(tables, shard, shortest=shortest))
            if progress:
                progress(number)
        return reduce(ReplayCounts.__add__, replays)
    # Traces that were added later are in memory.
    workers: Workers = Threads() if since else corpus.workers
    replay_pass = cached(ReplayPass(corpus.reader, tables, shortest), corpus.cache)
    total = workers.map_reduce(
        replay_pass, numbers, ReplayCounts.__add__, called=REPLAYING, report=progress
    )
    return replace(total, alphabets=corpus.alphabets)


@dataclass(frozen=True, eq=False)
class ReplayPass:
    """Reads and replays one shard, given by its number; it can be pickled, to run anywhere."""

    reader: ShardReader
    tables: MachineTables
    shortest: bool

    result_types: ClassVar = (ReplayCounts, MachineCounts, Alphabets)

    def __call__(self, number: int) -> ReplayCounts:
        """Return the counts of a shard, without alphabets."""
        counts = replay_shard(self.tables, self.reader.read(number), shortest=self.shortest)
        return replace(counts, alphabets=WITHOUT_ALPHABETS)


def replay_traces(
    machines: Machines,
    traces: TraceSet,
    *,
    unknown_states: bool = True,
    earliest: bool = False,
    states: bool = False,
) -> ReplayCounts:
    """Replay traces in memory, which may be of another environment.

    `unknown_states`: count outputs also after a label left the state unknown; `earliest`: find
    for each count also where the fewest steps come before it; `states`: keep the state of
    every machine at every step.
    """
    shard = CodedShard.alone(traces, rounding_of(machines))
    check_columns(machines, shard.alphabets)
    return replay_shard(
        MachineTables.of(machines, shard.alphabets),
        shard,
        shortest=False,
        unknown_states=unknown_states,
        earliest=earliest,
        states=states,
    )


def states_at_steps(
    machines: Machines, traces: TraceSet, *, unseen: str = "unknown"
) -> dict[str, Codes]:
    """Return each machine's state at every step: −1 after an unseen label, or as `unseen` says."""
    check_columns(machines, Alphabets.of(traces.values))
    read = labels_read(traces, machines.timing)
    return {
        name: machine.replay(read, traces.offsets, traces.labels, unseen=unseen)
        for name, machine in machines.items()
    }


def replay_shard(
    tables: MachineTables,
    shard: CodedShard,
    *,
    shortest: bool = True,
    unknown_states: bool = False,
    earliest: bool = False,
    states: bool = False,
) -> ReplayCounts:
    """Replay one shard, see `replay` and `replay_traces`; it can run anywhere."""
    names, sizes = list(tables.machines), tables.sizes
    if not len(shard.alphabets.labels):  # no traces, and tables without columns
        nothing = MachineCounts(np.empty(0, OUTPUT_ROW), np.empty(0, TRANSITION_ROW))
        rows = np.empty(0, AUGMENTED_STATE_ROW)
        no_states = dict.fromkeys(names, np.empty(0, np.int32)) if states else {}
        machines = dict.fromkeys(names, nothing)
        return ReplayCounts(shard.alphabets, machines, sizes, rows, False, 0, 0, no_states)
    columns = shard.columns.replay(
        [
            table._replace(transitions=table.transitions.ravel())
            for table in tables.machines.values()
        ],
        rank=shard.rank if shortest else np.empty(0, np.int32),
        first=tables.timing.first,
        lag=tables.timing.lag,
        outputs=True,
        augmented_states=_can_number_augmented_states(tables, shard),
        unknown_states=unknown_states,
        earliest=earliest,
        states=states,
        threads=available_cores(),
    )
    augmented_states = np.empty(len(columns["augmented_state_number"]), AUGMENTED_STATE_ROW)
    for field in AUGMENTED_STATE_ROW.names or ():
        augmented_states[field] = columns[f"augmented_state_{field}"]
    by_name = dict(zip(names, columns["machines"], strict=True))
    return ReplayCounts(
        shard.alphabets,
        {name: _machine_counts(own, shard, shortest) for name, own in by_name.items()},
        sizes,
        augmented_states,
        columns["counted"],
        len(shard.traces),
        shard.traces.steps,
        {name: own["states"] for name, own in by_name.items()} if states else {},
    )


def _can_number_augmented_states(tables: MachineTables, shard: CodedShard) -> bool:
    """Return whether each observation, state of every machine and action fits into one number.

    If not, which is rare, only the ends of episodes are affected.
    """
    sizes = tables.sizes.values()
    queries = len(shard.alphabets.observations) * len(shard.alphabets.actions)
    if prod(sizes) * queries < 2**63:
        return True
    if shard.traces.terminated.any():
        raise ModelError(
            f"{len(sizes)} machines have {' × '.join(map(str, sizes))} states together, too many "
            f"to count where episodes end: infer them in several calls, with fewer outputs each"
        )
    return False


def _machine_counts(columns: dict[str, Any], shard: CodedShard, shortest: bool) -> MachineCounts:
    outputs = _rows(OUTPUT_ROW, columns, "output", shard, shortest)
    clashes = _rows(OUTPUT_ROW, columns, "conflict", shard, shortest)
    if len(clashes) or np.any(outputs["state"][-1:] < 0):
        outputs = np.concatenate([outputs, clashes])
        outputs = outputs[row_order(outputs, "state", "query", "output")]
    transitions = _rows(TRANSITION_ROW, columns, "transition", shard, shortest)
    return MachineCounts(outputs, transitions, columns["unqueried"])


def _rows(
    dtype: np.dtype[np.void], columns: dict[str, Any], name: str, shard: CodedShard, shortest: bool
) -> Rows:
    rows = np.zeros(len(columns[f"{name}_state"]), dtype)
    for field in dtype.names or ():
        if f"{name}_{field}" in columns:
            rows[field] = columns[f"{name}_{field}"]
    if shortest:
        rows["length"], rows["key"] = shard.length[rows["trace"]], shard.key[rows["trace"]]
    else:  # of traces in different shards, the first is kept
        rows["key"] = rows["trace"] + shard.first
    rows["trace"] += shard.first
    if f"{name}_early_trace" in columns:
        rows["early_trace"] += shard.first
    return rows
