"""The bits it takes to tell what comes next, compared with counting step by step."""

import math
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resolvent.senses.foretelling import Foretelling
from resolvent.senses.steps import steps_of
from resolvent.traces import Trace, TraceSet


def told_one_by_one(contexts, outcomes, kinds):
    """Bits of outcomes in order, each by what its context saw before: half a count more each."""
    seen, bits = defaultdict(Counter), 0.0
    for context, outcome in zip(contexts, outcomes, strict=True):
        counts = seen[context]
        bits -= math.log2((counts[outcome] + 0.5) / (counts.total() + kinds / 2))
        counts[outcome] += 1
    return bits


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2), st.booleans()), min_size=2))
@settings(deadline=None)
def test_an_output_costs_what_counting_step_by_step_costs(steps):
    numbers = [number + 0.5 for number, _, _ in steps]
    pushes = [push for _, push, _ in steps]
    bells = [bell for _, _, bell in steps]
    seen = [*numbers, 3.5]
    trace = Trace(seen, [None] * len(seen), pushes, columns={"bell": bells})
    told = Foretelling(steps_of(TraceSet([trace]), [()], ["bell"], 10**6)).bits([(4.0,)])

    low = [number < 4 for number in numbers]
    lower_before = [None, *low[:-1]]
    rung = [None, *bells[:-1]]
    kinds = len(set(bells))
    candidates = [
        list(zip(pushes, low, strict=True)),
        list(zip(pushes, low, lower_before, strict=True)),
        list(zip(pushes, low, rung, strict=True)),
    ]
    cheapest = min(told_one_by_one(one, bells, kinds) for one in candidates)
    assert told.outputs == pytest.approx(cheapest if kinds > 1 else 0)
    assert told.readings == 0


@given(st.lists(st.integers(0, 9), min_size=3, max_size=40))
@settings(deadline=None)
def test_a_reading_costs_what_it_costs_beyond_how_often_its_interval_occurs(numbers):
    seen = [number + 0.5 for number in numbers]
    trace = Trace(seen, [None] * len(seen), "a" * (len(seen) - 1))
    told = Foretelling(steps_of(TraceSet([trace]), [()], ["observation"], 10**6))
    assert told.bits([()]).total == 0

    low = [number < 4 for number in seen]
    now, after = low[:-1], low[1:]
    before = [None, *now[:-1]]
    nothing_told = [True, *[False] * (len(now) - 1)]  # at the first step
    contexts = [now, *(list(zip(now, one, strict=True)) for one in (before, nothing_told))]
    cheapest = min(told_one_by_one(one, after, 2) for one in contexts)
    counts = Counter(after)
    by_frequency = sum(many * math.log2(len(after) / many) for many in counts.values())
    assert told.bits([(4.0,)]).readings == pytest.approx(cheapest - by_frequency)


def test_what_was_worked_out_before_changes_nothing():
    chance = np.random.default_rng(0)
    seen = list(map(tuple, chance.normal(size=(200, 3)).tolist()))
    traces = TraceSet([Trace(seen, [None] * 200, chance.integers(0, 2, 199).tolist())])
    steps = steps_of(traces, [(0,), (1,), (2,)], ["observation"], 10**6)
    kept = Foretelling(steps)
    for edges, varied in [
        ([(), (), ()], 0),
        ([(0.0,), (), ()], 0),
        ([(0.0,), (0.5,), ()], 1),
        ([(0.0,), (-0.5, 0.5), (0.1,)], 2),
        ([(0.0,), (), (0.1,)], 1),
        ([(0.2,), (), (0.1,)], 0),
    ]:
        for number in range(3):
            assert kept.bits(edges, number) == pytest.approx(Foretelling(steps).bits(edges))
        assert kept.bits(edges, varied) == pytest.approx(Foretelling(steps).bits(edges))
