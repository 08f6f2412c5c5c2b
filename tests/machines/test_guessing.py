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


def vote_of(outputs, other, state):
    both = [
        (one, two)
        for one, two in zip(outputs[other], outputs[state], strict=True)
        if UNKNOWN not in (one, two)
    ]
    return ((sum(one == two for one, two in both) + 0.5) / (len(both) + 1)) ** STEEPNESS


def plain_guesses(transitions, outputs):
    """What guesses must be, cell by cell."""
    guessed_transitions, guessed_outputs = (
        [list(row) for row in transitions],
        [list(row) for row in outputs],
    )
    for state in range(len(transitions)):
        others = [other for other in range(len(transitions)) if other != state]
        for label, known in enumerate(transitions[state]):
            if known == UNKNOWN:
                votes = {state: 0.0}
                for other in others:
                    if (target := transitions[other][label]) != UNKNOWN:
                        choice = state if target == other else target
                        votes[choice] = votes.get(choice, 0.0) + vote_of(outputs, other, state)
                most = max(votes.values())
                best = sorted(one for one, vote in votes.items() if vote == most)
                guessed_transitions[state][label] = state if votes[state] == most else best[0]
        for query, known in enumerate(outputs[state]):
            if known == UNKNOWN:
                votes = {}
                for other in others:
                    if (output := outputs[other][query]) != UNKNOWN:
                        votes[output] = votes.get(output, 0.0) + vote_of(outputs, other, state)
                if votes:
                    most = max(votes.values())
                    guessed_outputs[state][query] = min(
                        one for one, vote in votes.items() if vote == most
                    )
    return guessed_transitions, guessed_outputs


@given(
    states=st.integers(1, 6),
    labels=st.integers(1, 4),
    queries=st.integers(0, 5),
    seed=st.integers(0, 10_000),
)
def test_guesses_are_those_of_a_plain_vote(states, labels, queries, seed):
    random = np.random.default_rng(seed)
    transitions = random.integers(-1, states, (states, labels), dtype=np.int32)
    outputs = random.integers(-1, 3, (states, queries), dtype=np.int32)
    inferred = [table.tolist() for table in guess_missing(transitions, outputs)]
    assert inferred == list(plain_guesses(transitions.tolist(), outputs.tolist()))


@settings(max_examples=10, deadline=None)
@given(world_traces())
def test_observed_entries_stay(traces):
    machines = rs.infer(traces).machines
    guessing = machines.guessing()
    assert type(guessing) is type(machines)
    for name, machine in machines.items():
        guess = guessing[name]
        observed = machine.transitions >= 0
        assert (guess.transitions[observed] == machine.transitions[observed]).all()
        assert (guess.transitions >= 0).all()
        for state in range(machine.states):
            for observation in machine.observations:
                for action in machine.actions:
                    output = machine.output(state, observation, action)
                    if output is not rs.UNSEEN:
                        assert guess.output(state, observation, action) == output
    score, guessed = machines.score(traces), guessing.score(traces)
    assert all(guessed[name].all_right == score[name].all_right for name in machines)


def walks(steps):
    model = BANK["tls12-server"]
    return model.machine, model.machine.as_traces(*model.walks(steps, 1))


@pytest.fixture(scope="module")
def inferred():
    machine, traces = walks(4_000)
    return machine, traces, rs.infer(traces, outputs=["output"], strategy="likelihood").machines


def test_neither_order_nor_repeats_of_traces_change_guesses(inferred):
    _, traces, machines = inferred
    order = np.random.default_rng(0).permutation(len(traces))
    again = traces.take(np.concatenate([order, order[:20]]))
    other = rs.infer(again, outputs=["output"], strategy="likelihood").machines
    assert other["output"].guessing() == machines["output"].guessing()


def test_guesses_predict_fresh_steps_that_are_unseen_without(inferred):
    model, _, machines = inferred
    fresh = BANK["tls12-server"].walks(20_000, 1_001)
    partial = model.wrong_share(machines["output"], fresh)
    assert partial > 0.02  # most of it after a move that no trace took
    assert model.wrong_share(machines["output"].guessing(), fresh) < partial / 2
    score = machines.guessing().score(model.as_traces(*fresh))
    assert score["output"].unseen == 0


def test_guessing_machines_are_saved(inferred):
    _, _, machines = inferred
    guessing = machines.guessing()
    assert decode(encode(guessing)) == guessing
    assert machines["output"].guessing().guessing() == guessing["output"]


def test_a_noisy_machine_keeps_its_output_counts():
    machines, traces = noisy_house()
    machine, guess = machines.transition, machines.guessing().transition
    assert machine.is_noisy
    assert guess.output_counts == machine.output_counts
    assert (guess.transitions >= 0).all()
    told = machines.score(traces)["transition"]
    assert machines.guessing().score(traces)["transition"].all_right == told.all_right
