"""What only a real process shows: signals, pipes, terminals, the entry points."""

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli_outcome import Run

import resolvent
from interrupting import PATIENCE, interrupt
from resolvent.cli import COMMANDS, _usage_text
from worlds import random_world

RESOLVENT = (sys.executable, "-m", "resolvent")


def test_version(run: Run) -> None:
    outcome = run("--version")
    assert (outcome.code, outcome.out, outcome.err) == (
        0,
        f"resolvent {resolvent.__version__}\n",
        "",
    )


def test_what_a_library_makes_of_an_interruption_is_one(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def confused(arguments: list[str]) -> int:
        raise TypeError("Got unexpected argument type <class 'str'> for compute function")

    monkeypatch.setattr("resolvent.cli._run", confused)
    with pytest.raises(TypeError):
        run("demo")
    monkeypatch.setattr("resolvent._util.startup._signals", {signal.SIGINT})
    outcome = run("demo")
    assert (outcome.code, outcome.out, outcome.err) == (130, "", "resolvent: interrupted\n")


def test_no_command_prints_the_help(run: Run) -> None:
    outcome = run()
    assert outcome.code == 0
    assert "resolvent demo" in outcome.out


@pytest.mark.parametrize("command", COMMANDS)
def test_help(run: Run, command: str) -> None:
    outcome = run(command, "--help")
    assert (outcome.code, outcome.err) == (0, "")
    assert "--help" in outcome.out
    assert "<bool>" not in outcome.out  # a flag takes no value
    assert command in run("--help").out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["infr"], ["infr", "infer"]),
        (["--nonsense"], ["--nonsense", "resolvent --help"]),
        (["infer"], ["TRACES", "resolvent infer --help"]),
        (["check", "machines.json"], ["TRACES"]),
        (["infer", "a.jsonl", "b.jsonl"], ["b.jsonl"]),
        (["collect", "resolvent/House-v0"], ["--output"]),
    ],
)
def test_usage_errors_are_one_line(run: Run, arguments: list[str], words: list[str]) -> None:
    outcome = run(*arguments)
    assert outcome.code == 2
    assert all(word in outcome.error for word in words), outcome.err
    assert outcome.err.count("Did you mean") <= 1


def test_what_was_meant_is_asked_once() -> None:
    class TwiceError(Exception):  # as of Typer 0.21 and click 8.5, which both ask
        message = "No such command 'infr'. Did you mean 'infer'?"

        def format_message(self) -> str:
            return f"{self.message} Did you mean 'infer'?"

    asked = "no such command 'infr'. Did you mean 'infer'? (see `resolvent --help`)"
    assert _usage_text(TwiceError()) == asked


def test_an_error_of_the_system_is_one_line(
    run: Run, house: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", "/secret")

    monkeypatch.setattr("resolvent.cli.commands.infer.infer_with", refuse)
    outcome = run("infer", house)
    assert (outcome.code, outcome.error) == (2, "/secret: permission denied\n")


def test_a_mistake_of_ours_shows_its_traceback(
    run: Run, house: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resolvent.cli.commands.infer.infer_with", lambda *_, **__: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        run("infer", house)


def test_entry_point() -> None:
    from importlib.metadata import entry_points

    from resolvent.cli import main

    (script,) = entry_points(group="console_scripts", name="resolvent")
    assert script.load() is main


def test_a_reader_that_leaves_early_is_no_error(machines: Path) -> None:
    process = subprocess.Popen(
        [*RESOLVENT, "show", str(machines), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()
    _, err = process.communicate(timeout=PATIENCE)
    assert err == b""
    assert process.returncode == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_behind_standard_output(machines: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*RESOLVENT, "show", str(machines)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr == "resolvent: error: no space left on device\n"


def test_an_encoding_without_our_letters(machines: Path) -> None:
    done = subprocess.run(
        [*RESOLVENT, "show", str(machines)],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_ctrl_c_ends_at_once_and_leaves_no_file(tmp_path: Path) -> None:
    traces, target = tmp_path / "world.jsonl", tmp_path / "machines.json"
    random_world(0).rollouts(3000, seed=0).save(traces)
    slow = ("--engine", "python", "--keep-redundant", "--no-supplement")
    terminal, stderr = pty.openpty()
    process = subprocess.Popen(
        [*RESOLVENT, "infer", str(traces), "-o", str(target), *slow],
        stdout=subprocess.PIPE,
        stderr=stderr,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80"},
        # Whoever runs these tests in the background has them ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    os.close(stderr)
    shown = b""
    while b"transition machine" not in shown:  # the progress bar: it is at work
        shown += os.read(terminal, 65536)
    interrupt(process)
    try:
        while chunk := os.read(terminal, 65536):
            shown += chunk
    except OSError:
        pass  # how a terminal says that its other end has closed
    out, _ = process.communicate()
    assert process.returncode == 130
    assert shown.endswith(b"resolvent: interrupted\r\n")
    assert out == b""
    assert list(tmp_path.iterdir()) == [traces]
    os.close(terminal)
