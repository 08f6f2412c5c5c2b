"""Laws at length: batches hold, counts go on where they stopped, and what is wrong is noticed."""

import importlib.util
import sys
from pathlib import Path

import pytest

PATH = Path(__file__).parents[2] / "benchmarks" / "small_machines.py"


@pytest.fixture(scope="module")
def small_machines():
    spec = importlib.util.spec_from_file_location("small_machines", PATH)
    module = importlib.util.module_from_spec(spec)
    sys.modules["small_machines"] = module
    spec.loader.exec_module(module)
    return module


def test_the_laws_hold_for_a_few_batches(small_machines):
    held = [small_machines.check(number) for number in (0, 5, 30)]
    assert all(one["explains all traces"] == 16 for one in held)
    assert sum(one["is the true machine"] for one in held) > 0
    assert small_machines.drawn(7) == small_machines.drawn(7)


def test_a_wrong_machine_is_detected(small_machines):
    batch = next(one for one in map(small_machines.drawn, range(50)) if one.complete)
    names = [name for name, one in batch.targets.items() if len(one.step) > 1]
    found = small_machines.rs.infer(
        small_machines.traces_of(batch),
        outputs=[names[0]],
        options=small_machines.rs.InferenceOptions(supplement=False),
    )
    machine = next(iter(found.machines.values()))
    small_machines._is_the_truth(machine, batch.targets[names[0]], names[0])
    others = [one for one in batch.targets.values() if len(one.step) != machine.states]
    with pytest.raises(AssertionError):
        small_machines._is_the_truth(machine, others[0], names[0])


def test_counts_are_saved_and_continued(small_machines, tmp_path):
    counts = small_machines.Counts.read(tmp_path / "counts.json")
    counts.machines, counts.next_batch = 32, 2
    counts.write(tmp_path / "counts.json")
    assert vars(small_machines.Counts.read(tmp_path / "counts.json")) == vars(counts)
