"""What machines make of raw steps: kept with them, and the same wherever steps come in."""

import json
import pickle
import random

import gymnasium as gym
import numpy as np
import pandas as pd
import pytest

import resolvent as rs
from resolvent.machines.io.schema import preprocessor_in, stored_preprocessor
from resolvent.planning import plan_io as plan_files
from resolvent.preprocess.discretize import Discretizer
from resolvent.preprocess.labeling import LABEL_ORIGINS, LabelingFunction
from resolvent.preprocess.transform import Preprocessor, RewardLevels
from resolvent.traces import Trace, TraceSet
from resolvent.worlds import House

MADE = LABEL_ORIGINS[1:]
ENOUGH = 300


class Silent(House):
    """The house without labels."""

    rolls_out = False

    def reset(self, **options):
        observation, _ = super().reset(**options)
        return observation, {}

    def step(self, action):
        *outcome, _ = super().step(action)
        return *outcome, {}


@pytest.fixture(scope="module")
def walked():
    return rs.collect(Silent(), episodes=ENOUGH, seed=0, labels="auto")


@pytest.fixture(scope="module")
def result(walked):
    return rs.infer(walked, labels="observation")


def test_machines_store_the_labeling_function_of_observations(result, tmp_path):
    assert result.machines.preprocessor == Preprocessor(LabelingFunction("observation"))
    assert result.machines.timing is rs.LabelTiming.CURRENT_WITH_INITIAL
    result.machines.save(tmp_path / "house.json")
    loaded = rs.load(tmp_path / "house.json")
    assert loaded == result.machines
    assert loaded.preprocessor == result.machines.preprocessor
    assert pickle.loads(pickle.dumps(loaded)).preprocessor == loaded.preprocessor  # noqa: S301
    assert loaded.replacing(timing="lagged").preprocessor == loaded.preprocessor


def test_machines_store_events_and_intervals(result, tmp_path):
    numbers = Discretizer.at({"heat": [0.1, 0.3]})
    labeling = LabelingFunction("action+observation", {("up", (1, 2.5)): "a", (("x",),): "b"})
    machines = result.machines.replacing(preprocessor=Preprocessor(labeling, numbers))
    machines.save(tmp_path / "machines.json")
    assert rs.load(tmp_path / "machines.json").preprocessor == Preprocessor(labeling, numbers)
    assert rs.load(tmp_path / "machines.json") != result.machines


@pytest.mark.parametrize(
    ("preprocessor", "says"),
    [
        ('{"labels": "smell"}', "labels='smell': use one of"),
        ('{"labels": "given", "events": [["x", "y"]]}', "given labels cannot have events"),
        ('{"labels": "action", "events": [["x", "y"], ["x", "z"]]}', "names an event twice"),
        ('{"labels": "action", "events": [[null, "y"]]}', "cannot be a symbol"),
        ('{"labels": "action", "eyes": 2}', "eyes"),
        ('{"labels": "given", "discretize": {}}', "is damaged"),
    ],
)
def test_damaged_preprocessors_are_refused(result, tmp_path, preprocessor, says):
    path = tmp_path / "house.json"
    result.machines.save(path)
    content = json.loads(path.read_text(encoding="utf-8"))
    assert content["preprocessor"] == {"labels": "observation"}
    content["preprocessor"] = json.loads(preprocessor)
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(rs.errors.ModelError, match=says):
        rs.load(path)


def test_raw_traces_are_transformed_by_every_function_that_takes_traces(result, walked):
    fresh = rs.collect(Silent(), episodes=30, seed=9, labels="auto")
    for score in result.machines.score(fresh).values():
        assert score.wrong == score.unseen == 0
    assert str(rs.evidence(result, walked).holdout) == str(result.evidence.holdout)
    assert rs.plan(result, walked).value == pytest.approx(0.95**5)
    more = result.update(fresh)
    assert more.machines.preprocessor == result.machines.preprocessor
    assert more.traces == ENOUGH + 30
    whole = rs.infer(walked + fresh, labels="observation").machines
    assert (more.machines.transition, more.machines.reward) == (whole.transition, whole.reward)


def test_a_folder_is_transformed_file_by_file(walked, tmp_path):
    walked[:150].save(tmp_path / "a.parquet")
    walked[150:].save(tmp_path / "b.parquet")
    scanned = rs.infer(rs.scan_traces(tmp_path), labels="observation").machines
    assert [one.states for one in scanned.values()] == [2, 2]
    assert scanned.score(rs.scan_traces(tmp_path))["reward"].wrong == 0


@pytest.mark.parametrize("labels", MADE[::2])
def test_wrappers_and_plans_derive_labels(walked, labels):
    machines = rs.infer(walked, labels=labels).machines
    plan = rs.plan(machines, walked)
    runs = plan.run(Silent(), episodes=3)
    assert runs.returns.tolist() == [1.0] * 3
    assert runs.traces == LabelingFunction(labels).transform(runs.traces)
    wrapped = rs.AugmentObservation(Silent(), machines, on_unseen="raise")
    again = rs.collect(wrapped, episodes=1, policy=plan.policy_in(wrapped))
    assert again[0] == runs.traces[0]
    envs = gym.vector.SyncVectorEnv([Silent] * 2)
    many = rs.wrappers.VectorAugmentObservation(
        envs, machines, mode="multidiscrete", on_unseen="raise"
    )
    many.reset()
    one = rs.AugmentObservation(Silent(), machines, mode="multidiscrete")
    one.reset()
    for action in (2, 3, 0, 1, 3):
        assert many.step([action] * 2)[0].tolist() == [one.step(action)[0].tolist()] * 2


def test_machines_that_derive_labels_take_no_labeling_fn(result):
    with pytest.raises(rs.OptionError, match="leave out labeling_fn"):
        rs.AugmentObservation(Silent(), result.machines, labeling_fn=lambda room: room)


def test_traces_labeled_at_collection_need_the_same_labels_in_wrappers(walked):
    machines = rs.infer(LabelingFunction("observation").transform(walked)).machines
    assert machines.preprocessor == Preprocessor()
    wrapped = rs.AugmentObservation(Silent(), machines, labels="observation")
    wrapped.reset()
    assert wrapped.step(2)[0]["transition_state"] == 1
    runs = rs.plan(machines, LabelingFunction("observation").transform(walked)).run(
        Silent(), episodes=1, labels="observation"
    )
    assert runs.returns.tolist() == [1.0]
    silent = rs.AugmentObservation(Silent(), machines)
    silent.reset()
    with pytest.raises(rs.TraceError, match="the environment gives no label"):
        silent.step(2)


class Scale(gym.Env):
    """A number that drifts; it pays from when it is 3 or more until it is below 1."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (1,), np.float64)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.pays, self.steps = 2.0, False, 0
        return np.array([self.at]), {}

    def step(self, action):
        self.pays = self.at >= 3 or (self.pays and self.at >= 1)
        self.at += (1 if action else -1) * self.np_random.uniform(0.1, 0.9)
        self.at = min(max(self.at, 0.0), 4.0)
        self.steps += 1
        return np.array([self.at]), float(self.pays), False, self.steps == 60, {}


def test_readings_are_discretized_from_traces_to_wrappers(tmp_path):
    traces = rs.collect(Scale(), episodes=80, seed=0, labels="auto")
    options = {"outputs": ["reward"], "labels": "observation"}
    edges = {0: [1.0, 3.0]}
    result = rs.infer(
        traces, options=rs.InferenceOptions(**options, discretize=Discretizer.at(edges))
    )
    assert result.machines["reward"].states == 2
    result.machines.save(tmp_path / "scale.json")
    machines = rs.load(tmp_path / "scale.json")
    fresh = rs.collect(Scale(), episodes=20, seed=5, labels="auto")
    assert machines.score(fresh) == machines.score(machines.preprocessor.transform(fresh))
    assert machines.score(fresh)["reward"].wrong == 0
    wrapped = rs.AugmentObservation(Scale(), machines)
    states = []
    observation, info = wrapped.reset(seed=1)
    for step in range(40):
        observation, _, _, _, info = wrapped.step(step < 20)
        states.append(info["reward_state"])
        assert observation["observation"] == pytest.approx(wrapped.unwrapped.at)
    assert states == sorted(states[:20]) + sorted(states[20:], reverse=True)
    assert set(states) == {0, 1}


def test_intervals_are_fitted_to_the_traces_or_kept():
    traces = rs.collect(Scale(), episodes=30, seed=0, labels="auto")
    fitted = Discretizer("uniform", bins=3).fit(traces)
    for given in (fitted, Discretizer("uniform", bins=3)):
        result = rs.infer(
            traces, outputs=["terminated"], labels="observation", discretize=given, timing="current"
        )
        assert result.machines.preprocessor.discretize == fitted
    with pytest.raises(rs.OptionError, match="discretize=5: give a Discretizer"):
        rs.infer(traces, discretize=5)


class Wider(Scale):
    """Shows one number more than machines were inferred with."""

    def reset(self, *, seed=None, options=None):
        observation, info = super().reset(seed=seed)
        return np.append(observation, 0.0), info


def test_an_error_does_not_blame_derived_labels():
    traces = rs.collect(Scale(), episodes=10, seed=0, labels="auto")
    thirds = Discretizer("uniform", bins=3).fit(traces)
    result = rs.infer(traces, outputs=["terminated"], labels="observation", discretize=thirds)
    wrapped = rs.AugmentObservation(Wider(), result)
    with pytest.raises(rs.TraceError, match=r"^observation \(2.0, 0.0\): it has 2 parts where"):
        wrapped.reset()


@pytest.mark.parametrize(
    "labels", ["action", "given", LabelingFunction("observation", {"sofa": "sit"})]
)
def test_machines_that_derive_labels_take_no_other_labels(labels):
    house = House()
    traces = rs.collect(house, episodes=50, seed=0, labels="observation")
    result = rs.infer(traces, labels="observation")
    rs.AugmentObservation(house, result, labels="observation")
    with pytest.raises(rs.OptionError, match="of each observation: leave out labels"):
        rs.AugmentObservation(house, result, labels=labels)


def heating_log(tmp_path, seed):
    """Write the log of a thermostat that heats below 19 degrees until there are 21.5."""
    chance, path = random.Random(seed), tmp_path / f"{seed}.csv"
    rows = ["day,heat,answer"]
    for day in range(20):
        heat, on = round(chance.uniform(15, 25), 2), False
        for _ in range(100):
            on = heat < 19 or (on and heat < 21.5)
            rows.append(f"{day},{heat},{'on' if on else 'off'}")
            heat = round(heat + (0.4 if on else -0.3) + chance.gauss(0, 0.3), 2)
    path.write_text("\n".join(rows))
    return rs.read_log(path, episode="day", input="heat", output="answer")


@pytest.mark.parametrize("discretize", ["auto", Discretizer.at([19, 21.5], of="action")])
def test_labels_of_a_log_are_those_of_its_discretized_inputs(tmp_path, discretize):
    result = rs.infer(heating_log(tmp_path, 0), discretize=discretize)
    assert result.machines["answer"].states == 2
    assert result.machines.score(heating_log(tmp_path, 1)).perfect
    more = result.update(heating_log(tmp_path, 2))
    assert more.machines["answer"].states == 2
    result.machines.save(tmp_path / "heating.json")
    assert rs.load(tmp_path / "heating.json").score(heating_log(tmp_path, 1)).perfect


def test_other_labels_are_kept_if_actions_are_discretized():
    pushes = [rs.Trace("abb", [None, "bell", None], [0.1, 0.9], [0, 1])]
    result = rs.infer(pushes, discretize=Discretizer.at([0.5], of="action"))
    assert result.preprocessor == Preprocessor(discretize=Discretizer.at([0.5], of="action"))
    assert frozenset({"bell"}) in result.machines.reward.labels


def test_damaged_intervals_of_a_plan_name_the_file(tmp_path):
    traces = rs.collect(House(), episodes=50, seed=0)
    path = tmp_path / "plan.json"
    rs.plan(rs.infer(traces), traces).save(path)
    stored = json.loads(path.read_text())
    stored["preprocessor"] = {"labels": "given", "discretize": {"method": "uniform", "bins": 0}}
    path.write_text(json.dumps(stored))
    with pytest.raises(rs.errors.ModelError, match=r"plan\.json: not a plan .*bins=0"):
        plan_files.load(path)


def test_q_learning_refuses_numbers_that_only_machines_discretize():
    traces = rs.collect(Scale(), episodes=30, seed=0, labels="auto")
    machines = rs.infer(
        traces, outputs=["reward"], labels="observation", discretize=Discretizer.at([1.0, 3.0])
    ).machines
    with pytest.raises(rs.OptionError, match="numbers that rarely repeat"):
        rs.q_learning(rs.AugmentObservation(Scale(), machines), episodes=1)


def test_auto_labels_are_those_of_a_log():
    light = [("on", "bright"), ("on", "bright"), ("off", "dark"), ("on", "bright")]
    rows = [
        {"session": number, "event": event, "response": response}
        for number in range(4)
        for event, response in light[number:] + light[:number]
    ]
    log = rs.read_log(pd.DataFrame(rows), episode="session", input="event", output="response")
    result = rs.infer(log, labels="auto")
    assert result.preprocessor == Preprocessor()


LEVELS = RewardLevels((-1.0, 0.0, 0.5), 0.2, exact=(7.0,))


def paying(*rewards):
    seen = [0] * (len(rewards) + 1)
    return TraceSet([Trace(seen, [None] * len(seen), ["go"] * len(rewards), rewards)])


def test_rewards_are_replaced_by_the_nearest_center_unless_exact():
    assert LEVELS.nearest([-9, -0.51, -0.49, 0.24, 0.26, 7, 7.001]).tolist() == [
        *(-1.0, -1.0, 0.0, 0.0, 0.5, 7.0, 0.5)
    ]


def test_assigning_levels_twice_changes_nothing():
    once = LEVELS.transform(paying(0.1, -0.8, 0.45, 7.0))
    assert once[0].rewards == (0.0, -1.0, 0.5, 7.0)
    assert LEVELS.transform(once) is once
    preprocessor = Preprocessor(rewards=LEVELS)
    assert not preprocessor.is_identity
    assert preprocessor.transform(once) is once


def test_traces_without_rewards_stay_as_they_are():
    log = TraceSet([Trace([0, 0], [None, None], ["go"], columns={"cost": [3]})])
    assert LEVELS.transform(log) is log


def test_files_store_reward_levels():
    preprocessor = Preprocessor(rewards=LEVELS)
    assert preprocessor_in(stored_preprocessor(preprocessor)) == preprocessor


@pytest.mark.parametrize(
    "fields",
    [
        {"centers": [0.0]},
        {"centers": [], "sigma": 1.0},
        {"centers": [1.0, 0.0], "sigma": 1.0},
        {"centers": [0.0, float("nan")], "sigma": 1.0},
        {"centers": "ab", "sigma": 1.0},
        {"centers": 3, "sigma": 1.0},
        {"centers": [0.0], "sigma": 0.0},
        {"centers": [0.0], "sigma": True},
        {"centers": [0.0], "sigma": 1.0, "more": 1},
    ],
)
def test_damaged_levels_are_refused(fields):
    with pytest.raises(rs.errors.ModelError):
        RewardLevels.from_dict(fields)


def test_probabilities_of_wrong_levels_match_simulated_rewards():
    random = np.random.default_rng(0)
    values = [*LEVELS.centers, 7.0]
    mistaken = LEVELS.confusion(values)
    assert mistaken.sum(1) == pytest.approx(1)
    for row, center in enumerate(LEVELS.centers):
        taken = LEVELS.nearest(random.normal(center, LEVELS.sigma, 100_000))
        assert [(taken == one).mean() for one in values] == pytest.approx(mistaken[row], abs=0.006)
    assert mistaken[3].tolist() == [0, 0, 0, 1]


def test_the_text_lists_a_few_of_many_levels():
    assert str(RewardLevels(tuple(range(12)), 0.1)).endswith("5, 6, 7, 4 more")


def test_rewards_are_replaced_by_their_levels():
    levels = RewardLevels((0.0, 1.0), 0.1, exact=(-5.0,))
    assert [levels(reward) for reward in (0.93, -5, -4.9)] == [1.0, -5.0, 0.0]
    assert str(levels) == "rewards vary by ±0.1 around 0, 1; exact is -5"
    stored = {"centers": [0.0, 1.0], "sigma": 0.1}
    assert RewardLevels((0.0, 1.0), 0.1).as_dict() == stored
    assert RewardLevels.from_dict({"centers": [0, 1], "sigma": 0.1}).as_dict() == stored
    shares = RewardLevels((0.0, 2.0), 1.0).confusion([0.0, 2.0])
    assert shares.round(2).tolist() == [[0.84, 0.16], [0.16, 0.84]]


def test_without_preprocessing_traces_stay_as_they_are():
    traces = TraceSet([Trace(["hall", "attic"], [None, None], ["up"])])
    assert Preprocessor().transform(traces) is traces
