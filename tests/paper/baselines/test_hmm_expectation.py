"""Expected transitions: both engines, held to a list of all hidden paths."""

import numpy as np
import pytest
from hidden_paths import over_all_paths, random_transitions, task_of, tasks
from hypothesis import given, settings
from hypothesis import strategies as st

from resolvent import _core
from resolvent.errors import TimeLimitReached
from resolvent.paper.baselines import hmm_em as expectation
from resolvent.paper.baselines.hmm_em import Deadline, DenseEngine, SparseEngine

FOREVER = Deadline(None)


def expected(engine, transitions):
    log_likelihood, values = engine.expect(transitions[engine.source, engine.target], FOREVER)
    counts = np.zeros_like(transitions)
    counts[engine.source, engine.target] = values
    return log_likelihood, counts


@pytest.mark.parametrize("engine", [SparseEngine, DenseEngine])
def test_one_hidden_choice_by_hand(engine):
    # Places 0 → 1 → end at 0, two layers and the end: the one choice is the layer at place 1.
    task = task_of(([0, 1, 0], True))
    transitions = np.zeros((6, 6))
    transitions[0, 1], transitions[0, 3] = 0.5, 0.25  # to place 1 in layer 0, in layer 1
    transitions[1, 4], transitions[3, 4] = 0.1, 0.6  # to the end at place 0
    log_likelihood, counts = expected(engine(task, 3), transitions)
    assert log_likelihood == pytest.approx(np.log(0.5 * 0.1 + 0.25 * 0.6))
    assert counts[0, 1] == counts[1, 4] == pytest.approx(0.25)
    assert counts[0, 3] == counts[3, 4] == pytest.approx(0.75)
    assert counts.sum() == pytest.approx(2)


@pytest.mark.parametrize("engine", [SparseEngine, DenseEngine])
@given(task=tasks(longest=5, most_walks=3), states=st.integers(2, 4), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=40)
def test_all_hidden_paths_add_up(engine, task, states, seed):
    transitions = random_transitions(task, states, seed)
    log_likelihood, counts = expected(engine(task, states), transitions)
    true_log_likelihood, true_counts = over_all_paths(task, states, transitions)
    assert log_likelihood == pytest.approx(true_log_likelihood, rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(counts, true_counts, rtol=1e-9, atol=1e-12)


@given(task=tasks(longest=40), states=st.integers(2, 8), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=40)
def test_both_engines_agree(task, states, seed):
    transitions = random_transitions(task, states, seed)
    sparse, dense = (
        expected(one(task, states), transitions) for one in (SparseEngine, DenseEngine)
    )
    assert sparse[0] == pytest.approx(dense[0], rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(sparse[1], dense[1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("engine", [SparseEngine, DenseEngine])
def test_traces_in_parts_give_what_all_at_once_do(engine, monkeypatch):
    walks = [([0, 1, 2, 1, 0], True), ([1, 1], False), ([2, 0, 1], True), ([0, 2], True)]
    transitions = random_transitions(task_of(*walks), 3, 0)
    whole = expected(engine(task_of(*walks), 3), transitions)
    monkeypatch.setattr(expectation, "_STEPS_AT_ONCE", 3)
    monkeypatch.setattr(expectation, "_NUMBERS_AT_ONCE", 40)
    parts = expected(engine(task_of(*walks), 3), transitions)
    assert parts[0] == pytest.approx(whole[0])
    np.testing.assert_allclose(parts[1], whole[1])


@pytest.mark.parametrize("engine", [SparseEngine, DenseEngine])
def test_long_traces_do_not_underflow(engine):
    # Each step has probability 1/8, so that of the whole is far below the smallest number.
    task = task_of(([0, 1] * 2_000, True))
    transitions = np.full((6, 6), 1 / 8)
    log_likelihood, counts = expected(engine(task, 3), transitions)
    # Two layers fit each of the 3,998 places in the middle.
    assert log_likelihood == pytest.approx(3_999 * np.log(1 / 8) + 3_998 * np.log(2))
    assert counts.sum() == pytest.approx(3_999)


@pytest.mark.parametrize("engine", [SparseEngine, DenseEngine])
def test_the_clock_is_looked_at(engine):
    task = task_of(([0, 1, 0], True))
    started = engine(task, 3)
    with pytest.raises(TimeLimitReached):
        started.expect(np.full(len(started.source), 0.1), Deadline(-1.0))


def arguments(**changes):
    fine = {
        "move": np.zeros(2, np.int32),
        "offsets": np.array([0, 2]),
        "paid": np.ones(1, np.int32),
        "layers": 2,
        "onward": np.ones(4),
        "ending": np.ones(2),
    }
    return fine | changes


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layers": 0}, "at least one layer"),
        ({"onward": np.ones(5)}, "do not fit the layers"),
        ({"ending": np.ones(3)}, "do not fit the layers"),
        ({"move": np.array([1, 0], np.int32)}, "out of range"),
        ({"move": np.array([0, 1], np.int32)}, "out of range"),
        ({"move": np.array([-1, 0], np.int32)}, "out of range"),
        ({"paid": np.ones(2, np.int32)}, "one entry per trace"),
        ({"offsets": np.array([0, 0, 2]), "paid": np.ones(2, np.int32)}, "has no moves"),
        ({"offsets": np.array([0, 3])}, "offsets must end"),
    ],
)
def test_the_core_refuses_columns_that_do_not_fit(changes, message):
    with pytest.raises(ValueError, match=message):
        _core.expected_layers(**arguments(**changes))


def test_the_core_takes_no_other_kind_of_number():
    with pytest.raises(TypeError):
        _core.expected_layers(**arguments(onward=np.ones(4, np.int64)))
    with pytest.raises(TypeError):
        _core.expected_layers(**arguments(ending=np.ones(2, np.float32)))
    with pytest.raises(TypeError):
        _core.expected_layers(**arguments(move=np.zeros(2)))
