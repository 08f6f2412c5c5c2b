"""Mixtures of classes against sums over all ways that states may have moved."""

from itertools import product

import numpy as np
import pytest

from resolvent import _core
from resolvent.preprocess.event_mixture import first_mixture, fit_mixture
from resolvent.preprocess.event_steps import EventSteps
from resolvent.preprocess.timing import NONE

STATES = 3


def some_steps(seed=0):
    """Two short traces: what they read, and what they answer to two questions."""
    random = np.random.default_rng(seed)
    offsets = np.array([0, 4, 7], np.int64)
    source = random.integers(NONE, 4, 7).astype(np.int32)
    answer = random.integers(NONE, 4, 7).astype(np.int32)
    return EventSteps(source, answer, offsets, np.array([0, 0, 1, 1]), 4)


def likely_tables(seed):
    random = np.random.default_rng(seed)
    moves = random.random((4, STATES, STATES)).astype(np.float32)
    moves /= moves.sum(2, keepdims=True)
    return moves, random.random((4, STATES)).astype(np.float32)


def enumerated(steps, moves, answers):
    """Sum over every sequence of states that each trace may have gone through."""
    moved, given, log_likelihood = np.zeros(moves.shape), np.zeros(answers.shape), 0.0
    for first, last in zip(steps.offsets, steps.offsets[1:], strict=False):
        total, traced = 0.0, []
        for path in product(range(STATES), repeat=int(last - first)):
            likely, before = 1.0, 0
            for at, state in zip(range(first, last), path, strict=True):
                source, answer = steps.source[at], steps.output[at]
                likely *= float(state == before) if source == NONE else moves[source, before, state]
                likely *= 1.0 if answer == NONE else answers[answer, state]
                before = state
            total += likely
            traced.append((likely, path))
        log_likelihood += np.log(total)
        for likely, path in traced:
            before = 0
            for at, state in zip(range(first, last), path, strict=True):
                if steps.source[at] != NONE:
                    moved[steps.source[at], before, state] += likely / total
                if steps.output[at] != NONE:
                    given[steps.output[at], state] += likely / total
                before = state
    return log_likelihood, moved, given


@pytest.mark.parametrize("seed", range(5))
def test_expected_moves_are_sums_over_all_paths(seed):
    steps, (moves, answers) = some_steps(seed), likely_tables(seed)
    log_likelihood, moved, given = _core.expected_moves(
        steps.source,
        steps.output,
        steps.offsets,
        states=STATES,
        moves=moves.ravel(),
        answers=answers.ravel(),
    )
    expected = enumerated(steps, moves, answers)
    assert log_likelihood == pytest.approx(expected[0], rel=1e-5)
    np.testing.assert_allclose(moved.reshape(moves.shape), expected[1], atol=1e-5)
    np.testing.assert_allclose(given.reshape(answers.shape), expected[2], atol=1e-5)


@pytest.mark.parametrize("states", [4, 5, 9, 13, 17])
def test_states_that_nothing_leads_to_change_nothing(states):
    """Wider tables go through other native code, and must give the same counts."""
    steps, (moves, answers) = some_steps(), likely_tables(0)
    wide = np.tile(np.eye(states, dtype=np.float32), (4, 1, 1))
    wide[:, :STATES, :STATES] = moves
    answered = np.ones((4, states), np.float32)
    answered[:, :STATES] = answers
    log_likelihood, moved, _ = _core.expected_moves(
        steps.source,
        steps.output,
        steps.offsets,
        states=states,
        moves=wide.ravel(),
        answers=answered.ravel(),
    )
    expected = enumerated(steps, moves, answers)
    assert log_likelihood == pytest.approx(expected[0], rel=1e-5)
    moved = moved.reshape(4, states, states)
    np.testing.assert_allclose(moved[:, :STATES, :STATES], expected[1], atol=1e-5)
    assert not moved[:, STATES:].any()


def test_a_round_raises_the_likelihood():
    random = np.random.default_rng(1)
    source = random.integers(0, 4, 400).astype(np.int32)
    answer = random.integers(0, 4, 400).astype(np.int32)
    steps = EventSteps(source, answer, np.array([0, 200, 400]), np.array([0, 0, 1, 1]), 4)
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
        ({"answer": np.full(7, -2, np.int32)}, "out of range"),
        ({"offsets": np.array([0, 4], np.int64)}, "offsets must end"),
    ],
)
def test_columns_that_do_not_fit_are_refused(change, words):
    steps, (moves, answers) = some_steps(), likely_tables(0)
    given = {"source": steps.source, "answer": steps.output, "offsets": steps.offsets}
    given |= {"states": STATES, "moves": moves.ravel(), "answers": answers.ravel()} | change
    with pytest.raises(ValueError, match=words):
        _core.expected_moves(**given)
