"""Files and row groups as columns: what tuples of them would hold, in less."""

import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import resolvent as rs
from resolvent.traces.scan.listing import StoredFile
from resolvent.traces.scan.packed import PackedFiles, PackedFingerprints, PackedRowGroups, Texts
from resolvent.traces.scan.row_groups import Fingerprint, RowGroup

names = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@given(st.lists(names, min_size=1, max_size=6))
def test_texts_are_what_was_put_in(texts):
    packed = Texts.of(texts)
    assert [packed[number] for number in range(len(packed))] == texts


def test_paths_may_hold_any_bytes():
    name = b"logs/\xff\xfe-\xc3\xa9".decode("utf-8", "surrogateescape")
    assert Texts.of([name, "logs/a"])[0] == name


@given(st.lists(st.builds(StoredFile, names, names, st.sampled_from([None, "s3://a", "s3://b"]))))
def test_files_are_what_was_put_in(files):
    packed = PackedFiles.of(files)
    assert list(packed) == files
    assert packed[1:3] == tuple(files[1:3])


@given(
    st.lists(
        st.builds(Fingerprint, st.integers(-1, 2**60), st.none() | st.integers(0, 2**60) | names)
    )
)
def test_fingerprints_are_those_packed(fingerprints):
    assert list(PackedFingerprints.of(fingerprints)) == fingerprints
    assert list(map(type, PackedFingerprints.of(fingerprints))) == [Fingerprint] * len(fingerprints)


def test_what_is_beyond_the_end_is_refused():
    packed = PackedFiles.of([StoredFile("a", "/a"), StoredFile("b", "/b")])
    assert packed[-1].name == "b"
    for sequence in (
        packed,
        PackedFingerprints.of([Fingerprint(1, 2)] * 2),
        PackedRowGroups.of([RowGroup(0, 0, 0, 1)]),
    ):
        with pytest.raises(IndexError):
            sequence[2]


def test_a_piece_more_is_a_few_dozen_bytes_more_and_no_object(tmp_path):
    table = pa.table({"run": np.arange(3), "event": ["a", "b", "a"], "out": [0, 1, 0]})
    for number in range(40):
        runs = table.set_column(0, "run", pa.array(np.arange(3) + 3 * number))
        pq.write_table(runs, tmp_path / f"part-{number:05}.parquet")
    files = sorted(tmp_path.iterdir())
    words = {"episode": "run", "input": "event", "output": "out"}
    few, many = (rs.scan_traces(files[:count], **words) for count in (20, 40))
    for one in (few, many):
        for number in range(len(one)):
            one.read(number)  # what is found then is sent as well
    sent = [pickle.dumps(one, protocol=5) for one in (few, many)]
    assert (len(sent[1]) - len(sent[0])) / 20 < 110
    buffers: list[pickle.PickleBuffer] = []
    beside = [
        len(pickle.dumps(one, protocol=5, buffer_callback=buffers.append)) for one in (few, many)
    ]
    assert beside[1] - beside[0] < 20  # all that grows are arrays, which Ray does not copy
    again = pickle.loads(sent[1])  # noqa: S301
    assert again.files == many.files
    assert [again.fingerprint(number) for number in range(40)] == [
        many.fingerprint(n) for n in range(40)
    ]
    assert again.read(39)[0].actions == many.read(39)[0].actions
