"""`solve`: what it finds, why it stops, what it does about environments that are wrong."""

import json
import signal
import subprocess
import sys
import textwrap
from contextlib import nullcontext

import gymnasium as gym
import numpy as np
import pytest

import resolvent as rs
from resolvent.worlds import House, TMaze
from worlds_to_explore import Coin, Lamp, SecondMission, TwoMissions


@pytest.fixture(scope="module")
def house():
    return rs.solve("resolvent/House-v0", seed=0)


def test_the_house_is_solved(house):
    best = House().mechanics.optimal_values(0.95)[House().mechanics.starts].mean()
    assert house.optimal
    assert house.value == pytest.approx(best)
    assert house.bound == 0
    assert house.states == {"transition": 2, "reward": 2}
    assert house.steps == house.traces.steps < 1_000
    assert house.plan.run(House(), episodes=20, seed=7).returns.min() == 1


def test_the_machines_explain_all_that_was_seen(house):
    score = house.machines.score(house.traces)
    assert score["transition"].wrong == score["reward"].wrong == 0
    assert score["transition"].unseen == score["reward"].unseen == 0


def test_equal_seeds_give_equal_results(house):
    again = rs.solve("resolvent/House-v0", seed=0)
    assert again.machines == house.machines
    assert again.traces == house.traces
    assert again.guarantee == house.guarantee


def test_an_environment_by_its_class_is_the_same(house):
    assert rs.solve("resolvent.worlds:House", seed=0).traces == house.traces


@pytest.mark.parametrize("length", [20, pytest.param(100, marks=pytest.mark.slow)])
def test_the_cue_of_a_long_corridor_is_remembered(length):
    solved = rs.solve(TMaze(length), seed=0)
    assert solved.optimal
    assert solved.value == pytest.approx(0.95**length)
    assert solved.plan.run(TMaze(length), episodes=10, seed=5).returns.min() == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "world", ["PhaseGrid3", "PhaseGrid5", "TwoKeys", "OfficeMail", "OfficeCoffee", "Cookie"]
)
@pytest.mark.parametrize("seed", range(2))
def test_built_in_worlds_are_solved(world, seed):
    env = gym.make(f"resolvent/{world}-v0")
    tables = env.unwrapped.mechanics
    solved = rs.solve(env, seed=seed)
    best = tables.optimal_values(0.95)
    shown = {
        env.unwrapped.mechanics.observations[int(tables.observation_of[start])]: best[start]
        for start in np.unique(tables.starts)
    }
    runs = solved.plan.run(env, episodes=20, seed=9, max_steps=400)
    for trace, paid in zip(runs.traces, runs.discounted_returns, strict=True):
        assert paid == pytest.approx(shown[trace.observations[0]], rel=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_exploration_continues_after_one_of_two_missions(seed):
    solved = rs.solve(TwoMissions(), seed=seed)
    assert solved.optimal
    assert solved.states["reward"] == 2
    assert solved.plan.run(TwoMissions(), episodes=50, seed=1).returns.min() == 1


@pytest.mark.parametrize("seed", range(3))
def test_a_second_mission_with_a_higher_reward_is_found(seed):
    solved = rs.solve(SecondMission(), seed=seed)
    assert solved.optimal
    assert solved.value == pytest.approx(5 * 0.95**4)


def test_the_history_has_the_progress(house):
    steps = [one.steps for one in house.history]
    assert steps == sorted(steps)
    assert house.history[-1].states == house.states
    assert house.history[-1].value == pytest.approx(house.value)


def test_a_budget_is_kept():
    solved = rs.solve("resolvent/House-v0", budget=20)
    assert solved.steps == 18
    assert solved.guarantee.reason == "budget"
    assert solved.why_stopped.startswith("the budget is spent after 18 steps")


def test_a_target_stops_exploration_earlier():
    rough, fine = rs.solve(TMaze(10), target=20.0), rs.solve(TMaze(10))
    assert rough.guarantee.reason == "target"
    assert 0 < rough.bound <= rough.guarantee.gap <= 20
    assert rough.steps < fine.steps


def test_a_stochastic_environment_is_detected_and_explored():
    solved = rs.solve(Coin(), budget=1_500)
    assert solved.guarantee.reason == "stochastic"
    assert "different next observations" in solved.why_stopped
    assert solved.plan.confidence == 0.95
    assert solved.value == pytest.approx(0.95 * 0.8, abs=0.08)
    assert solved.steps == 1_350


@pytest.mark.parametrize("budget", [200, pytest.param(1_500, marks=pytest.mark.slow)])
def test_random_labels_are_planned_for(budget):
    solved = rs.solve(Lamp(pays_dark=0.2), budget=budget)
    assert solved.guarantee.reason == "stochastic"
    assert "the label or the termination after 1 in 0" in solved.why_stopped
    assert solved.states == {"transition": 1, "reward": 2}
    if budget > 1_000:
        assert solved.plan.run(Lamp(pays_dark=0.2), episodes=20, seed=3).returns.min() == 1


@pytest.mark.parametrize("seed", [0, 1])
def test_a_stochastic_environment_without_rewards_is_explored_further(seed):
    env = gym.make("FrozenLake-v1")
    solved = rs.solve(env, budget=3_000, seed=seed)
    assert solved.steps == 2_700
    assert solved.value > 0
    early = rs.solve(env, budget=30, seed=seed)
    assert early.guarantee.gap == float("inf")
    assert "within" not in early.why_stopped


def test_labels_unknown_to_the_machines_are_allowed():
    solved = rs.solve(gym.make("Blackjack-v1"), budget=150, seed=0)
    assert solved.guarantee.reason == "stochastic"


class Measured(gym.ObservationWrapper):
    """A house seen through a sensor: the number of the room, and a little more or less."""

    def __init__(self):
        super().__init__(House())
        self.observation_space = gym.spaces.Box(-1, 10, dtype=np.float64)
        self.noise = np.random.default_rng(0)

    def observation(self, observation):
        return np.array([observation + self.noise.uniform(-0.2, 0.2)])


def test_numbers_that_do_not_recur_stop_exploration():
    solved = rs.solve(Measured())
    assert solved.guarantee.reason == "continuous"
    assert solved.steps == 1_000
    assert "hardly ever recur" in solved.why_stopped
    assert rs.solve(Measured(), observation_fn=lambda seen: round(float(seen[0]))).optimal


def test_random_labels_without_noise_depend_on_chance():
    solved = rs.solve(Lamp(pays_dark=0.2), budget=800, noise="none")
    assert solved.guarantee.reason == "unreachable"
    assert "depend on chance" in solved.why_stopped


def test_random_labels_without_effect_are_ignored():
    solved = rs.solve(Lamp(pays_dark=1.0))
    assert solved.optimal
    assert solved.value == pytest.approx(0.95**3)


def test_lagged_labels_have_to_follow_from_observations(tmp_path):
    """Which of them is read next is known to nobody who knows the observation and the states."""
    with pytest.raises(rs.errors.ModelError, match="use timing current or current-with-initial"):
        rs.solve(Lamp(pays_dark=0.2), timing="lagged", folder=tmp_path / "kept")
    kept = rs.read_traces(tmp_path / "kept" / "traces.jsonl")
    assert kept.steps < 100
    assert rs.infer(kept, timing="current").machines.reward.states == 2
    # Where it makes no difference which one is read, nothing is in the way.
    solved = rs.solve(Lamp(pays_dark=1.0), timing="lagged")
    assert solved.optimal
    assert solved.value == pytest.approx(0.95**3)
    assert solved.machines.timing.value == "lagged"


def test_a_stochastic_environment_can_be_refused(tmp_path):
    with pytest.raises(rs.ContradictoryTraces):
        rs.solve(Coin(), noise="none", folder=tmp_path / "coin")
    assert len(rs.read_traces(tmp_path / "coin" / "traces.jsonl")) > 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 0}, "budget=0"),
        ({"gamma": 0}, "gamma=0"),
        ({"target": -1}, "target=-1"),
        ({"states": 0}, "states=0"),
        ({"seed": -1}, "seed=-1"),
        ({"max_steps": 0}, "max_steps=0"),
        ({"noise": "some"}, "noise='some'"),
        ({"confidence": 1}, "confidence=1"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(rs.OptionError, match=message):
        rs.solve("resolvent/House-v0", **options)


@pytest.mark.parametrize("env", ["no/Such-v0", "nowhere:Such-v0", 7, len, lambda: 7])
def test_other_values_than_environments_are_refused(env):
    with pytest.raises(rs.OptionError, match=r"environment|gymnasium\.Env|has to make"):
        rs.solve(env)


def test_actions_have_to_be_listed():
    env = House()
    env.action_space = gym.spaces.Box(-1, 1)
    with pytest.raises(rs.OptionError, match="solve needs a finite one"):
        rs.solve(env)


class TestResuming:
    """Whoever is stopped and goes on finds the same as whoever never stopped."""

    @pytest.mark.parametrize(
        "world",
        ["House"]
        + [pytest.param(one, marks=pytest.mark.slow) for one in ("TMaze", "PhaseGrid4", "TwoKeys")],
    )
    def test_from_any_step(self, world):
        name = f"resolvent/{world}-v0"
        whole = rs.solve(name, seed=3)
        rng = np.random.default_rng(0)
        for _ in range(2):
            parts = None
            for budget in [*sorted(rng.integers(1, whole.steps, 2).tolist()), 100_000]:
                parts = rs.solve(name, seed=3, budget=budget, resume=parts)
            assert parts.machines == whole.machines
            assert parts.traces == whole.traces
            assert parts.guarantee == whole.guarantee
            assert parts.history == whole.history

    def test_from_a_folder(self, tmp_path, house):
        folder = tmp_path / "solved"
        rs.solve("resolvent/House-v0", budget=60, folder=folder)
        resumed = rs.solve("resolvent/House-v0", resume=folder, folder=folder)
        assert resumed.machines == house.machines
        assert rs.Solution.load(folder).traces == resumed.traces
        assert sorted(path.name for path in tmp_path.iterdir()) == ["solved"]

    def test_a_finished_run_stays_finished(self, house):
        assert rs.solve("resolvent/House-v0", resume=house).traces == house.traces

    @pytest.mark.parametrize(("drawn", "same"), [(0, False), (2, True), (5, False)])
    def test_an_unseeded_environment_can_be_resumed(self, drawn, same):
        """Episodes of some environments do not follow from seeds.

        One that is to go on but begins with another mission, though it looks the same, is cut.
        """

        class Unseeded(TwoMissions):
            draws = np.random.default_rng(drawn)

            def reset(self, *, seed=None, options=None):
                return super().reset(seed=int(self.draws.integers(1 << 30)), options=options)

        part = rs.solve(Unseeded(), budget=30)
        said = (
            nullcontext() if same else pytest.warns(rs.errors.ResumeWarning, match="the same seed")
        )
        with said:
            solved = rs.solve(Unseeded(), resume=part, budget=3_000)
        assert solved.optimal
        assert solved.plan.run(TwoMissions(), episodes=20, seed=1).returns.min() == 1

    @pytest.mark.parametrize(
        "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
    )
    def test_a_signal_saves_all_steps(self, tmp_path, number):
        script = textwrap.dedent(
            f"""
            import os, sys
            import resolvent as rs
            from resolvent.worlds import House

            class Stopped(House):
                def step(self, action):
                    if len(taken) == 40:
                        os.kill(os.getpid(), {int(number)})
                    taken.append(action)
                    return super().step(action)

            taken = []
            print(rs.solve(Stopped(), folder=sys.argv[1]).guarantee.reason)
            """
        )
        completed = subprocess.run(
            [sys.executable, "-c", script, str(tmp_path / "kept")],
            check=True,
            capture_output=True,
            text=True,
        )
        assert completed.stdout.strip() == "interrupted"
        kept = rs.Solution.load(tmp_path / "kept")
        assert kept.steps == 41


def test_a_folder_is_complete_or_missing(tmp_path, house, monkeypatch):
    house.save(tmp_path / "kept")
    before = {path.name: path.read_bytes() for path in (tmp_path / "kept").iterdir()}
    monkeypatch.setattr(rs.Plan, "save", lambda self, path: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        house.save(tmp_path / "kept")
    assert {path.name: path.read_bytes() for path in (tmp_path / "kept").iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_a_folder_with_other_things_is_left_alone(tmp_path, house):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(rs.ResolventError, match="contains other files"):
        house.save(tmp_path)


def test_a_damaged_folder_is_named(tmp_path, house):
    house.save(tmp_path / "kept")
    about = tmp_path / "kept" / "solved.json"
    content = json.loads(about.read_text())
    about.write_text(json.dumps({**content, "version": 99}))
    with pytest.raises(rs.errors.ModelError, match="not resolvent-solved 1"):
        rs.Solution.load(tmp_path / "kept")
    about.write_text("{")
    with pytest.raises(rs.errors.ModelError, match="not what Resolvent wrote"):
        rs.Solution.load(tmp_path / "kept")
    about.write_bytes(b'{"format": "\xd2"}')
    with pytest.raises(rs.errors.ModelError, match="not what Resolvent wrote: it is not UTF-8"):
        rs.Solution.load(tmp_path / "kept")
    spoiled = {**content, "guarantee": {**content["guarantee"], "steps": "many"}}
    about.write_text(json.dumps(spoiled))
    with pytest.raises(rs.errors.ModelError, match=r"not what Resolvent wrote: .*\$.steps"):
        rs.Solution.load(tmp_path / "kept")
    with pytest.raises(rs.errors.ModelError, match="no such file"):
        rs.Solution.load(tmp_path / "elsewhere")
