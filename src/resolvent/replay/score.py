"""Machines + traces → the number of steps that are predicted right, wrong, or not at all.

The counts of a replay say what machines in known states predict. If states are uncertain, the
prediction is the most likely output under the belief about states before the step.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from resolvent._util.math import product
from resolvent._util.parallel import Workers, get_executor
from resolvent.machines import Machine, Machines, MachineScore, Mismatch, Score
from resolvent.machines.augmented_state import Belief, fill_unknown
from resolvent.machines.likelihood import output_probabilities, smoothing_of
from resolvent.machines.score import PredictionSums
from resolvent.machines.tables import GENERALIZED_CODE, OBSERVED_CODE, UNSEEN_CODE
from resolvent.preprocess.samples import Histories
from resolvent.replay.corpus import REPLAYING
from resolvent.replay.counts import MachineCounts, ReplayCounts
from resolvent.replay.replaying import replay_traces
from resolvent.replay.steps import outputs_at_steps, query_numbers, to_machine_codes
from resolvent.traces import Codes, TraceDataset, TraceSet
from resolvent.traces.io.formats import as_traces
from resolvent.traces.source import SkippedRows, warn_of_skipped
from resolvent.traces.vocabulary import codes_of

Numbers = NDArray[np.int64]
Floats = NDArray[np.float64]
_CHUNK = 20_000  # steps scored at once; memory grows with it and with the square of states


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
    work, shards = partial(_score_shard, machines, traces), range(len(traces))
    with get_executor(on) as workers:
        total = workers.map_reduce(
            work, shards, ShardScore.__add__, called=REPLAYING, report=progress
        )
    warn_of_skipped(total.skipped, total.traces)
    return total


def _score_shard(machines: Machines, dataset: TraceDataset, number: int) -> ShardScore:
    traces, facts = dataset.scan(number)
    return _scored(machines, traces, () if facts.skipped is None else (facts.skipped,))


def _scored(
    machines: Machines, traces: TraceSet, skipped: tuple[SkippedRows, ...] = ()
) -> ShardScore:
    transformed = machines.preprocessor.transform(traces)
    if machines.state_uncertainty:
        total = belief_score(machines, transformed)
    else:
        total = score_of(machines, replay_traces(machines, transformed))
    return ShardScore(total, len(traces), traces.steps, skipped)


def score_of(machines: Machines, counts: ReplayCounts) -> Score:
    """Score machines by the counts of a replay that includes unknown states."""
    return Score(
        {name: _score(machine, counts.machines[name], counts) for name, machine in machines.items()}
    )


def _score(machine: Machine, counts: MachineCounts, replayed: ReplayCounts) -> MachineScore:
    rows, alphabets = counts.outputs, replayed.alphabets
    transition_states = replayed.sizes.get("transition", 1)
    query, output = to_machine_codes(machine, rows, alphabets, transition_states)
    state, count = (np.ascontiguousarray(rows[name]) for name in ("state", "count"))
    predicted, basis = machine.predict(state, query), machine.basis_many(state, query)
    right, predicts = predicted == output, basis != UNSEEN_CODE
    wrong = np.flatnonzero(~right & predicts)
    first = None
    if len(wrong):
        row = wrong[np.lexsort((rows["step"][wrong], rows["trace"][wrong]))[0]]
        observed, action = np.divmod(rows["query"][row], len(alphabets.actions))
        if machine.supplemented:
            observed //= transition_states
        first = Mismatch(
            machine=machine.name,
            trace=int(rows["trace"][row]),
            step=int(rows["step"][row]),
            observation=alphabets.observations[int(observed)],
            action=alphabets.actions[int(action)],
            state=int(rows["state"][row]),
            predicted=machine.outputs[int(predicted[row])],
            actual=alphabets.outputs(machine.predicts)[int(rows["output"][row])],
            generalized=bool(basis[row] == GENERALIZED_CODE),
        )
    smoothing = smoothing_of(machine)
    of_output, of_main = (
        output_probabilities(machine, smoothing, state[predicts], query[predicts], codes[predicts])
        for codes in (output, predicted)
    )
    sums = PredictionSums.of(of_output, of_main, right[predicts], count[predicts])
    return _counted(right, basis, count, first, sums, unqueried=counts.unqueried)


def _counted(
    is_right: NDArray[np.bool_],
    basis: NDArray[np.int8],
    count: Numbers,
    first_mismatch: Mismatch | None,
    forecasts: PredictionSums,
    unqueried: int = 0,
) -> MachineScore:
    """Return the score of rows that are right or not, each with its basis and count."""
    right, wrong, assumed_right, assumed_wrong = (
        int(count[(basis == code) & rows].sum())
        for code in (OBSERVED_CODE, GENERALIZED_CODE)
        for rows in (is_right, ~is_right)
    )
    unseen = int(count[basis == UNSEEN_CODE].sum()) + unqueried
    return MachineScore(
        right, wrong, assumed_right, assumed_wrong, unseen, first_mismatch, forecasts
    )


def belief_score(machines: Machines, traces: TraceSet) -> Score:
    """Return the number of steps predicted right by the belief about states before each step."""
    belief = Belief(machines)
    queries = [
        _BeliefQueries.of(machine, states.astype(np.int32), belief, traces)
        for machine, states in zip(machines.values(), belief.joint.T, strict=True)
    ]
    beliefs = _beliefs(belief, traces, queries)
    scores = (_score_of_beliefs(machine_queries, beliefs, traces) for machine_queries in queries)
    return Score(dict(zip(machines, scores, strict=True)))


@dataclass(frozen=True, eq=False)
class _BeliefQueries:
    """The distinct queries of traces to one machine, in all joint states of a belief.

    `states` are the machine's states in the joint ones. `query` is the query of each step, `number`
    the machine's number of each query in each joint state. `outcome` is the pair of query and
    output of each step, `chance` the probability of each pair in each joint state. `output` is each
    step's output in the machine's codes, −1 for unknown ones.
    """

    machine: Machine
    states: Codes
    query: Numbers
    number: Numbers
    output: Codes
    outcome: Numbers
    chance: Floats

    @classmethod
    def of(
        cls, machine: Machine, states: Codes, belief: Belief, traces: TraceSet
    ) -> "_BeliefQueries":
        observation = traces.at_step(traces.observation_codes).astype(np.int64)
        queries, query = np.unique(
            observation * len(traces.actions) + traces.action_codes, return_inverse=True
        )
        codes_read = np.divmod(np.repeat(queries, len(states)), len(traces.actions))
        number = query_numbers(
            machine,
            (traces.observations, traces.actions),
            codes_read,
            np.tile(belief.joint[:, 0], len(queries)) if machine.supplemented else None,
        ).reshape(len(queries), len(states))
        values, codes = outputs_at_steps(machine, traces)
        output = codes_of(values, machine.outputs, -1)[codes]
        width = len(machine.outputs) + 1  # the first is for unknown outputs
        outcomes, outcome = np.unique(query * width + output + 1, return_inverse=True)
        chance = _chances(
            machine, states, number[outcomes // width], (outcomes % width - 1).astype(np.int32)
        )
        return cls(machine, states, query, number, output, outcome, chance)


def _chances(machine: Machine, states: Codes, number: Numbers, output: Codes) -> Floats:
    """Return the probabilities of outputs in all joint states; nan where there is no query."""
    chance = output_probabilities(
        machine,
        smoothing_of(machine),
        np.tile(states, len(number)),
        np.ascontiguousarray(number.ravel()),
        np.repeat(output, len(states)),
    )
    return chance.reshape(number.shape)


def _beliefs(belief: Belief, traces: TraceSet, queries: list[_BeliefQueries]) -> Floats:
    """Return the belief about joint states before each step, for all traces in parallel."""
    read = Histories.of(traces, belief.machines.timing).beta
    if belief.machines.state_uncertainty.starts:
        read = read.copy()
        read[traces.offsets[:-1]] = -1  # the initial state is hidden
    chances = [fill_unknown(machine_queries.chance) for machine_queries in queries]
    lengths = np.diff(traces.offsets)
    longest = np.argsort(-lengths, kind="stable")
    shares = np.tile(belief.initial, (len(traces), 1))
    beliefs = np.empty((traces.steps, len(belief.joint)))
    for step in range(int(lengths.max(initial=0))):
        running = longest[: int((lengths > step).sum())]
        rows = traces.offsets[running] + step
        for code in np.unique(read[rows]).tolist():
            matrix = belief.transition_matrix(traces.labels[code]) if code >= 0 else None
            if matrix is not None:
                readers = running[read[rows] == code]
                shares[readers] = product(shares[readers], matrix)
        beliefs[rows] = shares[running]
        for machine_queries, chance in zip(queries, chances, strict=True):
            shares[running] *= chance[machine_queries.outcome[rows]]
        shares[running] /= shares[running].sum(axis=1, keepdims=True)
    return beliefs


def _score_of_beliefs(queries: _BeliefQueries, beliefs: Floats, traces: TraceSet) -> MachineScore:
    machine, number = queries.machine, queries.number
    values, codes = outputs_at_steps(machine, traces)
    columns = np.tile(queries.states, len(number)), np.ascontiguousarray(number.ravel())
    main = machine.predict(*columns).reshape(number.shape)
    basis_of = machine.basis_many(*columns).reshape(number.shape)
    # Probability of the main output of each state in each state: [query, output, state].
    chances = (_chances(machine, queries.states, number, outputs) for outputs in main.T)
    of_main = np.stack(list(chances), axis=1)
    total = MachineScore()
    for rows in np.split(np.arange(len(beliefs)), range(_CHUNK, len(beliefs), _CHUNK)):
        query = queries.query[rows]
        has_output = main[query] >= 0
        weight = np.where(has_output, beliefs[rows], 0.0)
        mass = weight.sum(axis=1)
        is_known = mass > 0
        weight[is_known] /= mass[is_known, None]
        forecast = (weight[:, None, :] * np.nan_to_num(of_main[query])).sum(-1)
        best = np.where(has_output, forecast, -1.0).argmax(axis=1)
        likeliest = weight.argmax(axis=1)
        predicted = main[query, best]
        right = predicted == queries.output[rows]
        basis = np.where(is_known, basis_of[query, likeliest], np.int8(UNSEEN_CODE))
        of_actual = (weight * np.nan_to_num(queries.chance[queries.outcome[rows]])).sum(axis=1)
        first = None
        if len(wrong := np.flatnonzero(~right & is_known)):
            position, row = int(wrong[0]), int(rows[wrong[0]])
            trace, step = traces.locate(row)
            first = Mismatch(
                machine=machine.name,
                trace=trace,
                step=step,
                observation=traces.observations[int(traces.observation_codes[row + trace])],
                action=traces.actions[int(traces.action_codes[row])],
                state=int(queries.states[likeliest[position]]),
                predicted=machine.outputs[int(predicted[position])],
                actual=values[int(codes[row])],
                generalized=bool(basis[position] == GENERALIZED_CODE),
            )
        of_best = np.minimum(forecast[np.arange(len(rows)), best], 1.0)
        count = np.ones(len(rows), np.int64)
        sums = PredictionSums.of(
            of_actual[is_known], of_best[is_known], right[is_known], count[is_known]
        )
        total = total.then(_counted(right, basis, count, first, sums), 0)
    return total
