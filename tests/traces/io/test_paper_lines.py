import json

import pytest
from hypothesis import given, settings

from resolvent.errors import TraceError
from resolvent.traces import Trace, TraceSet
from resolvent.traces.io import json_lines as module
from resolvent.traces.io.json_lines import Line, paper_lines, read_paper_lines
from strategies import paper_trace_sets


def read(*texts: str) -> TraceSet:
    return read_paper_lines(
        Line(f"f, line {number}", text.encode() + b"\n") for number, text in enumerate(texts, 1)
    )


EPISODE = [[["None", 22], 0, 0.0], [[4, 23], 3, 1.73], [["None", 23], 3, 1.73]]
TRACE = Trace([22, 23, 23], [[], ["4"], []], [0, 3], [0.0, 1.73], terminated=True)


@pytest.mark.parametrize("separators", [(", ", ": "), (",", ":"), (" , ", " : ")])
def test_the_last_entry_counts_only_for_what_is_seen(separators):
    traces = read(json.dumps(EPISODE, separators=separators), json.dumps(EPISODE[:2]))
    assert list(traces) == [TRACE, Trace([22, 23], [[], ["4"]], [0], [0.0], terminated=True)]


def test_an_action_only_repeated_at_the_end_is_not_counted():
    last = [["None", 1], "never taken", 9]
    traces = read(json.dumps([[["None", 0], "up", 1], last]))
    assert list(traces.actions) == ["up"]
    assert list(traces.rewards) == [1.0]


def test_spaces_around_and_within():
    text = json.dumps(EPISODE)
    assert list(read(f"  {text}  ", text.replace("[", "[ "))) == [TRACE, TRACE]


def test_separators_within_an_entry_are_not_taken_for_its_end():
    nested = [[0, 1], [[2]]]
    entries = [[["], [[", nested], "],[[", 0], [["None", nested], "a", 1], [["None", [[]]], "b", 1]]
    for separators in ((", ", ": "), (",", ":")):
        (trace,) = read(json.dumps(entries, separators=separators))
        assert trace.observations == (((0, 1), ((2,),)),) * 2 + (((),),)
        assert trace.labels[0] == {"], [["}
        assert trace.actions == ("],[[", "a")


def test_mixed_spacing_is_read_as_json_reads_it():
    text = '[[["None", [[1],[[2]]]], 0, 0],[["key", [[1], [[2]]]], 0, 1], [["None", [[3]]], 0, 1]]'
    (trace,) = read(text)
    assert trace.observations == (((1,), ((2,),)), ((1,), ((2,),)), ((3,),))
    assert trace.labels == (frozenset(), frozenset({"key"}), frozenset())


def test_null_is_no_event_too():
    assert read('[[[null, 1], 0, 0], [["None", 2], 0, 0]]')[0].labels == (frozenset(), frozenset())


def test_many_distinct_entries_are_read_without_keeping_their_text(monkeypatch):
    monkeypatch.setattr(module, "MAX_TEXTS", 3)
    texts = [json.dumps([[["None", 2 * n], n, n], [["key", 2 * n + 1], n, n]]) for n in range(5)]
    expected = [
        Trace([2 * n, 2 * n + 1], [[], ["key"]], [n], [n], terminated=True) for n in range(5)
    ]
    assert list(read(*texts)) == expected


def test_the_line_written():
    assert list(paper_lines(TraceSet([TRACE]))) == [
        b'[[["None",22],0,0.0],[["4",23],3,1.73],[["None",23],3,1.73]]\n'
    ]


@settings(max_examples=30, deadline=None)
@given(paper_trace_sets())
def test_round_trip(traces):
    lines = list(paper_lines(traces))
    assert read_paper_lines(Line(f"line {n}", line) for n, line in enumerate(lines)) == traces


@settings(max_examples=30, deadline=None)
@given(paper_trace_sets())
def test_looking_up_text_gives_what_decoding_gives(traces):
    spaced = [json.dumps(json.loads(line)) for line in paper_lines(traces)]
    assert read(*spaced) == traces


@pytest.mark.parametrize(
    ("label", "message"),
    [
        (["key", "door"], 'the label "door & key" cannot be written .*: write jsonl or parquet'),
        ("None", 'the label "None" cannot .*keeps "None" for no event'),
    ],
)
def test_labels_the_format_cannot_hold(label, message):
    bad = Trace([22, 23, 23], [[], ["4"], label], [0, 3], [0, 0])
    with pytest.raises(TraceError, match=message):
        list(paper_lines(TraceSet([TRACE, bad])))


def changed(step: int, entry: object) -> str:
    return json.dumps([*EPISODE[:step], entry, *EPISODE[step + 1 :]])


BAD = {
    "empty trace": ("[]", "the trace is empty"),
    "one step": (json.dumps(EPISODE[:1]), "the trace has one observation and no action"),
    "number": ("5", "expected `array`, got `int`; a line should be"),
    "object": ("{}", "expected `array`, got `object`"),
    "two elements": (changed(1, [["None", 1], 0]), "step 1: .*length 3"),
    "no pair": (changed(1, [["None"], 0, 0]), r"step 1: \[label, observation\]: .*length 2"),
    "step is a number": (changed(2, 5), "step 2: expected `array`, got `int`"),
    "reward is a string": (
        changed(1, [["None", 1], 0, "1"]),
        "step 1: the reward: expected `float`, got `str`",
    ),
    "label is a list": (changed(1, [[["a"], 1], 0, 0]), "step 1: the label: .*got `array`"),
    "label is empty": (changed(1, [["", 1], 0, 0]), "labels: step 1: .*empty string"),
    "action is null": (changed(1, [["None", 1], None, 0]), "actions: step 1: a NoneType"),
    "mixed observations": (
        changed(2, [["None", "x"], 0, 0]),
        "observations: step 2: 'x' is a str, but the first value was an int",
    ),
    "NaN reward": (changed(1, [["None", 1], 0, float("nan")]), "step 1: the reward is nan"),
    "invalid JSON": (json.dumps(EPISODE)[:-3] + "]", r"not valid JSON \(.*truncated"),
    "garbage": ('[[["None", 1], 0, 0], [[oops, 1], 0, 0]]', r"not valid JSON \(.*byte"),
    "too much": (json.dumps(EPISODE) + "]", "not valid JSON"),
}


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD)
def test_bad_lines_say_where_and_what(text, message):
    with pytest.raises(TraceError, match=f"^f, line 2: {message}") as caught:
        read(json.dumps(EPISODE), text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("length", [3, 20, 40, 60])
def test_a_last_line_without_end_looks_cut_short(length):
    with pytest.raises(TraceError, match=r"line 1: the last line has no end .* looks truncated"):
        read_paper_lines([Line("line 1", json.dumps(EPISODE).encode()[:length])])


@pytest.mark.parametrize(
    ("rewards", "columns", "held"),
    [(None, {}, "no rewards"), ([0], {"cost": [1]}, "reward, cost"), (None, {"cost": [1]}, "cost")],
)
def test_columns_the_format_cannot_hold(rewards, columns, held):
    traces = TraceSet([Trace([22, 23], [[], []], [0], rewards, columns=columns)])
    with pytest.raises(TraceError, match=f"these traces have {held}: write jsonl or parquet"):
        list(paper_lines(traces))


def test_columns_cannot_be_read_from_it():
    line = Line("f, line 1", b'[[["None", 7], "up", 0.5], [["key", 8], "up", 0.5]]')
    with pytest.raises(TraceError, match="the traces have no column `cost`: there are no"):
        read_paper_lines([line], ["cost"])
