import io
import sys

import pytest

from resolvent.display import progress
from resolvent.display.progress import ProgressBar


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
    shown = screen(monkeypatch)
    with ProgressBar() as bar:
        bar.show("reading", 0.5)
    assert shown.getvalue() == ""


def test_shows_and_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_SECONDS_OF_PATIENCE", 0.0)
    shown = screen(monkeypatch)
    with ProgressBar() as bar:
        bar.stage("reading house.jsonl")(0.5)
    assert "reading house.jsonl" in shown.getvalue()
    assert "50%" in shown.getvalue()
    assert shown.getvalue().endswith("\x1b[2K")  # the line is erased
    assert sys.stderr is shown


def test_it_makes_way_for_a_line_and_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_SECONDS_OF_PATIENCE", 0.0)
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_REFRESHES", 0.0)
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
    monkeypatch.setattr(progress, "_SECONDS_OF_PATIENCE", 0.0)
    monkeypatch.setenv("FORCE_COLOR", "1")  # which makes Rich take anything for a terminal
    with ProgressBar() as bar:
        bar.show("reading", 0.5)
    assert capsys.readouterr() == ("", "")
