"""How a command begins and ends: hostile files beside the user, closed streams, signals."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from interrupting import PATIENCE, interrupt

HOSTILE = "open({mark!r}, 'a').close()\nraise SystemExit('a file beside the user was run')\n"
SHADOWED = ("random", "csv", "json", "pickle", "tempfile", "signal", "multiprocessing")


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder whose files have the names of Python's own modules, and leave a mark if they run."""
    folder = tmp_path / "hostile"
    folder.mkdir()
    for name in SHADOWED:
        (folder / f"{name}.py").write_text(HOSTILE.format(mark=str(tmp_path / "ran")))
    return folder


def command(*arguments: object, **options: object) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "resolvent", *map(str, arguments)],
        # Whoever runs these tests in the background has them ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},  # type: ignore[call-overload]
    )


def test_files_beside_the_user_are_not_imported(machines: Path, hostile: Path) -> None:
    process = command("show", machines, "--machine", "reward", cwd=hostile)
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (0, b"")
    assert out.startswith(b"RewardMachine")
    assert not (hostile.parent / "ran").exists()


@pytest.mark.slow
@pytest.mark.parametrize("on", ["processes", "ray"])
def test_nor_by_workers(hostile: Path, on: str) -> None:
    target = hostile.parent / "traces.jsonl"
    where = ("collect", "resolvent/House-v0", "-n", "20", "--on", on, "-o", target)
    process = command(*where, cwd=hostile)
    err = process.communicate(timeout=600)[1]
    assert process.returncode == 0, err
    assert target.exists()
    assert not (hostile.parent / "ran").exists()


@pytest.mark.slow
def test_nor_by_the_runs_of_a_reproduction(hostile: Path) -> None:
    process = command("reproduce", "ablation", "--quick", "-o", "../results", cwd=hostile)
    assert process.stdout is not None
    assert b", found, " in process.stdout.readline().replace(b": found", b", found")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert not (hostile.parent / "ran").exists()


@pytest.mark.slow
def test_a_module_that_is_named_is_found_beside_the_user(hostile: Path) -> None:
    world = "import resolvent.worlds\nfrom gymnasium import make\n"
    (hostile / "my_world.py").write_text(
        f"{world}def house():\n    return make('resolvent/House-v0')\n"
    )
    for name in SHADOWED:
        (hostile / f"{name}.py").unlink()
    process = command("collect", "my_world:house", "-n", "3", "-o", "t.jsonl", cwd=hostile)
    err = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 0, err


@pytest.mark.slow
def test_closed_streams(machines: Path, tmp_path: Path) -> None:
    shell = '"$0" -m resolvent show "$1" -o "$2" <&- >&- 2>&-; echo $? > "$2.code"'
    target = tmp_path / "shown.txt"
    subprocess.run(
        ["sh", "-c", shell, sys.executable, machines, target], check=True, timeout=PATIENCE
    )
    assert Path(f"{target}.code").read_text() == "0\n"
    assert target.read_text().startswith("TransitionMachine")


def test_ctrl_c_while_modules_are_imported(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    # A module that comes late in the imports stands in for a slow disk.
    (tmp_path / "typer.py").write_text(
        f"import time\nopen({str(begun)!r}, 'w').close()\ntime.sleep(600)\n"
    )
    process = command("show", "m.json", env={**os.environ, "PYTHONPATH": str(tmp_path)})
    while not begun.exists():
        assert process.poll() is None
        time.sleep(0.01)
    interrupt(process)
    out, err = process.communicate()
    assert (process.returncode, out, err) == (130, b"", b"resolvent: interrupted\n")


@pytest.mark.slow
def test_a_request_to_end_leaves_no_half_written_file(tmp_path: Path) -> None:
    target = tmp_path / "traces.jsonl"
    target.write_text("old")
    target.chmod(0o640)
    process = command("collect", "resolvent/House-v0", "-n", "60000", "-o", target)
    while not list(tmp_path.glob(".*.part")):
        assert process.poll() is None
        time.sleep(0.001)
    process.terminate()
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out, err) == (143, b"", b"resolvent: ended by a signal\n")
    assert {path.name for path in tmp_path.iterdir()} == {"traces.jsonl"}
    assert target.read_text() == "old"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_python_takes_itself_apart_is_no_traceback(number: signal.Signals) -> None:
    script = (
        "import atexit, os, sys\n"
        "from resolvent.cli import main\n"
        f"atexit.register(os.kill, os.getpid(), {int(number)})\n"
        "sys.argv[1:] = ['--help']\n"
        "sys.exit(main())\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    out, err = process.communicate(timeout=60)
    words = "interrupted" if number == signal.SIGINT else "ended by a signal"
    assert (process.returncode, err.decode()) == (128 + number, f"resolvent: {words}\n")
    assert b"resolvent COMMAND --help" in out
