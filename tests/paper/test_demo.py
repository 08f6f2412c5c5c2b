"""The demo: its numbers, and its text for a newcomer."""

import re

import pytest

from resolvent.paper.demo import Demo, _counts, run_demo, show_demo


@pytest.fixture(scope="module")
def demo() -> Demo:
    return run_demo()


@pytest.fixture
def text(demo: Demo, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", "80")
    show_demo(demo, "resolvent")
    return capsys.readouterr().out


def test_the_text_has_80_columns(text: str) -> None:
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text
    for meaning in ("no key yet", "has the key", "toilet not visited", "toilet visited"):
        assert meaning in text
    assert "resolvent infer house.jsonl" in text


def test_predictions_depend_on_the_state(text: str) -> None:
    assert re.findall(r"^\d +(.+?)  +[01] .* (\w+)$", text, re.MULTILINE) == [
        ("no key yet", "corridor"),
        ("has the key", "cyanroom"),
        ("toilet not visited", "0"),
        ("toilet visited", "1"),
    ]
    assert "to the cyanroom (672 times) or to the corridor (350 times)" in " ".join(text.split())


def test_the_numbers(demo: Demo) -> None:
    figures = demo.as_dict()
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


def test_outcomes_are_counted_the_most_frequent_first() -> None:
    assert _counts(["1", "0", "0", "1", "0"]) == "0 (3 times) or 1 (2 times)"
