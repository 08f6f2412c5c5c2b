import json

import pytest
from hypothesis import given, settings

from resolvent.errors import TraceError
from resolvent.traces import Trace, TraceSet
from resolvent.traces.io.json_lines import Line, json_lines, read_json_lines
from strategies import trace_sets


def read(*texts: str, columns: tuple[str, ...] = ()) -> TraceSet:
    lines = [
        Line(f"f, line {number}", text.encode() + b"\n") for number, text in enumerate(texts, 1)
    ]
    return read_json_lines(lines, columns)


def episode(**changes: object) -> str:
    fields: dict[str, object] = {
        "observations": ["hall", "attic", "hall"],
        "labels": [[], ["key"], []],
        "actions": [0, 1],
        "rewards": [0.5, 1],
    }
    return json.dumps({**fields, **changes})


PLAIN = Trace(["hall", "attic", "hall"], [[], ["key"], []], [0, 1], [0.5, 1.0])


def test_one_line_is_one_trace():
    flagged = Trace(PLAIN.observations, PLAIN.labels, [0, 1], [0.5, 1.0], False, True)
    assert list(read(episode(), episode(truncated=True))) == [PLAIN, flagged]


def test_all_spellings_of_labels():
    traces = read(
        episode(labels=[None, "key", 4]),
        episode(labels=[[], ["door", "key"], ["key", "door"]]),
        episode(labels=["None", [4], ["4"]]),
    )
    empty, key, four, both = map(frozenset, ([], ["key"], ["4"], ["door", "key"]))
    assert [trace.labels for trace in traces] == [
        (empty, key, four),
        (empty, both, both),
        (frozenset({"None"}), four, four),
    ]


def test_lists_become_tuples_and_objects_become_pairs():
    traces = read(
        episode(observations=[[0, [1]], [0, [2]], [0, [1]]], actions=[{"b": 1, "a": [2]}] * 2)
    )
    assert list(traces.observations) == [(0, (1,)), (0, (2,))]
    assert list(traces.actions) == [(("a", (2,)), ("b", 1))]


def test_zero_has_no_sign():
    traces = read(episode(rewards=[-0.0, 0], observations=[-0.0, 0.0, 1]))
    assert list(map(repr, traces.rewards)) == ["0.0"]
    assert list(map(repr, traces.observations)) == ["0.0", "1.0"]


def test_other_keys_are_ignored():
    assert read(episode(seed=7))[0] == PLAIN


def without_rewards(**changes: object) -> str:
    fields = json.loads(episode(**changes))
    del fields["rewards"]
    return json.dumps(fields)


def test_rewards_may_be_left_out():
    traces = read(without_rewards(), without_rewards(truncated=True))
    assert [trace.rewards for trace in traces] == [None, None]
    assert traces[0].actions == (0, 1)
    with pytest.raises(TraceError, match="f, line 2: rewards here, but the first trace has none"):
        read(without_rewards(), episode())


def test_further_columns_stand_under_columns():
    traces = read(episode(columns={"fault": [False, True], "cost": [[1], [2]]}))
    assert traces[0].columns == {"cost": ((1,), (2,)), "fault": (False, True)}
    with pytest.raises(TraceError, match="f, line 2: no column `fault`, but the first trace has"):
        read(
            episode(columns={"fault": [False, True], "cost": [1, 2]}),
            episode(columns={"cost": [1, 2]}),
        )


def test_keys_beside_the_rewards_are_columns_when_they_are_named():
    line = episode(columns={"fault": [False, True]}, cost=[5, 6], seed=7)
    assert read(line)[0].columns == {"fault": (False, True)}
    both = {"cost": (5, 6), "fault": (False, True)}
    assert read(line, columns=("cost",))[0].columns == both
    assert read(line, columns=("cost", "fault"))[0].columns == both
    quoted = read(episode(**{'"a"\n': [1, 2]}), columns=('"a"\n',))
    assert quoted[0].columns == {'"a"\n': (1, 2)}
    odd = read(episode(**{"a b": [1, 2]}), columns=("a b",))
    assert odd[0].columns == {"a b": (1, 2)}


def test_a_named_column_that_is_missing():
    line = episode(columns={"fault": [False, True]}, cost=[5, 6])
    message = "f, line 1: the traces have no column `cots`: there are cost, fault"
    with pytest.raises(TraceError, match=message):
        read(line, columns=("cots",))
    with pytest.raises(TraceError, match="no column `columns`: there are no further columns"):
        read(episode(), columns=("columns",))
    with pytest.raises(TraceError, match="f, line 1: seed: expected `array`, got `int`"):
        read(episode(seed=7), columns=("seed",))


@pytest.mark.parametrize("odd", [b'"cost": ["\xff"]}', b'"cost": [1, 2], "\xff": 1}'])
def test_a_named_column_in_a_line_that_is_not_utf8(odd):
    line = Line("f, line 1", episode().encode()[:-1] + b", " + odd + b"\n")
    with pytest.raises(TraceError, match=r"^f, line 1: .*not valid JSON \('utf-8' codec"):
        read_json_lines([line], columns=("cost",))


def test_the_line_written():
    trace = Trace([(0, 1), (0, 2)], [[], ["key", "door"]], ["up"], [1], True)
    assert list(json_lines(TraceSet([trace]))) == [
        b'{"observations":[[0,1],[0,2]],"labels":[[],["door","key"]],"actions":["up"],'
        b'"rewards":[1.0],"terminated":true,"truncated":false}\n'
    ]


def test_the_line_written_without_rewards_and_with_columns():
    trace = Trace([0, 1], [[], []], ["up"], columns={"fault": [True], "cost": [(1, 2)]})
    assert list(json_lines(TraceSet([trace]))) == [
        b'{"observations":[0,1],"labels":[[],[]],"actions":["up"],"terminated":false,'
        b'"truncated":false,"columns":{"cost":[[1,2]],"fault":[true]}}\n'
    ]


@settings(max_examples=30, deadline=None)
@given(trace_sets(any_columns=True))
def test_round_trip(traces):
    lines = list(json_lines(traces))
    assert read_json_lines(Line(f"line {n}", line) for n, line in enumerate(lines)) == traces


BAD = {
    "wrong length": (episode(labels=[[]]), "3 observations but 1 labels"),
    "a reward missing": (episode(rewards=[1]), "2 actions but 1 rewards"),
    "no final observation": (
        episode(observations=[1, 2], labels=[[], []]),
        "2 observations for 2 actions",
    ),
    "empty trace": (
        episode(observations=[], labels=[], actions=[], rewards=[]),
        "the trace is empty",
    ),
    "one step": (
        episode(observations=[1], labels=[[]], actions=[], rewards=[]),
        "the trace has one observation and no action",
    ),
    "number": ("5", "expected `object`, got `int`; a line should be"),
    "missing key": (
        '{"observations": [1, 2], "labels": [[], []], "rewards": [1]}',
        "object missing required field `actions`",
    ),
    "no rewards": (
        json.dumps({"observations": ["hall", "hall"], "labels": [[], []], "actions": [1]}),
        "no rewards, but the first trace has: give them to all traces or to none",
    ),
    "rewards are null": (episode(rewards=None), "rewards: expected `array`, got `null`"),
    "another column": (
        episode(columns={"cost": [1, 2]}),
        "column `cost` here, but the first trace has none: give it to all traces or to none",
    ),
    "a column too short": (episode(columns={"cost": [1]}), "2 actions but 1 in the column `cost`"),
    "a column of nulls": (
        episode(columns={"cost": [1, None]}),
        "column `cost`: step 1: a NoneType cannot be a symbol",
    ),
    "a column of another kind": (episode(columns={"cost": 1}), "columns.*: expected `array`"),
    "a column of a reserved name": (
        episode(columns={"step": [1, 2]}),
        "a column cannot be called `step`",
    ),
    "reward is a string": (
        episode(rewards=[0, "1"]),
        "step 1: the reward: expected `float`, got `str`",
    ),
    "label is a number": (episode(labels=[[], [], 0.5]), "step 2: the label: expected .*`float`"),
    "proposition is null": (episode(labels=[[], [None], []]), "step 1: the label: .*got `null`"),
    "proposition is empty": (episode(labels=[[], [""], []]), "labels: step 1: .*empty string"),
    "observation is null": (
        episode(observations=[1, None, 2]),
        "observations: step 1: a NoneType cannot be a symbol",
    ),
    "observations is a string": (
        episode(observations="abc"),
        "observations: expected `array`, got `str`",
    ),
    "flag is a number": (episode(terminated=1), "terminated: expected `bool`, got `int`"),
    "mixed observations": (
        episode(observations=["hall", 7, "hall"]),
        "observations: step 1: 7 is an int, but the first value was a str",
    ),
    "NaN reward": (episode(rewards=[0, float("nan")]), "step 1: the reward is nan"),
    "infinite reward": (episode(rewards=[float("-inf"), 0]), "step 0: the reward is -inf"),
    "huge reward": (
        episode(rewards=[0, 1]).replace("[0, 1]}", "[0, 1e999]}"),
        "step 1: the reward: number out of range",
    ),
    "NaN observation": (episode(observations=[1, [float("nan")], 2]), "step 1: the observation is"),
    "invalid JSON": (episode()[:-1] + ",}", r"not valid JSON \(.*byte"),
    "cut in the middle": (episode()[:40], "not valid JSON"),
    "lone surrogate": (r'{"observations": ["\ud800"', "not valid JSON"),
    "too deep": ('{"observations": ' + "[" * 100_000, "not valid JSON"),
}


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD)
def test_bad_lines_say_where_and_what(text, message):
    with pytest.raises(TraceError, match=f"^f, line 2: {message}") as caught:
        read(episode(), text)
    assert "\n" not in str(caught.value)


def test_a_type_that_changes_between_lines():
    with pytest.raises(TraceError, match=r"f, line 2: actions: step 0: 'up' is a str, .* an int"):
        read(episode(), episode(actions=["up", "up"]))


def test_bytes_that_are_not_text():
    with pytest.raises(TraceError, match="line 1: not valid JSON"):
        read_json_lines([Line("line 1", b'{"observations": ["\xff"]}\n')])


def test_a_last_line_without_end_looks_cut_short():
    with pytest.raises(TraceError, match=r"line 1: the last line has no end .* looks truncated"):
        read_json_lines([Line("line 1", episode().encode()[:50])])


def test_a_whole_last_line_needs_no_end():
    assert read_json_lines([Line("line 1", episode().encode())])[0] == PLAIN
