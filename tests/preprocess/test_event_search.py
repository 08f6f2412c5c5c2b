"""Tables of moves: found where they are known, and never longer than what all tables allow."""

from itertools import product

import numpy as np
import pytest

from resolvent.preprocess.event_search import grown_table, without_state
from resolvent.preprocess.event_steps import DescriptionLength, EventSteps

WORK = 10**9


def played(table, answer_of, *, episodes, length, seed=0):
    """Random readings, and the answers that the states of a table give to one question."""
    random = np.random.default_rng(seed)
    source = random.integers(0, len(table), episodes * length).astype(np.int32)
    answer, state = np.zeros(len(source), np.int32), 0
    for at, read in enumerate(source):
        state = table[read][0 if at % length == 0 else state]
        answer[at] = answer_of[state]
    offsets = np.arange(0, len(source) + 1, length)
    return EventSteps(source, answer, offsets, np.zeros(max(answer_of) + 1, np.int64), len(table))


def test_a_source_that_counts_to_four_is_found():
    stays = [0, 1, 2, 3]
    steps = played([[1, 2, 3, 0], *[stays] * 5], [0, 0, 0, 1], episodes=20, length=200)
    table = grown_table(steps, seed=0, work=WORK).table
    assert steps.count_unexplained(table) == 0
    assert np.flatnonzero((table != np.arange(table.shape[1])).any(1)).tolist() == [0]
    assert table.shape[1] == 4


def test_an_order_of_visits_is_found():
    """First 2, then 0, then 1: only then the answer is another one."""
    rows = [[0, 2, 2, 3], [0, 1, 3, 3], [1, 1, 2, 3], *[[0, 1, 2, 3]] * 7]
    steps = played(rows, [0, 0, 0, 1], episodes=100, length=40)
    table = grown_table(steps, seed=0, work=WORK).table
    assert steps.count_unexplained(table) == 0
    assert np.flatnonzero((table != np.arange(table.shape[1])).any(1)).tolist() == [0, 1, 2]


def test_chance_is_not_explained():
    random = np.random.default_rng(0)
    source = random.integers(0, 6, 2_000).astype(np.int32)
    answer = random.integers(0, 2, 2_000).astype(np.int32)
    steps = EventSteps(source, answer, np.arange(0, 2_001, 20), np.zeros(2, np.int64), 6)
    assert grown_table(steps, seed=0, work=10**8).table.shape == (6, 1)


@pytest.mark.parametrize("seed", range(4))
def test_no_table_of_two_states_is_shorter(seed):
    """Against every table that three sources and up to two states allow."""
    random = np.random.default_rng(seed)
    rows = random.integers(0, 2, (3, 2)).tolist()
    steps = played(rows, [0, 1], episodes=10, length=6, seed=seed)
    description = DescriptionLength(steps)
    tables = (np.array(cells).reshape(3, 2) for cells in product(range(2), repeat=6))
    shortest = min(description.of(table, steps.output_counts(table)) for table in tables)
    assert grown_table(steps, seed=seed, work=WORK).length <= shortest + 1e-9


def test_the_same_seed_gives_the_same_table():
    steps = played([[1, 0], [0, 1], [0, 1]], [0, 1], episodes=10, length=10)
    one, other = (grown_table(steps, seed=3, work=WORK) for _ in range(2))
    np.testing.assert_array_equal(one.table, other.table)
    assert one.length == other.length


def test_moves_to_a_removed_state_become_none():
    assert without_state(np.array([[1, 2, 0], [2, 1, 2]]), 1).tolist() == [[0, 0], [1, 1]]
