"""Every command writes the same bytes, whatever hash seed, threads and order of files."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "every_command.py"


def written(folder, hash_seed, threads, order, *more):
    """What all commands leave in a folder, by name."""
    folder.mkdir()
    subprocess.run(
        [sys.executable, str(SCRIPT), str(folder), str(threads), str(order), *more],
        env=os.environ | {"PYTHONHASHSEED": str(hash_seed), "NO_COLOR": "1", "COLUMNS": "100"},
        check=True,
        capture_output=True,
    )
    return {
        str(one.relative_to(folder)): one.read_bytes()
        for one in sorted(folder.rglob("*"))
        if one.is_file()
    }


def assert_same(one, other):
    assert list(one) == list(other)
    assert [name for name in one if one[name] != other[name]] == []


def test_bytes_do_not_depend_on_hash_seed_threads_or_order_of_files(tmp_path):
    first = written(tmp_path / "first", 0, 1, 0)
    assert {"machines.json", "scanned.json", "plan.json", "house.parquet", "shown"} <= set(first)
    assert first["shown"]
    assert_same(first, written(tmp_path / "second", 1, 4, 5))


@pytest.mark.slow
def test_twenty_hash_seeds_and_every_command(tmp_path):
    first = written(tmp_path / "first", 0, 1, 0, "all")
    assert {"report.html", "policy.json", "exact.json", "solved/solved.json"} <= set(first)
    for seed in range(1, 20):
        found = written(tmp_path / str(seed), seed, 1 + seed % 4, seed, "all")
        assert_same(first, found)
