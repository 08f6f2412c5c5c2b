"""Environments of others on the command line: imported, or named by module and class."""

import itertools
import sys

import pytest

from resolvent import read_traces

WORLD = """
import gymnasium as gym

class Lamp(gym.Env):
    action_space = gym.spaces.Discrete(2)

    def __init__(self, lamps=2, lit=False):
        if lamps < 1:
            raise ValueError("a lamp at least")
        self.observation_space = gym.spaces.Discrete(lamps)
        self.lamps, self.at = lamps, int(lit)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return self.at, {"labels": set()}

    def step(self, action):
        self.at = (self.at + int(action)) % self.lamps
        done = self.at == self.lamps - 1
        return self.at, float(done), done, False, {"labels": {"click"} if action else set()}

class Broken(Lamp):
    def step(self, action):
        raise KeyError("switch")

class Old(Lamp):
    def step(self, action):
        return 0, 0.0, True, {}

class Apart:
    pass

def street(lamps=5):
    return Lamp(lamps)

def nothing():
    return None

PRICE = 3
gym.register("{id}", entry_point=Lamp)
"""

numbers = itertools.count()


@pytest.fixture
def lamps(tmp_path, monkeypatch):
    """The name of a module beside the user, which nobody has imported yet."""
    name = f"lamps_{next(numbers)}"
    (tmp_path / f"{name}.py").write_text(WORLD.replace("{id}", f"{name}/Lamp-v0"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return name


def test_a_class_or_a_function_of_a_module_is_an_environment(run, lamps, tmp_path):
    for words, lamps_seen in (
        ((f"{lamps}:Lamp",), 2),
        ((f"{lamps}:Lamp", "--set", "lamps=3", "--set", "lit=true"), 3),
        ((f"{lamps}:street",), 5),
        ((f"{lamps}:street", "--set", "lamps=4"), 4),
    ):
        outcome = run("collect", *words, "-n", "9", "-o", tmp_path / "out.jsonl", "--json")
        assert outcome.code == 0, outcome.err
        assert outcome.json["observations"] == lamps_seen


def test_imports_register_environments(run, lamps, tmp_path):
    target = ("-n", "3", "-o", tmp_path / "out.jsonl")
    other = lamps.replace("lamps", "more_lamps")
    (tmp_path / f"{other}.py").write_text(WORLD.replace("{id}", f"{other}/Lamp-v0"))
    assert run("collect", f"{other}/Lamp-v0", *target).code == 2
    both = ("--import", lamps, "--import", other)
    assert run("collect", f"{lamps}/Lamp-v0", *both, *target).code == 0
    assert run("collect", f"{other}/Lamp-v0", *target).code == 0
    assert run("collect", f"{lamps}:{other}/Lamp-v0", *target).code == 0


def test_minigrid_is_imported_by_name(run, tmp_path):
    pytest.importorskip("minigrid")
    words = ("collect", "MiniGrid-Empty-5x5-v0", "--import", "minigrid", "-n", "1")
    # It names no events, and that is all that is wrong.
    assert "gives no label" in run(*words, "-o", tmp_path / "out.jsonl").error


def test_plans_act_and_learners_train_in_them(run, lamps, tmp_path):
    traces, machines = tmp_path / "traces.jsonl", tmp_path / "machines.json"
    world = (f"{lamps}:Lamp", "--set", "lamps=3")
    assert run("collect", *world, "-n", "60", "-o", traces).code == 0
    assert run("infer", traces, "-o", machines).code == 0
    acted = run("plan", machines, traces, "--environment", *world, "-n", "2", "--json").json["run"]
    assert acted["mean_return"] == 1
    assert run("train", *world, "--machines", machines, "-n", "20", "--json").code == 0
    imported = ("--import", lamps, "-n", "2", "--json")
    assert run("plan", machines, traces, "--environment", f"{lamps}/Lamp-v0", *imported).code == 0
    assert run("train", f"{lamps}/Lamp-v0", *imported).code == 0


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("{lamps}:Lantern", "or module:Class; '{lamps}' has Lamp, Broken, Old"),
        ("{lamps}:Apart", "environment '{lamps}:Apart' is a class, but no gymnasium.Env"),
        ("{lamps}:PRICE", "environment '{lamps}:PRICE' is a int: name a class"),
        ("{lamps}:nothing", "environment '{lamps}:nothing' gave a NoneType: name a class"),
        ("{lamps}:Broken", "episode 0: step 0: the environment's step() raised KeyError: 'switch'"),
        (
            "{lamps}:Old",
            "episode 0: step 0: the environment's step() has to return (observation, reward",
        ),
        ("{lamps}.py:Lamp", "is a file: write {lamps}, the module's name"),
        ("./{lamps}.py:Lamp", "is a file: write {lamps}, the module's name"),
        ("nowhere_at_all:Lamp", "cannot import module 'nowhere_at_all': give the name of a module"),
        (":Lamp", "environment ':Lamp': name a module before the colon"),
        ("{lamps}:", "environment '{lamps}:': name a class after the colon"),
    ],
)
def test_what_is_no_environment_is_told_in_one_line(run, lamps, tmp_path, name, says):
    outcome = run("collect", name.format(lamps=lamps), "-n", "1", "-o", tmp_path / "out.jsonl")
    assert outcome.code == 2
    assert says.format(lamps=lamps) in outcome.error
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("height=3", "cannot make environment '{lamps}:Lamp' with height: TypeError: "),
        ("lamps=0", "with lamps: ValueError: a lamp at least"),
        ("lamps=many", "with lamps: TypeError: "),
    ],
)
def test_arguments_that_do_not_fit_are_told(run, lamps, tmp_path, setting, says):
    words = ("collect", f"{lamps}:Lamp", "--set", setting, "-n", "1", "-o", tmp_path / "x.jsonl")
    assert says.format(lamps=lamps) in run(*words).error


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("1 / 0", "cannot import module '{name}', which raised ZeroDivisionError: division"),
        ("import no_such_thing", "module '{name}' needs 'no_such_thing', which is not installed"),
        ("raise SystemExit(3)", "cannot import module '{name}', which raised SystemExit: 3"),
        ("def", "cannot import module '{name}', which raised SyntaxError: "),
    ],
)
def test_a_module_that_cannot_be_imported_is_told(run, lamps, tmp_path, source, says):
    name = f"broken_{lamps}"
    (tmp_path / f"{name}.py").write_text(source)
    target = ("-n", "1", "-o", tmp_path / "out.jsonl")
    error = run("collect", f"{name}:World", *target).error
    assert error.startswith(f"environment '{name}:World': ")
    assert says.format(name=name) in error
    error = run("collect", "resolvent/House-v0", "--import", name, *target).error
    assert error.startswith(f"--import {name}: ")
    assert says.format(name=name) in error


def test_what_was_collected_is_what_the_class_does(run, lamps, tmp_path):
    path = tmp_path / "out.jsonl"
    assert run("collect", f"{lamps}:Lamp", "-n", "20", "-o", path).code == 0
    for trace in read_traces(path):
        assert trace.observations == (*[0] * len(trace), 1)
        assert trace.rewards == (*[0.0] * (len(trace) - 1), 1.0)


def test_labels_are_made_of_what_is_seen_and_done(run, tmp_path):
    lake = ("collect", "FrozenLake-v1", "--set", "is_slippery=false", "-n", "40")
    path = tmp_path / "lake.jsonl"
    for labels, sources in (("observation", 16), ("action", 5), ("action+observation", 65)):
        outcome = run(*lake, "--labels", labels, "-o", path, "--json")
        assert (outcome.code, outcome.json["labeling"]) == (0, labels)
        found = {tuple(label) for label in outcome.json["labels"]}
        assert 5 <= len(found) <= sources
        for trace in read_traces(path):
            seen, done = trace.observations[1], trace.actions[0]
            names = {"observation": f"{seen}", "action": f"{done}"}
            assert trace.labels[1] == {names.get(labels, f"{done} → {seen}")}
    printed = run(*lake, "--labels", "action+observation", "-o", path).out
    assert "more\n" in printed  # of more labels than anybody reads
    assert "--labels action+observation" in printed


def test_an_environment_without_labels_says_how_to_get_them(run, tmp_path):
    assert "--labels" in run("collect", "CartPole-v1", "-n", "1", "-o", tmp_path / "x.jsonl").error
    words = ("collect", "CartPole-v1", "-n", "1", "-o", tmp_path / "x.jsonl", "--labels")
    assert "'none' is not one of given, observation, action" in run(*words, "none").error
    assert run(*words, "auto", "--json").json["labels"] == [[]]
