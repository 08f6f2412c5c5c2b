"""What `solve` does with the episodes that it plays at the end."""

import gymnasium as gym
import pytest

import resolvent as rs
from resolvent.exploration import play
from resolvent.rl.run_plan import Runs
from resolvent.worlds import House, TMaze
from worlds_to_explore import Coin


class Counted(gym.Wrapper):
    """Counts the steps of an environment."""

    steps = 0

    def step(self, action):
        self.steps += 1
        return super().step(action)


class RareTrap(gym.Env):
    """Pays 1 for the second of two actions, but every so many episodes only for the first one."""

    observation_space, action_space = gym.spaces.Discrete(2), gym.spaces.Discrete(2)
    episodes = 0

    def __init__(self, period):
        self.period = period

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {"labels": set()}

    def step(self, action):
        self.episodes += 1
        is_trap = self.episodes % self.period == 0
        return 1, float((action == 1) != is_trap), True, False, {"labels": set()}


@pytest.fixture(scope="module")
def house():
    return rs.solve("resolvent/House-v0", seed=0)


def test_a_deterministic_plan_is_paid_its_value(house):
    assert house.paid.mean == pytest.approx(house.value)
    assert house.paid.low <= house.paid.mean <= house.paid.high
    assert house.paid.episodes == play.MAX_EPISODES
    assert house.doubt is None
    assert str(house).startswith("paid  ")
    assert house.as_dict()["paid"] == house.paid.as_dict()


def test_what_was_paid_is_saved(house, tmp_path):
    house.save(tmp_path / "house")
    assert rs.Solution.load(tmp_path / "house").paid == house.paid


@pytest.mark.parametrize(
    ("make", "budget"), [(House, 60), (House, 2_000), (Coin, 400), (lambda: TMaze(10), 3_000)]
)
def test_all_steps_are_within_the_budget(make, budget):
    env = Counted(make())
    solution = rs.solve(env, budget=budget)
    assert solution.steps < env.steps <= budget
    assert solution.paid.episodes > 0


def test_what_is_paid_does_not_change_what_is_learned(house, monkeypatch):
    monkeypatch.setattr(play, "MAX_EPISODES", 3)
    other = rs.solve("resolvent/House-v0", seed=0)
    assert other.paid.episodes == 3
    assert other.traces == house.traces


def test_a_contradiction_while_playing_is_learned_from():
    solution = rs.solve(RareTrap(700), budget=2_000)
    assert solution.guarantee.reason == "stochastic"
    assert solution.steps > 1_000
    assert solution.paid.low < 699 / 700 < solution.paid.high
    assert solution.value < 1


def test_a_contradiction_without_steps_left_ends_the_guarantee():
    solution = rs.solve(RareTrap(700), budget=740)
    assert solution.guarantee.reason == "contradicted"
    assert "the plan does not hold in fresh episodes: episode" in solution.why_stopped
    assert not solution.optimal


def test_an_interruption_while_playing_keeps_the_solution(house, monkeypatch):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("resolvent.rl.run_plan.run", interrupt)
    solution = rs.solve("resolvent/House-v0", seed=0)
    assert solution.paid is None
    assert solution.guarantee == house.guarantee
    assert "not played" in str(solution)


def test_a_budget_too_small_to_play():
    solution = rs.solve(House(), budget=9)
    assert solution.paid is None
    assert solution.steps == 9


def test_the_runs_of_a_plan_say_what_is_paid(house):
    runs = house.plan.run(House(), episodes=20, seed=3)
    assert isinstance(runs, Runs)
    assert runs.paid.mean == pytest.approx(runs.discounted_returns.mean())


def test_the_interval_is_within_what_rewards_allow():
    solution = rs.solve(gym.make("FrozenLake-v1"), budget=800)
    assert solution.paid.low >= 0  # no reward is below 0
    assert solution.bound == float("inf")
    assert "no bound on the optimum is known" in solution.why_stopped
