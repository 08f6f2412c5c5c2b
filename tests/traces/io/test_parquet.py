import datetime
import io
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from resolvent.errors import TraceError
from resolvent.traces import Trace, TraceSet
from resolvent.traces.io.parquet import read_parquet, write_parquet
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
        return read_parquet(tmp_path / "f.parquet", columns=columns)

    return read


def test_rows_become_traces(read):
    assert read(table()) == TRACES


def test_the_table_written():
    file = io.BytesIO()
    write_parquet(TRACES, file)
    written = pq.read_table(file)
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
    with (tmp_path / "f.parquet").open("wb") as file:
        write_parquet(traces, file)
    written = pq.read_table(tmp_path / "f.parquet")
    assert written.column_names == [*NAMES[:5], *NAMES[6:], "cost", "fault"]
    assert written["cost"].to_pylist() == [5, 6, None]
    assert written.schema.metadata[b"resolvent.columns"] == b'["cost","fault"]'
    assert read_parquet(tmp_path / "f.parquet") == traces
    # A column that somebody took out is not asked for.
    pq.write_table(written.drop_columns(["fault"]), tmp_path / "f.parquet")
    assert list(read_parquet(tmp_path / "f.parquet").columns) == ["cost"]


def test_files_of_one_folder_have_the_same_columns(tmp_path):
    for name, one in (("a", table()), ("b", table(drop=["reward"]))):
        pq.write_table(one, tmp_path / f"{name}.parquet")
    with pytest.raises(TraceError, match=r"b\.parquet: no rewards, but .*a\.parquet has: give"):
        read_parquet(tmp_path)


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


def test_episodes_named_by_strings_come_in_order_of_first_sight(read):
    assert read(table(episode=["z", "z", "z", "a", "a"])) == TRACES


def test_whole_rewards(read):
    rewards = read(table(reward=[0, 1, None, 1, None])).rewards
    assert list(map(repr, rewards)) == ["0.0", "1.0"]


def test_a_folder_s_files_in_order_of_their_names(tmp_path):
    for name, trace in (("b.parquet", TRACES[0:1]), ("a.parquet", TRACES[1:2])):
        with (tmp_path / name).open("wb") as file:
            write_parquet(trace, file)
    (tmp_path / "README.txt").write_text("not traces")
    reported = []
    assert read_parquet(tmp_path, reported.append) == TRACES[::-1]
    assert reported == [0.0, 0.5]


def test_a_folder_without_parquet_files(tmp_path):
    with pytest.raises(TraceError, match=r"is a folder without \.parquet files"):
        read_parquet(tmp_path)


@settings(max_examples=40, deadline=None)
@given(traces=trace_sets(any_columns=True))
def test_round_trip(tmp_path_factory, traces):
    path = tmp_path_factory.mktemp("parquet") / "traces.parquet"
    with path.open("wb") as file:
        write_parquet(traces, file)
    assert read_parquet(path) == traces


@pytest.mark.parametrize("observations", [[(1, "a"), (2, "b")], [(1, 2.5), (2, 3.5)], [2**70, 1]])
def test_symbols_no_column_can_hold(observations):
    traces = TraceSet([Trace(observations, [[], []], ["up"], [0])])
    with pytest.raises(TraceError, match=r"the observations cannot be .* write jsonl"):
        write_parquet(traces, io.BytesIO())


OWN = table(cost=COSTS).replace_schema_metadata({"resolvent.columns": '["cost"]'})

BAD = {
    "null cost": (
        OWN.set_column(8, "cost", [[5, None, None, 5, None]]),
        "episode 0, step 1: the cost is null: only the last row",
    ),
    "cost at the end": (
        OWN.set_column(8, "cost", [[5, 6, 7, 5, None]]),
        "episode 0, step 2: the cost is 7 on the episode's last row",
    ),
    "cost of dates": (
        OWN.set_column(8, "cost", [[day and datetime.date(2024, 1, day) for day in COSTS]]),
        "episode 0, step 0: the cost: a date cannot be a symbol",
    ),
    "names that are none": (
        OWN.replace_schema_metadata({"resolvent.columns": "cost"}),
        "`resolvent.columns` is no list of names: make the file again",
    ),
    "names that are no text": (
        OWN.replace_schema_metadata({b"resolvent.columns": b'["\xbe"]'}),
        "`resolvent.columns` is no list of names: make the file again",
    ),
    "two of one name": (
        OWN.append_column("cost", [COSTS]),
        "there are several columns `cost`: rename all but one",
    ),
    "no rows": (table().slice(0, 0), "holds no traces"),
    "missing column": (table(drop=["action"]), r"no column `action`: .* this file has episode, st"),
    "no final row": (
        table(ROWS[:2] + ROWS[3:]),
        r"episode 0, step 1: the action is 0 on the episode's last row: end each episode with",
    ),
    "null action": (with_cell(1, "action", None), "episode 0, step 1: the action is null: only"),
    "null reward": (with_cell(3, "reward", None), "episode 1, step 0: the reward is null: only"),
    "reward at the end": (with_cell(4, "reward", 1.0), "episode 1, step 1: the reward is 1.0 on"),
    "null observation": (with_cell(1, "observation", None), "step 1: the observation is null"),
    "null episode": (with_cell(1, "episode", None), "row 1: the episode is null"),
    "null step": (with_cell(2, "step", None), "row 2: the step is null"),
    "gap": (with_cell(2, "step", 3), "episode 0: step 3 stands where step 2 should"),
    "repeat": (with_cell(2, "step", 1), "episode 0: step 1 stands where step 2 should"),
    "no start": (table(ROWS[1:]), "episode 0: step 1 stands where step 0 should"),
    "one step": (
        table([*ROWS, (2, 0, "hall", [], None, None, True, False)]),
        "episode 2: the trace has one observation and no action",
    ),
    "NaN": (with_cell(1, "reward", float("nan")), "episode 0, step 1: the reward: nan cannot"),
    "infinity": (with_cell(1, "reward", float("inf")), "step 1: the reward: inf cannot"),
    "text rewards": (
        table(reward=["1", "1", None, "1", None]),
        "`reward` is of type string: rewards must be num",
    ),
    "text steps": (table(step=["1"] * 5), "`step` is of type string: steps must be integers"),
    "number flags": (table(truncated=[0] * 5), "`truncated` is of type int64: use booleans"),
    "not text": (
        table(observation=pa.array([b"\xff"] * 5).view(pa.string())),
        "a text is not in UTF-8",
    ),
    "dates": (
        table(observation=[datetime.date(2024, 1, 1)] * 5),
        "episode 0, step 0: the observation: a date cannot be a symbol",
    ),
    "null inside": (
        table(observation=[[1], [2], [None], [1], [1]]),
        "episode 0, step 2: the observation: a NoneType cannot be a symbol",
    ),
    "null proposition": (
        table(label=[[], ["a", None], [], [], []]),
        "episode 0, step 1: None cannot be a proposition",
    ),
    "empty proposition": (
        table(label=[[], [], [], [], ["a", ""]]),
        "episode 1, step 1: a proposition of a label is the empty string",
    ),
    "number labels": (table(label=[0.5] * 5), "episode 0, step 0: 0.5 cannot be a proposition"),
    "nested labels": (table(label=[[["a"]]] * 5), r"episode 0, step 0: \['a'\] cannot be"),
}


@pytest.mark.parametrize(("one", "message"), BAD.values(), ids=BAD)
def test_bad_tables_say_where_and_what(read, one, message):
    with pytest.raises(TraceError, match=rf"f\.parquet: .*{message}") as caught:
        read(one)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("length", [4, 100, -10])
def test_a_damaged_file(tmp_path, length):
    path = tmp_path / "f.parquet"
    pq.write_table(table(), path)
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(TraceError, match=r"f\.parquet: cannot be read as Parquet") as caught:
        read_parquet(path)
    assert "\n" not in str(caught.value)


def test_types_that_differ_between_files(tmp_path):
    pq.write_table(table(), tmp_path / "a.parquet")
    pq.write_table(table(observation=[1] * 5), tmp_path / "b.parquet")
    with pytest.raises(TraceError, match=r"b\.parquet, joined .*: observations: .*1 is an int"):
        read_parquet(tmp_path)
