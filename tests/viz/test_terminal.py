import io
import sys
from pathlib import Path

import pytest

from resolvent.viz import terminal
from resolvent.viz.terminal import Amount, ProgressBar, duration, pace_text, rate


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    # Not a fixture: pytest puts its own stderr in place between setup and test.
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    return screen


def test_silent_in_the_first_second(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(terminal.time, "monotonic", lambda: now)
    shown = screen(monkeypatch)
    with ProgressBar() as bar:
        now += 0.9
        bar.show("reading", 0.5)
        assert shown.getvalue() == ""
        now += 0.2
        bar.show("reading", 0.6)
        assert "reading" in shown.getvalue()


def test_shows_and_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "_SECONDS_BEFORE_FIRST", 0.0)
    shown = screen(monkeypatch)
    with ProgressBar() as bar:
        bar.stage("reading house.jsonl")(0.5)
    assert "reading house.jsonl" in shown.getvalue()
    assert "50%" in shown.getvalue()
    assert shown.getvalue().endswith("\x1b[2K")  # the line is erased
    assert sys.stderr is shown


def test_it_makes_way_for_a_line_and_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "_SECONDS_BEFORE_FIRST", 0.0)
    monkeypatch.setattr(terminal, "_SECONDS_BETWEEN_REFRESHES", 0.0)
    shown = screen(monkeypatch)
    with ProgressBar() as bar:
        bar.show("first", 0.1)
        bar.clear()
        assert shown.getvalue().endswith("\x1b[2K")
        bar.show("second", 0.2)
    assert "second" in shown.getvalue()


def test_silent_when_nobody_watches(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(terminal, "_SECONDS_BEFORE_FIRST", 0.0)
    monkeypatch.setenv("FORCE_COLOR", "1")  # which makes Rich take anything for a terminal
    with ProgressBar() as bar:
        bar.show("reading", 0.5)
    assert capsys.readouterr() == ("", "")


def test_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(terminal.time, "monotonic", lambda: now)
    shown = screen(monkeypatch)
    with ProgressBar() as bar:
        reading = bar.stage("reading", Amount(40e9, "B"))
        now += 10
        reading(0.25)
        assert "1 GB/s, 30 s left" in shown.getvalue()
        now += 10
        bar.show("machine, 1 state", 0.0, stage="machine")
        assert "0 s so far" in shown.getvalue()
        now += 60
        bar.show("machine, 2 states", 0.5, of=Amount(1000, "nodes"), stage="machine")
        assert "8.33 nodes/s, 1:00 left" in shown.getvalue()
        now += 60
        bar.show("machine, 2 states", 0.5, stage="machine", steady=False)
        assert "2:00 so far" in shown.getvalue()


def test_a_long_text_leaves_room_for_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "_SECONDS_BEFORE_FIRST", 0.0)
    shown = screen(monkeypatch)
    with ProgressBar() as bar:
        bar.show("reading " + "x" * 200, 0.5)
    assert "50%" in shown.getvalue()
    assert "so far" in shown.getvalue()


def test_where_nobody_knows_how_much_is_left_there_is_no_bar(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(terminal, "_SECONDS_BEFORE_FIRST", 0.0)
    monkeypatch.setattr(terminal, "_SECONDS_BETWEEN_REFRESHES", 0.0)
    shown = screen(monkeypatch)
    with ProgressBar() as bar:
        bar.show("1,234 steps", None, stage="solving")
        assert "1,234 steps" in shown.getvalue()
        assert "%" not in shown.getvalue()
        bar.show("reading", 0.5)
        assert "50%" in shown.getvalue()


def test_reading_knows_how_much_there_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    now = 1000.0
    monkeypatch.setattr(terminal.time, "monotonic", lambda: now)
    shown = screen(monkeypatch)
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"x" * 4000)
    for path, pace in ((tmp_path / "a", "200 B/s"), (tmp_path, "400 B/s")):
        with ProgressBar() as bar:
            reading = bar.reading(path)
            now += 10
            reading(0.5)
        assert f"{pace}, 10 s left" in shown.getvalue()
    with ProgressBar() as bar:
        reading = bar.reading(Path("minari:house/random-v0"))
        now += 10
        reading(0.1)
    assert "1:30 left" in shown.getvalue()


def test_the_end_of_a_stage_is_shown_however_soon_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "_SECONDS_BEFORE_FIRST", 0.0)
    monkeypatch.setattr(terminal, "_SECONDS_BETWEEN_REFRESHES", 60.0)
    shown = screen(monkeypatch)
    with ProgressBar() as bar:
        bar.show("9 of 10 pieces", 0.9, stage="reading")
        bar.show("9 of 10 still", 0.9, stage="reading")
        bar.show("10 of 10 pieces", 1.0, stage="reading")
    assert "10 of 10 pieces" in shown.getvalue()
    assert "still" not in shown.getvalue()


def test_what_takes_long_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = screen(monkeypatch)
    with ProgressBar() as bar:
        bar.announce("holding out")
        assert shown.getvalue() == ""
        bar.announce("waiting for Ray", at_once=True)
        assert "waiting for Ray" in shown.getvalue()


def test_durations_and_rates_as_text() -> None:
    assert [*map(duration, (0.4, 59.6, 754, 7322))] == ["0 s", "1:00", "12:34", "2:02:02"]
    assert duration(36000) == "10:00:00"
    assert pace_text(10, 0.25, Amount(4e9, "B")) == "100 MB/s, 30 s left"
    assert (pace_text(10, 0.25), pace_text(90, 0.0)) == ("30 s left", "1:30 so far")
    assert (rate(1_234_567, "B"), rate(12_345, "steps")) == ("1.23 MB/s", "12.3k steps/s")
    assert (rate(3.21, "episodes"), rate(0.05, "runs")) == ("3.21 episodes/s", "3 runs/min")
