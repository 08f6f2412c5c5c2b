import datetime
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from resolvent.errors import TraceError
from resolvent.traces import Trace, TraceSet, read_traces
from strategies import trace_sets

ROWS = [
    # episode, step, observation, label, action, reward, terminated, truncated
    (0, 0, "hall", [], 1, 0.0, False, False),
    (0, 1, "attic", ["key", "cat"], 0, 0.5, False, False),
    (0, 2, "hall", [], None, None, True, False),
    (1, 0, "hall", [], 1, 0.5, False, False),
    (1, 1, "attic", ["key"], None, None, False, True),
]
NAMES = ["episode", "step", "observation", "label", "action", "reward", "terminated", "truncated"]
TRACES = TraceSet(
    [
        Trace(["hall", "attic", "hall"], [[], ["cat", "key"], []], [1, 0], [0, 0.5], True),
        Trace(["hall", "attic"], [[], ["key"]], [1], [0.5], False, True),
    ]
)


def table(rows=ROWS, drop=(), **columns):
    values = dict(zip(NAMES, map(list, zip(*rows, strict=True)), strict=True)) | columns
    return pa.table({name: column for name, column in values.items() if name not in drop})


def with_cell(row, name, value):
    rows = [list(values) for values in ROWS]
    rows[row][NAMES.index(name)] = value
    return table(rows)


@pytest.fixture
def read(tmp_path):
    def read(one, columns=()):
        pq.write_table(one, tmp_path / "f.parquet", row_group_size=2)
        return read_traces(tmp_path / "f.parquet", columns=columns)

    return read


def test_rows_become_traces(read):
    assert read(table()) == TRACES


def test_the_table_written(tmp_path):
    TRACES.save(tmp_path / "f.parquet")
    written = pq.read_table(tmp_path / "f.parquet")
    assert written.column_names == NAMES
    sorted_labels = [(*row[:3], sorted(row[3]), *row[4:]) for row in ROWS]
    assert [tuple(row.values()) for row in written.to_pylist()] == sorted_labels
    assert written["label"].type == pa.list_(pa.string())


def test_rows_in_any_order_and_other_columns(read):
    shuffled = random.Random(0).sample(ROWS, len(ROWS))
    assert shuffled != ROWS
    assert read(table(shuffled, info=[None] * len(ROWS))) == TRACES


COSTS = [5, 6, None, 5, None]


def test_rewards_may_be_left_out(read):
    traces = read(table(drop=["reward"]))
    assert [trace.rewards for trace in traces] == [None, None]
    assert traces[0].actions == TRACES[0].actions


def test_other_columns_of_a_table_count_when_they_are_named(read):
    one = table(cost=COSTS, **{"a.b": [True, False, None, True, None]})
    assert read(one) == TRACES
    assert [trace.columns for trace in read(one, ("cost",))] == [{"cost": (5, 6)}, {"cost": (5,)}]
    both = read(one, ("a.b", "cost"))
    assert list(both.columns) == ["reward", "a.b", "cost"]
    assert both[0].columns["a.b"] == (True, False)
    message = "f.parquet: the traces have no column `cots`: there are cost, a.b"
    with pytest.raises(TraceError, match=message):
        read(one, ("cots",))


def test_written_columns_are_read_unasked(tmp_path):
    columns = {"fault": [True, False], "cost": [5, 6]}
    traces = TraceSet([Trace([0, 1, 0], [[]] * 3, "ab", columns=columns, terminated=True)])
    traces.save(tmp_path / "f.parquet")
    written = pq.read_table(tmp_path / "f.parquet")
    assert written.column_names == [*NAMES[:5], *NAMES[6:], "cost", "fault"]
    assert written["cost"].to_pylist() == [5, 6, None]
    assert written.schema.metadata[b"resolvent.columns"] == b'["cost","fault"]'
    assert read_traces(tmp_path / "f.parquet") == traces
    # A column that somebody took out is not asked for.
    pq.write_table(written.drop_columns(["fault"]), tmp_path / "f.parquet")
    assert list(read_traces(tmp_path / "f.parquet").columns) == ["cost"]


def test_files_of_one_folder_have_the_same_columns(tmp_path):
    for name, one in (("a", table()), ("b", table(drop=["reward"]))):
        pq.write_table(one, tmp_path / f"{name}.parquet")
    with pytest.raises(TraceError, match=r"a\.parquet has `reward`, and .*b\.parquet does not"):
        read_traces(tmp_path)


def test_flags_may_be_left_out_or_null_or_on_any_row(read):
    unflagged = read(table(drop=("terminated", "truncated")))
    assert unflagged.terminated.tolist() == unflagged.truncated.tolist() == [False, False]
    assert read(table(terminated=[None] * 5)).terminated.tolist() == [False, False]
    flags = [None, True, False, False, None]
    assert read(table(terminated=flags)).terminated.tolist() == [True, False]


@pytest.mark.parametrize(
    "labels",
    [
        pa.array([None, "a", "b", None, "a"]),
        pa.array([None, "a", "b", None, "a"]).dictionary_encode(),
        pa.array([[], ["a"], ["b"], None, ["a"]], pa.large_list(pa.large_string())),
        pa.array([[], ["a", "a"], ["b"], [], ["a"]]),
    ],
)
def test_spellings_of_labels(read, labels):
    assert [trace.labels for trace in read(table(label=labels))] == [
        (frozenset(), frozenset("a"), frozenset("b")),
        (frozenset(), frozenset("a")),
    ]


def test_labels_that_are_numbers(read):
    for labels in ([None, 4, 4, None, 4], [[], [4], [4], [], [4]]):
        assert list(read(table(label=labels)).labels) == [frozenset(), frozenset({"4"})]


def test_labels_that_hold_the_separator(read):
    labels = [["\x1f"], ["a", "b"], ["a\x1fb"], [], []]
    assert list(read(table(label=labels)).label_codes) == [1, 3, 2, 0, 0]


@pytest.mark.parametrize(
    ("column", "symbols"),
    [
        (pa.array([1, 2, 1, 2, 1], pa.uint8()), [1, 2]),
        (pa.array([0.0, -0.0, 1.5, 0.0, 1.5]), [0.0, 1.5]),
        (pa.array([True, False, True, False, True]), [False, True]),
        (pa.array(["b", "a", "b", "a", "b"]).dictionary_encode(), ["a", "b"]),
        (pa.array([[1, 2], [0, 1], [1, 2], [0, 1], []]), [(), (0, 1), (1, 2)]),
        (pa.array([[[1.0], [2.0]]] * 5), [((1.0,), (2.0,))]),
        (pa.array([{"b": 1, "a": [2]}] * 5), [(("a", (2,)), ("b", 1))]),
    ],
)
def test_kinds_of_observations(read, column, symbols):
    assert repr(list(read(table(observation=column)).observations)) == repr(symbols)


def test_episodes_named_by_texts_come_in_the_order_of_the_texts(read):
    assert read(table(episode=["z", "z", "z", "a", "a"])) == TRACES[::-1]


def test_rewards_and_flags_may_be_numbers_in_other_types(read):
    assert read(table(reward=["0", "0.5", None, "0.5", None])) == TRACES
    assert read(table(truncated=[0, 0, 0, 0, 1])) == TRACES


def test_whole_rewards(read):
    rewards = read(table(reward=[0, 1, None, 1, None])).rewards
    assert list(map(repr, rewards)) == ["0.0", "1.0"]


def test_a_folder_s_files_in_order_of_their_names(tmp_path):
    for name, trace in (("b.parquet", TRACES[0:1]), ("a.parquet", TRACES[1:2])):
        trace.save(tmp_path / name)
    (tmp_path / "README.txt").write_text("not traces")
    reported = []
    assert read_traces(tmp_path, progress=reported.append) == TRACES[::-1]
    assert reported == [0.0, 0.5, 1.0]


def test_a_folder_without_parquet_files(tmp_path):
    with pytest.raises(TraceError, match=r"is a folder without \.parquet files"):
        read_traces(tmp_path)


@settings(max_examples=40, deadline=None)
@given(traces=trace_sets(any_columns=True))
def test_round_trip(tmp_path_factory, traces):
    path = tmp_path_factory.mktemp("parquet") / "traces.parquet"
    if len(traces):
        traces.save(path)
        assert read_traces(path) == traces


@pytest.mark.parametrize("observations", [[(1, "a"), (2, "b")], [(1, 2.5), (2, 3.5)], [2**70, 1]])
def test_symbols_no_column_can_hold(observations):
    traces = TraceSet([Trace(observations, [[], []], ["up"], [0])])
    with pytest.raises(TraceError, match=r"the observations cannot be .* write jsonl"):
        traces.to_arrow()


OWN = table(cost=COSTS).replace_schema_metadata({"resolvent.columns": '["cost"]'})

BAD = {
    "null cost": (
        OWN.set_column(8, "cost", [[5, None, None, 5, None]]),
        "row 1: the column `cost` has no value: give it one; only the last row",
    ),
    "cost at the end": (
        OWN.set_column(8, "cost", [[5, 6, 7, 5, None]]),
        "row 2: the cost is 7 in the last row of episode 0: end each episode with",
    ),
    "cost of dates": (
        OWN.set_column(8, "cost", [[day and datetime.date(2024, 1, day) for day in COSTS]]),
        "row 0, column `cost`: a date cannot be a symbol",
    ),
    "names that are none": (
        OWN.replace_schema_metadata({"resolvent.columns": "cost"}),
        "`resolvent.columns` is not a list of names: make the file again",
    ),
    "names that are no text": (
        OWN.replace_schema_metadata({b"resolvent.columns": b'["\xbe"]'}),
        "`resolvent.columns` is not a list of names: make the file again",
    ),
    "two of one name": (
        OWN.append_column("cost", [COSTS]),
        "there are several columns `cost`: rename all but one",
    ),
    "no rows": (table().slice(0, 0), "holds no traces: the table has no rows"),
    "missing column": (table(drop=["action"]), r"no column `action`: .* this file has episode, st"),
    "no final row": (
        table(ROWS[:2] + ROWS[3:]),
        r"row 1: the action is 0 in the last row of episode 0: end each episode with",
    ),
    "null action": (with_cell(1, "action", None), "row 1: the column `action` has no value"),
    "null reward": (with_cell(3, "reward", None), "row 3: the column `reward` has no value"),
    "reward at the end": (with_cell(4, "reward", 1.0), "row 4: the reward is 1.0 in the last row"),
    "null observation": (with_cell(1, "observation", None), "row 1, column `observation`: no"),
    "null episode": (with_cell(1, "episode", None), "row 1: the column `episode` has no value"),
    "null step": (with_cell(2, "step", None), "row 2: the column `step` has no value"),
    "missing step": (
        with_cell(2, "step", 3),
        "row 2: step 3 of episode 0, not the expected step 2",
    ),
    "repeated step": (with_cell(2, "step", 1), "row 2: the same `step` and `episode` as .* row 1"),
    "no start": (table(ROWS[1:]), "row 0: step 1 of episode 0, not the expected step 0"),
    "one step": (
        table([*ROWS, (2, 0, "hall", [], None, None, True, False)]),
        "row 5: episode 2 has this one row",
    ),
    "NaN": (with_cell(1, "reward", float("nan")), "row 1, column `reward`: the reward is nan"),
    "infinity": (with_cell(1, "reward", float("inf")), "row 1, column `reward`: the reward is inf"),
    "text steps": (table(step=["1"] * 5), "the same `step` and `episode`"),
    "steps that are texts": (table(step=list("01201")), "`step` is of type .*: use integers"),
    "not text": (
        table(observation=pa.array([b"\xff"] * 5).view(pa.string())),
        "a text is not in UTF-8",
    ),
    "dates": (
        table(observation=[datetime.date(2024, 1, 1)] * 5),
        "row 0, column `observation`: a date cannot be a symbol",
    ),
    "null inside": (
        table(observation=[[1], [2], [None], [1], [1]]),
        "row 2, column `observation`: a NoneType cannot be a symbol",
    ),
    "null proposition": (
        table(label=[[], ["a", None], [], [], []]),
        "row 1, column `label`: None cannot be a proposition",
    ),
    "empty proposition": (
        table(label=[[], [], [], [], ["a", ""]]),
        "row 4, column `label`: a proposition of a label is the empty string",
    ),
    "number labels": (table(label=[0.5] * 5), "row 0, column `label`: 0.5 cannot be a proposition"),
    "nested labels": (table(label=[[["a"]]] * 5), r"row 0, column `label`: \['a'\] cannot be"),
}


@pytest.mark.parametrize(("one", "message"), BAD.values(), ids=BAD)
def test_bad_tables_say_where_and_what(read, one, message):
    with pytest.raises(TraceError, match=rf"f\.parquet[:, ].*{message}") as caught:
        read(one)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("length", [4, 100, -10])
def test_a_damaged_file(tmp_path, length):
    path = tmp_path / "f.parquet"
    pq.write_table(table(), path)
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(TraceError, match=r"f\.parquet: cannot be read as Parquet") as caught:
        read_traces(path)
    assert "\n" not in str(caught.value)


def test_types_that_differ_between_files(tmp_path):
    pq.write_table(table(), tmp_path / "a.parquet")
    pq.write_table(table(observation=[1] * 5), tmp_path / "b.parquet")
    with pytest.raises(TraceError, match=r"b\.parquet, joined .*: observations: .*1 is an int"):
        read_traces(tmp_path)
