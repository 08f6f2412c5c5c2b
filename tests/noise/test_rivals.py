"""How sure moves are, and states, against what the definition of the evidence says."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from evidence_oracle import log_evidence, log_row
from noisy_samples import noisy_samples, sample_set

from resolvent import _core
from resolvent.errors import ModelError
from resolvent.noise import (
    compare_transitions,
    fit_likely_machine,
    improve_transitions,
    marginal_likelihood,
)

TABLE = [[0, 1, 2], [1, 2, 0], [2, 0, 1]]
ANSWERS = [[0, 1, 2, 0], [1, 1, 0, 2], [2, 0, 1, 0]]


@pytest.mark.parametrize("seed", range(4))
def test_a_move_is_weighed_against_its_best_other_target(seed):
    samples = noisy_samples(TABLE, ANSWERS, traces=8, steps=10, seed=seed)
    moves = np.array(TABLE, np.int32)
    noise = marginal_likelihood(samples, moves)
    found = compare_transitions(samples, moves)
    here = log_evidence(samples, moves, noise.strength, noise.share)
    for state in range(3):
        for label in (1, 2):  # label 0 changes no state
            there = {}
            for target in {0, 1, 2} - {int(moves[state, label])}:
                changed = moves.copy()
                changed[state, label] = target
                there[target] = log_evidence(samples, changed, noise.strength, noise.share)
            target = int(found.target[state, label])
            assert found.log_odds[state, label] == pytest.approx(here - max(there.values()))
            assert there[target] == pytest.approx(max(there.values()))
    assert (found.target[:, 0] == -1).all()  # it is "no event"


def test_what_was_never_read_has_no_rival():
    samples = noisy_samples(TABLE, ANSWERS, traces=1, steps=2)
    moves = np.full((3, 3), -1, np.int32)
    label = int(samples.beta[1])
    moves[0, label] = 1
    found = compare_transitions(samples, moves)
    assert np.argwhere(found.target >= 0).tolist() == [[0, label]]


def test_more_traces_make_moves_surer():
    moves = np.array(TABLE, np.int32)
    few, many = (
        compare_transitions(noisy_samples(TABLE, ANSWERS, traces=traces), moves)
        for traces in (10, 200)
    )
    weighed = few.target >= 0
    assert (many.log_odds[weighed] > few.log_odds[weighed]).all()
    assert many.log_odds[weighed].min() > 100


def test_the_order_of_traces_makes_no_difference_to_moves():
    samples = noisy_samples(TABLE, ANSWERS, traces=20)
    order = np.random.default_rng(0).permutation(20)
    columns = (samples.alpha, samples.output, samples.beta)
    shuffled = sample_set(
        *(column.reshape(20, -1)[order].ravel() for column in columns), [20] * 20, 3
    )
    moves = np.array(TABLE, np.int32)
    one, other = compare_transitions(samples, moves), compare_transitions(shuffled, moves)
    assert np.array_equal(one.target, other.target)
    assert np.allclose(one.log_odds, other.log_odds)


def test_moves_that_do_not_fit_are_refused():
    samples = noisy_samples(TABLE, ANSWERS, traces=5)
    with pytest.raises(ModelError, match="the moves do not fit the samples"):
        compare_transitions(samples, np.full((2, 3), -1, np.int32))


def test_two_states_against_one_by_their_answers():
    samples = noisy_samples(TABLE, ANSWERS, traces=6, steps=8)
    random = np.random.default_rng(1)
    state = random.integers(-1, 3, len(samples.alpha)).astype(np.int32)
    found = _core.weigh_state_pairs(samples.alpha, samples.output, state, states=3)
    pooled = [Counter(samples.output[samples.alpha == asked].tolist()) for asked in range(4)]
    # Which noise the core fits is not told: some pair of its grid must give these odds.
    grid = [(strength, share) for strength in STRENGTHS for share in SHARES]
    assert any(
        np.allclose(pair_odds(samples, state, pooled, *noise), found["log_odds"]) for noise in grid
    )
    assert (found["questions"] <= 4).all()


STRENGTHS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 3000.0, 10000.0)
SHARES = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.07, 0.1)
SHARES = (*SHARES, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 0.85)


def pair_odds(samples, state, pooled, strength, share):
    def row(states, asked):
        given = samples.output[np.isin(state, states) & (samples.alpha == asked)]
        counts = Counter(given.tolist())
        return log_row(counts, pooled[asked], strength, share) if counts else None

    def together(one, other, asked):
        parts = row([one], asked), row([other], asked)
        return 0.0 if None in parts else sum(parts) - row([one, other], asked)

    pairs = ((0, 1), (0, 2), (1, 2))
    return [sum(together(*pair, asked) for asked in range(4)) for pair in pairs]


def test_rows_that_answer_otherwise_after_something_else_are_split():
    """Question 0 is answered by the value, question 1 at random."""
    random = np.random.default_rng(0)
    alpha = random.integers(0, 2, 400).astype(np.int32)
    value = random.integers(0, 2, 400).astype(np.int32)
    output = np.where(alpha == 0, value, random.integers(0, 2, 400)).astype(np.int32)
    useless = random.integers(0, 2, 400).astype(np.int32)
    found = _core.split_noisy_rows(
        alpha,
        output,
        np.zeros(400, np.int32),
        values=np.concatenate([useless, value]),
        states=1,
        least=10.0,
    )
    assert found["feature"].tolist() == [1]
    assert found["question"].tolist() == [0]
    odd = min((output[alpha == 0] == 0).sum(), (output[alpha == 0] == 1).sum())
    assert (found["odd"].tolist(), found["odd_apart"].tolist()) == ([odd], [0])


def test_the_best_of_each_size_is_there_and_weighs_what_it_should():
    samples = noisy_samples(TABLE, ANSWERS, traces=40)
    found = fit_likely_machine(samples)
    assert found.states == 3
    assert list(found.by_size) == list(found.sizes)
    for states, moves in found.by_size.items():
        assert len(moves) == states
        stays = np.where(moves < 0, np.arange(states, dtype=np.int32)[:, None], moves)
        assert marginal_likelihood(samples, stays).log_evidence == pytest.approx(
            found.sizes[states]
        )
    assert np.array_equal(found.by_size[3], found.transitions)
    assert found.log_odds[3] == 0.0
    assert found.price >= 8
    worth = found.sizes[2] - found.sizes[3]
    assert found.log_odds[2] == pytest.approx(worth + found.price)
    assert max(found.log_odds.values()) == 0.0


def test_a_move_that_is_left_wrong_is_put_right():
    samples = noisy_samples(TABLE, ANSWERS, traces=40)
    right = fit_likely_machine(samples)
    wrong = right.transitions.copy()
    wrong[2, 1] = 2
    left = replace(
        right, transitions=wrong, log_evidence=marginal_likelihood(samples, wrong).log_evidence
    )
    found = improve_transitions(samples, left)
    assert np.array_equal(found.transitions, right.transitions)
    assert found.log_evidence == pytest.approx(right.log_evidence)
    assert improve_transitions(samples, right) is right


def test_a_move_that_a_state_hangs_on_does_not_hide_others():
    # State 2 is a copy of state 1, and without the move that leads there it would be lost. That
    # another one of its moves should stay is less plain, but can be had.
    samples = noisy_samples([[0, 1, 0], [1, 0, 1]], ANSWERS[:2], traces=60)
    moves = np.array([[0, 1, 0], [1, 0, 2], [2, 0, 1]], np.int32)
    odds = compare_transitions(samples, moves).log_odds
    assert np.unravel_index(odds.argmin(), odds.shape) == (1, 2)
    assert odds[1, 2] < odds[2, 2] < 0
    evidence = marginal_likelihood(samples, moves)
    left = replace(
        fit_likely_machine(samples),
        transitions=moves,
        log_evidence=evidence.log_evidence,
        by_size={},
    )
    found = improve_transitions(samples, left)
    assert found.transitions.tolist() == [[0, 1, 0], [1, 0, 2], [2, 0, 2]]
    assert found.log_evidence == pytest.approx(
        marginal_likelihood(samples, found.transitions).log_evidence
    )


@pytest.mark.parametrize("seed", range(3))
def test_staying_is_weighed_though_other_states_answer_as_well(seed):
    # Of five states that answer alike, the move may lead to any; that it stays is likeliest.
    table = np.array([[0, 1, 2, 3, 4, 5, 0]] + [[state] * 7 for state in range(1, 6)], np.int32)
    answers = [[0, 1, 2, 0]] + [[1, 2, 0, 2]] * 5
    samples = noisy_samples(table, answers, traces=40, steps=6, seed=seed)
    table[1, 6] = 0
    noise, found, there = (
        marginal_likelihood(samples, table),
        compare_transitions(samples, table),
        {},
    )
    for target in range(1, 6):
        changed = table.copy()
        changed[1, 6] = target
        there[target] = log_evidence(samples, changed, noise.strength, noise.share)
    here = log_evidence(samples, table, noise.strength, noise.share)
    assert max(there, key=there.get) == found.target[1, 6] == 1
    assert found.log_odds[1, 6] == pytest.approx(here - there[1])
