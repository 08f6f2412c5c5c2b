"""Episodes left before their first step are in no trace; resuming gives the same result."""

from importlib import import_module

import gymnasium as gym
import pytest

import resolvent as rs
from resolvent.exploration import run
from resolvent.exploration.buffer import FORGOTTEN, Buffer, SymbolIndex
from resolvent.exploration.tests import select_action
from resolvent.traces.vocabulary import Vocabulary

GATES = 90


class Gates(gym.Env):
    """Episodes begin at one of many gates, each of which is seen there alone."""

    observation_space = gym.spaces.Discrete(3 + GATES)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 3 + int(self.np_random.integers(GATES))
        return self.place, {"label": [f"gate {self.place % 5}"]}

    def step(self, action):
        self.place = 0 if self.place > 2 or not action else self.place + 1
        over = self.place == 3
        self.place = min(self.place, 2)
        return self.place, float(over), over, False, {"label": ["end"] if over else []}


@pytest.fixture
def some_are_left(monkeypatch):
    """Have every third gate left, and all gates that show one label."""

    def leaving(state, episode):
        gate = state.buffer.observations.values[episode.recorded.observations[0]]
        if not episode.length and not (gate % 3 and gate % 5):
            return None
        return select_action(state, episode)

    loop = import_module("resolvent.exploration.solve")
    monkeypatch.setattr(loop, "select_action", leaving)
    monkeypatch.setattr(run, "FIRST_CHECKPOINT", 40)


@pytest.mark.parametrize("budget", [50, 130])
def test_a_resumed_run_gives_the_same_result(some_are_left, tmp_path, budget):
    whole = rs.solve(Gates(), budget=1_000)
    rs.solve(Gates(), budget=budget, folder=tmp_path / "part")
    resumed = rs.solve(Gates(), budget=1_000, resume=tmp_path / "part")
    assert resumed.traces == whole.traces
    assert resumed.statement == whole.statement
    assert not any(gate % 3 == 0 for gate in whole.traces.observations if gate > 2)
    assert -1 in whole.point.observations
    assert -1 in whole.point.labels


def test_symbols_without_a_step_are_forgotten_and_keep_their_codes():
    log = Buffer(["go"])
    log.observations, log.labels = SymbolIndex(["left", "here", "under way"]), SymbolIndex(["x"])
    log.begin(0, 1, 0).step(0, 0.0, 1, 0)
    log.close(0, 0)
    log.begin(0, 2, 0)
    log.forget_skipped_starts()
    assert log.observations.values == [FORGOTTEN, "here", "under way"]
    assert log.observations.code("left") == 3
    assert log.labels.values == ["x"]


def test_a_symbol_index_is_restored_from_its_codes():
    seen, vocabulary = SymbolIndex(["left", "b", "a"]), Vocabulary(["a", "b"])
    seen.keep_only([1, 2])
    assert seen.codes_in(vocabulary) == [-1, 1, 0]
    again = SymbolIndex.from_codes(vocabulary, seen.codes_in(vocabulary))
    assert (again.code("b"), again.code("a"), again.code("left")) == (1, 2, 3)
