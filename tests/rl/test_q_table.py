"""Q-tables and their files."""

import csv
import json
from pathlib import Path

import pytest

import resolvent as rs
from resolvent.rl.q_table import observation_text
from table_worlds import world


@pytest.fixture(scope="module")
def env():
    """Right along three states; the last step has reward 1."""
    return world(
        [[0, 1], [1, 2], [2, 2]], [[0, 0], [0, 0], [0, 1]], [[0, 0], [0, 0], [0, 1]], starts=(0, 1)
    )


@pytest.fixture(scope="module")
def learned(env):
    return rs.q_learning(env, episodes=20, evaluate_every=10)


def test_load_inverts_save(learned, env, tmp_path):
    path = tmp_path / "policy.json"
    learned.save(path)
    back = rs.rl.QTable.load(path)
    assert back.q.tobytes() == learned.q.tobytes()
    assert back.observations == learned.observations
    assert back.curve.columns() == learned.curve.columns()
    assert back.evaluations == learned.evaluations
    assert (back.gamma, back.engine, back.first_action) == (0.95, "native", 0)
    assert back.evaluate(env) == learned.evaluate(env)
    again = tmp_path / "again.json"
    back.save(again)
    assert again.read_bytes() == path.read_bytes()


def test_symbols_with_parts_survive(tmp_path):
    house = rs.worlds.House()
    wrapped = rs.AugmentObservation(house, house.machines())
    learned = rs.q_learning(wrapped, episodes=30)
    learned.save(tmp_path / "policy.json")
    back = rs.rl.QTable.load(tmp_path / "policy.json")
    assert back.observations == learned.observations
    assert back.action(wrapped.reset()[0]) == learned.action(wrapped.reset()[0])


def test_names_of_the_environment_survive(learned, tmp_path):
    house = rs.worlds.House()
    rs.q_learning(house, episodes=1).save(tmp_path / "policy.json")
    back = rs.rl.QTable.load(tmp_path / "policy.json")
    assert back.observation_names == tuple(house.observation_names)
    assert back.action_names == tuple(house.action_names)


def test_names_are_optional_in_files(learned, tmp_path):
    path = tmp_path / "policy.json"
    learned.save(path)
    file = json.loads(path.read_text())
    del file["observation_names"], file["action_names"]
    path.write_text(json.dumps(file))
    back = rs.rl.QTable.load(path)
    assert (back.observation_names, back.action_names) == (None, None)


def test_an_infinite_value_survives(tmp_path):
    forever = world([[0]], [[1]], [[0]])
    learned = rs.q_learning(forever, episodes=1, gamma=1.0, max_steps=2, evaluate_every=1)
    learned.save(tmp_path / "policy.json")
    assert rs.rl.QTable.load(tmp_path / "policy.json").evaluations[0].value == float("inf")


@pytest.mark.parametrize(
    ("edit", "word"),
    [
        (lambda file: "{", "policy"),
        (lambda file: json.dumps({**file, "format": "resolvent-machines"}), "resolvent-machines"),
        (lambda file: json.dumps({**file, "version": 2}), "2"),
        (lambda file: json.dumps({**file, "more": 1}), "more"),
        (lambda file: json.dumps({**file, "q": file["q"][:-1]}), "fit together"),
        (lambda file: json.dumps({**file, "q": [[0.0], *file["q"][1:]]}), "fit together"),
        (lambda file: json.dumps({**file, "q": [[] for _ in file["q"]]}), "fit together"),
        (lambda file: json.dumps({**file, "observations": [0, 0, 1]}), "fit together"),
        (
            lambda file: json.dumps({**file, "curve": {**file["curve"], "steps": [1]}}),
            "fit together",
        ),
        (lambda file: json.dumps({**file, "q": [["1.5"] * 2] * 3}), "numbers are needed"),
        (lambda file: json.dumps({**file, "action_names": ["left"]}), "fit together"),
        (lambda file: json.dumps({**file, "action_names": [None, "up"]}), "policy"),
    ],
)
def test_an_invalid_file_is_refused(learned, tmp_path, edit, word):
    path = tmp_path / "policy.json"
    learned.save(path)
    path.write_text(edit(json.loads(path.read_text())))
    with pytest.raises(rs.errors.ModelError, match=word) as caught:
        rs.rl.QTable.load(path)
    assert str(path) in str(caught.value)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(rs.errors.ModelError, match="does not exist"):
        rs.rl.QTable.load(tmp_path / "policy.json")


def test_a_curve_as_csv(learned, tmp_path):
    learned.save_curve(tmp_path / "curve.csv")
    with (tmp_path / "curve.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 20
    assert [int(row["steps"]) for row in rows] == learned.curve.steps.tolist()
    assert [float(row["epsilon"]) for row in rows] == learned.curve.epsilons.tolist()
    assert [row["episode"] for row in rows if row["value"]] == ["10", "20"]
    assert float(rows[9]["value"]) == learned.evaluations[0].value


def test_a_curve_as_json(learned, tmp_path):
    learned.save_curve(tmp_path / "curve.json")
    columns = json.loads((tmp_path / "curve.json").read_text())
    assert columns["discounted_return"] == learned.curve.discounted_returns.tolist()
    assert columns["total_steps"][-1] == int(learned.curve.steps.sum())


def test_the_suffix_of_a_curve_decides_its_format(learned, tmp_path):
    with pytest.raises(rs.OptionError, match=r"\.csv or \.json"):
        learned.save_curve(tmp_path / "curve.txt")
    assert not list(Path(tmp_path).iterdir())


def test_repr_of_a_q_table(learned):
    steps = int(learned.curve.steps.sum())
    assert repr(learned) == f"QTable(3 observations, 2 actions, 20 episodes, {steps} steps)"


def test_predict_returns_the_best_action_as_stable_baselines3_does(learned):
    for observation in (*learned.observations, "never met"):
        assert learned.predict(observation) == (learned.action(observation), None)
    assert learned.predict(0, "state", episode_start=None, deterministic=True)[1] == "state"


def test_observations_as_text():
    names = "hall", "attic"
    augmented = ("observation", 1), ("reward_state", 1)
    assert observation_text(augmented, names) == "observation attic, reward state 1"
    assert observation_text(1, names) == "attic"
    assert observation_text(7, names) == "7"
    assert observation_text((1, 2), names) == "(1, 2)"
