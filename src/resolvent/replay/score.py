"""Machines + traces → the number of steps that are predicted right, wrong, or not at all."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from resolvent._util.parallel import Workers, get_executor
from resolvent.machines import Machine, Machines, MachineScore, Mismatch, Score
from resolvent.machines.likelihood import output_probabilities, smoothing_of
from resolvent.machines.score import PredictionSums
from resolvent.machines.tables import GENERALIZED_CODE, OBSERVED_CODE, UNSEEN_CODE
from resolvent.replay.belief_score import belief_score
from resolvent.replay.counts import MachineCounts, ReplayCounts
from resolvent.replay.replaying import REPLAYING, replay_traces, to_machine_codes
from resolvent.traces import Codes, TraceDataset, TraceSet
from resolvent.traces.io.formats import as_traces
from resolvent.traces.source import SkippedRows, warn_of_skipped

Numbers = NDArray[np.int64]


def score(
    machines: Machines, traces: TraceSet | TraceDataset, on: str | Workers = "threads"
) -> Score:
    """Replay traces, and return the number of steps predicted right, wrong, or not at all.

    After an unseen label the state is unknown until the trace ends; then only constant outputs
    are predicted, and count as generalized. Machines with uncertain states predict by their belief
    before each step. Files are read once, by the workers that `on` names, as for `infer`.
    """
    return score_shards(machines, as_traces(traces), on).score


@dataclass(frozen=True)
class ShardScore:
    """The score of machines on some traces; scores of shards add up.

    `skipped` are rows that are skipped because files are damaged, in the order of shards.
    """

    score: Score
    traces: int
    steps: int
    skipped: tuple[SkippedRows, ...] = ()

    def __add__(self, later: "ShardScore") -> "ShardScore":
        """Return the sum; the traces of the second come after those of the first."""
        return ShardScore(
            self.score.then(later.score, self.traces),
            self.traces + later.traces,
            self.steps + later.steps,
            self.skipped + later.skipped,
        )


def score_shards(
    machines: Machines,
    traces: TraceSet | TraceDataset,
    on: str | Workers = "threads",
    *,
    progress: Callable[[int], None] | None = None,
) -> ShardScore:
    """Score machines as `score` does; `progress` is called with the number of shards done."""
    if isinstance(traces, TraceSet):
        return _scored(machines, traces)
    work, shards = _ShardScore(machines, traces), range(len(traces))
    with get_executor(on) as workers:
        total = workers.map_reduce(
            work, shards, ShardScore.__add__, called=REPLAYING, report=progress
        )
    warn_of_skipped(total.skipped, total.traces)
    return total


@dataclass(frozen=True)
class _ShardScore:
    """Scores machines on one shard, given by its number; it can be pickled, to run anywhere."""

    machines: Machines
    folder: TraceDataset

    def __call__(self, number: int) -> ShardScore:
        traces, facts = self.folder.scan(number)
        skipped = () if facts.skipped is None else (facts.skipped,)
        return replace(_scored(self.machines, traces), skipped=skipped)


def _scored(machines: Machines, traces: TraceSet) -> ShardScore:
    seen = machines.preprocessor.transform(traces)
    if machines.state_uncertainty:
        total = belief_score(machines, seen)
    else:
        total = score_of(machines, replay_traces(machines, seen))
    return ShardScore(total, len(traces), traces.steps)


def score_of(machines: Machines, counts: ReplayCounts) -> Score:
    """Score machines by the counts of a replay that includes unknown states."""
    return Score(
        {name: _score(machine, counts.machines[name], counts) for name, machine in machines.items()}
    )


def _score(machine: Machine, counts: MachineCounts, replayed: ReplayCounts) -> MachineScore:
    rows = counts.outputs
    states = replayed.sizes.get("transition", 1)
    coded = to_machine_codes(machine, rows, replayed.alphabets, states)
    state, count = (np.ascontiguousarray(rows[name]) for name in ("state", "count"))
    predicted = machine.predict(state, coded.query)
    level = machine.basis_many(state, coded.query)
    right = predicted == coded.output
    predicts = level != UNSEEN_CODE

    def steps(which: NDArray[np.bool_]) -> int:
        return int(count[which].sum())

    wrong = np.flatnonzero(~right & predicts)
    first = None
    if len(wrong):
        row = wrong[np.lexsort((rows["step"][wrong], rows["trace"][wrong]))[0]]
        observed, action = np.divmod(rows["query"][row], len(replayed.alphabets.actions))
        if machine.supplemented:
            observed //= states
        first = Mismatch(
            machine=machine.name,
            trace=int(rows["trace"][row]),
            step=int(rows["step"][row]),
            observation=replayed.alphabets.observations[int(observed)],
            action=replayed.alphabets.actions[int(action)],
            state=int(rows["state"][row]),
            predicted=machine.outputs[int(predicted[row])],
            actual=replayed.alphabets.outputs(machine.predicts)[int(rows["output"][row])],
            generalized=bool(level[row] == GENERALIZED_CODE),
        )
    return MachineScore(
        steps(right & (level == OBSERVED_CODE)),
        steps(~right & (level == OBSERVED_CODE)),
        steps(right & (level == GENERALIZED_CODE)),
        steps(~right & (level == GENERALIZED_CODE)),
        steps(level == UNSEEN_CODE) + counts.unqueried,
        first,
        _forecasts(
            machine,
            state[predicts],
            coded.query[predicts],
            coded.output[predicts],
            count[predicts],
        ),
    )


def _forecasts(
    machine: Machine, state: Codes, query: Numbers, output: Codes, count: Numbers
) -> PredictionSums:
    """Return the probabilities of the actual outputs, each with its count."""
    main = machine.predict(state, query)
    smoothing = smoothing_of(machine)
    of_output, of_main = (
        output_probabilities(machine, smoothing, state, query, outputs)
        for outputs in (output, main)
    )
    return PredictionSums.of(of_output, of_main, main == output, count)
