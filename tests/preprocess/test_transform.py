"""What machines make of raw steps: kept with them, and the same wherever steps come in."""

import json
import pickle
import random

import gymnasium as gym
import numpy as np
import pandas as pd
import pytest

import resolvent as rs
from resolvent.planning import plan_io as plan_files
from resolvent.preprocess.discretize import Discretizer
from resolvent.preprocess.labeling import LABEL_ORIGINS, LabelingFunction
from resolvent.preprocess.transform import Preprocessor
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
def found(walked):
    return rs.infer(walked, labels="observation")


def test_machines_keep_how_labels_are_made(found, tmp_path):
    assert found.machines.senses == Preprocessor(LabelingFunction("observation"))
    assert found.machines.timing is rs.LabelTiming.CURRENT_WITH_INITIAL
    found.machines.save(tmp_path / "house.json")
    loaded = rs.load(tmp_path / "house.json")
    assert loaded == found.machines
    assert loaded.senses == found.machines.senses
    assert pickle.loads(pickle.dumps(loaded)).senses == loaded.senses  # noqa: S301
    assert loaded.replacing(timing="lagged").senses == loaded.senses


def test_events_and_intervals_are_kept_too(found, tmp_path):
    numbers = Discretizer.at({"heat": [0.1, 0.3]})
    labelling = LabelingFunction("action+observation", {("up", (1, 2.5)): "a", (("x",),): "b"})
    machines = found.machines.replacing(senses=Preprocessor(labelling, numbers))
    machines.save(tmp_path / "machines.json")
    assert rs.load(tmp_path / "machines.json").senses == Preprocessor(labelling, numbers)
    assert rs.load(tmp_path / "machines.json") != found.machines


@pytest.mark.parametrize(
    ("senses", "says"),
    [
        ('{"labels": "smell"}', "labels='smell': use one of"),
        ('{"labels": "given", "events": [["x", "y"]]}', "have no events to be made of"),
        ('{"labels": "action", "events": [["x", "y"], ["x", "z"]]}', "name an event twice"),
        ('{"labels": "action", "events": [[null, "y"]]}', "cannot be a symbol"),
        ('{"labels": "action", "eyes": 2}', "eyes"),
        ('{"labels": "given", "discretise": {}}', "is damaged"),
    ],
)
def test_senses_that_make_no_sense(found, tmp_path, senses, says):
    path = tmp_path / "house.json"
    found.machines.save(path)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('{"labels":"observation"}', senses), encoding="utf-8")
    assert path.read_text(encoding="utf-8") != text
    with pytest.raises(rs.errors.ModelError, match=says):
        rs.load(path)


def test_raw_traces_are_transformed_by_every_function_that_takes_traces(found, walked):
    fresh = rs.collect(Silent(), episodes=30, seed=9, labels="auto")
    for score in found.machines.score(fresh).values():
        assert score.wrong == score.unseen == 0
    assert str(rs.evidence(found, walked).holdout) == str(found.evidence.holdout)
    assert rs.plan(found, walked).value == pytest.approx(0.95**5)
    more = found.update(fresh)
    assert more.machines.senses == found.machines.senses
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
def test_wrappers_and_plans_make_labels_by_themselves(walked, labels):
    machines = rs.infer(walked, labels=labels).machines
    plan = rs.plan(machines, walked)
    runs = plan.run(Silent(), episodes=3)
    assert runs.returns.tolist() == [1.0] * 3
    assert runs.traces == LabelingFunction(labels).on(runs.traces)
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


def test_who_makes_labels_by_themselves_takes_no_function_for_it(found):
    with pytest.raises(rs.OptionError, match="leave out label_of"):
        rs.AugmentObservation(Silent(), found.machines, label_of=lambda room: room)


def test_traces_labelled_when_collected_need_the_same_word_in_wrappers(walked):
    machines = rs.infer(LabelingFunction("observation").on(walked)).machines
    assert machines.senses == Preprocessor()
    wrapped = rs.AugmentObservation(Silent(), machines, labels="observation")
    wrapped.reset()
    assert wrapped.step(2)[0]["transition_state"] == 1
    runs = rs.plan(machines, LabelingFunction("observation").on(walked)).run(
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


def test_readings_that_are_numbers_from_traces_to_wrappers(tmp_path):
    traces = rs.collect(Scale(), episodes=80, seed=0, labels="auto")
    options = {"outputs": ["reward"], "labels": "observation"}
    asked = {0: [1.0, 3.0]}
    result = rs.infer(
        traces, options=rs.InferenceOptions(**options, discretise=Discretizer.at(asked))
    )
    assert result.machines["reward"].states == 2
    result.machines.save(tmp_path / "scale.json")
    machines = rs.load(tmp_path / "scale.json")
    fresh = rs.collect(Scale(), episodes=20, seed=5, labels="auto")
    assert machines.score(fresh) == machines.score(machines.senses.on(fresh))
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
            traces, outputs=["terminated"], labels="observation", discretise=given, timing="current"
        )
        assert result.machines.senses.discretise == fitted
    with pytest.raises(rs.OptionError, match="discretise=5: give a Discretizer"):
        rs.infer(traces, discretise=5)


class Wider(Scale):
    """Shows one number more than machines were inferred with."""

    def reset(self, *, seed=None, options=None):
        observation, info = super().reset(seed=seed)
        return np.append(observation, 0.0), info


def test_an_error_does_not_blame_derived_labels():
    traces = rs.collect(Scale(), episodes=10, seed=0, labels="auto")
    thirds = Discretizer("uniform", bins=3).fit(traces)
    result = rs.infer(traces, outputs=["terminated"], labels="observation", discretise=thirds)
    wrapped = rs.AugmentObservation(Wider(), result)
    with pytest.raises(rs.TraceError, match=r"^observation \(2.0, 0.0\): it has 2 parts where"):
        wrapped.reset()


@pytest.mark.parametrize(
    "labels", ["action", "given", LabelingFunction("observation", {"sofa": "sit"})]
)
def test_machines_that_make_labels_take_no_other_ones(labels):
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


@pytest.mark.parametrize("discretise", ["auto", Discretizer.at([19, 21.5], of="action")])
def test_labels_of_a_log_follow_its_inputs_into_intervals(tmp_path, discretise):
    result = rs.infer(heating_log(tmp_path, 0), discretise=discretise)
    assert result.machines["answer"].states == 2
    assert result.machines.score(heating_log(tmp_path, 1)).perfect
    more = result.update(heating_log(tmp_path, 2))
    assert more.machines["answer"].states == 2
    result.machines.save(tmp_path / "heating.json")
    assert rs.load(tmp_path / "heating.json").score(heating_log(tmp_path, 1)).perfect


def test_other_labels_stay_where_actions_are_put_into_intervals():
    pushes = [rs.Trace("abb", [None, "bell", None], [0.1, 0.9], [0, 1])]
    result = rs.infer(pushes, discretise=Discretizer.at([0.5], of="action"))
    assert result.senses == Preprocessor(discretise=Discretizer.at([0.5], of="action"))
    assert frozenset({"bell"}) in result.machines.reward.labels


def test_intervals_of_a_plan_that_were_changed_by_hand_name_the_file(tmp_path):
    traces = rs.collect(House(), episodes=50, seed=0)
    path = tmp_path / "plan.json"
    rs.plan(rs.infer(traces), traces).save(path)
    stored = json.loads(path.read_text())
    stored["senses"] = {"labels": "given", "discretise": {"method": "uniform", "bins": 0}}
    path.write_text(json.dumps(stored))
    with pytest.raises(rs.errors.ModelError, match=r"plan\.json: not a plan .*bins=0"):
        plan_files.load(path)


def test_q_learning_takes_no_numbers_that_only_machines_see_as_intervals():
    traces = rs.collect(Scale(), episodes=30, seed=0, labels="auto")
    machines = rs.infer(
        traces, outputs=["reward"], labels="observation", discretise=Discretizer.at([1.0, 3.0])
    ).machines
    with pytest.raises(rs.OptionError, match="numbers that hardly come twice"):
        rs.q_learning(rs.AugmentObservation(Scale(), machines), episodes=1)


def test_auto_takes_the_labels_of_a_log():
    light = [("on", "bright"), ("on", "bright"), ("off", "dark"), ("on", "bright")]
    rows = [
        {"session": number, "event": event, "response": response}
        for number in range(4)
        for event, response in light[number:] + light[:number]
    ]
    log = rs.read_log(pd.DataFrame(rows), episode="session", input="event", output="response")
    result = rs.infer(log, labels="auto")
    assert result.senses == Preprocessor()
