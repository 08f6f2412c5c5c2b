"""The search for a reward goes on, and finds what a few invisible events lead to."""

from itertools import permutations

import gymnasium as gym
import numpy as np
import pytest

import resolvent as rs
from resolvent.exploration import reward_search
from resolvent.exploration.shortening import shortest_rewarded
from sparse_worlds import HiddenButtons, KeyAndChest, SwitchCode


def explored(env, steps):
    """Return the state of an explorer after some steps."""
    explorer = rs.Explorer(env, seed=0)
    shown = env.reset(seed=0)
    while explorer.steps < steps and not explorer.done:
        action = explorer.act(*shown)
        if action is None:
            shown = env.reset()
            continue
        observation, *_, info = step = env.step(action)
        explorer.learn(action, *step)
        shown = env.reset() if step[2] or step[3] else (observation, info)
    return explorer.state


@pytest.fixture(scope="module")
def searching():
    """Return the state of a search in which no reward was found so far."""
    state = explored(HiddenButtons(4, (0, 15), exit_at=3, is_strict=True), 110)
    assert state.all_rewards_equal
    return state


def test_invisible_actions_are_the_first_candidates(searching):
    groups = reward_search.candidate_groups(searching.model)
    press = {(place, 4) for place in searching.model.label_of}
    assert set(groups[0]) == press
    bumps, visits, queries = groups[1:]
    assert len(bumps) == 16  # four cells at each wall
    assert set(visits) == {(place, reward_search.ANY_ACTION) for place, _ in press}
    assert len(queries) == 16 * 5


def test_passes_of_a_tour_contain_every_order(searching):
    rng, episode = np.random.default_rng(0), searching.episodes[0]
    model = searching.model
    episode.row = next(iter(model.starts))
    for _ in range(20):
        walk = reward_search._Walk(searching, episode, rng)
        (press, *_), walk.candidates.groups = walk.candidates.groups, walk.candidates.groups[:1]
        walk.tour()
        queries = [(model.augmented_states[row][0], action) for row, action in walk.steps]
        pressed = [query for query in queries if query in press]
        assert set(pressed) == set(press)
        for order in permutations(range(16), min(len(pressed) // 16, 2)):
            rest = iter(place for place, _ in pressed)
            assert all(place in rest for place in order)
    searching.selection.candidates = None


def test_steps_of_the_search_are_known_ones(searching):
    model, episode = searching.model, searching.episodes[0]
    episode.row = next(iter(model.starts))
    for _ in range(50):
        path = reward_search.search_on(searching, episode)
        row = episode.row
        for expected, action in path.steps:
            assert row == expected
            row = model.next_row[row][action]
        searching.config = rs.exploration.state.LearnerConfig(
            0.95, searching.config.seed + 1, None, 0.0, None
        )


class Empty(gym.Env):
    """A ring of rooms in which nothing is to be had."""

    def __init__(self):
        self.action_space, self.observation_space = gym.spaces.Discrete(2), gym.spaces.Discrete(5)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 0
        return 0, {}

    def step(self, action):
        self.place = (self.place + 2 * action - 1) % 5
        return self.place, 0.0, False, False, {}


@pytest.mark.parametrize("options", [{}, {"reward_range": (0, 1)}, {"states": 3}])
def test_the_whole_budget_is_spent_without_a_reward(options):
    solved = rs.solve(Empty(), budget=700, **options)
    assert solved.guarantee.reason == "budget"
    assert solved.steps >= 0.9 * 700  # the rest of the budget is played


def test_two_hidden_buttons_are_found():
    env = HiddenButtons(5, (0, 18))
    for seed in range(2):
        solved = rs.solve(env, budget=20_000, seed=seed)
        assert solved.optimal
        assert solved.value == pytest.approx(0.95**11)  # after 4 + 1 + 6 steps


def test_a_rewarded_episode_is_shortened():
    state = explored(HiddenButtons(5, (0, 18)), 2_500)
    assert [len(script.actions) for script in shortest_rewarded(state)] == [12]


def test_the_search_is_resumed_where_it_was(tmp_path):
    env = HiddenButtons(5, (0, 24), is_strict=True)
    whole = rs.solve(env, budget=2_600, seed=1)
    part = rs.solve(env, budget=1_300, seed=1)
    part.save(tmp_path / "part")
    resumed = rs.solve(env, budget=2_600, resume=tmp_path / "part")
    assert resumed.traces == whole.traces
    assert resumed.history == whole.history


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "value"),
    [
        (lambda: HiddenButtons(is_strict=True), 0.95**13),
        (SwitchCode, 0.95**23),
        (KeyAndChest, 0.95**43),
    ],
)
def test_rare_rewards_are_found_in_most_runs(make, value):
    solved = [rs.solve(make(), budget=60_000, seed=seed) for seed in range(3)]
    assert sum(each.value == pytest.approx(value) for each in solved) >= 2
