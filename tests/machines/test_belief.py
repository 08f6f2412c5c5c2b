"""A belief about states: against the sum over all true labels, one by one."""

from itertools import product

import numpy as np
import pytest

import resolvent as rs
from resolvent.errors import ModelError
from resolvent.machines import augmented_state as belief_module
from resolvent.machines.augmented_state import Belief, LabelNoise, StateUncertainty
from resolvent.machines.likelihood import output_probabilities, smoothing_of
from resolvent.worlds import House

NONE, KEY, SOFA = frozenset(), frozenset({"key"}), frozenset({"sofa"})
SHARES = {NONE: 0.6, KEY: 0.3, SOFA: 0.1}
LIES = LabelNoise(missed=0.2, false=0.1, swapped=0.15)
STEPS = [
    ("corridor", "up", "corridor", NONE),
    ("corridor", "left", "orangeroom", KEY),
    ("orangeroom", "right", "corridor", NONE),
    ("corridor", "up", "corridor", SOFA),
]


@pytest.fixture(scope="module")
def house():
    """The house's machines as they were learned, with counts."""
    import gymnasium as gym

    return rs.infer(rs.collect(gym.make("resolvent/House-v0"), episodes=100, seed=0)).machines


def chance_of(machine, state, seen, done, came):
    query = machine.observations.code(seen) * len(machine.actions) + machine.actions.code(done)
    output = machine.outputs.get(came)
    code = np.array([-1 if output is None else output], np.int32)
    asked = np.array([state], np.int32), np.array([query], np.int64)
    return float(output_probabilities(machine, smoothing_of(machine), *asked, code)[0])


def recorded_given(true, recorded):
    if true == NONE:
        events = SHARES[KEY] + SHARES[SOFA]
        return 1 - LIES.false if recorded == NONE else LIES.false * SHARES[recorded] / events
    if recorded == NONE:
        return LIES.missed
    return 1 - LIES.missed - LIES.swapped if recorded == true else LIES.swapped


def summed_up(machine):
    """How likely each state is in the end, by going through all sequences of true labels."""
    shares = np.zeros(machine.states)
    for labels in product(SHARES, repeat=len(STEPS)):
        state, likely = 0, 1.0
        for (seen, done, came, recorded), true in zip(STEPS, labels, strict=True):
            likely *= chance_of(machine, state, seen, done, came)
            likely *= SHARES[true] * recorded_given(true, recorded)
            moved = machine.step(state, true)
            state = state if moved is rs.UNSEEN else moved
        shares[state] += likely
    return shares / shares.sum()


def test_it_is_the_sum_over_all_true_labels(house):
    doubtful = house.replacing(state_uncertainty=StateUncertainty(LIES, SHARES))
    alone = rs.Machines((doubtful.transition,), state_uncertainty=doubtful.state_uncertainty)
    belief = Belief(alone)
    belief.reset(None)
    for seen, done, came, recorded in STEPS:
        belief.weigh(seen, done, {"observation": came})
        belief.read(recorded)
    expected = summed_up(house.transition)
    assert belief.probabilities["transition"] == pytest.approx(expected)
    assert 0.05 < expected[1] < 0.95  # else it would show nothing


def test_without_uncertainty_it_reads_labels(house):
    belief = Belief(house)
    belief.reset(None)
    belief.weigh("corridor", "left", {"observation": "orangeroom", "reward": 0.0})
    belief.read(KEY)
    assert belief.likeliest == (1, 0)
    assert belief.probabilities["transition"].tolist() == [0.0, 1.0]
    belief.read(frozenset({"fire"}))
    assert belief.unseen == 1
    assert belief.likeliest == (1, 0)


def test_outcomes_reveal_a_missed_label(house):
    belief = Belief(
        house.replacing(state_uncertainty=StateUncertainty(LabelNoise(0.1, 0.0, 0.0), SHARES))
    )
    belief.reset(None)
    belief.weigh("corridor", "left", {"observation": "orangeroom", "reward": 0.0})
    belief.read(None)
    before = belief.probabilities["transition"][1]
    belief.weigh("orangeroom", "right", {"observation": "corridor", "reward": 0.0})
    belief.read(None)
    belief.weigh("corridor", "up", {"observation": "cyanroom", "reward": 0.0})
    belief.read(None)
    assert before < 0.2
    assert belief.probabilities["transition"][1] > 0.99
    assert belief.likeliest[0] == 1
    belief.reset(None)
    assert belief.probabilities["transition"][0] == 1


def test_episodes_with_hidden_initial_states(house):
    belief = Belief(
        house.replacing(state_uncertainty=StateUncertainty(starts={NONE: 0.75, KEY: 0.25}))
    )
    belief.reset(KEY)  # the first label is not read: starts say what it might have been
    assert belief.probabilities["transition"] == pytest.approx([0.75, 0.25])
    other = belief.restarted()
    belief.weigh("corridor", "up", {"observation": "cyanroom"})
    belief.read(None)
    assert belief.probabilities["transition"][1] > 0.9
    assert other.probabilities["transition"] == pytest.approx([0.75, 0.25])


def test_too_many_states_together_are_refused(monkeypatch):
    monkeypatch.setattr(belief_module, "MAX_JOINT_STATES", 2)
    with pytest.raises(ModelError, match="more than 2 states together"):
        Belief(House().machines())
