"""Guesses: what was shown stays, the rest is what states do that answer alike."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import resolvent as rs
from noisy_worlds import noisy_house
from protocols import BANK
from resolvent.machines.build import STEEPNESS, guess_missing
from resolvent.machines.io.json import decode, encode
from strategies import world_traces

UNKNOWN = -1


def vote_of(answers, other, state):
    both = [
        (one, two)
        for one, two in zip(answers[other], answers[state], strict=True)
        if UNKNOWN not in (one, two)
    ]
    return ((sum(one == two for one, two in both) + 0.5) / (len(both) + 1)) ** STEEPNESS


def guessed_plainly(moves, answers):
    """What guesses must be, cell by cell."""
    told_moves, told = [list(row) for row in moves], [list(row) for row in answers]
    for state in range(len(moves)):
        others = [other for other in range(len(moves)) if other != state]
        for label, known in enumerate(moves[state]):
            if known == UNKNOWN:
                votes = {state: 0.0}
                for other in others:
                    if (target := moves[other][label]) != UNKNOWN:
                        choice = state if target == other else target
                        votes[choice] = votes.get(choice, 0.0) + vote_of(answers, other, state)
                most = max(votes.values())
                best = sorted(one for one, vote in votes.items() if vote == most)
                told_moves[state][label] = state if votes[state] == most else best[0]
        for query, known in enumerate(answers[state]):
            if known == UNKNOWN:
                votes = {}
                for other in others:
                    if (answer := answers[other][query]) != UNKNOWN:
                        votes[answer] = votes.get(answer, 0.0) + vote_of(answers, other, state)
                if votes:
                    most = max(votes.values())
                    told[state][query] = min(one for one, vote in votes.items() if vote == most)
    return told_moves, told


@given(
    states=st.integers(1, 6),
    labels=st.integers(1, 4),
    queries=st.integers(0, 5),
    seed=st.integers(0, 10_000),
)
def test_guesses_are_what_a_plain_vote_says(states, labels, queries, seed):
    random = np.random.default_rng(seed)
    moves = random.integers(-1, states, (states, labels), dtype=np.int32)
    answers = random.integers(-1, 3, (states, queries), dtype=np.int32)
    found = [table.tolist() for table in guess_missing(moves, answers)]
    assert found == list(guessed_plainly(moves.tolist(), answers.tolist()))


@settings(max_examples=10, deadline=None)
@given(world_traces())
def test_what_was_shown_stays(traces):
    machines = rs.infer(traces).machines
    guessing = machines.guessing()
    assert type(guessing) is type(machines)
    for kind, machine in machines.items():
        guess = guessing[kind]
        shown = machine.transitions >= 0
        assert (guess.transitions[shown] == machine.transitions[shown]).all()
        assert (guess.transitions >= 0).all()
        for state in range(machine.states):
            for observation in machine.observations:
                for action in machine.actions:
                    answer = machine.output(state, observation, action)
                    if answer is not rs.UNSEEN:
                        assert guess.output(state, observation, action) == answer
    score, guessed = machines.score(traces), guessing.score(traces)
    assert all(guessed[kind].all_right == score[kind].all_right for kind in machines)


def walks(steps):
    model = BANK["tls12-server"]
    return model.machine, model.machine.as_traces(*model.walks(steps, 1))


@pytest.fixture(scope="module")
def found():
    machine, traces = walks(4_000)
    return machine, traces, rs.infer(traces, outputs=["output"], strategy="likelihood").machines


def test_neither_order_nor_repeats_of_traces_change_guesses(found):
    _, traces, machines = found
    order = np.random.default_rng(0).permutation(len(traces))
    again = traces.take(np.concatenate([order, order[:20]]))
    other = rs.infer(again, outputs=["output"], strategy="likelihood").machines
    assert other["output"].guessing() == machines["output"].guessing()


def test_guesses_predict_fresh_steps_that_are_unseen_without(found):
    model, _, machines = found
    fresh = BANK["tls12-server"].walks(20_000, 1_001)
    partial = model.wrong_share(machines["output"], fresh)
    assert partial > 0.02  # most of it after a move that no trace took
    assert model.wrong_share(machines["output"].guessing(), fresh) < partial / 2
    score = machines.guessing().score(model.as_traces(*fresh))
    assert score["output"].unseen == 0


def test_machines_that_guess_are_kept_in_files(found):
    _, _, machines = found
    guessing = machines.guessing()
    assert decode(encode(guessing)) == guessing
    assert machines["output"].guessing().guessing() == guessing["output"]


def test_a_noisy_machine_keeps_how_its_answers_spread():
    machines, traces = noisy_house()
    machine, guess = machines.transition, machines.guessing().transition
    assert machine.is_noisy
    assert guess.output_counts == machine.output_counts
    assert (guess.transitions >= 0).all()
    told = machines.score(traces)["transition"]
    assert machines.guessing().score(traces)["transition"].all_right == told.all_right
