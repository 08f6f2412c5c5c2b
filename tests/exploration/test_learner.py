"""Environments without labels: those that the learner makes, and the statement about them."""

import gymnasium as gym
import pytest

import resolvent as rs
from resolvent.exploration import learner
from resolvent.worlds import House, TMaze
from worlds_to_explore import Unlabelled


class Lamp(gym.Env):
    """Two switches, and nothing to see: the first turns on a lamp, and then the second dims it.

    Leaving pays 1 where the lamp is on, and 2 where it is dimmed.
    """

    action_names = ("first", "second", "leave")

    def __init__(self):
        self.action_space, self.observation_space = gym.spaces.Discrete(3), gym.spaces.Discrete(1)

    def reset(self, *, seed=None, options=None):
        self.light = 0
        return 0, {}

    def step(self, action):
        if action == 2:
            return 0, float(self.light), True, False, {}
        self.light += action == self.light
        return 0, 0.0, False, False, {}


@pytest.mark.parametrize(
    ("make", "value"), [(House, 0.95**5), (lambda: TMaze(10), 0.95**10)], ids=["house", "t-maze"]
)
def test_labels_are_made_of_observations(make, value):
    solved = rs.solve(Unlabelled(make()), seed=0, budget=5_000)
    assert solved.optimal
    assert solved.value == pytest.approx(value)
    assert solved.machines.preprocessor.labeling.reads == "observation"
    assert solved.why_stopped.endswith("labels: each observation is a separate event")


def test_actions_are_labels_if_observations_do_not_suffice():
    solved = rs.solve(Lamp(), seed=0, budget=2_000)
    assert solved.optimal
    assert solved.value == pytest.approx(2 * 0.95**2)
    assert solved.states["reward"] == 3
    assert solved.machines.preprocessor.labeling.reads in ("action", "action+observation")


@pytest.fixture
def few(monkeypatch):
    """Have events looked for wherever there is anything to test, and again soon."""
    monkeypatch.setattr("resolvent.exploration.learner.MANY_TRANSITIONS", 1)
    monkeypatch.setattr("resolvent.exploration.learner.NEXT_AFTER_NONE", 1.5)


def test_a_few_events_are_discovered_and_kept(few):
    solved = rs.solve(Unlabelled(TMaze(10)), seed=4, budget=5_000)  # where it takes long enough
    assert solved.optimal
    assert solved.value == pytest.approx(0.95**10)
    events = solved.machines.preprocessor.labeling.events
    assert events is not None
    assert 0 < len(events) < len(solved.traces.observations)
    assert f"labels: {len(set(events.values()))} event" in solved.why_stopped
    assert solved.plan.run(Unlabelled(TMaze(10)), episodes=10, seed=4).returns.min() == 1


@pytest.mark.slow
def test_events_that_no_longer_explain_the_steps_are_dropped(few, monkeypatch):
    """After 64 steps one room seems to be the only event, which is wrong."""
    found, discover = [], learner._discover_events

    def noted(*given):
        found.append(discover(*given))
        return found[-1]

    monkeypatch.setattr(learner, "_discover_events", noted)
    solved = rs.solve(Unlabelled(House()), seed=1, budget=5_000)
    (first, *_) = [events for events in found if events is not None]
    assert first[0].labeling != solved.machines.preprocessor.labeling
    assert solved.optimal
    assert solved.value == pytest.approx(0.95**5)


@pytest.mark.parametrize("make", [Lamp, pytest.param(House, marks=pytest.mark.slow)])
def test_a_resumed_run_reads_the_same_labels(few, tmp_path, make):
    world = (lambda: Unlabelled(House())) if make is House else make
    whole = rs.solve(world(), seed=0, budget=5_000)
    for budget in (1, whole.steps // 2, whole.steps - 1):
        rs.solve(world(), seed=0, budget=budget, folder=tmp_path / str(budget))
        again = rs.solve(world(), seed=0, budget=5_000, resume=tmp_path / str(budget))
        assert again.machines == whole.machines
        assert again.traces == whole.traces
        assert again.guarantee == whole.guarantee
