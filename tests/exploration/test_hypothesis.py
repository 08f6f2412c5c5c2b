"""Environments whose machines grow with nearly every step: inference, repair and plans."""

from itertools import pairwise

import gymnasium as gym
import numpy as np
import pytest

import resolvent as rs
from resolvent.exploration.buffer import TERMINATED, Buffer
from resolvent.exploration.hypothesis import (
    MORE_STEPS,
    Hypothesis,
    explains,
    predicts_endings,
)
from resolvent.exploration.tables import QueriedSteps, TransitionTables
from resolvent.preprocess.timing import LabelTiming


class Song(gym.Env):
    """One of two tunes is played note by note, and whoever names its first note again is paid."""

    notes = 12

    def __init__(self):
        self.action_space, self.observation_space = gym.spaces.Discrete(2), gym.spaces.Discrete(4)
        self.tunes = np.random.default_rng(5).integers(0, 4, (2, self.notes))
        self.tunes[:, 0] = 0, 1

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.tune, self.at = self.tunes[int(self.np_random.integers(2))], 0
        return int(self.tune[0]), {}

    def step(self, action):
        self.at += 1
        right = 1.0 if action == self.tune[0] else -1.0
        return int(self.tune[self.at]), right, self.at == self.notes - 1, False, {}


class Welcome(gym.Env):
    """One room that pays whoever stays, but only for so long; to leave is always worth a little."""

    def __init__(self, long: int = 12):
        self.action_space, self.observation_space = gym.spaces.Discrete(2), gym.spaces.Discrete(2)
        self.long = long

    def reset(self, *, seed=None, options=None):
        self.stayed = 0
        return 0, {}

    def step(self, action):
        if action == 1:
            return 1, 0.5, True, False, {}
        self.stayed += 1
        return 0, 1.0 if self.stayed <= self.long else -1.0, False, False, {}


def test_memorized_tunes_need_few_thorough_inferences(monkeypatch):
    thorough, repairs = [], []
    rethink, repair = Hypothesis.relearn, Hypothesis.repair

    def rethought(beliefs, *, last=False):
        if not last:
            thorough.append(beliefs.buffer.steps)
        return rethink(beliefs, last=last)

    def repaired(beliefs):
        repairs.append(beliefs.buffer.steps)
        return repair(beliefs)

    monkeypatch.setattr(Hypothesis, "relearn", rethought)
    monkeypatch.setattr(Hypothesis, "repair", repaired)
    solved = rs.solve(Song(), budget=3_000)
    assert solved.optimal
    best = sum(0.95**step for step in range(Song.notes - 1))
    paid = solved.plan.run(Song(), episodes=10, seed=3).discounted_returns
    assert paid == pytest.approx(np.full(10, best))
    assert len(repairs) > 2 * len(thorough)
    assert all(later >= MORE_STEPS * one for one, later in pairwise(thorough))


def test_a_cyclic_plan_is_executed_until_later_rewards_are_negligible():
    solved = rs.solve(Welcome(), budget=3_000)
    best = sum(0.95**step for step in range(12)) + 0.5 * 0.95**12
    assert solved.optimal
    paid = solved.plan.run(Welcome(), episodes=1, max_steps=200).discounted_returns
    assert paid[0] == pytest.approx(best)


def _told_by(moves):
    """One episode that stays in a room twice and ends with the second time, and such machines."""
    log = Buffer([0])
    room, still = log.observations.code("room"), log.labels.code("still")
    bell = log.labels.code("bell")
    episode = log.begin(0, room, still)
    episode.step(0, 0.0, room, bell)
    episode.step(0, 0.0, room, still)
    log.close(0, TERMINATED)
    both = np.array(moves, np.int32), np.zeros((1, 2), np.int32)
    tables = TransitionTables(("transition", "reward"), both, LabelTiming.CURRENT)
    return tables, QueriedSteps(log.columns(), tables)


@pytest.mark.parametrize(("moves", "expected"), [([[0, 0]], False), ([[0, 1], [1, 1]], True)])
def test_endings_are_predicted_by_the_states_of_machines(moves, expected):
    tables, steps = _told_by(moves)
    assert explains(tables, steps)
    assert predicts_endings(tables, steps) is expected


def test_several_environments_begin_with_different_actions():
    def first(which):
        return [explorer.act(0, {}, one) for one in which]

    explorer = rs.Explorer(gym.make("resolvent/OfficeCoffee-v0"), seed=0)
    together = first(range(12))
    assert len(set(together)) > 1
    explorer = rs.Explorer(gym.make("resolvent/OfficeCoffee-v0"), seed=0)
    assert first([0]) == together[:1]
