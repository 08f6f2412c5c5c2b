"""How sure transitions are, and states, against what the definition of the evidence says."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from evidence_oracle import log_evidence, log_row
from noisy_samples import noisy_samples, sample_set

import resolvent as rs
from resolvent import _core
from resolvent.noise import fit_likely_machine, marginal_likelihood
from resolvent.noise.outputs import compare_transitions, improve_transitions

TABLE = [[0, 1, 2], [1, 2, 0], [2, 0, 1]]
OUTPUTS = [[0, 1, 2, 0], [1, 1, 0, 2], [2, 0, 1, 0]]


@pytest.mark.parametrize("seed", range(4))
def test_a_transition_is_compared_with_its_best_other_target(seed):
    samples = noisy_samples(TABLE, OUTPUTS, traces=8, steps=10, seed=seed)
    transitions = np.array(TABLE, np.int32)
    noise = marginal_likelihood(samples, transitions)
    comparison = compare_transitions(samples, transitions)
    here = log_evidence(samples, transitions, noise.strength, noise.share)
    for state in range(3):
        for label in (1, 2):  # label 0 changes no state
            there = {}
            for target in {0, 1, 2} - {int(transitions[state, label])}:
                changed = transitions.copy()
                changed[state, label] = target
                there[target] = log_evidence(samples, changed, noise.strength, noise.share)
            target = int(comparison.target[state, label])
            assert comparison.log_odds[state, label] == pytest.approx(here - max(there.values()))
            assert there[target] == pytest.approx(max(there.values()))
    assert (comparison.target[:, 0] == -1).all()  # it is "no event"


def test_labels_never_read_have_no_alternative():
    samples = noisy_samples(TABLE, OUTPUTS, traces=1, steps=2)
    transitions = np.full((3, 3), -1, np.int32)
    label = int(samples.beta[1])
    transitions[0, label] = 1
    comparison = compare_transitions(samples, transitions)
    assert np.argwhere(comparison.target >= 0).tolist() == [[0, label]]


def test_more_traces_increase_the_odds():
    transitions = np.array(TABLE, np.int32)
    few, many = (
        compare_transitions(noisy_samples(TABLE, OUTPUTS, traces=traces), transitions)
        for traces in (10, 200)
    )
    weighed = few.target >= 0
    assert (many.log_odds[weighed] > few.log_odds[weighed]).all()
    assert many.log_odds[weighed].min() > 100


def test_the_order_of_traces_makes_no_difference_to_odds():
    samples = noisy_samples(TABLE, OUTPUTS, traces=20)
    order = np.random.default_rng(0).permutation(20)
    columns = (samples.alpha, samples.output, samples.beta)
    shuffled = sample_set(
        *(column.reshape(20, -1)[order].ravel() for column in columns), [20] * 20, 3
    )
    transitions = np.array(TABLE, np.int32)
    compared, compared_shuffled = (
        compare_transitions(samples, transitions),
        compare_transitions(shuffled, transitions),
    )
    assert np.array_equal(compared.target, compared_shuffled.target)
    assert np.allclose(compared.log_odds, compared_shuffled.log_odds)


def test_odds_of_two_states_against_one_by_their_outputs():
    samples = noisy_samples(TABLE, OUTPUTS, traces=6, steps=8)
    random = np.random.default_rng(1)
    state = random.integers(-1, 3, len(samples.alpha)).astype(np.int32)
    weighed = _core.compare_state_pairs(samples.alpha, samples.output, state, states=3)
    pooled = [Counter(samples.output[samples.alpha == query].tolist()) for query in range(4)]
    # Which noise the core fits is not known: some pair of its grid must give these odds.
    grid = [(strength, share) for strength in STRENGTHS for share in SHARES]
    assert any(
        np.allclose(pair_odds(samples, state, pooled, *noise), weighed["log_odds"])
        for noise in grid
    )
    assert (weighed["queries"] <= 4).all()


STRENGTHS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 3000.0, 10000.0)
SHARES = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.07, 0.1)
SHARES = (*SHARES, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 0.85)


def pair_odds(samples, state, pooled, strength, share):
    def row(states, query):
        outputs_of_row = samples.output[np.isin(state, states) & (samples.alpha == query)]
        counts = Counter(outputs_of_row.tolist())
        return log_row(counts, pooled[query], strength, share) if counts else None

    def together(first, second, query):
        parts = row([first], query), row([second], query)
        return 0.0 if None in parts else sum(parts) - row([first, second], query)

    pairs = ((0, 1), (0, 2), (1, 2))
    return [sum(together(*pair, query) for query in range(4)) for pair in pairs]


def test_rows_are_split_by_a_value_that_predicts_their_output():
    """Query 0 is answered by the value, query 1 at random."""
    random = np.random.default_rng(0)
    alpha = random.integers(0, 2, 400).astype(np.int32)
    value = random.integers(0, 2, 400).astype(np.int32)
    output = np.where(alpha == 0, value, random.integers(0, 2, 400)).astype(np.int32)
    useless = random.integers(0, 2, 400).astype(np.int32)
    split = _core.split_noisy_rows(
        alpha,
        output,
        np.zeros(400, np.int32),
        values=np.concatenate([useless, value]),
        states=1,
        least=10.0,
    )
    assert split["feature"].tolist() == [1]
    assert split["query"].tolist() == [0]
    odd = min((output[alpha == 0] == 0).sum(), (output[alpha == 0] == 1).sum())
    assert (split["deviating"].tolist(), split["deviating_apart"].tolist()) == ([odd], [0])


def test_the_best_machine_of_each_size_has_its_evidence():
    samples = noisy_samples(TABLE, OUTPUTS, traces=40)
    fit = fit_likely_machine(samples)
    assert fit.states == 3
    assert list(fit.by_size) == list(fit.sizes)
    for states, transitions in fit.by_size.items():
        assert len(transitions) == states
        stays = np.where(transitions < 0, np.arange(states, dtype=np.int32)[:, None], transitions)
        assert marginal_likelihood(samples, stays).log_evidence == pytest.approx(fit.sizes[states])
    assert np.array_equal(fit.by_size[3], fit.transitions)
    assert fit.log_odds[3] == 0.0
    assert fit.price >= 8
    worth = fit.sizes[2] - fit.sizes[3]
    assert fit.log_odds[2] == pytest.approx(worth + fit.price)
    assert max(fit.log_odds.values()) == 0.0


def test_a_wrong_transition_is_corrected():
    samples = noisy_samples(TABLE, OUTPUTS, traces=40)
    right = fit_likely_machine(samples)
    wrong = right.transitions.copy()
    wrong[2, 1] = 2
    left = replace(
        right, transitions=wrong, log_evidence=marginal_likelihood(samples, wrong).log_evidence
    )
    improved = improve_transitions(samples, left)
    assert np.array_equal(improved.transitions, right.transitions)
    assert improved.log_evidence == pytest.approx(right.log_evidence)
    assert improve_transitions(samples, right) is right


def test_a_state_that_the_likelier_machine_does_not_reach_is_dropped():
    # State 2 is a copy of state 1, and without the transition that leads there it is unreachable.
    samples = noisy_samples([[0, 1, 0], [1, 0, 1]], OUTPUTS[:2], traces=60)
    transitions = np.array([[0, 1, 0], [1, 0, 2], [2, 0, 1]], np.int32)
    odds = compare_transitions(samples, transitions).log_odds
    assert np.unravel_index(odds.argmin(), odds.shape) == (1, 2)
    assert odds[1, 2] < odds[2, 2] < 0
    evidence = marginal_likelihood(samples, transitions)
    left = replace(
        fit_likely_machine(samples),
        transitions=transitions,
        log_evidence=evidence.log_evidence,
        by_size={},
    )
    improved = improve_transitions(samples, left)
    assert improved.transitions.tolist() == [[0, 1, 0], [1, 0, 1]]
    assert improved.sizes[2] == improved.log_evidence
    assert improved.log_evidence == pytest.approx(
        marginal_likelihood(samples, improved.transitions).log_evidence
    )


@pytest.mark.parametrize("seed", range(3))
def test_a_loop_is_compared_although_other_states_fit_as_well(seed):
    # Of five states that answer alike, the move may lead to any; that it stays is likeliest.
    table = np.array([[0, 1, 2, 3, 4, 5, 0]] + [[state] * 7 for state in range(1, 6)], np.int32)
    outputs = [[0, 1, 2, 0]] + [[1, 2, 0, 2]] * 5
    samples = noisy_samples(table, outputs, traces=40, steps=6, seed=seed)
    table[1, 6] = 0
    noise, comparison, there = (
        marginal_likelihood(samples, table),
        compare_transitions(samples, table),
        {},
    )
    for target in range(1, 6):
        changed = table.copy()
        changed[1, 6] = target
        there[target] = log_evidence(samples, changed, noise.strength, noise.share)
    here = log_evidence(samples, table, noise.strength, noise.share)
    assert max(there, key=there.get) == comparison.target[1, 6] == 1
    assert comparison.log_odds[1, 6] == pytest.approx(here - there[1])


@pytest.mark.parametrize("seed", range(3))
def test_no_alternative_is_likelier_than_the_result(seed):
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 4, (4, 3)).tolist()
    outputs = rng.integers(0, 3, (4, 3)).tolist()
    traces = []
    for _ in range(25):
        state, answers, word = 0, [], rng.integers(0, 3, 20).tolist()
        for letter in word:
            is_noise = rng.random() < 0.1
            answers.append(int(rng.integers(3)) if is_noise else outputs[state][letter])
            state = table[state][letter]
        names = [f"i{letter}" for letter in word]
        columns = {"output": answers}
        traces.append(rs.Trace([0] * 21, [None, *names], names, columns=columns))
    result = rs.infer(traces, outputs=["output"])
    for alternatives in result.alternatives.values():
        assert all(alternative.log_odds <= 1e-6 for alternative in alternatives)
    for machine in result.machines.values():
        comparison = machine.support.alternatives
        if comparison is not None:
            assert (comparison.log_odds[comparison.target >= 0] >= 0).all()
