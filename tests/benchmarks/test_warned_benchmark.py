"""The benchmark of warnings: problems are reproducible, and errors are those of fresh traces."""

import importlib.util
import sys
from pathlib import Path

import pytest

import resolvent as rs

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "warned.py"


@pytest.fixture(scope="module")
def warned():
    spec = importlib.util.spec_from_file_location("warned", BENCHMARK)
    module = importlib.util.module_from_spec(spec)
    sys.modules["warned"] = module  # its dataclass looks itself up there
    spec.loader.exec_module(module)
    yield module
    del sys.modules["warned"]


@pytest.mark.parametrize("seed", [36, 37, 38])
def test_a_row_is_reproducible(warned, seed):
    first, second = (warned.row(warned.problem(seed), seed) for _ in range(2))
    assert first._replace(seconds=0) == second._replace(seconds=0)
    assert first.is_wrong == first.is_warned  # a right one, and two wrong ones
    assert first.is_wrong == (seed != 36)


def test_a_machine_that_knows_nothing_is_wrong(warned):
    drawn = warned.problem(36)
    few = rs.infer(drawn.record(1, 0), outputs=drawn.outputs).machines
    error, _ = warned.errors_of(few, drawn.record(50, 1))
    assert error > warned.WRONG


def test_a_craft_world_is_solved_from_40_rewarded_traces(warned):
    seed, drawn = next(warned.named_problems())
    found = warned.row(drawn, seed)
    assert (found.inferred, found.is_wrong, found.is_warned) == ((1, 3), False, False)
