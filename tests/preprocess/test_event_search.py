"""Transition tables are found if they are known, and as short as any table; mixtures are sums."""

from itertools import product

import numpy as np
import pytest

from resolvent import _core
from resolvent.preprocess.event_search import (
    first_mixture,
    fit_mixture,
    grown_table,
    without_state,
)
from resolvent.preprocess.event_steps import DescriptionLength, EventSteps
from resolvent.preprocess.timing import NONE

WORK = 10**9


def random_steps(table, output_of, *, episodes, length, seed=0):
    """Random readings, and the outputs that the states of a table give to one query."""
    random = np.random.default_rng(seed)
    source = random.integers(0, len(table), episodes * length).astype(np.int32)
    output, state = np.zeros(len(source), np.int32), 0
    for at, read in enumerate(source):
        state = table[read][0 if at % length == 0 else state]
        output[at] = output_of[state]
    offsets = np.arange(0, len(source) + 1, length)
    return EventSteps(source, output, offsets, np.zeros(max(output_of) + 1, np.int64), len(table))


def test_a_counter_modulo_four_is_found():
    stays = [0, 1, 2, 3]
    steps = random_steps([[1, 2, 3, 0], *[stays] * 5], [0, 0, 0, 1], episodes=20, length=200)
    table = grown_table(steps, seed=0, work=WORK).table
    assert steps.count_unexplained(table) == 0
    assert np.flatnonzero((table != np.arange(table.shape[1])).any(1)).tolist() == [0]
    assert table.shape[1] == 4


def test_a_required_order_of_events_is_found():
    """First 2, then 0, then 1: only then the output is another one."""
    rows = [[0, 2, 2, 3], [0, 1, 3, 3], [1, 1, 2, 3], *[[0, 1, 2, 3]] * 7]
    steps = random_steps(rows, [0, 0, 0, 1], episodes=100, length=40)
    table = grown_table(steps, seed=0, work=WORK).table
    assert steps.count_unexplained(table) == 0
    assert np.flatnonzero((table != np.arange(table.shape[1])).any(1)).tolist() == [0, 1, 2]


def test_chance_is_not_explained():
    random = np.random.default_rng(0)
    source = random.integers(0, 6, 2_000).astype(np.int32)
    output = random.integers(0, 2, 2_000).astype(np.int32)
    steps = EventSteps(source, output, np.arange(0, 2_001, 20), np.zeros(2, np.int64), 6)
    assert grown_table(steps, seed=0, work=10**8).table.shape == (6, 1)


@pytest.mark.parametrize("seed", range(4))
def test_no_table_of_two_states_is_shorter(seed):
    """Against every table that three sources and up to two states allow."""
    random = np.random.default_rng(seed)
    rows = random.integers(0, 2, (3, 2)).tolist()
    steps = random_steps(rows, [0, 1], episodes=10, length=6, seed=seed)
    description = DescriptionLength(steps)
    tables = (np.array(cells).reshape(3, 2) for cells in product(range(2), repeat=6))
    shortest = min(description.of(table, steps.output_counts(table)) for table in tables)
    assert grown_table(steps, seed=seed, work=WORK).length <= shortest + 1e-9


def test_the_same_seed_gives_the_same_table():
    steps = random_steps([[1, 0], [0, 1], [0, 1]], [0, 1], episodes=10, length=10)
    one, other = (grown_table(steps, seed=3, work=WORK) for _ in range(2))
    np.testing.assert_array_equal(one.table, other.table)
    assert one.length == other.length


def test_transitions_to_a_removed_state_become_none():
    assert without_state(np.array([[1, 2, 0], [2, 1, 2]]), 1).tolist() == [[0, 0], [1, 1]]


STATES = 3


def some_steps(seed=0):
    """Two short traces: what they read, and what they output to two queries."""
    random = np.random.default_rng(seed)
    offsets = np.array([0, 4, 7], np.int64)
    source = random.integers(NONE, 4, 7).astype(np.int32)
    output = random.integers(NONE, 4, 7).astype(np.int32)
    return EventSteps(source, output, offsets, np.array([0, 0, 1, 1]), 4)


def likely_tables(seed):
    random = np.random.default_rng(seed)
    transitions = random.random((4, STATES, STATES)).astype(np.float32)
    transitions /= transitions.sum(2, keepdims=True)
    return transitions, random.random((4, STATES)).astype(np.float32)


def enumerated(steps, transitions, outputs):
    """Sum over every sequence of states that each trace may have gone through."""
    transition_counts, output_counts, log_likelihood = (
        np.zeros(transitions.shape),
        np.zeros(outputs.shape),
        0.0,
    )
    for first, last in zip(steps.offsets, steps.offsets[1:], strict=False):
        total, traced = 0.0, []
        for path in product(range(STATES), repeat=int(last - first)):
            likely, before = 1.0, 0
            for at, state in zip(range(first, last), path, strict=True):
                source, output = steps.source[at], steps.output[at]
                likely *= (
                    float(state == before) if source == NONE else transitions[source, before, state]
                )
                likely *= 1.0 if output == NONE else outputs[output, state]
                before = state
            total += likely
            traced.append((likely, path))
        log_likelihood += np.log(total)
        for likely, path in traced:
            before = 0
            for at, state in zip(range(first, last), path, strict=True):
                if steps.source[at] != NONE:
                    transition_counts[steps.source[at], before, state] += likely / total
                if steps.output[at] != NONE:
                    output_counts[steps.output[at], state] += likely / total
                before = state
    return log_likelihood, transition_counts, output_counts


def expected_counts(steps, transitions, outputs):
    columns = steps.source, steps.output, steps.offsets
    tables = {"transitions": transitions.ravel(), "outputs": outputs.ravel()}
    return _core.expected_transitions(*columns, states=outputs.shape[1], **tables)


@pytest.mark.parametrize("seed", range(5))
def test_expected_transitions_are_sums_over_all_paths(seed):
    steps, (transitions, outputs) = some_steps(seed), likely_tables(seed)
    log_likelihood, transition_counts, output_counts = expected_counts(steps, transitions, outputs)
    expected = enumerated(steps, transitions, outputs)
    assert log_likelihood == pytest.approx(expected[0], rel=1e-5)
    np.testing.assert_allclose(transition_counts.reshape(transitions.shape), expected[1], atol=1e-5)
    np.testing.assert_allclose(output_counts.reshape(outputs.shape), expected[2], atol=1e-5)


@pytest.mark.parametrize("states", [4, 5, 9, 13, 17])
def test_unreachable_states_change_nothing(states):
    """Wider tables go through other native code, and must give the same counts."""
    steps, (transitions, outputs) = some_steps(), likely_tables(0)
    wide = np.tile(np.eye(states, dtype=np.float32), (4, 1, 1))
    wide[:, :STATES, :STATES] = transitions
    wide_outputs = np.ones((4, states), np.float32)
    wide_outputs[:, :STATES] = outputs
    log_likelihood, transition_counts, _ = expected_counts(steps, wide, wide_outputs)
    expected = enumerated(steps, transitions, outputs)
    assert log_likelihood == pytest.approx(expected[0], rel=1e-5)
    transition_counts = transition_counts.reshape(4, states, states)
    np.testing.assert_allclose(transition_counts[:, :STATES, :STATES], expected[1], atol=1e-5)
    assert not transition_counts[:, STATES:].any()


def test_rounds_increase_the_likelihood():
    random = np.random.default_rng(1)
    source = random.integers(0, 4, 400).astype(np.int32)
    output = random.integers(0, 4, 400).astype(np.int32)
    steps = EventSteps(source, output, np.array([0, 200, 400]), np.array([0, 0, 1, 1]), 4)
    mixture = first_mixture(steps, states=3, classes=2, random=random)
    lengths = []
    for _ in range(30):
        length, counts = mixture.expect(steps)
        mixture = counts.normalized(steps.query_of)
        lengths.append(length)
    assert lengths[-1] > lengths[0]


def test_sources_that_act_alike_end_in_one_class():
    """Sources 0 and 1 switch a light on, 2 and 3 switch it off, the others do nothing."""
    random = np.random.default_rng(0)
    source = random.integers(0, 8, 6_000).astype(np.int32)
    light = np.zeros(6_000, np.int32)
    offsets = np.arange(0, 6_001, 20)
    for first in offsets[:-1]:
        now = 0
        for at in range(first, first + 20):
            now = {0: 1, 1: 1, 2: 0, 3: 0}.get(int(source[at]), now)
            light[at] = now
    steps = EventSteps(source, light, offsets, np.array([0, 0]), 8)
    start = first_mixture(steps, states=2, classes=3, random=random)
    table = fit_mixture(steps, start, rounds=200).table
    assert steps.count_unexplained(table) == 0
    assert table[:4].tolist() == [[1, 1], [1, 1], [0, 0], [0, 0]]
    assert table[4:].tolist() == [[0, 1]] * 4


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"states": 0}, "1 to 32 states"),
        ({"states": 40}, "1 to 32 states"),
        ({"states": 5}, "do not fit"),
        ({"source": np.array([9], np.int32)}, "equally long"),
        ({"source": np.full(7, 9, np.int32)}, "out of range"),
        ({"output": np.full(7, -2, np.int32)}, "out of range"),
        ({"offsets": np.array([0, 4], np.int64)}, "offsets must end"),
    ],
)
def test_columns_that_do_not_fit_are_refused(change, words):
    steps, (transitions, outputs) = some_steps(), likely_tables(0)
    columns = {"source": steps.source, "output": steps.output, "offsets": steps.offsets}
    tables = {"states": STATES, "transitions": transitions.ravel(), "outputs": outputs.ravel()}
    with pytest.raises(ValueError, match=words):
        _core.expected_transitions(**(columns | tables | change))
