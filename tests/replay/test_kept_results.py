"""Results that are kept: an inference that was interrupted goes on, with the same bytes."""

import pickle
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import resolvent as rs
from resolvent._util.cache import Store, cached, digest_of, pack, unpack
from resolvent._util.parallel import Threads, Workers
from resolvent.preprocess.labeling import LabelingFunction
from resolvent.preprocess.transform import Preprocessor, RewardLevels
from resolvent.replay.corpus import Corpus, FetchTraces
from resolvent.replay.replaying import MachineTables, ReplayPass
from resolvent.replay.scan import PoolPass, ScanPass
from resolvent.traces.scan.shards import StoredShards
from resolvent.traces.source import InMemorySource, JoinedSource
from worlds import random_world

WORLD = random_world(1, size=9, labels=3, tm_states=3)
PIECES = 6


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("traces")
    for number in range(PIECES):
        WORLD.rollouts(12, number).save(path / f"{number}.parquet")
    return path


@pytest.fixture
def read(monkeypatch):
    """The numbers of the pieces that are read, as they are."""
    numbers, original = [], StoredShards.read

    def counted(self, number, *given):
        numbers.append(number)
        return original(self, number, *given)

    monkeypatch.setattr(StoredShards, "read", counted)
    return numbers


def inferred(folder, path, **options):
    """All that an inference says but how long it took."""
    result = rs.infer(rs.scan_traces(folder), options=rs.InferenceOptions(**options))
    result.machines.save(path / "machines.json")
    return (path / "machines.json").read_bytes(), result.machines, result.warnings


class StopError(Exception):
    """What stands for Ctrl-C, a lost connection, a full disk."""


class Stopping(Workers):
    """Workers that stop after so many pieces."""

    name = "threads"

    def __init__(self, after):
        self.inner, self.left = Threads(1), after

    def _counted(self, work):
        def counted(piece):
            if self.left == 0:
                raise StopError
            self.left -= 1
            return work(piece)

        return counted

    def map(self, work, pieces, **more):
        return self.inner.map(self._counted(work), pieces, **more)

    def map_reduce(self, work, pieces, combine, **more):
        return self.inner.map_reduce(self._counted(work), pieces, combine, **more)

    def map_until(self, *given, **more):
        return self.inner.map_until(*given, **more)


def test_interrupted_anywhere_it_goes_on(folder, tmp_path, read):
    expected = inferred(folder, tmp_path)
    whole = len(read)
    for after in (0, 1, PIECES, PIECES + 3, 2 * PIECES):
        kept = tmp_path / f"kept-{after}"
        read.clear()
        with suppress(StopError):
            first = inferred(folder, tmp_path, cache_dir=kept, on=Stopping(after))
            assert first == expected
        in_vain = len(read)
        read.clear()
        assert inferred(folder, tmp_path, cache_dir=kept) == expected
        assert len(read) <= whole - min(after, in_vain)
        again = len(read)
        read.clear()
        assert inferred(folder, tmp_path, cache_dir=kept) == expected
        assert len(read) <= again


@pytest.mark.usefixtures("ray_of_two")
def test_workers_of_a_cluster_keep_results(folder, tmp_path, read, monkeypatch):
    """Threads find what Ray's workers have kept, and the machines are the same bytes."""
    kept = tmp_path / "kept"
    expected = inferred(folder, tmp_path, on="ray", cache_dir=kept)
    for work in (ScanPass, ReplayPass):
        monkeypatch.setattr(work, "__call__", None)  # nothing is made again
    read.clear()
    assert inferred(folder, tmp_path, cache_dir=kept) == expected


def test_what_is_damaged_is_made_again(folder, tmp_path, read):
    expected = inferred(folder, tmp_path)
    kept = tmp_path / "kept"
    rs.infer(rs.scan_traces(folder), options=rs.InferenceOptions(cache_dir=kept))
    files = sorted(kept.rglob("*.cache"))
    assert len(files) >= 2 * PIECES
    draw = np.random.default_rng(0)
    for file in files:
        content = bytearray(file.read_bytes())
        content[draw.integers(len(content))] ^= 1
        file.write_bytes(content)
    with pytest.warns(rs.errors.ResumeWarning, match="is damaged, or of another version"):
        assert inferred(folder, tmp_path, cache_dir=kept) == expected
    read.clear()
    assert inferred(folder, tmp_path, cache_dir=kept) == expected


def test_a_file_that_changed_is_read_again(tmp_path, read):
    folder, kept = tmp_path / "traces", tmp_path / "kept"
    folder.mkdir()
    for number in range(3):
        WORLD.rollouts(12, number).save(folder / f"{number}.parquet")
    rs.infer(rs.scan_traces(folder), options=rs.InferenceOptions(cache_dir=kept))
    WORLD.rollouts(12, 7).save(folder / "1.parquet")
    expected = inferred(folder, tmp_path)
    read.clear()
    assert inferred(folder, tmp_path, cache_dir=kept) == expected
    assert 1 in read


def test_other_options_do_not_find_them(folder, tmp_path):
    kept = tmp_path / "kept"
    rs.infer(rs.scan_traces(folder), options=rs.InferenceOptions(cache_dir=kept))
    for options in ({"reward_digits": 0}, {"outputs": ["reward"]}):
        expected = inferred(folder, tmp_path, **options)
        assert inferred(folder, tmp_path, cache_dir=kept, **options) == expected


def test_a_seal_has_all_that_traces_depend_on(folder):
    scanned = rs.scan_traces(folder)
    seen = [
        scanned,
        Preprocessor(LabelingFunction("action")).transform_source(scanned),
        Preprocessor(LabelingFunction("observation")).transform_source(scanned),
        Preprocessor(rewards=RewardLevels((0.0, 1.0), 0.1)).transform_source(scanned),
        Preprocessor(discretize=rs.Discretizer(bins=3).fit(np.arange(9.0))).transform_source(
            scanned
        ),
        rs.scan_traces(folder, damaged="skip"),
    ]
    seals = {digest_of(one.fingerprint(number)) for one in seen for number in range(PIECES)}
    assert len(seals) == len(seen) * PIECES
    again = rs.scan_traces(folder)
    assert digest_of(again.fingerprint(2)) == digest_of(scanned.fingerprint(2))
    in_memory = InMemorySource([scanned.read(0)])
    assert in_memory.fingerprint(0) is None
    joined = JoinedSource([scanned, in_memory])
    assert digest_of(joined.fingerprint(2)) == digest_of(scanned.fingerprint(2))
    assert joined.fingerprint(PIECES) is None
    store = Store(str(folder))
    assert cached(ScanPass(in_memory, 1000), store).key(0) is None  # nothing to cache
    assert cached(len, store) is len


def test_a_seal_of_a_table_has_its_words(tmp_path):
    table = pa.table({"run": [1, 1], "do": ["a", "b"], "see": [0, 1], "pay": [0.5, 1.0]})
    pq.write_table(table, tmp_path / "t.parquet")
    words = {"episode": "run", "action": "do", "observation": "see", "reward": "pay"}
    asked = [
        words,
        words | {"final_observation": (1, "x")},
        words | {"outputs": {"paid": "pay"}},
        words | {"terminated": "see"},
    ]
    seals = {digest_of(rs.scan_traces(tmp_path, **one).fingerprint(0)) for one in asked}
    assert len(seals) == len(asked)


def test_each_result_comes_back_as_it_was(folder, tmp_path):
    """What is kept of a piece is, packed again, the same bytes."""
    scanned = rs.scan_traces(folder)
    corpus = Corpus(scanned)
    machines = rs.infer(scanned).machines
    first = np.arange(PIECES)
    works = [
        (ScanPass(scanned, 1000, scanned.rows), 1),
        (PoolPass(scanned, 1000, first), 1),
        (FetchTraces(scanned), (1, np.array([0, 2]))),
        (ReplayPass(corpus.reader, MachineTables.of(machines, corpus.alphabets), True), 1),
    ]
    store = Store(str(tmp_path))
    for work, piece in works:
        kept = pickle.loads(pickle.dumps(cached(work, store)))  # noqa: S301
        assert kept.key(piece) == cached(work, store).key(piece) is not None
        types = work.result_types
        content = pack(work(piece), types)
        back = unpack(content, types)
        assert type(back) is types[0]
        assert pack(back, types) == content


def test_the_command_line(folder, tmp_path, monkeypatch, capsys, read):
    from resolvent.cli import inputs, main

    monkeypatch.setattr(inputs, "REFINE_ABOVE_STEPS", 10)
    arguments = ["infer", str(folder), "--set", "held_out=0", "--cache-dir", str(tmp_path / "kept")]
    machines = tmp_path / "machines.json"
    assert main([*arguments, "-o", str(machines)]) == 0
    content, before = machines.read_bytes(), len(read)
    read.clear()
    assert main([*arguments, "-o", str(machines)]) == 0
    assert machines.read_bytes() == content
    assert len(read) < before
    assert main(["infer", str(folder), "--cache-dir", str(machines)]) == 2
    assert "is a file; name a folder" in capsys.readouterr().err


def test_damaged_files_are_left_out_of_everything(folder, tmp_path, capsys):
    """Machines are those of the files that are left, and the result says what is missing."""
    from resolvent.cli import main

    damaged, left = tmp_path / "damaged", tmp_path / "left"
    for path in (damaged, left):
        path.mkdir()
    for number in range(4):
        WORLD.rollouts(12, number).save(damaged / f"{number}.parquet")
        if number not in (0, 2):
            WORLD.rollouts(12, number).save(left / f"{number}.parquet")
    rows = pq.ParquetFile(damaged / "2.parquet").metadata.num_rows
    content = bytearray((damaged / "2.parquet").read_bytes())
    content[4:400] = b"\xff" * 396
    (damaged / "2.parquet").write_bytes(content)
    (damaged / "0.parquet").write_bytes(b"")
    expected = rs.infer(rs.scan_traces(left))
    for more in ({}, {"cache_dir": tmp_path / "kept"}, {"cache_dir": tmp_path / "kept"}):
        result = rs.infer(
            rs.scan_traces(damaged, damaged="skip"), options=rs.InferenceOptions(**more)
        )
        assert result.machines == expected.machines
        assert (result.traces, result.steps) == (expected.traces, expected.steps)
        warning = result.warnings[0]
        assert warning.kind == "skipped"
        assert warning.figures == {
            "shards": [f"{damaged}/0.parquet", f"{damaged}/2.parquet"],
            "skipped": 2,
            "rows": rows,
            "of_unknown_length": 1,
            "episodes_beside": 0,
        }
        assert warning in result.update(WORLD.rollouts(2, 9)).warnings
    assert main(["infer", str(damaged), "--set", "held_out=0", "--damaged", "skip", "--json"]) == 0
    assert '"skipped"' in capsys.readouterr().out
    assert main(["infer", str(damaged), "--set", "held_out=0"]) != 0
    for number in (1, 3):
        (damaged / f"{number}.parquet").write_bytes(content)
    with pytest.raises(
        rs.errors.DamagedFile, match="there is nothing to infer from: skipped, since"
    ):
        rs.infer(rs.scan_traces(damaged, damaged="skip"))
