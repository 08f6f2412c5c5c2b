"""Law 20: what a state answers, and how often, is what the traces count there."""

import pickle
from collections import Counter, defaultdict
from math import isclose, isnan, log2

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import asked_in

import resolvent as rs
from noisy_worlds import taught
from resolvent.machines.io.json import decode, encode
from strategies import noisy_machines


def counted(machines, traces):
    """By kind, state, observation and action: the answers that traces give, counted one by one."""
    found = defaultdict(Counter)
    for kind, state, seen, action, actual in asked_in(machines, traces):
        if state is not rs.UNSEEN:
            found[kind, state, seen, action][actual] += 1
    return found


@pytest.mark.slow
@settings(deadline=None, max_examples=150)
@given(noisy_machines())
def test_counts_are_those_of_the_traces(found):
    machines, traces = found
    told = counted(machines, traces)
    noisy = {kind for (kind, *_), answers in told.items() if len(answers) > 1}
    assert {kind for kind in ("transition", "reward") if machines[kind].is_noisy} == noisy
    for (kind, *query), answers in told.items():
        machine = machines[kind]
        assert machine.counts(*query) == answers
        assert machine.basis(*query) is rs.Basis.OBSERVED
        shares = machine.distribution(*query)
        assert shares == {one: count / answers.total() for one, count in answers.items()}
        assert isclose(sum(shares.values()), 1)
        assert list(shares.values()) == sorted(shares.values(), reverse=True)
        assert machine.output(*query) == next(iter(shares))
        assert answers[machine.output(*query)] == max(answers.values())
        entropy = -sum(share * log2(share) for share in shares.values())
        assert machine.entropy(*query) == pytest.approx(entropy, abs=1e-12)
    for kind in ("transition", "reward"):
        machine = machines[kind]
        mine = [answers for (name, *_), answers in told.items() if name == kind]
        odd = sum(answers.total() - max(answers.values()) for answers in mine)
        assert machine.noise == odd / sum(answers.total() for answers in mine)
        assert machine.distribution(0, "never", "met") == machine.counts(0, "never", "met") == {}
        assert isnan(machine.entropy(0, "never", "met"))


@pytest.mark.slow
@settings(deadline=None, max_examples=100)
@given(noisy_machines())
def test_a_noisy_machine_is_restored_from_its_bytes(found):
    machines, _ = found
    data = encode(machines)
    again = decode(data)
    assert again == machines
    assert pickle.loads(pickle.dumps(machines)) == machines  # noqa: S301
    assert encode(again) == data
    for kind, machine in machines.items():
        for name in ("state", "query", "value", "count"):
            mine, yours = (getattr(one.output_counts, name) for one in (machine, again[kind]))
            assert mine.dtype == yours.dtype
            assert mine.tolist() == yours.tolist()
    assert (b'"output_counts"' in data) == any(one.is_noisy for one in machines.values())


@settings(deadline=None, max_examples=60)
@given(noisy_machines(), st.booleans())
def test_repeated_and_reversed_traces_change_nothing(found, constants):
    machines, traces = found
    more = rs.TraceSet([*reversed(list(traces)), *traces, *traces])
    once, often = (taught(machines, some, constants) for some in (traces, more))
    assert once == often
    for kind, machine in once.items():
        counts = machine.output_counts.count.tolist()
        assert often[kind].output_counts.count.tolist() == [3 * count for count in counts]
        assert often[kind].noise == machine.noise
