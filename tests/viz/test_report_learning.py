"""What a report shows of a learning curve and of a policy."""

import gymnasium as gym
import numpy as np
import pytest

import resolvent as rs
from resolvent.planning.plan_io import PlanFile, Row
from resolvent.rl.q_table import Curve
from resolvent.viz.report import learning
from resolvent.viz.report.learning import bounds_text, curve, read_policy, read_returns
from resolvent.viz.thumbnails import Gallery

EMPTY = Curve(np.zeros(0), np.zeros(0), np.zeros(0, np.int64), np.zeros(0))


def policy(given):
    return learning.policy(given, Gallery())


@pytest.fixture(scope="module")
def house():
    return rs.worlds.House()


def test_a_long_curve_is_drawn_by_means():
    drawn = curve([float(episode % 2) for episode in range(800)])
    assert drawn == {"episodes": 800, "each": 2, "means": [0.5] * 400}


@pytest.mark.parametrize("name", ["curve.csv", "curve.json"])
def test_both_files_of_a_curve_are_read(house, tmp_path, name):
    learned = rs.q_learning(house, episodes=30, evaluate_every=10)
    learned.save_curve(tmp_path / name)
    assert read_returns(tmp_path / name) == learned.curve.returns.tolist()


def test_a_policy_speaks_the_environments_names(house):
    learned = rs.q_learning(rs.AugmentObservation(house, house.machines()), episodes=1500)
    rows = policy(learned)["rows"]
    # With the key and after the toilet the sofa pays 1, and no step is left after it.
    assert rows[0][0] == "observation limegreenroom, reward state 1, transition state 1"
    assert rows[0][1] == "sit"
    assert float(rows[0][2]) == pytest.approx(1, abs=0.01)
    assert policy(learned)["named"]


def test_what_a_plain_learner_saw_has_names_too(house):
    rows = policy(rs.q_learning(house, episodes=5))["rows"]
    assert {row[0] for row in rows} <= set(house.observation_names)
    assert {row[1] for row in rows} <= set(house.action_names)


def test_numbers_that_mean_something_else_keep_their_looks(house):
    stacked = rs.q_learning(gym.wrappers.FrameStackObservation(house, 2), episodes=2)
    assert all(row[0].startswith("(") for row in policy(stacked)["rows"])
    mixed = rs.AugmentObservation(house, house.machines(), mode="discrete")
    assert all(row[0].isdigit() for row in policy(rs.q_learning(mixed, episodes=2))["rows"])


def test_actions_count_from_the_spaces_start():
    names = ("never", "left", "right")
    learned = rs.rl.QTable(
        np.array([[0.0, 1.0]]), (0,), EMPTY, 0.95, first_action=1, action_names=names
    )
    assert policy(learned)["rows"] == [["0", "right", "1"]]


def test_without_names_numbers_are_shown():
    data = policy(rs.rl.QTable(np.array([[0.0, 1.0], [2.0, 1.0]]), (0, 7), EMPTY, 0.95))
    assert data == {"states": 2, "named": False, "rows": [["7", "0", "2"], ["0", "1", "1"]]}


def test_a_plan_is_a_policy_too(tmp_path):
    house = rs.collect(gym.make("resolvent/House-v0"), episodes=300, seed=0)
    plan = rs.plan(rs.infer(house), house)
    data = policy(plan)
    assert data["states"] == len(plan.model) == len(data["rows"])
    assert data["rows"][0] == [
        "observation limegreenroom, reward state 1, transition state 1",
        *("sit", "1"),
    ]
    assert [float(row[2]) for row in data["rows"]] == sorted(
        (round(value, 4) for value in plan.pessimistic), reverse=True
    )
    plan.save(tmp_path / "plan.json")
    assert policy(read_policy(tmp_path / "plan.json")) == data


def test_what_is_not_known_of_a_plan_is_said_and_comes_last():
    unknown = Row("attic", 0, 0, "up", None, None)
    rows = [unknown, Row("hall", 0, 0, "up", 0.5, 2.0), Row("cellar", 1, 0, "up", 1.0, None)]
    data = policy(PlanFile("resolvent-plan", 1, 0.9, rs.LabelTiming.CURRENT, rows))
    assert [row[2] for row in data["rows"]] == ["1 or more", "0.5 to 2", "unknown"]


def test_a_result_shows_the_policy_and_its_curve(house, tmp_path):
    traces = rs.collect(house, episodes=100, seed=0)
    result = rs.infer(traces)
    learned = rs.q_learning(rs.AugmentObservation(house, result.machines), episodes=20)
    result.report(tmp_path / "learned.html", policy=learned)
    assert '"curve":{"episodes":20,' in (tmp_path / "learned.html").read_text(encoding="utf-8")
    result.report(tmp_path / "planned.html", policy=rs.plan(result, traces))
    page = (tmp_path / "planned.html").read_text(encoding="utf-8")
    assert '"curve":null,"policy":{"states":' in page


@pytest.mark.parametrize(
    ("bounds", "text"),
    [
        ((0.5, 0.5), "0.5"),
        ((0.5, 2.0), "0.5 to 2"),
        ((0.5, None), "0.5 or more"),
        ((None, 2.0), "2 or less"),
        ((None, None), "unknown"),
    ],
)
def test_bounds_as_text(bounds, text):
    assert bounds_text(*bounds) == text
