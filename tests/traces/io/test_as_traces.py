"""What `infer` takes as traces, and what it says of anything else."""

import gymnasium as gym
import pyarrow as pa
import pytest

import resolvent as rs


@pytest.fixture(scope="module")
def house():
    return rs.collect(gym.make("resolvent/House-v0"), episodes=20, seed=0)


def test_a_path_is_read(house, tmp_path):
    house.save(tmp_path / "h.parquet")
    assert rs.infer(tmp_path / "h.parquet").machines == rs.infer(house).machines
    assert rs.infer(str(tmp_path / "h.parquet")).machines == rs.infer(house).machines


def test_further_columns_of_a_path_are_read_if_they_are_outputs(tmp_path):
    line = '{"observations":[0,1],"labels":[null,null],"actions":[5],"cost":[3]}\n'
    (tmp_path / "t.jsonl").write_text(line)
    assert list(rs.infer(tmp_path / "t.jsonl", outputs=["cost"]).machines) == ["cost"]


def test_single_traces_are_a_set(house):
    assert rs.infer(list(house)).machines == rs.infer(house).machines
    assert rs.infer(trace for trace in house).machines == rs.infer(house).machines


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "there are no traces to infer from"),
        (
            pa.table({"a": [1]}),
            "a Table has columns whose roles are unknown: read it with rs.read_table",
        ),
        (rs.Trace([0, 1], [None, None], ["go"]), "give a list of them"),
        ([7], "a value of type list with a int is not a set of traces: give a TraceSet"),
        (7, "a value of type int is not a set of traces: give a TraceSet"),
        (None, "a value of type NoneType is not a set of traces"),
        ("nowhere.parquet", "nowhere.parquet does not exist"),
    ],
)
def test_anything_else_ends_in_one_line(given, message):
    with pytest.raises(rs.TraceError, match=message) as caught:
        rs.infer(given)
    assert "\n" not in str(caught.value)


def test_a_data_frame_is_told_about_read_table():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(
        rs.TraceError, match=r"a DataFrame has columns whose roles .* rs\.read_table"
    ):
        rs.infer(pandas.DataFrame({"a": [1]}))
