"""Records: by machine, compared by content, and written as JSON values."""

from dataclasses import dataclass

import numpy as np
import pytest

from resolvent._util.records import ByMachine, ByValue, builtin, to_builtins


def test_records_of_machines_name_the_machines_that_there_are():
    class States(ByMachine[int]):
        @property
        def _by_name(self):
            return {"transition": 7, "reward": 2}

    assert (States()["reward"], len(States()), list(States())) == (2, 2, ["transition", "reward"])
    with pytest.raises(KeyError, match="'rewards': the machines are 'transition', 'reward'"):
        States()["rewards"]


def test_records_with_arrays_are_compared_by_content():
    @dataclass(frozen=True, eq=False)
    class Rewards(ByValue):
        rewards: np.ndarray

    zero, also_zero, one = (Rewards(np.array([number, np.nan])) for number in (0, 0, 1))
    assert zero == also_zero  # NaN counts as equal to itself
    assert hash(zero) == hash(also_zero)
    assert zero != one


def test_fields_may_have_other_names_and_may_be_left_out():
    @dataclass
    class Step:
        labels: tuple[frozenset[str], ...]
        reward: float
        row: int | None = None

    step = Step((frozenset({"key"}),), 1.5)
    assert to_builtins(step, names={"reward": "r"}, optional=["row"]) == {
        "labels": [["key"]],
        "r": 1.5,
    }
    assert to_builtins(step, ["row"]) == {"row": None}


def test_sets_are_sorted_and_infinity_is_none():
    value = {"gap": float("inf"), "states": (0, 2), "label": frozenset({"b", "a"})}
    assert builtin(value) == {"gap": None, "states": [0, 2], "label": ["a", "b"]}
