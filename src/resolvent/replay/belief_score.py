"""Machines with uncertain states + traces → how well they predict each step.

The belief about states before a step follows from the labels and steps before it; the prediction
is the most likely output under this belief.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent._util.math import product
from resolvent.machines import Machine, Machines, MachineScore, Mismatch, Score
from resolvent.machines.belief import Belief, fill_unknown
from resolvent.machines.likelihood import output_probabilities, smoothing_of
from resolvent.machines.score import PredictionSums
from resolvent.machines.tables import GENERALIZED_CODE, OBSERVED_CODE, UNSEEN_CODE
from resolvent.preprocess.samples import Histories, SampleSet, output_samples
from resolvent.traces import Codes, TraceSet
from resolvent.traces.vocabulary import codes_of

Numbers = NDArray[np.int64]
Floats = NDArray[np.float64]

_CHUNK = 20_000
"""Number of steps scored at once; memory grows with it and with the square of states."""


def belief_score(machines: Machines, traces: TraceSet) -> Score:
    """Return the number of steps predicted right by the belief about states before each step.

    >>> from resolvent.worlds import House
    >>> from resolvent.machines.augmented_state import StateUncertainty, LabelNoise
    >>> from resolvent.traces import Trace
    >>> starts = {frozenset(): 0.5, frozenset({"key"}): 0.5}
    >>> state_uncertainty = StateUncertainty(LabelNoise(0.1, 0.0, 0.0), starts)
    >>> machines = House().machines().replacing(state_uncertainty=state_uncertainty)
    >>> seen = ["corridor", "orangeroom", "corridor", "cyanroom"]
    >>> missed = Trace(seen, [None] * 4, ["left", "right", "up"], [0.0] * 3)
    >>> print(belief_score(machines, TraceSet([missed])).transition)
    right 1, wrong 1, generalized right 1, unseen 0
    """
    belief = Belief(machines)
    queries = [_Queries.of(machine, belief, traces) for machine in machines.values()]
    believed = _believed(belief, traces, queries)
    return Score(
        {
            kind: _score(machine, place, belief, traces, machine_queries, believed)
            for place, ((kind, machine), machine_queries) in enumerate(
                zip(machines.items(), queries, strict=True)
            )
        }
    )


@dataclass(frozen=True, eq=False)
class _Queries:
    """The distinct queries of traces to one machine, in all joint states.

    `pair` is the query of each step, `number` the machine's number of a query in a joint state.
    `answer` is each step's distinct query and output, `chance` their probability in a joint state.
    `output` is the actual output in the machine's codes, −1 for none; `samples` has the values.
    """

    pair: Numbers
    number: Numbers
    output: Codes
    answer: Numbers
    chance: Floats
    samples: SampleSet

    @classmethod
    def of(cls, machine: Machine, belief: Belief, traces: TraceSet) -> "_Queries":
        seen = traces.at_step(traces.observation_codes).astype(np.int64)
        width = len(traces.actions)
        pairs, pair = np.unique(seen * width + traces.action_codes, return_inverse=True)
        number = _numbers(machine, belief, traces, pairs // width, pairs % width)
        histories = Histories.of(traces, belief.machines.timing)
        samples = output_samples(traces, histories, machine.predicts, digits=machine.digits)
        output_codes = codes_of(samples.outputs, machine.outputs, -1)
        output = output_codes[samples.output].astype(np.int32)
        answers, answer = np.unique(
            pair * (len(machine.outputs) + 1) + output + 1, return_inverse=True
        )
        of_pair, output_number = np.divmod(answers, len(machine.outputs) + 1)
        chance = _chances(machine, belief, number[of_pair], (output_number - 1).astype(np.int32))
        return cls(pair, number, output, answer, chance, samples)


def _numbers(
    machine: Machine, belief: Belief, traces: TraceSet, seen: Numbers, done: Numbers
) -> Numbers:
    """Return the numbers of a machine's queries as [query, joint state]."""
    states = belief.joint[:, 0] if machine.supplemented else np.zeros(len(belief.joint), np.int64)
    count = int(states.max()) + 1
    named: list[Any] = [
        (traces.observations[code], state) if machine.supplemented else traces.observations[code]
        for code in seen.tolist()
        for state in range(count)
    ]
    observed = codes_of(named, machine.observations, -1).reshape(-1, count)[:, states]
    acted = codes_of((traces.actions[code] for code in done.tolist()), machine.actions, -1)
    is_known = (observed >= 0) & (acted >= 0)[:, None]
    numbers = observed.astype(np.int64) * len(machine.actions) + acted[:, None]
    return np.where(is_known, numbers, -1)


def _chances(machine: Machine, belief: Belief, number: Numbers, output: Codes) -> Floats:
    """Return the probabilities of outputs in all joint states; nan where there is no query."""
    place = list(belief.machines).index(machine.name)
    states = np.broadcast_to(belief.joint[:, place].astype(np.int32), number.shape)
    queries = np.ascontiguousarray(states.ravel()), np.ascontiguousarray(number.ravel())
    outputs = np.repeat(output, number.shape[1])
    return output_probabilities(machine, smoothing_of(machine), *queries, outputs).reshape(
        number.shape
    )


def _believed(belief: Belief, traces: TraceSet, queries: list[_Queries]) -> Floats:
    """Return the belief about joint states before each step, for all traces in parallel."""
    read = Histories.of(traces, belief.machines.timing).beta
    if belief.machines.state_uncertainty.starts:
        read = read.copy()
        read[traces.offsets[:-1]] = -1  # the initial state is hidden
    chances = [fill_unknown(own.chance) for own in queries]
    lengths = np.diff(traces.offsets)
    longest = np.argsort(-lengths, kind="stable")
    shares = np.tile(belief.initial, (len(traces), 1))
    believed = np.empty((traces.steps, len(belief.joint)))
    for step in range(int(lengths.max(initial=0))):
        going = longest[: int((lengths > step).sum())]
        rows = traces.offsets[going] + step
        for code in np.unique(read[rows]).tolist():
            through = belief.transition_matrix(traces.labels[code]) if code >= 0 else None
            if through is not None:
                those = going[read[rows] == code]
                shares[those] = product(shares[those], through)
        believed[rows] = shares[going]
        for machine_queries, table in zip(queries, chances, strict=True):
            shares[going] *= table[machine_queries.answer[rows]]
        shares[going] /= shares[going].sum(axis=1, keepdims=True)
    return believed


def _score(
    machine: Machine,
    place: int,
    belief: Belief,
    traces: TraceSet,
    queries: _Queries,
    believed: Floats,
) -> MachineScore:
    states = np.broadcast_to(belief.joint[:, place].astype(np.int32), queries.number.shape)
    flat = np.ascontiguousarray(states.ravel()), np.ascontiguousarray(queries.number.ravel())
    main = machine.predict(*flat).reshape(queries.number.shape)
    level = machine.basis_many(*flat).reshape(queries.number.shape)
    # Probability of the main output of each state in each state: [query, output, state].
    width = len(belief.joint)
    of_main = np.stack(
        [
            _chances(machine, belief, queries.number, np.ascontiguousarray(main[:, column]))
            for column in range(width)
        ],
        axis=1,
    )
    total = MachineScore()
    for first in range(0, len(believed), _CHUNK):
        rows = np.arange(first, min(first + _CHUNK, len(believed)))
        pair, shares = queries.pair[rows], believed[rows]
        is_answered = main[pair] >= 0
        weight = np.where(is_answered, shares, 0.0)
        mass = weight.sum(axis=1)
        is_known = mass > 0
        weight[is_known] /= mass[is_known, None]
        forecast = (weight[:, None, :] * np.nan_to_num(of_main[pair])).sum(-1)
        best = np.where(is_answered, forecast, -1.0).argmax(axis=1)
        likeliest = weight.argmax(axis=1)
        each = np.arange(len(rows))
        predicted = main[pair, best]
        right = predicted == queries.output[rows]
        basis = np.where(is_known, level[pair, likeliest], UNSEEN_CODE)
        actual = (weight * np.nan_to_num(queries.chance[queries.answer[rows]])).sum(axis=1)
        counts = MachineScore(
            right=int((right & (basis == OBSERVED_CODE)).sum()),
            wrong=int((~right & (basis == OBSERVED_CODE)).sum()),
            assumed_right=int((right & (basis == GENERALIZED_CODE)).sum()),
            assumed_wrong=int((~right & (basis == GENERALIZED_CODE)).sum()),
            unseen=int((basis == UNSEEN_CODE).sum()),
        )
        mismatch = None
        if len(wrong := np.flatnonzero(~right & is_known)):
            at = int(wrong[0])
            mismatch = _mismatch(
                machine,
                traces,
                queries,
                row=int(rows[at]),
                state=int(belief.joint[likeliest[at], place]),
                predicted=int(predicted[at]),
                generalized=bool(basis[at] == GENERALIZED_CODE),
            )
        forecasts = PredictionSums.of(
            actual[is_known],
            np.minimum(forecast[each, best][is_known], 1.0),
            right[is_known],
            np.ones(int(is_known.sum()), np.int64),
        )
        total = total.then(replace(counts, first_mismatch=mismatch, forecasts=forecasts), 0)
    return total


def _mismatch(
    machine: Machine,
    traces: TraceSet,
    queries: _Queries,
    *,
    row: int,
    state: int,
    predicted: int,
    generalized: bool,
) -> Mismatch:
    trace, step = traces.locate(row)
    samples = queries.samples
    return Mismatch(
        machine=machine.name,
        trace=trace,
        step=step,
        observation=traces.observations[int(traces.observation_codes[row + trace])],
        action=traces.actions[int(traces.action_codes[row])],
        state=state,
        predicted=machine.outputs[predicted],
        actual=samples.outputs[int(samples.output[row])],
        generalized=generalized,
    )
