"""Symbols are translated back into values of an environment."""

from collections import OrderedDict
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from resolvent.rl.env import SymbolEncoder
from resolvent.worlds import House


class Taking(gym.Env[Any, Any]):
    def __init__(self, space: spaces.Space[Any]) -> None:
        self.observation_space = self.action_space = space


@pytest.mark.parametrize(
    "space",
    [
        spaces.Discrete(5),
        spaces.Discrete(5, start=3),
        spaces.MultiDiscrete([3, 4]),
        spaces.MultiDiscrete([[3, 4], [2, 2]]),
        spaces.MultiBinary(3),
        spaces.Box(-1, 1, (2, 2), np.float64),
        spaces.Box(-1, 1, (3,), np.float32),
        spaces.Text(4),
        spaces.Tuple([spaces.Discrete(2), spaces.MultiBinary(2)]),
        spaces.Dict({"b": spaces.Discrete(2), "a": spaces.Tuple([spaces.Discrete(3)])}),
    ],
    ids=str,
)
def test_a_symbol_is_translated_back_into_its_value(space: spaces.Space[Any]) -> None:
    space.seed(0)
    names = SymbolEncoder(Taking(space), "action")
    for _ in range(20):
        value = space.sample()
        again = names.value(names(value))
        assert space.contains(again)
        assert names(again) == names(value)
        if isinstance(value, np.ndarray):
            assert np.array_equal(value, again)
            assert value.dtype == again.dtype
        elif not isinstance(value, dict | OrderedDict | tuple):
            assert value == again


def test_names_are_translated_back_into_numbers() -> None:
    names = SymbolEncoder(House(), "action")
    assert [names.value(name) for name in House.action_names] == [0, 1, 2, 3, 4]
    assert names.value(3) == 3
