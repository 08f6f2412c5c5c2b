import numpy as np

import resolvent as rs
from resolvent.machines import Termination
from resolvent.machines.augmented_state import (
    LabelNoise,
    StateUncertainty,
    augmented_state_text,
    by_name,
    fill_unknown,
)


def test_ends_or_not_or_sometimes():
    known = Termination(frozenset({("hall", 0, 1, "sit")}), frozenset({("attic", 0, 0, "sit")}))
    assert known.after("hall", 0, 1, "sit") is True
    assert known.after("hall", 0, 0, "sit") is False
    assert known.after("attic", 0, 0, "sit") is None


def test_an_augmented_state_holds_the_states_of_all_machines():
    known = Termination(frozenset({("hall", 0, 1, 2, "sit")}))
    assert known.after("hall", 0, 1, 2, "sit") is True
    assert known.after("hall", 0, 1, 1, "sit") is False


def test_text():
    assert str(Termination(frozenset({("hall", 0, 1, "sit")}))) == "1 step ends the episode"
    both = Termination(frozenset(), frozenset({("hall", 0, 1, "sit")}))
    assert "does not follow from observation, states and action" in str(both)


def walk(labels, rewards, terminated):
    steps = len(rewards)
    return rs.Trace([0] * (steps + 1), labels, ["go"] * steps, rewards, terminated=terminated)


def test_episodes_that_always_end_in_the_same_augmented_state():
    # The second "a" ends the episode: in state 1 of the reward machine, after one "a".
    traces = rs.TraceSet(
        [
            walk([None, "a", "a"], [0, 1], terminated=True),
            walk([None, None, "a", "a"], [0, 0, 1], terminated=True),
            walk([None, None], [0], terminated=False),
        ]
    )
    termination = rs.infer(traces).machines.termination
    assert termination == Termination(frozenset({(0, 0, 1, "go")}))


def test_episodes_that_end_sometimes():
    traces = rs.TraceSet(
        [walk([None, None], [0], terminated=True), walk([None, None, None], [0, 0], True)]
    )
    assert rs.infer(traces).machines.termination == Termination(
        frozenset(), frozenset({(0, 0, 0, "go")})
    )


def test_the_action_counts():
    traces = rs.TraceSet(
        [
            rs.Trace([0, 0, 0], [None] * 3, ["go", "sit"], [0, 0], terminated=True),
            rs.Trace([0, 0], [None] * 2, ["go"], [0], truncated=True),
        ]
    )
    assert rs.infer(traces).machines.termination.ends == {(0, 0, 0, "sit")}


def test_truncation_is_not_termination():
    traces = rs.TraceSet([rs.Trace([0, 0], [None] * 2, ["go"], [0], truncated=True)])
    assert rs.infer(traces).machines.termination == Termination()


def test_augmented_states_as_values_and_as_text():
    assert by_name(("hall", 0, 1)) == {
        "observation": "hall",
        "transition_state": 0,
        "reward_state": 1,
    }
    assert augmented_state_text(("hall", 0, 1)) == "hall (transition state 0, reward state 1)"


def test_uncertainty_as_values_and_as_text():
    noise = LabelNoise(missed=0.051, false=0.0, swapped=0.002)
    assert str(noise) == "5.1% missed, 0% false, 0.2% swapped"
    shares = {"missed labels": 0.051, "false labels": 0.0, "swapped labels": 0.002}
    assert noise.shares() == shares
    assert LabelNoise.of_shares(shares) == noise
    starts = {frozenset(): 0.9, frozenset({"key"}): 0.1}
    assert str(StateUncertainty(LabelNoise(0.05, 0.0, 0.0), starts=starts)) == (
        "noisy labels: 5% missed, 0% false, 0% swapped; hidden starts: no event 0.9, key 0.1"
    )
    assert not StateUncertainty()


def test_unknown_probabilities_are_the_mean_of_the_known_ones():
    chance = np.array([[0.2, np.nan, 0.6], [np.nan] * 3])
    np.testing.assert_allclose(fill_unknown(chance), [[0.2, 0.4, 0.6], [1.0, 1.0, 1.0]])
