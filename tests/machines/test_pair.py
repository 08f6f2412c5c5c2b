from dataclasses import replace

import pytest

import resolvent as rs
from resolvent.machines import Termination
from resolvent.samples import LabelTiming

# A lamp: the switch label toggles, and only when it is lit does looking pay. The
# observation is the room; the door moves between the rooms.
TRACES = rs.TraceSet(
    [
        rs.Trace(
            ["hall", "hall", "hall", "attic"],
            [None, "switch", "switch", None],
            ["look", "look", "go"],
            [0, 1, 0],
            terminated=True,
        ),
        rs.Trace(["hall", "hall", "hall"], [None, None, "switch"], ["look", "look"], [0, 0]),
    ]
)


@pytest.fixture(scope="module")
def pair():
    return rs.infer(TRACES).machines


def test_prediction_asks_both_machines(pair):
    assert (pair.transition.states, pair.reward.states) == (1, 2)
    lit = pair.reward.run([{"switch"}])
    assert pair.predict("hall", "look", 0, 0) == ("hall", 0.0)
    assert pair.predict("hall", "look", 0, lit) == ("hall", 1.0)
    assert pair.predict("hall", "go", 0, 0) == ("attic", 0.0)


def test_prediction_says_what_it_does_not_know(pair):
    assert pair.predict("attic", "look", 0, 0) == (rs.UNSEEN, rs.UNSEEN)
    assert pair.predict("hall", "look", 0, rs.UNSEEN) == ("hall", rs.UNSEEN)
    # The observation does not depend on the state; the reward is asked about (hall, ?).
    assert pair.predict("hall", "look", rs.UNSEEN, 0) == ("hall", rs.UNSEEN)


def test_without_supplement_the_reward_machine_sees_the_bare_observation():
    pair = rs.infer(TRACES, supplement=False).machines
    assert pair.predict("hall", "look", rs.UNSEEN, 1) == ("hall", 1.0)
    assert list(pair.reward.observations) == ["attic", "hall"]


def test_pairs_are_equal_in_everything_or_not_at_all(pair):
    again = rs.infer(TRACES).machines
    assert pair == again
    assert hash(pair) == hash(again)
    assert pair != replace(pair, timing=LabelTiming.LAGGED)
    assert pair != replace(pair, termination=Termination())
    assert pair != replace(pair, provenance=None)
    assert pair != replace(pair, reward=rs.infer(TRACES, supplement=False).machines.reward)
    assert pair != "pair"


def test_provenance_says_what_made_it(pair):
    assert pair.provenance is not None
    assert (pair.provenance.traces, pair.provenance.steps) == (2, 5)
    assert pair.provenance.traces_sha256 == TRACES.digest
    assert pair.provenance.version == rs.__version__
    assert pair.provenance.options == {
        "strategy": "edsm",
        "timing": "current",
        "trivial": "auto",
        "supplement": True,
        "remove_redundant": True,
        "remove_trivial": True,
        "reward_digits": None,
        "seed": 0,
        "effort": 1.0,
    }


def test_a_pair_prints_both_machines(pair):
    text = str(pair)
    assert "TransitionMachine: 1 state," in text
    assert "RewardMachine: 2 states," in text
