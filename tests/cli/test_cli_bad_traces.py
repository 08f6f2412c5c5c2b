"""Every bad trace file ends in exit code 2 and one line that says what and where."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_outcome import Run

GOOD = {
    "observations": ["hall", "attic"],
    "labels": [[], ["key"]],
    "actions": ["up"],
    "rewards": [0.5],
}


def line(**changed: Any) -> str:
    return json.dumps({**GOOD, **changed}) + "\n"


BAD_LINES = {
    "empty file": ("", ["is empty"]),
    "blank lines": ("\n\n", ["only blank lines"]),
    "empty trace": (
        line() + line(observations=[], labels=[], actions=[], rewards=[]),
        ["line 2", "the trace is empty", "leave it out"],
    ),
    "no step": (
        line() + line(observations=["hall"], labels=[[]], actions=[], rewards=[]),
        ["line 2", "no action", "leave it out"],
    ),
    "one step in the paper's format": ('[[["None", 0], 1, 0.0]]\n', ["line 1", "no action"]),
    "truncated last line": (line() + line()[:50], ["line 2", "truncated", "remove the line"]),
    "invalid JSON": (line() + "{oops}\n" + line(), ["line 2", "not valid JSON"]),
    "not traces at all": ("episode,step\n0,0\n", ["line 1", "Parquet", "JSON lines"]),
    "actions of the wrong type": (line(actions="up"), ["line 1", "actions", "array"]),
    "reward of the wrong type": (line(rewards=["much"]), ["line 1", "step 0", "reward"]),
    "NaN reward": (line(rewards=[float("nan")]), ["line 1", "step 0", "nan", "finite"]),
    "missing column": (
        json.dumps({name: GOOD[name] for name in ("observations", "labels", "rewards")}) + "\n",
        ["line 1", "actions"],
    ),
    "mixed observation types": (
        line() + line(observations=["hall", 3]),
        ["line 2", "observations", "step 1", "int", "str"],
    ),
    "labels and observations of different length": (
        line(labels=[[]]),
        ["line 1", "2 observations", "1 labels"],
    ),
}


@pytest.mark.parametrize(("text", "words"), BAD_LINES.values(), ids=BAD_LINES.keys())
def test_bad_lines(run: Run, tmp_path: Path, text: str, words: list[str]) -> None:
    path, target = tmp_path / "bad.jsonl", tmp_path / "machines.json"
    path.write_text(text)
    outcome = run("infer", path, "-o", target, "--json")
    assert outcome.code == 2
    assert all(word in outcome.error for word in ("bad.jsonl", *words)), outcome.err
    assert not target.exists()


PARQUET: dict[str, list[Any]] = {
    "episode": [0, 0],
    "step": [0, 1],
    "observation": ["hall", "attic"],
    "label": [[], ["key"]],
    "action": ["up", None],
    "reward": [0.5, None],
    "terminated": [False, True],
    "truncated": [False, False],
}

BAD_TABLES: dict[str, tuple[dict[str, list[Any]], list[str]]] = {
    "missing column": (
        {name: column for name, column in PARQUET.items() if name != "action"},
        ["action"],
    ),
    "missing final row": (
        {**PARQUET, "action": ["up", "down"], "reward": [0.5, 0.0]},
        ["final", "episode 0"],
    ),
}


@pytest.mark.parametrize(("table", "words"), BAD_TABLES.values(), ids=BAD_TABLES.keys())
def test_bad_parquet(
    run: Run, tmp_path: Path, table: dict[str, list[Any]], words: list[str]
) -> None:
    path = tmp_path / "bad.parquet"
    pq.write_table(pa.table(table), path)
    outcome = run("infer", path)
    assert outcome.code == 2
    assert all(word in outcome.error for word in ("bad.parquet", *words)), outcome.err


def test_good_parquet_for_comparison(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "good.parquet"
    pq.write_table(pa.table(PARQUET), path)
    assert run("infer", path, "--json").json["steps"] == 1


def test_parquet_cut_short(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "half.parquet"
    pq.write_table(pa.table(PARQUET), path)
    path.write_bytes(path.read_bytes()[:100])
    outcome = run("infer", path)
    assert outcome.code == 2
    assert "half.parquet" in outcome.error


def test_one_action_is_enough(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "short.jsonl"
    path.write_text(line())
    assert run("infer", path, "--json").json["tm_states"] == 1


def test_missing_file(run: Run, tmp_path: Path) -> None:
    outcome = run("infer", tmp_path / "nowhere.jsonl")
    assert outcome.code == 2
    assert "nowhere.jsonl does not exist" in outcome.error


def test_contradictory_traces(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "lottery.jsonl"
    path.write_text(line() + line(rewards=[2.0]))
    outcome = run("infer", path, "--noise", "none")
    assert outcome.code == 2
    for word in ("trace 0, step 0", "trace 1, step 0", "hall", "up", "0.5 and 2.0"):
        assert word in outcome.error
    assert "--reward-digits" in outcome.error


def test_contradiction_that_another_timing_resolves(run: Run, tmp_path: Path) -> None:
    """A cue shown only at the start, as in a T-maze, decides where the turn leads."""
    path = tmp_path / "maze.jsonl"
    path.write_text(
        line(labels=[["bell"], []]) + line(labels=[["gong"], []], observations=["hall", "cellar"])
    )
    outcome = run("infer", path)
    assert outcome.code == 2
    for word in ("trace 0, step 0", "trace 1, step 0", "--timing current-with-initial"):
        assert word in outcome.error
    assert run("infer", path, "--timing", "current-with-initial").code == 0


def test_names_do_nothing_to_a_terminal(run: Run, tmp_path: Path) -> None:
    evil = "\x1b[31mred\x1b]0;title\x07\nnew\u202e"
    episodes = [
        {"observations": [evil, "b", last], "labels": [[], label, []], "actions": [evil, "go"]}
        | {"rewards": [0, 1], "terminated": True}
        for last, label in ((evil, [evil]), ("c", []))
    ]
    traces, machines = tmp_path / "evil.jsonl", tmp_path / "evil.json"
    traces.write_text("".join(json.dumps(one) + "\n" for one in episodes))
    outcomes = [
        run("infer", traces, "-o", machines),
        *(run("show", machines, "--format", name) for name in ("text", "dot", "mermaid", "svg")),
        run("check", machines, traces, "--evidence"),
        run("plan", machines, traces),
        run("infer", traces, "--trivial", evil + "!"),
    ]
    (tmp_path / "field.jsonl").write_text(json.dumps({evil: 1}) + "\n")
    outcomes.append(run("infer", tmp_path / "field.jsonl"))
    for outcome in outcomes:
        shown = outcome.out + outcome.err
        assert all(line.isprintable() for line in shown.split("\n")), shown
    assert run("infer", traces, "--trivial", evil).code == 2  # it is known, and matters
    assert "--keep-trivial" in run("infer", traces, "--trivial", evil).error
