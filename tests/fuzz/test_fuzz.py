"""A few hundred damaged inputs for each reader and call: a result, or a `ResolventError`."""

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from fuzz.mutations import damaged, damaged_json
from fuzz.running import Counts, Worker, fails_again
from fuzz.targets import Call, Reader, targets
from fuzz.trying import CORPUS, attempt, attempt_files, files_of, tried

TESTS = Path(__file__).parents[1]
NAMES = sorted(targets())
SLOW = {
    "inference", "solved-folder", "call-solve", "call-evidence", "machines-used", "strangers",
    "call-report", "call-resumed",
}  # fmt: skip


def fuzz(*arguments):
    paths = [str(TESTS), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, "-m", "fuzz", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("half", [0, 1])
def test_every_input_is_accepted_or_refused(half):
    quick = [name for name in NAMES if name not in SLOW][half::2]
    slow = sorted(SLOW)[half::2]
    for names, inputs in ((quick, 250), (slow, 40)):
        chosen = [part for name in names for part in ("--target", name)]
        done = fuzz(*chosen, "--inputs", str(inputs))
        assert done.returncode == 0, done.stdout + done.stderr


def test_inputs_are_reproducible():
    for name, target in targets().items():
        if isinstance(target, Reader) and name not in SLOW:
            assert files_of(target, 3, 5) == files_of(target, 3, 5)
            many = {tuple(files_of(target, 3, number).values()) for number in range(8)}
            assert len(many) > 1, name


@pytest.mark.parametrize(
    ("error", "where"),
    [
        (RecursionError, "RecursionError"),
        (MemoryError, "MemoryError"),
        (UserWarning, "UserWarning"),
    ],
)
def test_any_other_exception_is_a_failure(error, where):
    def fails():
        raise error("no")

    outcome = tried(fails, ())
    assert outcome.kind == "failed"
    assert outcome.where.startswith(where)
    assert tried(fails, (error,)).kind == "refused"


def test_a_crash_is_counted_and_the_next_input_is_tried(tmp_path, monkeypatch):
    """By hand: a worker whose process has ended in its third input goes on with the fourth."""
    begun = []
    monkeypatch.setattr(Worker, "begin", lambda self: begun.append(dict(self.first)))
    counts = Counts()
    worker = Worker(["jsonl"], 0, counts, tmp_path)
    worker.process = type("Ended", (), {"exitcode": -11})()
    worker.lost((0, 2))
    assert counts.outcomes == {"jsonl": {"failed": 1}}
    assert worker.first == {"jsonl": 3}
    (place,) = counts.failures
    assert place == "jsonl: jsonl ends the process with code -11"
    assert (tmp_path / "jsonl-0-2" / "traces").read_bytes() == files_of(targets()["jsonl"], 0, 2)[
        "traces"
    ]


def test_an_input_that_no_longer_fails_is_fixed():
    good = "PYTHONPATH=tests python -m fuzz --target jsonl --seed 0 --number 4"
    bad = "PYTHONPATH=tests python -m fuzz --target no-such-target --seed 0 --number 4"
    counts = Counts(
        outcomes={"jsonl": {"failed": 5, "result": 7}},
        failures={
            "jsonl: here": {"times": 2, "replay": [good]},
            "jsonl: there": {"times": 3, "replay": [good, bad]},
        },
    )
    counts.try_again(fails_again)
    assert counts.outcomes == {"jsonl": {"failed": 3, "fixed": 2, "result": 7}}
    assert list(counts.failures) == ["jsonl: there"]
    assert counts.fixed == {"jsonl: here": {"times": 2, "replay": [good]}}
    assert (counts.inputs, counts.failed) == (12, 3)


def test_a_single_input_can_be_run_again():
    done = fuzz("--target", "jsonl", "--seed", "0", "--number", "4")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0] in ("result", "refused")


def test_damage_depends_only_on_the_seed_and_keeps_the_original():
    value = {"a": [1, 2, {"b": "c"}], "d": 1.5}
    assert damaged_json(Random(1), value) == damaged_json(Random(1), value)
    assert value == {"a": [1, 2, {"b": "c"}], "d": 1.5}
    assert damaged(Random(1), b"some bytes") == damaged(Random(1), b"some bytes")
    assert len({damaged(Random(seed), b"some bytes") for seed in range(50)}) > 25


def test_valid_inputs_are_read(tmp_path):
    """Were all refused, nothing behind the first check would be tried: some of each pass."""
    for name, target in targets().items():
        if name in SLOW or isinstance(target, Call):
            continue
        outcomes = (attempt(target, 0, number, tmp_path) for number in range(400))
        assert any(outcome.kind == "result" for outcome in outcomes), name


def test_the_corpus_is_small_and_belongs_to_readers():
    files = [one for one in CORPUS.rglob("*") if one.is_file()]
    assert sum(one.stat().st_size for one in files) < 300_000
    assert {one.name for one in CORPUS.iterdir()} <= set(NAMES)
    for one in sorted(CORPUS.glob("*/*")):
        assert isinstance(targets()[one.parent.name], Reader)
    assert attempt_files  # each of them is tried by the fuzzer itself, before all others
