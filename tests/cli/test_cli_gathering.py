"""`report` and `check --evidence` on a terminal: what they are at, once that lasts."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from cli_outcome import Run

import resolvent as rs
from interrupting import PATIENCE
from own_strategies import MostAgreeing

# At once instead of after a second, and as often as it is told.
IMPATIENT = """
import sys
from resolvent.cli import main
from resolvent.viz import terminal
terminal._SECONDS_BEFORE_FIRST = terminal._SECONDS_BETWEEN_REFRESHES = {seconds}
sys.exit(main(sys.argv[1:]))
"""


def on_a_terminal(seconds: float, *arguments: str | Path) -> tuple[str, str]:
    """Run a command; return what it prints, and what its terminal shows meanwhile."""
    terminal, stderr = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", IMPATIENT.format(seconds=seconds), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=stderr,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
    )
    os.close(stderr)
    shown = b""
    try:
        while chunk := os.read(terminal, 65536):
            shown += chunk
    except OSError:
        pass  # how a terminal says that its other end has closed
    out, _ = process.communicate(timeout=PATIENCE)
    os.close(terminal)
    assert process.returncode == 0
    return out.decode(), shown.decode()


@pytest.mark.parametrize("command", ["report", "check"])
def test_stages_are_shown_and_go_away(
    command: str, machines: Path, house: Path, tmp_path: Path
) -> None:
    more = ["-o", tmp_path / "page.html"] if command == "report" else ["--evidence"]
    out, shown = on_a_terminal(0.0, command, machines, house, *more)
    for stage in (
        "replaying the traces",
        "transition machine: distinguishing states",
        "reward machine: checking label sequences",
        "testing on held-out traces",
    ):
        assert stage in shown
    assert ("writing the page" in shown) == (command == "report")
    assert shown.endswith("\x1b[2K")  # the line is erased
    assert "telling states apart" not in out


def test_nothing_is_shown_of_what_is_soon_over(machines: Path, house: Path) -> None:
    out, shown = on_a_terminal(600.0, "check", machines, house, "--evidence")
    assert "hold-out: " in out
    assert shown == ""


def test_machines_of_an_own_strategy_are_not_inferred_again(
    run: Run, house: Path, tmp_path: Path
) -> None:
    path = tmp_path / "own.json"
    rs.infer(rs.read_traces(house), strategy=MostAgreeing()).machines.save(path)
    outcome = run("check", path, house, "--evidence", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.json["evidence"]["holdout"] is None
    assert run("report", path, house, "-o", tmp_path / "own.html").code == 0
