import pytest
from cli_outcome import Run


def test_a_command_to_copy_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    outcome = run("demo")
    assert (outcome.code, outcome.err) == (0, "")
    last = outcome.out.splitlines()[-1]
    assert last.endswith(" plan machines.json house.jsonl --environment resolvent/House-v0")


def test_json(run: Run) -> None:
    outcome = run("demo", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.json["plan"]["return"] == 1.0
