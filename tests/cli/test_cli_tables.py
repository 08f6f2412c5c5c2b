"""Tables and logs on the command line: columns are named by options, `--output` by its place."""

import csv
import re

import pytest

import resolvent as rs
from vending_machine import interleaved, log, same_machine

LOG = ("--episode", "session", "--order", "time", "--input", "event")
TABLE = (
    *("--episode", "episode", "--order", "step", "--observation", "observation"),
    *("--action", "action", "--reward", "reward", "--label", "label"),
)


def write(rows, path):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.fixture(scope="module")
def vend(tmp_path_factory):
    return write(interleaved(log(400, seed=0), 1), tmp_path_factory.mktemp("vend") / "vend.csv")


@pytest.fixture
def house_csv(house, tmp_path):
    frame = rs.read_traces(house).to_pandas()
    frame["label"] = frame["label"].map("+".join)
    frame.to_csv(tmp_path / "house.csv", index=False)
    return tmp_path / "house.csv"


def test_a_log_gives_one_machine_for_its_output(run, vend):
    outcome = run("infer", vend, *LOG, "--output", "response", "--json")
    assert outcome.code == 0
    assert outcome.json["states"] == {"response": 15}
    assert outcome.json["output"] is None


def test_with_an_input_the_file_to_write_is_that_of_the_short_option(run, vend, tmp_path):
    target = tmp_path / "m.json"
    outcome = run("infer", vend, *LOG, "--output", "response", "-o", target, "--json")
    assert outcome.json["output"] == str(target)
    assert same_machine(rs.load(target)["response"], "nothing")


def test_without_an_input_the_long_option_is_the_file_to_write(run, house, tmp_path):
    target = tmp_path / "m.json"
    assert run("infer", house, "--output", target).code == 0
    assert rs.load(target).transition.states == 2
    assert (
        "several files to write are named" in run("infer", house, "--output", "a", "-o", "b").error
    )


def test_an_output_may_be_given_another_name(run, vend, tmp_path):
    target = tmp_path / "m.json"
    outcome = run("infer", vend, *LOG, "--output", "answer=response", "-o", target, "--json")
    assert outcome.json["states"] == {"answer": 15}
    checked = run("check", target, vend, *LOG, "--output", "answer=response", "--json")
    assert checked.json["answer"]["right"] == 10_000


def test_two_outputs_cannot_have_one_name(run, vend):
    outcome = run("infer", vend, *LOG, "--output", "a=response", "--output", "a=time")
    assert (outcome.code, "several --output called `a`" in outcome.error) == (2, True)


def test_a_column_may_have_an_equals_sign_in_its_name(run, tmp_path):
    path = write([{"in": "x", "a=b": n, "b": "no"} for n in (7, 8)], tmp_path / "t.csv")
    for figures, name in (("a=b", "a=b"), ("c=a=b", "c")):
        out = tmp_path / "t.jsonl"
        assert run("convert", path, out, "--input", "in", "--output", figures).code == 0
        assert rs.read_traces(out, columns=[name])[0].columns[name] == (7, 8)


@pytest.mark.parametrize(
    ("column", "argument", "expected"),
    [
        (["1", "2"], "5", "5"),
        (["1.5", "2"], "5", "5.0"),
        (["a", "2"], "b", "'b'"),
        (["a", "2"], '"5"', "'5'"),
        (["007", "2"], "007", "'007'"),
        (["true", "false"], "true", "True"),
    ],
)
def test_a_final_observation_is_json_or_a_text(run, tmp_path, column, argument, expected):
    path = write([{"see": value, "do": "go"} for value in column], tmp_path / "t.csv")
    options = ("--observation", "see", "--action", "do", "--final-observation", argument)
    assert run("convert", path, tmp_path / "t.jsonl", *options).code == 0
    assert repr(rs.read_traces(tmp_path / "t.jsonl")[0].observations[-1]) == expected


def test_an_empty_field_may_be_an_answer(run, tmp_path):
    rows = [{"in": "ab"[n % 2], "out": ["", "x"][n % 2]} for n in range(6)]
    path, log_options = write(rows, tmp_path / "t.csv"), ("--input", "in", "--output", "out")
    assert "line 2: the column `out` has no value" in run("infer", path, *log_options).error
    outcome = run("infer", path, *log_options, "--missing", "NA", "--json")
    assert outcome.json["states"] == {"out": 1}


def test_nothing_is_said_of_rewards_where_a_log_has_none(run, vend):
    assert "Reward Machine" not in run("infer", vend, *LOG, "--output", "response").out


def test_a_log_is_checked_reported_and_converted(run, vend, tmp_path):
    machines, page, traces = (tmp_path / name for name in ("m.json", "m.html", "m.jsonl"))
    assert run("infer", vend, *LOG, "--output", "response", "-o", machines).code == 0
    # The machines say which output there is; saying it again does no harm.
    for more in ((), ("--output", "response")):
        checked = run("check", machines, vend, *LOG, *more, "--json")
        assert (checked.code, checked.json["response"]["right"]) == (0, 10_000)
    assert run("report", machines, vend, *LOG, "-o", page).code == 0
    assert page.stat().st_size > 10_000
    assert run("convert", vend, traces, *LOG, "--output", "response").code == 0
    assert run("check", machines, traces, "--json").json["response"]["right"] == 10_000


def test_a_table_gives_what_its_traces_give(run, house, house_csv):
    outcome = run("infer", house_csv, *TABLE, "--label-separator", "+", "--json")
    assert outcome.err == ""
    figures = run("infer", house, "--json").json
    same = ("tm_states", "rm_states", "traces", "steps", "prefix_tree_nodes")
    assert [outcome.json[name] for name in same] == [figures[name] for name in same]


def test_columns_to_predict_are_read_from_a_table(run, house_csv):
    outcome = run("infer", house_csv, *TABLE, "--outputs", "reward", "--json")
    assert list(outcome.json["states"]) == ["reward"]


def test_what_is_dropped_is_said_on_standard_error(run, tmp_path):
    path = write([{"see": n % 2, "do": 1} for n in range(6)], tmp_path / "t.csv")
    outcome = run("infer", path, "--observation", "see", "--action", "do", "--json")
    assert outcome.json["steps"] == 5
    assert outcome.err.startswith(f"resolvent: warning: {path}: the last row is a step")
    assert outcome.err.count("\n") == 1
    last = ("--final-observation", "-1")
    kept = run("infer", path, "--observation", "see", "--action", "do", *last, "--json")
    assert (kept.json["steps"], kept.err) == (6, "")


def test_several_columns_make_one_observation(run, tmp_path):
    path = write([{"x": n % 2, "y": n % 3} for n in range(12)], tmp_path / "t.csv")
    out = tmp_path / "t.jsonl"
    assert run("convert", path, out, "--observation", "x", "--observation", "y").code == 0
    assert rs.read_traces(out)[0].observations[:3] == ((0, 0), (1, 1), (0, 2))


def test_a_table_without_a_word_about_its_columns(run, vend):
    message = run("infer", vend).error
    for text in ("vend.csv", "time, session, event, response", "--observation", "--input"):
        assert text in message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--input", "event"), "--input needs --output: name the column"),
        (("--input", "evnt", "--output", "response"), "there is no column `evnt`: there are time"),
        (("--input", "event", "--reward", "r"), "--input is for a log .* --reward for a table"),
        (("--episode", "session"), "nothing to predict"),
        (("--input", "event", "--output", "time", "--delimiter", "::"), "not one character"),
    ],
)
def test_bad_options_say_what_to_do(run, vend, options, message):
    outcome = run("infer", vend, *options)
    assert outcome.code == 2
    assert re.search(message, outcome.error)


def test_an_output_without_an_input_is_no_file_where_none_is_written(run, machines, house):
    assert "--input" in run("check", machines, house, "--output", "response").error


def test_a_report_needs_a_file(run, machines, house):
    assert "-o FILE.html" in run("report", machines, house).error


def test_a_log_is_diagnosed(run, vend):
    figures = run("diagnose", vend, *LOG, "--output", "response", "--json").json
    assert {"steps", "findings"} <= figures.keys()
    assert not [one for one in figures["findings"] if one["severity"] == "error"]


def test_a_table_is_planned_from(run, tmp_path):
    """One room, where waiting pays nothing and pressing pays 1."""
    acts = ["wait", "press", "wait", "press"]
    rows = [{"room": "hall", "do": act, "pay": float(act == "press")} for act in acts]
    path, machines, policy = (tmp_path / name for name in ("t.csv", "m.json", "policy.json"))
    write(rows, path)
    table = ("--observation", "room", "--action", "do", "--reward", "pay")
    table += ("--final-observation", "hall")
    assert run("infer", path, *table, "-o", machines).code == 0
    planned = run("plan", machines, path, *table, "-o", policy, "--json")
    assert (planned.json["value"], planned.json["optimal"]) == (pytest.approx(20.0), True)
    assert policy.exists()
