"""Tables of any layout, read into traces that are written out by hand."""

import warnings

import gymnasium as gym
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import resolvent as rs
from resolvent.traces.io import sources

HOUSE = {
    "episode": "episode",
    "order": "step",
    "observation": "observation",
    "action": "action",
    "reward": "reward",
    "label": "label",
    "terminated": "terminated",
    "truncated": "truncated",
}


@pytest.fixture(scope="module")
def house():
    return rs.collect(gym.make("resolvent/House-v0"), episodes=20, seed=0)


def table(**columns):
    return pa.table(columns)


# Every kind of source.


def test_what_to_arrow_gives_is_read_back(house):
    assert rs.read_table(house.to_arrow(), **HOUSE) == house
    assert rs.read_table(house.to_arrow().to_reader(max_chunksize=7), **HOUSE) == house
    assert rs.read_table(house.to_arrow().combine_chunks().to_batches()[0], **HOUSE) == house


def test_pandas_and_its_rows_in_any_order(house):
    frame = house.to_pandas()
    assert rs.read_table(frame, **HOUSE) == house
    assert rs.read_table(frame.sample(frac=1, random_state=3), **HOUSE) == house


def test_polars(house):
    polars = pytest.importorskip("polars")
    frame = polars.from_arrow(house.to_arrow())
    assert rs.read_table(frame, **HOUSE) == house
    coded = frame.with_columns(polars.col("observation").cast(polars.Categorical))
    assert rs.read_table(coded, **HOUSE) == house


@pytest.mark.parametrize(("name", "delimiter"), [("h.csv", ","), ("h.csv.gz", ";"), ("h", "\t")])
def test_csv(house, tmp_path, name, delimiter):
    frame = house.to_pandas()
    frame["label"] = frame["label"].map("|".join)
    frame.to_csv(tmp_path / name, index=False, sep=delimiter)
    assert rs.read_table(tmp_path / name, **HOUSE, label_separator="|") == house
    assert rs.read_table(str(tmp_path / name), **HOUSE, delimiter=delimiter) == house


def test_parquet_of_another_layout_and_a_folder_of_it(house, tmp_path):
    renamed = {"episode": "run", "step": "t", "observation": "room"}
    whole = house.to_arrow().rename_columns(renamed | {n: n for n in HOUSE.values()} | renamed)
    pq.write_table(whole, tmp_path / "all.parquet")
    roles = HOUSE | {"episode": "run", "order": "t", "observation": "room"}
    assert rs.read_table(tmp_path / "all.parquet", **roles) == house
    (tmp_path / "many").mkdir()
    pq.write_table(whole.slice(0, 30), tmp_path / "many" / "a.parquet")
    pq.write_table(whole.slice(30), tmp_path / "many" / "b.parquet")
    assert rs.read_table(tmp_path / "many", **roles) == house


# What follows an episode's last action.


def test_a_last_row_without_a_step_holds_the_final_observation():
    (trace,) = rs.read_table(
        table(see=["a", "b", "c"], do=[1, 2, None], pay=[0.5, 1, None]),
        observation="see",
        action="do",
        reward="pay",
    )
    assert trace == rs.Trace(["a", "b", "c"], [None] * 3, [1, 2], [0.5, 1])


def test_a_last_step_without_what_followed_is_dropped_with_a_warning():
    rows = table(
        day=[1, 1, 1, 2, 2],
        see=["a", "b", "c", "a", "b"],
        do=[1, 2, 3, 4, None],
        event=[None, "x", "y", None, "z"],
        over=[False, False, True, False, True],
    )
    with pytest.warns(
        rs.errors.TableWarning, match=r"^the last row .* 1 of 2 episodes: .* `do` is dropped"
    ) as caught:
        first, second = rs.read_table(
            rows, episode="day", observation="see", action="do", label="event", terminated="over"
        )
    assert caught[0].filename == __file__
    # That the third step ended the episode is no news of the second one.
    assert first == rs.Trace(["a", "b", "c"], [None, "x", "y"], [1, 2], terminated=False)
    assert second == rs.Trace(["a", "b"], [None, "z"], [4], terminated=True)


def test_next_observation_keeps_the_last_step():
    (trace,) = rs.read_table(
        table(see=["a", "b"], do=[1, 2], then=["b", "c"], event=[None, "x"], over=[0, 1]),
        observation="see",
        action="do",
        next_observation="then",
        label="event",
        terminated="over",
    )
    assert trace == rs.Trace(["a", "b", "c"], [None, "x", None], [1, 2], terminated=True)


def test_next_observation_may_be_all_there_is_of_a_step():
    (trace,) = rs.read_table(
        table(see=["a", "b"], then=["b", "c"]), observation="see", next_observation="then"
    )
    assert trace == rs.Trace(["a", "b", "c"], [None] * 3, ["step", "step"])


def test_a_final_observation_keeps_the_last_step():
    (trace,) = rs.read_table(
        table(x=[1, 2], y=[5, 5], do=["e", "w"], pay=[0, 1]),
        observation=["x", "y"],
        action="do",
        reward="pay",
        final_observation=(0, 0),
    )
    assert trace == rs.Trace([(1, 5), (2, 5), (0, 0)], [None] * 3, ["e", "w"], [0, 1])


def test_without_observations_every_row_is_a_step():
    (trace,) = rs.read_table(
        table(do=["e", "w"], cost=[3, 4], event=["x", "y"]),
        action="do",
        outputs="cost",
        label="event",
    )
    nothing = ["nothing"] * 3
    assert trace == rs.Trace(nothing, ["x", "y", None], ["e", "w"], columns={"cost": [3, 4]})


def test_observations_alone_are_steps_from_one_to_the_next():
    (trace,) = rs.read_table(table(see=[3, 4, 3]), observation="see")
    assert trace == rs.Trace([3, 4, 3], [None] * 3, ["step", "step"])


def test_next_label_is_what_happened_during_the_step():
    (trace,) = rs.read_table(
        table(see=["a", "b", "c"], do=[1, 2, None], event=["x", None, None]),
        observation="see",
        action="do",
        next_label="event",
    )
    assert trace == rs.Trace(["a", "b", "c"], [None, "x", None], [1, 2])


def test_the_last_step_may_say_that_the_table_ends():
    rows = table(see=["a", "b", "c"], do=[1, 2, None], over=[False, True, None])
    (trace,) = rs.read_table(rows, observation="see", action="do", terminated="over")
    assert trace.terminated


# Labels.


@pytest.mark.parametrize(
    ("columns", "label", "separator"),
    [
        ({"e": [None, "key", "door+key"]}, "e", "+"),
        ({"e": ["", "key", " key + door "]}, "e", "+"),
        ({"e": [[], ["key"], ["key", "door"]]}, "e", None),
        ({"key": [False, True, True], "door": [False, False, True]}, ["key", "door"], None),
        ({"key": [0, 1, 1], "door": [0, 0, 1]}, ["key", "door"], None),
    ],
)
def test_every_way_to_write_labels(columns, label, separator):
    (trace,) = rs.read_table(
        table(see=[1, 2, 3], **columns), observation="see", label=label, label_separator=separator
    )
    assert trace.labels == (frozenset(), {"key"}, {"key", "door"})


def test_one_column_of_booleans_is_an_event_by_its_name():
    (trace,) = rs.read_table(
        table(see=[1, 2], alarm=[False, True]), observation="see", label="alarm"
    )
    assert trace.labels == (frozenset(), {"alarm"})


# Episodes and their order.


def test_episodes_come_by_value_and_rows_by_order():
    rows = table(run=["b", "a", "b", "a"], t=[2.5, 9, 1.5, 10], see=["b2", "a1", "b1", "a2"])
    traces = rs.read_table(rows, episode="run", order="t", observation="see")
    assert [trace.observations for trace in traces] == [("a1", "a2"), ("b1", "b2")]


def test_several_columns_tell_episodes_apart_and_order_rows():
    rows = table(
        who=["x", "x", "y", "y", "x", "x"],
        day=[1, 1, 1, 1, 0, 0],
        hour=[2, 1, 1, 1, 1, 1],
        minute=[0, 9, 2, 1, 1, 2],
        see=[1, 2, 3, 4, 5, 6],
    )
    traces = rs.read_table(
        rows, episode=["who", "day"], order=["hour", "minute"], observation="see"
    )
    assert [trace.observations for trace in traces] == [(5, 6), (2, 1), (4, 3)]


@pytest.mark.parametrize(
    "times",
    [
        ["9", "10", "11"],
        ["2024-01-31 23:59:59.5", "2024-02-01T00:00:00", "2024-02-01 00:00:01"],
        ["2024-02-01T01:00:00+02:00", "2024-01-31T23:30:00Z", "2024-02-01T00:00:00Z"],
        ["9.5", "1e2", "1e3"],
    ],
)
def test_times_are_ordered_as_times_and_not_as_text(times):
    rows = table(t=[times[2], times[0], times[1]], see=[2, 0, 1])
    (trace,) = rs.read_table(rows, order="t", observation="see")
    assert trace.observations == (0, 1, 2)


def test_rows_without_an_order_stay_as_they_stand():
    rows = table(run=[2, 1, 2, 1], see=[1, 2, 3, 4])
    traces = rs.read_table(rows, episode="run", observation="see")
    assert [trace.observations for trace in traces] == [(2, 4), (1, 3)]


# Types.


def test_integers_of_pandas_stay_integers_where_one_is_missing():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"see": [1, 2], "do": [7, None], "pay": [1, None]})
    (trace,) = rs.read_table(frame, observation="see", action="do", reward="pay")
    assert repr(trace.actions) == "(7,)"
    assert repr(trace.rewards) == "(1.0,)"


def test_a_column_of_a_csv_has_the_type_of_all_its_values(tmp_path):
    rows = [f"{n},{n},{n % 2 == 0},{n}.5,NA" for n in range(3)] + ["3,x,true,1e3,"]
    (tmp_path / "f.csv").write_text("\n".join(["i,s,b,f,n", *rows]) + "\n")
    (trace,) = rs.read_table(tmp_path / "f.csv", observation=["i", "s", "b", "f"])
    assert repr(trace.observations[1]) == "(1, '1', False, 1.5)"
    assert repr(trace.observations[3]) == "(3, 'x', True, 1000.0)"


@pytest.mark.parametrize(
    "texts",
    [
        ["10000000000000000001", "10000000000000000002"],
        ["10000000000000000001", "0.5"],
        ["9007199254740993", "0.5"],
        ["007", "7"],
        ["007", "8"],
        ["1e3", "1000"],
        ["1e400", "1e500"],
        ["1.0", "1"],
        ["-0", "0"],
        ["0x1", "1"],
        [" 1", "1"],
        ["+1", "1"],
    ],
)
def test_texts_that_differ_stay_different_and_print_as_they_stand(texts, tmp_path):
    (tmp_path / "f.csv").write_text("\n".join(["id", *texts]) + "\n")
    (trace,) = rs.read_table(tmp_path / "f.csv", observation="id")
    assert trace.observations == tuple(texts)
    rows = [f"{text},{n}" for text in texts for n in range(2)]
    (tmp_path / "f.csv").write_text("\n".join(["id,see", *rows]) + "\n")
    assert len(rs.read_table(tmp_path / "f.csv", episode="id", observation="see")) == len(texts)


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        ([" 1", " 2"], "(1, 2)"),
        (["9223372036854775807", "-1"], "(9223372036854775807, -1)"),
        (["1", "2.50"], "(1.0, 2.5)"),
        ([".5", "1e+16"], "(0.5, 1e+16)"),
        (["0.0", "-0.0"], "(0.0, 0.0)"),
    ],
)
def test_numbers_of_a_csv_that_are_not_ambiguous_are_numbers(texts, values, tmp_path):
    (tmp_path / "f.csv").write_text("\n".join(["see", *texts]) + "\n")
    (trace,) = rs.read_table(tmp_path / "f.csv", observation="see")
    assert repr(trace.observations) == values


def test_events_of_a_csv_are_called_as_they_are_written(tmp_path):
    (tmp_path / "f.csv").write_text("see,event\na,1\nb,2.50\nc,\n")
    (trace,) = rs.read_table(tmp_path / "f.csv", observation="see", label="event")
    assert trace.labels == ({"1"}, {"2.50"}, frozenset())


def test_numbers_written_in_several_ways_still_are_rewards_and_flags(tmp_path):
    (tmp_path / "f.csv").write_text("see,pay,over\na,1,0\nb,1.0,0.0\nc,,1\n")
    (trace,) = rs.read_table(tmp_path / "f.csv", observation="see", reward="pay", terminated="over")
    assert (trace.rewards, trace.terminated) == ((1.0, 1.0), True)


@pytest.mark.parametrize(
    "times",
    [
        ["9007199254740992", "9007199254740993", "9007199254740994"],
        ["10000000000000000000001", "10000000000000000000002", "10000000000000000000003"],
        ["9007199254740992.5", "9007199254740993", "1e23"],
        [" 9", "10", "011"],
    ],
)
def test_orders_are_compared_to_the_last_digit(times, tmp_path):
    rows = "\n".join(f"{times[n]},{n}" for n in (2, 0, 1))
    (tmp_path / "f.csv").write_text(f"t,see\n{rows}\n")
    (trace,) = rs.read_table(tmp_path / "f.csv", order="t", observation="see")
    assert trace.observations == (0, 1, 2)


def test_decimals_order_rows_to_the_last_digit():
    times = pa.array([10**22 + 2, 10**22, 10**22 + 1], pa.decimal128(38, 0))
    (trace,) = rs.read_table(table(t=times, see=[2, 0, 1]), order="t", observation="see")
    assert trace.observations == (0, 1, 2)


def test_the_batches_of_a_csv_make_one_column(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "_BLOCK_BYTES", 64)
    texts = [str(n % 7) for n in range(200)] + ["late"]
    (tmp_path / "f.csv").write_text(
        "\n".join(["see,n", *(f"{t},{n}" for n, t in enumerate(texts))])
    )
    told = []
    (trace,) = rs.read_table(tmp_path / "f.csv", observation="see", order="n", progress=told.append)
    assert trace.observations == tuple(texts)
    assert len(told) > 5
    assert told == sorted(told)
    assert told[-1] == 1.0


def test_quoted_fields_may_hold_delimiters_and_ends_of_lines(tmp_path):
    (tmp_path / "f.csv").write_text('\ufeffsee;"to do"\r\n"a;b";1\r\n"two\nlines";\r\n', newline="")
    (trace,) = rs.read_table(tmp_path / "f.csv", observation="see", action="to do")
    assert trace == rs.Trace(["a;b", "two\nlines"], [None, None], [1])


@pytest.mark.parametrize(
    "content",
    [
        b"see,do\ra,1\rb,\r",
        b"\r\rsee,do\ra,1\rb,",
        b"\r\n\nsee,do\r\na,1\r\nb,\r\n",
        b'"see","do"\na,1\nb,\n',
    ],
)
def test_lines_may_end_in_any_way(content, tmp_path):
    (tmp_path / "f.csv").write_bytes(content)
    (trace,) = rs.read_table(tmp_path / "f.csv", observation="see", action="do")
    assert trace == rs.Trace(["a", "b"], [None, None], [1])


def test_a_name_may_hold_the_end_of_a_line(tmp_path):
    (tmp_path / "f.csv").write_bytes(b'see,"to\ndo\n"\na,1\nb,\n')
    (trace,) = rs.read_table(tmp_path / "f.csv", observation="see", action="to\ndo\n")
    assert trace == rs.Trace(["a", "b"], [None, None], [1])


def test_a_text_may_mean_something_although_others_use_it_for_a_missing_value(tmp_path):
    (tmp_path / "f.csv").write_text("see,do\na,NA\nb,\n")
    (trace,) = rs.read_table(tmp_path / "f.csv", observation="see", action="do", missing=[""])
    assert trace.actions == ("NA",)


def test_a_frame_may_hold_other_columns_that_no_table_can():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"see": [1, 2], "odd": [object(), {1}]})
    assert len(rs.read_table(frame, observation="see")) == 1


# Bad input: one line, with the place, the column and what to do.

BAD = {
    "no such column": (
        {"see": [1, 2]},
        {"observation": "sea"},
        "there is no column `sea`: there are see",
    ),
    "an order twice": (
        {"see": [1, 2, 3], "run": ["a", "b", "b"], "t": [5, 5, 5]},
        {"observation": "see", "episode": "run", "order": "t"},
        r"row 2: the same `t` and `run` as row 1, .*: order by a further column",
    ),
    "a missing observation": (
        {"see": [1, None]},
        {"observation": "see"},
        "row 1, column `see`: no value: give it one",
    ),
    "a missing action": (
        {"see": [1, 2, 3], "do": ["a", None, "b"]},
        {"observation": "see", "action": "do"},
        "row 1: the column `do` has no value: .* only the last row",
    ),
    "half a last row": (
        {"see": [1, 2], "do": ["a", None], "pay": [0, 1]},
        {"observation": "see", "action": "do", "reward": "pay"},
        "row 1: the column `do` has no value",
    ),
    "a missing episode": (
        {"see": [1, 2], "run": [1, None]},
        {"observation": "see", "episode": "run"},
        "row 1: the column `run` has no value: every row needs its own",
    ),
    "a missing mark": (
        {"see": [1, 2], "key": [True, None], "door": [True, True]},
        {"observation": "see", "label": ["key", "door"]},
        "row 1, column `key`: no value",
    ),
    "an infinite reward": (
        {"see": [1, 2, 3], "pay": [1.0, float("inf"), None]},
        {"observation": "see", "reward": "pay"},
        "row 1, column `pay`: the reward is inf; rewards must be finite",
    ),
    "an observation that is NaN": (
        {"see": [1.5, float("nan")]},
        {"observation": "see"},
        "row 1, column `see`: nan cannot be a symbol",
    ),
    "an order that is NaN": (
        {"see": [1, 2], "t": [1.0, float("nan")]},
        {"observation": "see", "order": "t"},
        "row 1: `t` is nan, .* give it a finite number",
    ),
    "an order in words": (
        {"see": [1, 2], "t": ["first", "second"]},
        {"observation": "see", "order": "t"},
        "the column `t` holds texts such as 'first', .* convert them, or leave out the order",
    ),
    "a reward in words": (
        {"see": [1, 2, 3], "pay": ["1", "much", None]},
        {"observation": "see", "reward": "pay"},
        "row 1, column `pay`: the reward is 'much'; rewards must be numbers",
    ),
    "an episode of one row": (
        {"see": [1, 2, 3], "run": ["a", "a", "b"], "do": [1, None, 2]},
        {"observation": "see", "episode": "run", "action": "do"},
        "row 2: episode b has this one row, .* leave the episode out",
    ),
    "a flag in the middle of everything": (
        {"see": [1, 2, 3], "t": [3, 2, 1], "over": [False, False, True]},
        {"observation": "see", "order": "t", "terminated": "over"},
        "row 2: `over` is set and the table goes on, .*: name the column that distinguishes episodes",
    ),
    "a flag in words": (
        {"see": [1, 2], "over": ["no", "yes"]},
        {"observation": "see", "terminated": "over"},
        "row 0, column `over`: 'no' is neither true nor false",
    ),
    "a row that does not follow": (
        {"see": [1, 2, 3], "then": [2, 7, 4]},
        {"observation": "see", "next_observation": "then"},
        "row 2: the observation is not the next_observation .* is a row missing",
    ),
    "a final observation of another type": (
        {"see": [1, 2], "do": [1, 2]},
        {"observation": "see", "action": "do", "final_observation": "end"},
        "final_observation: .*'end' is a str, but the first value was an int",
    ),
    "no rows": ({"see": []}, {"observation": "see"}, "the table holds no rows"),
    "a date as observation": (
        {"see": pa.array([1, 2], pa.date32())},
        {"observation": "see"},
        "row 0, column `see`: a date cannot be a symbol",
    ),
}


@pytest.mark.parametrize(("columns", "roles", "message"), BAD.values(), ids=BAD)
def test_bad_tables_say_where_and_what_to_do(columns, roles, message):
    with pytest.raises(rs.TraceError, match=f"^{message}") as caught:
        rs.read_table(table(**columns), **roles)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ({"action": "do"}, "nothing to predict: name a column for observation"),
        ({"outputs": "step"}, "an output cannot be called `step`, .* {'answer': 'step'}"),
        ({"outputs": {"": "o"}}, "cannot be the name of a column"),
        ({"reward": "r", "next_observation": "o"}, "next_observation needs observation"),
        ({"observation": "o", "label": "l", "next_label": "l"}, "leave out one"),
        ({"observation": "o", "next_observation": "o", "final_observation": 1}, "leave out one"),
        (
            {"observation": "o", "label": "l", "label_separator": ""},
            "label_separator='': give a text",
        ),
    ],
)
def test_roles_that_make_no_sense(roles, message):
    with pytest.raises((rs.OptionError, rs.TraceError), match=message):
        rs.read_table(table(o=[1]), **roles)


def test_values_of_several_types_in_a_frame():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"see": [1, None, "b"], "odd": [1j, 2j, 3j]}, dtype=object)
    with pytest.raises(rs.TraceError, match=r"^row 2: the column `see` .* int and here str"):
        rs.read_table(frame, observation="see")
    with pytest.raises(rs.TraceError, match=r"^the column `odd` holds values of type complex"):
        rs.read_table(frame, observation="odd")


def test_integers_of_a_frame_that_no_column_can_hold():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"see": [2**70, 1]})
    with pytest.raises(rs.TraceError, match=r"^the column `see` .* beyond 2\*\*63: convert it"):
        rs.read_table(frame, observation="see")


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view()])
def test_bytes_are_no_symbols(kind):
    rows = table(see=pa.array([b"a", b"b"], kind))
    with pytest.raises(rs.TraceError, match=r"^row 0, column `see`: a bytes cannot be a symbol"):
        rs.read_table(rows, observation="see")


def test_columns_of_a_frame_may_have_numbers_for_names():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([["a", 5, 1], ["b", 6, 0]])
    (trace,) = rs.read_table(frame, order=2, observation=[0, 1])
    assert trace.observations == (("b", 6), ("a", 5))
    (trace,) = rs.read_log(frame, input=0, output=1)
    assert (trace.actions, dict(trace.columns)) == (("a", "b"), {"1": (5, 6)})


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ({"observation": []}, "observation is an empty list: name at least one column"),
        ({"observation": "o", "label": []}, "label is an empty list"),
        ({"observation": "o", "episode": 0.5}, "episode is 0.5, which names no column"),
        ({"observation": "o", "reward": ["o", "o"]}, r"reward is \['o', 'o'\], which names no"),
        ({"observation": ["o", None]}, "observation is None, which names no column"),
    ],
)
def test_names_that_are_none(roles, message):
    with pytest.raises(rs.OptionError, match=f"^{message}"):
        rs.read_table(table(o=[1, 2]), **roles)


BAD_FILES = {
    "rows of other lengths": (
        b"see,do\na,1\nb,2,3\n",
        r", line 3: 3 fields where the header has 2",
    ),
    "such a row of another encoding": (
        b"see,do\na,1\nb,\xff,3\n",
        r", line 3: 3 fields where the header has 2",
    ),
    "a missing value": (b"see,do\na,1\n,2\nc,\n", r", line 3, column `see`: no value"),
    "nothing": (b"", " is empty"),
    "a header alone": (b"see,do\n", " holds no rows"),
    "another encoding": ("see,do\ncafé,1\n".encode("latin-1"), " is not UTF-8: save it as UTF-8"),
    "a name twice": (b"see,see,do\n1,2,3\n", ": there are several columns `see`"),
    "no such column": (b"sea;do\n1;2\n", ": there is no column `see`: there are sea, do"),
    "an open quote": (b'see,"do\na,1\nb,\n', r": a quote in the header is not closed, before 'do"),
    "an open quote at once": (b'"see,do\na,1\n', ": a quote in the header is not closed"),
    "another encoding of names": (b"see,do,caf\xe9\na,1,2\n", " is not UTF-8: save it as UTF-8"),
    "JSON lines": (b'{"observations": []}\n', " looks like JSON lines.*: read it with read_traces"),
    "a damaged gzip": (b"\x1f\x8b\x08\x00broken", " cannot be read as CSV"),
    "a damaged Parquet": (b"PAR1broken", ": cannot be read as Parquet"),
}


@pytest.mark.parametrize(("content", "message"), BAD_FILES.values(), ids=BAD_FILES)
def test_bad_files_say_where_and_what_to_do(content, message, tmp_path):
    (tmp_path / "f.csv").write_bytes(content)
    with pytest.raises(rs.TraceError, match=rf"f\.csv{message}") as caught:
        rs.read_table(tmp_path / "f.csv", observation="see", action="do")
    assert "\n" not in str(caught.value)


def test_one_column_is_no_table():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(rs.TraceError, match=r"^a Series is not a table: give a pandas"):
        rs.read_table(pandas.Series([1, 2], name="see"), observation="see")
    with pytest.raises(rs.TraceError, match=r"^a Int64Array is not a table"):
        rs.read_table(pa.array([1, 2]), observation="see")


def test_what_is_no_table():
    with pytest.raises(rs.TraceError, match=r"^a list is not a table: give a pandas or Polars"):
        rs.read_table([1, 2], observation="see")
    with pytest.raises(rs.TraceError, match=r"nowhere\.csv does not exist"):
        rs.read_table("nowhere.csv", observation="see")
    with pytest.raises(rs.OptionError, match="the delimiter '::' is not one character"):
        rs.read_table(__file__, observation="see", delimiter="::")


def test_to_pandas_has_the_layout_of_parquet(house, tmp_path):
    pandas = pytest.importorskip("pandas")
    house.save(tmp_path / "h.parquet")
    frame = house.to_pandas()
    assert list(frame) == pq.read_schema(tmp_path / "h.parquet").names
    assert len(frame) == house.steps + len(house)
    assert isinstance(frame, pandas.DataFrame)


def test_to_pandas_without_pandas(house, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(rs.errors.MissingExtra, match="to_pandas needs pandas: pip install pandas"):
        house.to_pandas()


def test_the_warning_can_be_switched_off_by_its_category():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rs.errors.TableWarning)
        rs.read_table(table(see=[1, 2], do=[1, 2]), observation="see", action="do")
