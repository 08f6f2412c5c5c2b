"""Environments that fail during exploration: errors name the step, and no step is lost."""

from fractions import Fraction

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

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
    assert kept.guarantee.reason == "failed"
    assert kept.guarantee.failure in str(caught.value)
    assert str(kept.guarantee).startswith(f"the environment failed after {kept.steps} steps (")
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
    assert "the coin is lost" in kept.guarantee.failure
    assert rs.solve(Stuck(), resume=kept, budget=1_000).guarantee.reason == "stochastic"


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
    assert solved.guarantee.truncated == lengths.count(10) > 1  # the plan goes round, too
    assert solved.why_stopped.endswith(f"{lengths.count(10)} episodes truncated")


def test_the_statement_names_the_two_contradictory_steps(tmp_path):
    solved = rs.solve(Coin(), budget=600)
    with pytest.raises(rs.ContradictoryTraces) as caught:
        rs.solve(Coin(), noise="none", folder=tmp_path / "coin")
    first, second = caught.value.locations
    assert f"{first} and {second}" in solved.guarantee.contradiction
    shown = rs.read_traces(tmp_path / "coin" / "traces.jsonl")
    values = [shown[one.trace].observations[one.step + 1] for one in (first, second)]
    assert sorted(values) == sorted(caught.value.values)
    # The folder can be used again, since nothing else lies in it.
    assert rs.solve(Coin(), folder=tmp_path / "coin", budget=600).guarantee.reason == "stochastic"


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


class Corridor(gym.Env):
    """Five cells; whoever takes a key on the left is paid at the door on the right.

    Nothing shows whether one has it, and taking it changes nothing that is seen.
    """

    observation_space, action_space = spaces.Discrete(5), spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.key, self.steps = 2, False, 0
        return self.see(), {}

    def see(self):
        return self.at

    def step(self, action):
        self.steps += 1
        opened = action == 2 and self.at == 4 and self.key
        self.key |= action == 2 and self.at == 0
        if action < 2:
            self.at = min(max(self.at + 2 * int(action) - 1, 0), 4)
        return self.see(), float(opened), opened, False, {}


VALUE = 0.95**7
"""Two steps to the key, one to take it, four to the door, and the eighth is paid."""


class Pictures(Corridor):
    """Shows a dictionary with an image."""

    observation_space = spaces.Dict(
        {"image": spaces.Box(0, 255, (2, 2), np.uint8), "bits": spaces.MultiBinary(3)}
    )

    def see(self):
        return {
            "image": np.full((2, 2), self.at, np.uint8),
            "bits": np.array([self.at >> bit & 1 for bit in range(3)], np.int8),
        }


class Pairs(Corridor):
    """Shows a tuple, and takes two numbers."""

    observation_space = spaces.Tuple((spaces.Discrete(5), spaces.MultiDiscrete([3, 3])))
    action_space = spaces.MultiDiscrete([3, 1])

    def see(self):
        return self.at, np.array([self.at // 2, self.at % 2])

    def step(self, action):
        return super().step(int(action[0]))


class Sentences(Corridor):
    """Shows a text."""

    observation_space = spaces.Text(100)

    def see(self):
        return f"You are in room {self.at}."


class Buffers(Corridor):
    """Shows one array, over and over, and pays fractions."""

    observation_space = spaces.Box(0, 1, (2,), np.float32)
    shown = np.zeros(2, np.float32)

    def see(self):
        self.shown[:] = self.at / 4, 1 - self.at / 4
        return self.shown

    def step(self, action):
        seen, paid, *rest = super().step(action)
        return seen, Fraction(paid), *rest


@pytest.mark.parametrize("make", [Corridor, Pictures, Pairs, Sentences, Buffers])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_actions_become_labels_if_states_outnumber_labels(make, seed):
    """With labels of what is seen alone, machines grow and grow: 3,138 to 5,420 steps before."""
    solved = rs.solve(make(), seed=seed)
    assert solved.optimal
    assert solved.value == pytest.approx(VALUE)
    assert solved.steps < 800
    assert solved.states == {"transition": 1, "reward": 2}
    assert solved.machines.preprocessor.labeling.reads == "action+observation"
    assert solved.plan.run(make(), episodes=3, seed=1).returns.min() == 1


class Wrong(Corridor):
    """Gives something wrong at the third step."""

    def __init__(self, **wrong):
        self.wrong = wrong

    def step(self, action):
        names = "seen", "reward", "terminated", "truncated", "info"
        returned = dict(zip(names, super().step(action), strict=True))
        return tuple({**returned, **(self.wrong if self.steps == 3 else {})}.values())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"info": None}, "the info is None: it has to be a dict"),
        ({"reward": "high"}, "the reward is 'high'; rewards must be numbers"),
        ({"more": 1}, r"has to return \(observation, reward, terminated, truncated, info\)"),
    ],
    ids=lambda one: "" if isinstance(one, str) else next(iter(one)),
)
def test_invalid_values_are_named(wrong, message):
    with pytest.raises(rs.errors.EnvironmentFailed, match=rf"episode 0: step 2: .*{message}"):
        rs.solve(Wrong(**wrong))


def test_an_invalid_reset_is_named():
    class Silent(Corridor):
        def reset(self, **options):
            return super().reset(**options)[0]

    with pytest.raises(rs.TraceError, match=r"reset\(\) has to return \(observation, info\)"):
        rs.solve(Silent())


@pytest.mark.parametrize("missing", ["action_space", "observation_space"])
def test_an_environment_without_spaces_is_refused(missing):
    class Bare(gym.Env):
        action_space = observation_space = spaces.Discrete(2)

    setattr(Bare, missing, None)
    for call in (rs.solve, rs.Explorer):
        with pytest.raises(rs.OptionError, match=rf"the environment Bare has no {missing}"):
            call(Bare())


class Cuts(Corridor):
    """Calls the end a cut, and cuts after 30 steps, too."""

    ends = False

    def step(self, action):
        seen, paid, over, _, info = super().step(action)
        return seen, paid, over and self.ends, over or self.steps == 30, info


class CutsLate(Cuts):
    """Ends, and cuts after 30 steps."""

    ends = True


def test_a_step_that_is_always_truncated_is_named():
    solved = rs.solve(Cuts())
    assert solved.value > 10
    assert "2 in 4 (transition state 0, reward state 1)" in solved.guarantee.truncated_after
    assert "if this is an end, return terminated=True" in solved.why_stopped
    late = rs.solve(CutsLate())
    assert late.value == pytest.approx(VALUE)
    assert late.guarantee.truncated_after is None


class Idle(Corridor):
    """Never pays, and never ends."""

    def step(self, action):
        return super().step(action)[0], 0.0, False, False, {}


def test_equal_rewards_give_no_bound(tmp_path):
    solved = rs.solve(Idle(), budget=500, folder=tmp_path / "kept")
    assert solved.guarantee.reason == "budget"
    assert "pass reward_range or increase the budget" in solved.why_stopped
    assert solved.bound == float("inf")
    assert solved.as_dict()["bound"] is None
    assert not solved.as_dict()["optimal"]
    assert "bound        not known" in str(solved)
    assert rs.Solution.load(tmp_path / "kept").bound == float("inf")


def test_a_plan_for_named_observations_asks_for_observation_fn():
    solved = rs.solve(Sentences(), observation_fn=lambda text: int(text[-2]))
    with pytest.raises(
        rs.errors.ModelError, match="such as 0: if observation_fn made them, give it here, too"
    ):
        solved.plan.run(Sentences(), episodes=1)
