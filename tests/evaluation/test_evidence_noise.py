"""Evidence for noisy machines: odds of states and transitions, and hold-outs that allow for noise."""

from dataclasses import replace
from functools import cache
from math import log
from random import Random

import gymnasium as gym
import numpy as np
import pytest

import resolvent as rs
from noisy_worlds import bell_world, dice, disturbed, loaded_die, noisy_house, taught
from resolvent.evaluation.holdout import CalibrationCheck


@cache
def house_evidence():
    return rs.evidence(*noisy_house())


def test_states_are_distinguished_by_all_outputs_and_not_by_one():
    (separation,) = house_evidence()["transition"].separations
    assert separation.log_odds > 100
    assert str(separation.query) == "(corridor, up)"
    first, second = separation.outputs
    assert (first.output, second.output) == ("corridor", "cyanroom")
    machine = noisy_house()[0].transition
    for state, output in enumerate(separation.outputs):
        counts = machine.counts(state, "corridor", "up")
        assert (output.count, output.total) == (max(counts.values()), sum(counts.values()))
    assert "as one 10⁻" in str(separation)
    assert separation.as_dict()["log_odds"] == separation.log_odds
    assert separation.as_dict()["outputs"][0]["total"] == first.total


def test_exact_machines_have_no_odds():
    clean = rs.collect(gym.make("resolvent/House-v0"), episodes=100, seed=0)
    evidence = rs.infer(clean).evidence
    for one in evidence.values():
        assert one.separations.log_odds is None
        assert one.alternatives is None
        assert one.completeness.weighed is None
        assert "log_odds" not in str(one.as_dict())
    assert evidence.holdout.calibration is None
    assert evidence.holdout.within_noise is None


def test_a_superfluous_state_is_not_distinguished():
    """The world with a bell, and a third state for the first one after two bells."""
    traces = bell_world(60)
    true = rs.infer(traces, noise="auto", outputs=["reward"]).machines
    bell = true.reward.labels.code(frozenset({"bell"}))
    transitions = np.vstack([true.reward.transitions, true.reward.transitions[:1]])
    transitions[2, transitions[2] == 0] = 2
    transitions[0, bell], transitions[1, bell], transitions[2, bell] = 1, 2, 1
    copied = taught(
        true.replacing(replace(true.reward, transitions=transitions, support=None)), traces
    )
    evidence = rs.evidence(copied, traces)["reward"]
    assert evidence.separations.log_odds is not None
    (open_pair,) = evidence.inseparable
    assert (open_pair.first, open_pair.second) == (0, 2)
    assert open_pair.log_odds < log(100)
    assert "nothing distinguishes them; one state: " in str(open_pair)
    assert evidence.separations.weakest(1) == [open_pair]
    assert "nothing distinguishes states 0 and 2" in str(evidence.experiments[0])


def test_states_may_be_distinguished_only_after_further_labels():
    """After "left" or "right" all looks alike; only after "on" the two lead to different rooms."""
    random = Random(0)

    def walk():
        side = random.choice(["left", "right"])
        room = side if random.random() < 0.9 else random.choice(["left", "right"])
        return rs.Trace(
            ["hall", "hall", "hall", room],
            [None, side, "on", None],
            ["wait", "wait", "go"],
            [0, 0, 0],
        )

    result = rs.infer(rs.TraceSet(walk() for _ in range(400)), noise="auto")
    machine = result.machines.transition
    left, right = (machine.run([{side}]) for side in ("left", "right"))
    separations = result.evidence["transition"].separations
    number = separations.number(left, right)
    if left != right and separations.depth[number] > 0:
        assert separations[number].suffix == (frozenset({"on"}),)
    after = [machine.run([{side}, {"on"}]) for side in ("left", "right")]
    assert separations[separations.number(*after)].log_odds > log(100)


def test_confidence_in_transitions_equals_their_odds():
    evidence = house_evidence()["transition"]
    complete = evidence.completeness
    assert (complete.weighed, complete.uncertain) == (5, ())
    assert "transitions certain at odds of 100 to 1: 5 of 5" in str(complete)
    assert complete.conflict_convergence
    for transition in evidence.transitions():
        if transition.log_odds is not None:
            assert transition.log_odds < -50
            assert f"; to {transition.alternative}: 10⁻" in str(transition)
            assert transition.as_dict()["log_odds"] == transition.log_odds


def test_an_uncertain_transition_is_the_next_experiment():
    result = rs.infer(bell_world(60), noise="auto", outputs=["reward"])
    evidence = result.evidence["reward"]
    (open_move,) = evidence.completeness.uncertain
    assert open_move.label == frozenset({"snow"})
    assert not evidence.completeness.structure_complete
    assert f"; to {open_move.alternative}: " in str(open_move)
    assert any("snow may lead to state" in str(experiment) for experiment in evidence.experiments)
    assert evidence.as_dict()["completeness"]["uncertain"] == [open_move.as_dict()]


def test_uncertain_outputs_come_first():
    machine = noisy_house()[0].transition
    outputs = house_evidence()["transition"].outputs()
    assert len({(one.state, one.query) for one in outputs}) == len(outputs)
    ahead = []
    for one in outputs:
        counts = [*machine.counts(one.state, one.query[0], one.query[1]).values(), 0]
        assert (one.count, one.total) == (counts[0], sum(counts))
        assert one.output == machine.output(one.state, *one.query[:2])
        ahead.append(counts[0] - counts[1])
    assert ahead == sorted(ahead)


def test_predictions_of_fresh_traces_are_calibrated():
    machines, _ = noisy_house()
    clean = rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=7)
    fresh = disturbed(clean, 0.05, Random(3))
    holdout = rs.evidence(machines, fresh).holdout
    assert holdout.within_noise
    check = holdout.calibration["transition"]
    score = machines.score(fresh).transition
    assert (check.right, check.steps) == (score.all_right, score.all_right + score.all_wrong)
    assert check.expected == pytest.approx(check.right, abs=4 * check.deviation)
    assert check.log_loss == score.log_loss
    assert "within noise" in str(holdout)
    assert holdout.as_dict()["calibration"]["transition"]["within_noise"]


def test_more_noise_than_in_training_is_reported():
    machines, _ = noisy_house()
    clean = rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=7)
    holdout = rs.evidence(machines, disturbed(clean, 0.3, Random(3))).holdout
    assert not holdout.within_noise
    assert "fewer than noise explains" in str(holdout)


def test_held_out_noisy_traces_are_checked_for_calibration():
    _, traces = noisy_house()
    holdout = rs.infer(traces, noise="auto").evidence.holdout
    assert holdout.calibration is not None
    assert holdout.traces < len(traces) / 3
    assert holdout.within_noise


def test_a_machine_with_one_state_has_no_odds():
    machines = loaded_die(*[1.0] * 9, *[6.0] * 10)

    evidence = rs.evidence(machines, dice(*[1.0] * 9, *[6.0] * 10))["reward"]
    assert len(evidence.separations) == 0
    assert evidence.completeness.weighed == 0
    assert evidence.completeness.structure_complete


def test_without_a_prediction_there_is_nothing_to_check():
    nothing = CalibrationCheck(0, 3, 0, 0.0, 0.0, None)
    assert str(nothing) == "nothing predicted, 3 steps unseen"
    assert nothing.within_noise
