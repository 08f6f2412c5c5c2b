"""Logs of inputs and outputs, against a vending machine whose rules are known."""

import csv

import pyarrow as pa
import pytest

import resolvent as rs
from vending_machine import EVENTS, START, interleaved, log, respond, same_machine

COLUMNS = {"episode": "session", "order": "time", "input": "event", "output": "response"}


def write(rows, path):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_a_log_gives_back_the_true_machine(tmp_path):
    path = write(log(400, seed=0), tmp_path / "vend.csv")
    result = rs.infer(rs.read_log(path, **COLUMNS))
    assert result.as_dict()["states"] == {"response": 15}
    assert same_machine(result.machines["response"], "nothing")


def test_sessions_may_be_interleaved_and_rows_in_any_order(tmp_path):
    rows = log(400, seed=0)
    in_order = rs.read_log(pa.Table.from_pylist(rows), **COLUMNS)
    assert rs.read_log(write(interleaved(rows, 1), tmp_path / "vend.csv"), **COLUMNS) == in_order


def test_the_comparison_tells_machines_apart():
    """With fewer sessions the machine is another one."""
    few = rs.infer(rs.read_log(pa.Table.from_pylist(log(20, seed=0)), **COLUMNS))
    assert not same_machine(few.machines["response"], "nothing")


def test_the_states_of_the_true_machine_all_answer_differently():
    reached = [START]
    for state in reached:
        reached += {respond(state, event)[0] for event in EVENTS} - set(reached)
    answers = set()
    for state in reached:
        after, told = state, []
        for event in ("refund", *("coin 1",) * 4, "cola", *("coin 1",) * 3, "cola"):
            after, response = respond(after, event)
            told.append(response)
        answers.add(tuple(told))
    assert len(reached) == len(answers) == 15


def test_an_input_is_an_action_and_then_an_event():
    rows = pa.table({"in": [1, 2], "out": [True, False], "code": ["a", "b"]})
    (trace,) = rs.read_log(rows, input="in", output=["out", "code"])
    assert trace == rs.Trace(
        ["nothing"] * 3,
        [None, "1", "2"],
        [1, 2],
        columns={"out": [True, False], "code": ["a", "b"]},
    )


def test_several_input_columns_are_one_input():
    rows = pa.table({"button": ["a", "b"], "held": [True, False], "out": [1, 2]})
    (trace,) = rs.read_log(rows, input=["button", "held"], output="out")
    assert trace.actions == (("a", True), ("b", False))
    assert trace.labels == (frozenset(), {"('a', True)"}, {"('b', False)"})


def test_every_output_gets_a_machine_by_default():
    rows = pa.table({"in": list("abab"), "out": [0, 1, 0, 1], "code": [7, 7, 7, 7]})
    machines = rs.infer(rs.read_log(rows, input="in", output=["out", "code"])).machines
    assert list(machines) == ["code", "out"]


def test_an_output_may_have_another_name_than_its_column():
    rows = pa.table({"action": ["a", "b"], "observation": [0, 1]})
    (trace,) = rs.read_log(rows, input="action", output={"answer": "observation"})
    assert (trace.actions, dict(trace.columns)) == (("a", "b"), {"answer": (0, 1)})


def test_a_run_of_one_event_is_a_step():
    rows = pa.table({"run": [1, 2], "in": ["a", "b"], "out": [0, 1]})
    assert rs.read_log(rows, episode="run", input="in", output="out").steps == 2


def test_a_missing_output_is_refused():
    rows = pa.table({"in": ["a", "b", "a"], "out": [0, None, 1]})
    with pytest.raises(rs.TraceError, match=r"^row 1: the column `out` has no value"):
        rs.read_log(rows, input="in", output="out")


def test_an_empty_last_row_is_skipped_with_a_warning():
    rows = pa.table({"run": [1, 1, 2], "in": ["a", None, "b"], "out": [0, None, 1]})
    said = r"^row 1: the last row has no value for `in`, `out`, in 1 of 2 episodes: it is skipped"
    with pytest.warns(rs.errors.TableWarning, match=said) as caught:
        traces = rs.read_log(rows, episode="run", input="in", output="out")
    assert caught[0].filename == __file__
    assert [trace.actions for trace in traces] == [("a",), ("b",)]


def test_inputs_that_look_alike_are_kept_apart():
    rows = pa.table({"in": ["a\u200b", "a\\u200b"], "out": [0, 1]})
    assert len(rs.read_log(rows, input="in", output="out").actions) == 2


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"input": "in", "output": 3}, "there is no column `3`: there are in, out"),
        ({"input": "in", "output": {"a": ["x", "y"]}}, r"output 'a' is \['x', 'y'\], which names"),
        ({"input": "in", "output": None}, "nothing to predict"),
        ({"input": [], "output": "out"}, "input is an empty list: name at least one column"),
        ({"input": None, "output": "out"}, "input is None: name the column"),
    ],
)
def test_columns_that_are_not_named(columns, message):
    rows = pa.table({"in": ["a", "b"], "out": [0, 1]})
    with pytest.raises((rs.OptionError, rs.TraceError), match=f"^{message}") as caught:
        rs.read_log(rows, **columns)
    assert "\n" not in str(caught.value)
