import re

import pytest
from cli_outcome import Run


def test_tells_the_story_in_80_columns(run: Run) -> None:
    outcome = run("demo")
    assert (outcome.code, outcome.err) == (0, "")
    assert max(map(len, outcome.out.splitlines())) <= 80
    assert "\x1b" not in outcome.out
    for meaning in ("no key yet", "has the key", "toilet not visited", "toilet visited"):
        assert meaning in outcome.out
    assert "resolvent infer house.jsonl" in outcome.out


def test_shows_the_same_step_before_and_after_the_key(run: Run) -> None:
    rows = re.findall(
        r"^ *(\d+) +(\d+) +corridor, up +(.+?)  +(\w+) +(\w+)$", run("demo").out, re.MULTILINE
    )
    (before, after) = rows
    assert before[0] == after[0]
    assert int(before[1]) < int(after[1])
    assert before[2:] == ("no key yet", "corridor", "corridor")
    assert after[2:] == ("has the key", "cyanroom", "cyanroom")


def test_shows_sitting_before_and_after_the_toilet(run: Run) -> None:
    rows = re.findall(r"limegreenroom, sit +(toilet.+?)  +(.+?)  +(.+)$", run("demo").out, re.M)
    assert rows == [
        ("toilet not visited", "reward 0", "reward 0"),
        ("toilet visited", "reward 1", "reward 1"),
    ]


def test_a_command_to_copy_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    last = run("demo").out.splitlines()[-1]
    assert last.endswith(" plan machines.json house.jsonl --environment resolvent/House-v0")


def test_json(run: Run) -> None:
    outcome = run("demo", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    figures = outcome.json
    assert (figures["tm_states"], figures["rm_states"]) == (2, 2)
    assert figures["meanings"] == {
        "transition": ["no key yet", "has the key"],
        "reward": ["toilet not visited", "toilet visited"],
    }
    for score in figures["check"].values():
        assert score["right"] > 0
        assert (score["wrong"], score["unseen"]) == (0, 0)
    assert figures["plan"]["actions"] == ["left", "right", "up", "down", "right", "sit"]
    assert figures["plan"]["return"] == 1.0
    assert figures["interference_rm_states"] == {"supplemented": 1, "not_supplemented": 2}
