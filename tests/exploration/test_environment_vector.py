"""`solve` and `Explorer` with the environments of a vector environment."""

from contextlib import nullcontext
from dataclasses import replace
from importlib import import_module

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

import resolvent as rs
from resolvent.worlds import House, TMaze
from worlds_to_explore import Coin, TwoMissions, Unlabelled


class ToldByMethod(gym.Wrapper):
    """A house whose labels are message by a method alone."""

    def reset(self, **given):
        seen, info = self.env.reset(**given)
        self.message = info.get("labels", ())
        return seen, {}

    def step(self, action):
        *shown, info = self.env.step(action)
        self.message = info["labels"]
        return *shown, {}

    def get_events(self):
        return self.message


def solved(make=House, count=3, mode=AutoresetMode.NEXT_STEP, **options):
    return rs.solve(SyncVectorEnv([make] * count, autoreset_mode=mode), seed=0, **options)


@pytest.fixture(scope="module")
def house():
    return solved()


def test_the_house_is_solved(house):
    alone = rs.solve(House(), seed=0)
    assert house.optimal
    assert house.value == pytest.approx(alone.value)
    assert house.states == alone.states
    assert house.steps % 3 == 0
    assert house.plan.run(House(), episodes=5, seed=3).returns.min() == 1


@pytest.mark.parametrize(
    "mode", [AutoresetMode.SAME_STEP, pytest.param(AutoresetMode.DISABLED, marks=pytest.mark.slow)]
)
def test_autoreset_modes_give_equal_results(house, mode):
    other = solved(mode=mode)
    assert other.traces == house.traces
    assert other.machines == house.machines
    assert other.guarantee == house.guarantee


def test_equal_seeds_give_equal_results(house):
    again = solved()
    assert again.traces == house.traces
    assert again.history == house.history


@pytest.mark.slow
def test_environments_in_other_processes_give_equal_results(house):
    other = rs.solve(AsyncVectorEnv([House] * 3), seed=0)
    assert other.traces == house.traces


def test_a_batched_environment_is_solved():
    envs = gym.make_vec("resolvent/House-v0", num_envs=2, vectorization_mode="vector_entry_point")
    assert rs.solve(envs, seed=0).optimal


def test_different_missions_of_one_vector_are_distinguished():
    solution = solved(TwoMissions, 4)
    assert solution.optimal
    assert solution.plan.run(TwoMissions(), episodes=30, seed=1).returns.min() == 1


def test_labels_may_be_reported_by_a_method(house):
    solution = solved(lambda: ToldByMethod(House()))
    assert solution.traces == house.traces
    with pytest.raises(rs.TraceError, match=r"get_events\(\) cannot report the label"):
        solved(lambda: ToldByMethod(House()), mode=AutoresetMode.SAME_STEP)


def test_a_budget_is_kept():
    solution = solved(budget=50)
    assert solution.steps == 45
    assert solution.guarantee.reason == "budget"
    with pytest.raises(rs.OptionError, match="one step in each of the 3 environments"):
        solved(budget=2)


def test_episodes_are_truncated():
    solution = solved(lambda: TMaze(10), 2, budget=200, max_steps=6)
    assert max(len(trace.actions) for trace in solution.traces) == 6
    assert "truncated" in solution.why_stopped


@pytest.mark.parametrize("then", [3, 1])
def test_a_vector_run_resumes(tmp_path, house, then):
    part = solved(budget=90, folder=tmp_path / "part")
    env = House() if then == 1 else SyncVectorEnv([House] * then)
    with _cut_if(then == 1, "the earlier run had 3 environments, this one has 1"):
        solution = rs.solve(env, resume=tmp_path / "part")
    assert solution.optimal
    assert solution.value == pytest.approx(house.value)
    assert solution.steps > part.steps
    assert list(solution.traces[: part.guarantee.episodes]) == list(
        part.traces[: part.guarantee.episodes]
    )


def _cut_if(some_are, message):
    return pytest.warns(rs.errors.ResumeWarning, match=message) if some_are else nullcontext()


@pytest.mark.slow
def test_several_environments_resume_from_one(house):
    part = rs.solve(House(), budget=60)
    with pytest.warns(
        rs.errors.ResumeWarning, match="the earlier run had 1 environment, this one has 3"
    ):
        solution = solved(resume=part)
    assert solution.optimal
    assert solution.value == pytest.approx(house.value)
    with pytest.warns(rs.errors.ResumeWarning):
        more = solved(resume=part, budget=200)
    assert solved(resume=more).traces == solution.traces


class Breaks(gym.Wrapper):
    """A house that gives NaN once, at some step of all that are taken in any of them."""

    taken, at = 0, -1

    def step(self, action):
        *shown, info = self.env.step(action)
        Breaks.taken += 1
        if Breaks.taken == self.at:
            shown[1] = float("nan")
        return *shown, info


def unlabelled_maze():
    return Unlabelled(TMaze(6))


class TestResuming:
    """Whoever is stopped and goes on finds the same as whoever never stopped."""

    @pytest.mark.parametrize(
        ("make", "first_point"),
        [
            (House, 500),
            (House, 40),
            (TwoMissions, 40),
            (unlabelled_maze, 150),
            pytest.param(lambda: gym.make("resolvent/TwoKeys-v0"), 500, marks=pytest.mark.slow),
        ],
    )
    @pytest.mark.parametrize(
        "mode",
        [
            AutoresetMode.NEXT_STEP,
            *(
                pytest.param(one, marks=pytest.mark.slow)
                for one in (AutoresetMode.SAME_STEP, AutoresetMode.DISABLED)
            ),
        ],
    )
    def test_from_any_step(self, tmp_path, monkeypatch, make, first_point, mode):
        loop = import_module("resolvent.exploration.solve")
        monkeypatch.setattr(loop, "FIRST_CHECKPOINT", first_point)
        whole = solved(make, mode=mode)
        rng, folder = np.random.default_rng(0), tmp_path / "solved"
        for _ in range(2):
            resume = None
            for budget in [*sorted(rng.integers(3, whole.steps, 2).tolist()), 100_000]:
                parts = solved(make, mode=mode, budget=budget, resume=resume, folder=folder)
                resume = folder
            assert parts.machines == whole.machines
            assert parts.traces == whole.traces
            assert parts.guarantee == whole.guarantee
            assert parts.history == whole.history

    @pytest.mark.slow
    def test_in_other_processes(self, house):
        part = rs.solve(AsyncVectorEnv([House] * 3), seed=0, budget=300)
        assert rs.solve(AsyncVectorEnv([House] * 3), resume=part).traces == house.traces

    @pytest.mark.parametrize("at", [100, 101, 102])
    def test_after_a_failure(self, house, at):
        """Whichever of them fails, the step of all of them together is as if it was not taken."""
        Breaks.taken, Breaks.at = 0, at
        message = rf"environment {(at - 1) % 3}: step \d+: the reward is nan"
        with pytest.raises(rs.errors.EnvironmentFailed, match=message) as failed:
            solved(lambda: Breaks(House()))
        assert failed.value.solution.steps == 99
        solution = solved(lambda: Breaks(House()), resume=failed.value.solution)
        assert solution.traces == house.traces
        assert solution.history == house.history

    def test_episodes_that_cannot_be_restored_are_truncated(self):
        class Unseeded(TwoMissions):
            draws = np.random.default_rng(1)

            def reset(self, *, seed=None, options=None):
                return super().reset(seed=int(self.draws.integers(1 << 30)), options=options)

        part = solved(Unseeded, 3, budget=30)
        with pytest.warns(
            rs.errors.ResumeWarning, match="unfinished episodes? could not be restored"
        ):
            solution = solved(Unseeded, 3, resume=part)
        assert solution.optimal
        assert solution.plan.run(TwoMissions(), episodes=20, seed=1).returns.min() == 1

    def test_episodes_that_do_not_fit_the_traces_are_refused(self, house):
        for places in (house.places[:-1], (7, *house.places[1:])):
            with pytest.raises(rs.errors.ModelError, match="its episodes do not match its traces"):
                solved(resume=replace(house, places=places))


def test_a_stochastic_vector_continues_in_one_environment():
    solution = solved(Coin, 2, budget=700)
    assert solution.guarantee.reason == "stochastic"
    assert solution.steps == 630


class Together(gym.vector.VectorEnv):
    """Resets all its environments together."""

    num_envs = 2
    single_observation_space = gym.spaces.Discrete(3)
    single_action_space = gym.spaces.Discrete(2)
    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012


def test_environments_that_cannot_be_reset_one_by_one_are_refused():
    with pytest.raises(rs.OptionError, match="Together, which may reset all its environments"):
        rs.solve(Together())


class TestSeveralEpisodesAtOnce:
    """`Explorer` in a loop of one's own, with `which`."""

    @pytest.mark.parametrize("count", [2, 5])
    def test_episodes_share_what_they_learn(self, count):
        envs = [TwoMissions() for _ in range(count)]
        explorer = rs.Explorer(envs[0], seed=0)
        shown = [env.reset(seed=number) for number, env in enumerate(envs)]
        taken = np.zeros(count, int)
        while not explorer.done:
            for which, env in enumerate(envs):
                action = explorer.act(*shown[which], which=which)
                if action is None:
                    shown[which] = env.reset()
                    continue
                *came, terminated, truncated, info = env.step(action)
                explorer.learn(action, *came, terminated, truncated, info, which=which)
                taken[which] += 1
                shown[which] = env.reset() if terminated else (came[0], info)
                if explorer.done:
                    break
        assert explorer.guarantee().reason == "optimal"
        assert explorer.steps == taken.sum()
        assert taken.min() > 0
        assert explorer.plan().run(TwoMissions(), episodes=20, seed=1).returns.min() == 1

    def test_each_environment_has_its_own_episode(self):
        explorer = rs.Explorer(TwoMissions(), seed=0)
        envs = TwoMissions(), TwoMissions()
        for which, env in enumerate(envs):
            explorer.act(*env.reset(seed=which), which=which)
        explorer.learn(0, *envs[0].step(0), which=0)
        explorer.learn(1, *envs[1].step(1), which=1)
        assert [trace.observations for trace in explorer.traces()] == [
            ("desk", "west"),
            ("desk", "east"),
        ]
        with pytest.raises(rs.TraceError, match=r"act\(\) got another observation"):
            explorer.act("east", {"labels": ()}, which=0)

    def test_learning_before_an_episode_begins_is_refused(self):
        explorer = rs.Explorer(House())
        explorer.act(*House().reset(), which=0)
        with pytest.raises(rs.OptionError, match=r"learn\(\) before act\(\)"):
            explorer.learn(0, 0, 0.0, False, False, {"labels": ()}, which=1)
