"""Environments that fail during exploration: errors name the step, and no step is lost."""

import gymnasium as gym
import numpy as np
import pytest

import resolvent as rs
from resolvent.worlds import House, TMaze
from worlds_to_explore import Coin


class Failing(gym.Wrapper):
    """A house that goes wrong once, in the step of that number, or in the reset."""

    def __init__(self, how, at=30):
        super().__init__(House())
        self.how, self.at, self.steps, self.resets = how, at, 0, 0

    def reset(self, **given):
        self.resets += 1
        if self.how == "reset" and self.resets == self.at:
            raise OSError("no power")
        if self.how == "actions" and self.resets == self.at:
            self.action_space = gym.spaces.Discrete(9)
        if self.how == "observations" and self.resets == self.at:
            self.observation_space = gym.spaces.Box(0, 1)
        return self.env.reset(**given)

    def step(self, action):
        self.steps += 1
        seen, reward, *ends, info = self.env.step(action)
        if self.steps != self.at:
            return seen, reward, *ends, info
        match self.how:
            case "step":
                raise RuntimeError("the motor is stuck")
            case "reward":
                return seen, np.nan, *ends, info
            case "seen":
                return np.nan, reward, *ends, info
            case "labels":
                return seen, reward, *ends, {}
        return seen, reward, *ends, info


FAILURES = [
    ("step", 30, r"episode \d+: step \d+: the environment's step\(\) raised RuntimeError: the mot"),
    ("reward", 30, r"episode \d+: step \d+: the reward is nan; rewards must be finite"),
    ("seen", 30, r"episode \d+: step \d+: the observation: nan cannot be a symbol"),
    ("labels", 30, r"episode \d+: step \d+: the environment gives no label"),
    ("reset", 5, r"episode \d+: the environment's reset\(\) raised OSError: no power"),
    ("actions", 5, r"the environment's actions are Discrete\(9\) and were Discrete\(5\) at the"),
    ("observations", 5, r"the environment's observations are Box\(.*\) and were Discrete\(4\)"),
]


@pytest.fixture(scope="module")
def whole():
    return rs.solve(Failing("never"))


@pytest.mark.parametrize(("how", "at", "message"), FAILURES, ids=[one[0] for one in FAILURES])
def test_a_failed_run_keeps_its_result_and_resumes(tmp_path, whole, how, at, message):
    folder = tmp_path / "kept"
    with pytest.raises(rs.errors.EnvironmentFailed, match=message) as caught:
        rs.solve(Failing(how, at), folder=folder)
    assert f"the result so far is in {folder}" in str(caught.value)
    kept = rs.Solution.load(folder)
    assert kept.traces == caught.value.solution.traces
    assert kept.statement.kind == "failed"
    assert kept.statement.failure in str(caught.value)
    assert str(kept.statement).startswith(f"the environment failed after {kept.steps} steps (")
    if how not in ("reset", "actions", "observations"):
        assert kept.steps == at - 1
    resumed = rs.solve(Failing("never"), resume=folder)
    assert resumed.machines == whole.machines
    assert resumed.traces == whole.traces


def test_a_failure_before_the_first_step_leaves_nothing(tmp_path):
    with pytest.raises(
        rs.errors.EnvironmentFailed, match=r"episode 0: the environment's reset\(\)"
    ) as one:
        rs.solve(Failing("reset", 1), folder=tmp_path / "kept")
    assert one.value.solution is None
    assert not (tmp_path / "kept").exists()


def test_an_episode_that_fails_again_is_truncated():
    """The episode under way is cut, and exploring goes on in another one."""
    part = rs.solve(House(), budget=32)
    assert part.traces[-1].actions
    env = Failing("step", len(part.traces[-1].actions))
    with pytest.warns(
        rs.errors.ResumeWarning, match=r"1 unfinished episode could not .* \(.*raised"
    ):
        assert rs.solve(env, resume=part).optimal


def test_a_stochastic_environment_that_fails_keeps_its_steps(tmp_path):
    class Stuck(Coin):
        steps = 0

        def step(self, action):
            self.steps += 1
            if self.steps == 900:
                raise RuntimeError("the coin is lost")
            return super().step(action)

    with pytest.raises(rs.errors.EnvironmentFailed, match="the coin is lost") as caught:
        rs.solve(Stuck(), folder=tmp_path / "coin", budget=2_000)
    kept = rs.Solution.load(tmp_path / "coin")
    assert kept.steps == 899
    assert kept.traces == caught.value.solution.traces
    assert "the coin is lost" in kept.statement.failure
    assert rs.solve(Stuck(), resume=kept, budget=1_000).statement.kind == "chance"


class Ring(gym.Env):
    """Six rooms in a ring, one of which pays whoever comes there; it never ends."""

    def __init__(self):
        self.action_space, self.observation_space = gym.spaces.Discrete(2), gym.spaces.Discrete(6)

    def reset(self, *, seed=None, options=None):
        self.at = 0
        return 0, {"labels": ()}

    def step(self, action):
        self.at = (self.at + (1 if action else -1)) % 6
        return self.at, float(self.at == 3), False, False, {"labels": ()}


def test_endless_episodes_are_truncated_and_counted():
    solved = rs.solve(Ring(), max_steps=10)
    assert solved.optimal
    lengths = [len(trace.actions) for trace in solved.traces]
    assert max(lengths) == 10
    assert solved.statement.capped == lengths.count(10) > 1  # the plan goes round, too
    assert solved.why_stopped.endswith(f"{lengths.count(10)} episodes truncated")


def test_the_statement_names_the_two_contradictory_steps(tmp_path):
    solved = rs.solve(Coin(), budget=600)
    with pytest.raises(rs.ContradictoryTraces) as caught:
        rs.solve(Coin(), noise="none", folder=tmp_path / "coin")
    first, second = caught.value.locations
    assert f"{first} and {second}" in solved.statement.contradiction
    shown = rs.read_traces(tmp_path / "coin" / "traces.jsonl")
    values = [shown[one.trace].observations[one.step + 1] for one in (first, second)]
    assert sorted(values) == sorted(caught.value.values)
    # The folder can be used again, since nothing else lies in it.
    assert rs.solve(Coin(), folder=tmp_path / "coin", budget=600).statement.kind == "chance"


class TestAnotherEnvironment:
    """Nobody goes on in another environment than the one to go on from."""

    @pytest.mark.parametrize(
        ("env", "message"),
        [
            ("resolvent/PhaseGrid3-v0", "its name is resolvent/PhaseGrid3-v0 and was resolvent/TM"),
            (lambda: gym.make("resolvent/TMaze-v0", length=6), "arguments are length=6 and were"),
            (lambda: TMaze(5), "its name is TMaze and was resolvent/TMaze-v0"),
        ],
    )
    def test_it_is_refused(self, env, message):
        part = rs.solve(gym.make("resolvent/TMaze-v0", length=5), budget=30)
        with pytest.raises(rs.errors.ModelError, match=message):
            rs.solve(env, resume=part)

    def test_spaces_that_changed_are_refused(self):
        part, env = rs.solve(House(), budget=30), House()
        env.observation_space = gym.spaces.Discrete(9)
        with pytest.raises(
            rs.errors.ModelError, match=r"observations are Discrete\(9\) and were Discre"
        ):
            rs.solve(env, resume=part)

    def test_other_labels_are_refused(self):
        part = rs.solve(House(), budget=30)
        with pytest.raises(rs.errors.ModelError, match=r"other labels \(given, not observation\)"):
            rs.solve(House(), labels="observation", resume=part)
