import copy
import multiprocessing
import pickle
from dataclasses import fields, replace

import pytest

import resolvent as rs
from resolvent.errors import ModelError
from resolvent.machines import Machines, Termination, machines_of
from resolvent.preprocess.timing import LabelTiming
from resolvent.traces import Vocabulary
from resolvent.worlds import House

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


def predicted(pair, observation, action, *states):
    by_name = dict(zip(pair, states, strict=True))
    return tuple(pair.predict_all(observation, action, by_name).values())


def test_prediction_asks_both_machines(pair):
    assert (pair.transition.states, pair.reward.states) == (1, 2)
    lit = pair.reward.run([{"switch"}])
    assert predicted(pair, "hall", "look", 0, 0) == ("hall", 0.0)
    assert predicted(pair, "hall", "look", 0, lit) == ("hall", 1.0)
    assert predicted(pair, "hall", "go", 0, 0) == ("attic", 0.0)


def test_prediction_says_what_it_does_not_know(pair):
    assert predicted(pair, "attic", "look", 0, 0) == (rs.UNSEEN, rs.UNSEEN)
    assert predicted(pair, "hall", "look", 0, rs.UNSEEN) == ("hall", rs.UNSEEN)
    # The observation does not depend on the state; the reward is asked about (hall, ?).
    assert predicted(pair, "hall", "look", rs.UNSEEN, 0) == ("hall", rs.UNSEEN)


def test_without_supplement_the_reward_machine_sees_the_bare_observation():
    pair = rs.infer(TRACES, options=rs.InferenceOptions(supplement=False)).machines
    assert predicted(pair, "hall", "look", rs.UNSEEN, 1) == ("hall", 1.0)
    assert list(pair.reward.observations) == ["attic", "hall"]


def test_pairs_are_equal_in_everything_or_not_at_all(pair):
    again = rs.infer(TRACES).machines
    assert pair == again
    assert hash(pair) == hash(again)
    assert pair != pair.replacing(timing=LabelTiming.LAGGED)
    assert pair != pair.replacing(termination=Termination())
    assert pair != pair.replacing(provenance=None)
    assert pair != pair.replacing(
        rs.infer(TRACES, options=rs.InferenceOptions(supplement=False)).machines.reward
    )
    assert pair != "pair"


def test_provenance_says_what_made_it(pair):
    assert pair.provenance is not None
    assert (pair.provenance.traces, pair.provenance.steps) == (2, 5)
    assert pair.provenance.traces_sha256 == TRACES.digest
    assert pair.provenance.version == rs.__version__
    assert pair.provenance.options == {
        "strategy": "auto",
        "timing": "current",
        "trivial": "auto",
        "supplement": True,
        "remove_redundant": True,
        "noise": "auto",
        "remove_trivial": True,
        "reward_digits": None,
        "seed": 0,
        "effort": 1.0,
    }


def test_a_pair_prints_both_machines(pair):
    text = str(pair)
    assert "TransitionMachine: 1 state," in text
    assert "RewardMachine: 2 states," in text


def column(machine, predicts):
    """A machine with the tables of another that predicts some other column."""
    tables = {one.name: getattr(machine, one.name) for one in fields(machine)}
    return rs.Machine(**{**tables, "predicts": predicts})


@pytest.fixture(scope="module")
def four(pair):
    """The pair, and a reward in two other columns."""
    others = [column(pair.reward, "cost"), column(pair.reward, "bonus")]
    return machines_of([*others, pair.reward, pair.transition])


def test_machines_have_a_fixed_order(pair, four):
    assert list(four) == ["transition", "reward", "bonus", "cost"]
    assert list(pair) == ["transition", "reward"]
    assert (four.transition, four.reward) == (pair.transition, pair.reward)
    assert (four["cost"].name, len(four)) == ("cost", 4)
    assert type(four) is Machines


def test_two_that_are_a_pair_are_one(pair):
    again = machines_of([pair.reward, pair.transition], pair.timing, termination=pair.termination)
    assert type(again) is rs.MachinePair
    assert again == pair.replacing(provenance=None)
    alone = machines_of([pair.transition])
    assert type(alone) is Machines
    with pytest.raises(
        rs.errors.ModelError, match="there is no reward machine here: there is transition"
    ):
        _ = alone.reward
    with pytest.raises(
        rs.errors.ModelError, match="and a Reward Machine are needed: there is transition"
    ):
        alone.as_pair()
    only = machines_of([replace(pair.reward, supplemented=False)])
    with pytest.raises(rs.errors.ModelError, match="there is no transition machine here"):
        _ = only.transition


def test_every_machine_predicts(four):
    lit = four.reward.run([{"switch"}])
    states = {"transition": 0, "reward": 0, "bonus": lit, "cost": rs.UNSEEN}
    assert four.predict_all("hall", "look", states) == {
        "transition": "hall",
        "reward": 0.0,
        "bonus": 1.0,
        "cost": rs.UNSEEN,
    }
    lost = four.predict_all("hall", "look", {**states, "transition": rs.UNSEEN})
    assert [lost[kind] for kind in four] == ["hall", rs.UNSEEN, rs.UNSEEN, rs.UNSEEN]
    sure = four.predict_all("attic", "look", states, generalized=False)
    assert set(sure.values()) == {rs.UNSEEN}
    with pytest.raises(rs.errors.ModelError, match="the state of the bonus machine is missing"):
        four.predict_all("hall", "look", {"transition": 0, "reward": 0})


def test_replacing_keeps_the_rest(pair, four):
    other = replace(four["cost"], digits=3)
    changed = four.replacing(other, timing=LabelTiming.LAGGED)
    assert changed["cost"].digits == 3
    assert changed.timing is LabelTiming.LAGGED
    assert [changed[kind] for kind in ("transition", "bonus")] == [four.transition, four["bonus"]]
    assert type(pair.replacing(timing=LabelTiming.LAGGED)) is rs.MachinePair
    with pytest.raises(rs.errors.ModelError, match="there is no cost machine here"):
        pair.replacing(other)
    with pytest.raises(TypeError):
        pair.replacing(colour="red")


def test_sets_that_make_no_sense_are_refused(pair, four):
    with pytest.raises(rs.errors.ModelError, match="there are no machines"):
        machines_of([])
    with pytest.raises(rs.errors.ModelError, match="two machines predict the same column"):
        machines_of([pair.transition, pair.reward, pair.reward])
    with pytest.raises(
        rs.errors.ModelError, match=r"cost machine is supplemented.* which is missing"
    ):
        machines_of([four["cost"]])
    with pytest.raises(rs.errors.ModelError, match="termination has steps of 4 values"):
        machines_of(four.values(), termination=Termination(frozenset({("hall", 0, 0, "go")})))


def test_machines_cannot_be_changed(pair):
    with pytest.raises(AttributeError):
        pair.timing = LabelTiming.LAGGED
    with pytest.raises(TypeError):
        pair["reward"] = pair.reward


def twice(machines):
    """What another process makes of machines: themselves, and what they predict."""
    return machines, machines.predict_all("hall", "go", dict.fromkeys(machines, 0))


def test_machines_travel(pair, four):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        for one in (pair, four):
            again, predicted = pool.apply(twice, (one,))
            assert again == one
            assert hash(again) == hash(one)
            assert type(again) is type(one)
            assert predicted == dict.fromkeys(one, 0.0) | {"transition": "attic"}
    for one in (pair, four):
        assert copy.deepcopy(one) == one
        assert copy.copy(one) == one
        assert pickle.loads(pickle.dumps(one)).transition == one.transition  # noqa: S301


def test_all_machines_are_listed(four):
    assert str(four).count("predicts") == 4
    page = four._repr_html_()
    names = ("Transition", "Reward", "Bonus", "Cost")
    places = [page.index(f"<b>{name} Machine</b>") for name in names]
    assert places == sorted(places)
    assert "bonus=Machine(2 states" in repr(four)
    assert four["cost"].to_dot().startswith("digraph cost_machine {")
    odd = column(four["cost"], "2nd reward (€)")
    assert odd.to_dot().startswith("digraph _2nd_reward_____machine {")
    assert odd.to_mealy_dot().startswith("digraph _2nd_reward_____machine {")


@pytest.mark.parametrize(
    "seen", ["hall", ("hall", 2), ("hall", -1), ("hall", 1.0), ("hall", True), ("hall", 0, 0), ()]
)
def test_what_is_supplemented_comes_with_a_state_of_the_transition_machine(seen):
    pair = House().machines()
    names = [("hall", 0), *((room, 1) for room in pair.reward.observations[1:])]
    fine = replace(pair.reward, observations=Vocabulary(names), supplemented=True)
    assert pair.replacing(fine).reward.supplemented
    odd = replace(fine, observations=Vocabulary([seen, *names[1:]]))
    with pytest.raises(ModelError, match="is no observation with a state of the Transition"):
        pair.replacing(odd)


def test_an_unknown_name_lists_the_names():
    machines = House().machines()
    with pytest.raises(KeyError, match="'rewards': the machines are 'transition', 'reward'"):
        machines["rewards"]
    assert machines.get("rewards") is None
    assert "rewards" not in machines
