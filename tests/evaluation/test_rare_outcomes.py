"""Rare outcomes: which steps have one, how they are spread over folds, and how they are counted."""

import numpy as np
import pytest

import resolvent as rs
from resolvent.evaluation.holdout import Holdout, StepKinds, holdout_order, is_held_out, split
from resolvent.replay.replaying import states_at_steps
from resolvent.replay.steps import step_queries


def key_and_door(found, number):
    """The door pays once the key was read; `number` makes traces differ."""
    rooms = ["hall", *["hall"] * number, "attic", "hall", "door"]
    labels = [None] * (number + 1) + ["key" if found else "dust", None, None]
    actions = ["wait"] * number + ["up", "down", "open"]
    return rs.Trace(rooms, labels, actions, [0.0] * (number + 2) + [float(found)])


TRACES = rs.TraceSet([key_and_door(number < 3, number) for number in range(40)])


def queries(machines, traces=TRACES):
    return step_queries(machines, traces, states_at_steps(machines, traces))


def test_an_output_is_rare_if_its_query_hardly_has_it():
    kinds = StepKinds.of(queries(rs.infer(TRACES).machines)["reward"])
    assert kinds.may_be_rare
    opened = np.array([action == "open" for trace in TRACES for action in trace.actions])
    paid = np.array([reward == 1 for trace in TRACES for reward in trace.rewards])
    assert kinds.varies.tolist() == opened.tolist()
    assert kinds.rare.tolist() == paid.tolist()


def test_rare_outcomes_come_first_and_are_spread_evenly():
    order = holdout_order(queries(rs.infer(TRACES).machines).values(), TRACES)
    assert sorted(order.tolist()) == [*range(40)]
    assert set(order[:3].tolist()) == {0, 1, 2}
    rare = np.array([int(is_held_out(order, 0.2, fold)[:3].sum()) for fold in range(5)])
    assert rare.sum() == 3
    assert rare.max() == 1
    folds = np.array([is_held_out(order, 0.2, fold) for fold in range(5)])
    assert (folds.sum(0) == 1).all()  # each trace is in one fold


@pytest.mark.parametrize("share", [0.01, 0.2, 0.3, 0.5, 0.9, 0.999])
def test_some_traces_are_held_out_and_one_is_not(share):
    held = is_held_out(np.arange(60), share)
    assert not held[0]
    assert abs(int(held.sum()) - share * 60) <= 1


def test_failures_with_a_rare_outcome_are_counted_apart():
    machines = rs.infer(TRACES).machines
    blind = rs.infer(TRACES.take(np.arange(3, 40))).machines
    holdout = split(machines, TRACES, lambda traces: blind)
    assert (holdout.rare, holdout.rare_failures) == (1, 1)
    assert "of 8 held-out traces fail" in str(holdout)
    assert "; of 1 with a rare outcome 1 fails" in str(holdout)
    assert not holdout.is_right
    assert holdout.as_dict()["rare_failures"] == 1


def test_no_failure_without_rare_outcomes_is_no_success():
    untested = Holdout(160, 0, 0, rare=0)
    assert "0 of 160" in str(untested)
    assert "none has a rare outcome" in str(untested)
    assert not untested.is_right
    assert Holdout(160, 0, 0, rare=8).is_right
    assert Holdout(160, 0, 0).is_right  # no outcome is rare
    total = Holdout(160, 1, 0, rare=8, rare_failures=1) + untested
    assert (total.traces, total.rare, total.rare_failures) == (320, 8, 1)


def test_holdout_scores_count_rare_outcomes():
    score = rs.holdout_score(rs.infer(TRACES), TRACES)["reward"]
    assert score.rare == 1
    assert score.as_dict()["rare_right"] == score.rare_right
    assert f"of 1 rare outcome {score.rare_right} right" in str(score)
