"""Lengths of predictive codes, compared with counting step by step, and their columns."""

import math
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resolvent.preprocess.auto_discretize import PredictiveCode, Steps
from resolvent.traces import Trace, TraceSet


def sequential_bits(contexts, outcomes, n_outcomes):
    """Bits of outcomes in order, each by what its context saw before: half a count more each."""
    seen, bits = defaultdict(Counter), 0.0
    for context, outcome in zip(contexts, outcomes, strict=True):
        counts = seen[context]
        bits -= math.log2((counts[outcome] + 0.5) / (counts.total() + n_outcomes / 2))
        counts[outcome] += 1
    return bits


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2), st.booleans()), min_size=2))
@settings(deadline=None)
def test_bits_of_an_output_are_those_of_counting_step_by_step(steps):
    numbers = [number + 0.5 for number, _, _ in steps]
    pushes = [push for _, push, _ in steps]
    bells = [bell for _, _, bell in steps]
    seen = [*numbers, 3.5]
    trace = Trace(seen, [None] * len(seen), pushes, columns={"bell": bells})
    code = PredictiveCode(Steps.of(TraceSet([trace]), [()], ["bell"], 10**6)).bits([(4.0,)])

    low = [number < 4 for number in numbers]
    lower_before = [None, *low[:-1]]
    rung = [None, *bells[:-1]]
    n_outcomes = len(set(bells))
    candidates = [
        list(zip(pushes, low, strict=True)),
        list(zip(pushes, low, lower_before, strict=True)),
        list(zip(pushes, low, rung, strict=True)),
    ]
    cheapest = min(sequential_bits(one, bells, n_outcomes) for one in candidates)
    assert code.outputs == pytest.approx(cheapest if n_outcomes > 1 else 0)
    assert code.numbers == 0


@given(st.lists(st.integers(0, 9), min_size=3, max_size=40))
@settings(deadline=None)
def test_bits_of_a_number_exclude_those_of_the_frequency_of_its_interval(numbers):
    seen = [number + 0.5 for number in numbers]
    trace = Trace(seen, [None] * len(seen), "a" * (len(seen) - 1))
    code = PredictiveCode(Steps.of(TraceSet([trace]), [()], ["observation"], 10**6))
    assert code.bits([()]).total == 0

    low = [number < 4 for number in seen]
    now, after = low[:-1], low[1:]
    before = [None, *now[:-1]]
    has_no_output_before = [True, *[False] * (len(now) - 1)]  # at the first step
    contexts = [now, *(list(zip(now, one, strict=True)) for one in (before, has_no_output_before))]
    cheapest = min(sequential_bits(one, after, 2) for one in contexts)
    counts = Counter(after)
    by_frequency = sum(many * math.log2(len(after) / many) for many in counts.values())
    assert code.bits([(4.0,)]).numbers == pytest.approx(cheapest - by_frequency)


def test_the_cache_changes_nothing():
    chance = np.random.default_rng(0)
    seen = list(map(tuple, chance.normal(size=(200, 3)).tolist()))
    traces = TraceSet([Trace(seen, [None] * 200, chance.integers(0, 2, 199).tolist())])
    steps = Steps.of(traces, [(0,), (1,), (2,)], ["observation"], 10**6)
    cached = PredictiveCode(steps)
    for edges, varied in [
        ([(), (), ()], 0),
        ([(0.0,), (), ()], 0),
        ([(0.0,), (0.5,), ()], 1),
        ([(0.0,), (-0.5, 0.5), (0.1,)], 2),
        ([(0.0,), (), (0.1,)], 1),
        ([(0.2,), (), (0.1,)], 0),
    ]:
        for number in range(3):
            assert cached.bits(edges, number) == pytest.approx(PredictiveCode(steps).bits(edges))
        assert cached.bits(edges, varied) == pytest.approx(PredictiveCode(steps).bits(edges))


days = TraceSet(
    [
        Trace(
            [(20.5, "dusk"), ("broken", "dusk"), (19.5, "night")],
            [None, "click", None],
            ["wait", "turn"],
            [0, 1],
            terminated=True,
        ),
        Trace([(18.5, "night"), (18.0, "night")], [None, None], ["wait"], [1]),
    ]
)


def test_each_number_before_at_and_after_a_step():
    ((before, now, after),) = Steps.of(days, [(0,)], ["reward"], 10**6).numbers
    nothing = np.nan
    np.testing.assert_array_equal(before, [nothing, 20.5, nothing])
    np.testing.assert_array_equal(now, [20.5, nothing, 18.5])
    np.testing.assert_array_equal(after, [nothing, 19.5, 18.0])


def test_the_columns_besides_numbers():
    steps = Steps.of(days, [(0,)], ["reward", "observation", "terminated"], 10**6)
    assert len(steps) == 3
    assert len(set(steps.rest.codes.tolist())) == 3  # dusk, broken at dusk, night
    assert steps.actions.codes.tolist() == [1, 0, 1]
    assert steps.labels.codes.tolist() == [0, 1, 0]
    reward, ended, rest = steps.outputs
    assert reward.codes.tolist() == [0, 1, 1]
    assert ended.codes.tolist() == [0, 1, 0]
    assert rest.codes[1] == rest.codes[2] != rest.codes[0]
    previous_outputs = steps.previous_outputs.codes
    assert previous_outputs[0] == previous_outputs[2] != previous_outputs[1]


def test_steps_beyond_the_maximum_are_skipped():
    assert len(Steps.of(days, [(0,)], ["reward"], 2)) == 2


def test_numeric_outputs_are_put_into_cells():
    pay = np.random.default_rng(0).normal(size=400)
    trace = Trace(np.arange(401.0).tolist(), [None] * 401, "a" * 400, pay.tolist())
    (output,) = Steps.of(TraceSet([trace]), [()], ["reward"], 10**6).outputs
    assert output.size == 8
    assert np.bincount(output.codes).tolist() == [50] * 8
    assert pay[output.codes == 0].max() < pay[output.codes == 1].min()
