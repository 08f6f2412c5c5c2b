"""Arrow columns: dictionary indices of damaged files."""

import shutil
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import resolvent as rs
from resolvent.errors import DamagedFile
from resolvent.traces.io.arrow import check_dictionaries

CORPUS = Path(__file__).parents[2] / "fuzz" / "corpus" / "scanned-folder"
DAMAGED = CORPUS / "dictionary-index-without-value" / "part" / "a.parquet"
"""A file with one bit flipped: three actions, and an index of a fourth."""


@pytest.fixture
def folder(tmp_path):
    shutil.copy(DAMAGED, tmp_path / "b.parquet")
    return tmp_path


def test_an_index_without_a_value_is_an_error_of_one_line(folder):
    message = r"b\.parquet, .*`action` has the dictionary index 3, but 3 values: .* looks damaged"
    with pytest.raises(DamagedFile, match=message):
        list(rs.scan_traces(folder))


def test_a_file_with_such_an_index_can_be_skipped(folder):
    walk = rs.Trace(["o1", "o2", "o1"], [None] * 3, ["a1", "a2"])
    rs.TraceSet([walk]).save(folder / "a.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rs.errors.TableWarning)
        source = rs.scan_traces(folder, damaged="skip")
        assert [trace for traces in source for trace in traces] == [walk]


@pytest.mark.parametrize("index", [-1, 2, 2**31 - 1])
def test_indices_are_checked_in_every_chunk(index):
    values = pa.array(["a", "b"])

    def chunk(indices):
        return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), values, safe=False)

    valid = pa.chunked_array(
        [chunk([0, None, 1]), chunk([])], pa.dictionary(pa.int32(), pa.string())
    )
    check_dictionaries(pa.table({"room": valid, "number": np.arange(3)}))
    with pytest.raises(
        DamagedFile, match=rf"`room` has the dictionary index {index}, but 2 values"
    ):
        check_dictionaries(pa.table({"room": pa.chunked_array([chunk([0, 1]), chunk([1, index])])}))
