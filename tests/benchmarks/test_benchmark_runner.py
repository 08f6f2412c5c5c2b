"""The runner of the benchmarks: its table, one run, and two checkouts compared."""

import re
import subprocess
import sys

import pytest

from pages import PAGES, ROOT

BENCHMARKS = ROOT / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
import against  # noqa: E402
import run  # noqa: E402

NOT_LISTED = {"run.py", "against.py"}


def runner(*arguments):
    return subprocess.run(
        [sys.executable, BENCHMARKS / "run.py", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        encoding="utf-8",
    )


def test_every_benchmark_has_a_script():
    for name in run.BENCHMARKS:
        assert (BENCHMARKS / run.command_of(name, [])[0]).is_file(), name


def test_every_script_that_can_be_run_is_listed():
    listed = {run.command_of(name, [])[0] for name in run.BENCHMARKS}
    scripts = [path for path in BENCHMARKS.rglob("*.py") if "__main__" in path.read_text("utf-8")]
    found = {path.relative_to(BENCHMARKS).as_posix() for path in scripts}
    assert found - NOT_LISTED == listed


def test_pages_name_benchmarks_that_exist():
    for name, text in PAGES.items():
        for benchmark in re.findall(r"make benchmark NAME=(\w+)", text):
            assert benchmark in run.BENCHMARKS, name


def test_without_a_name_all_benchmarks_are_listed():
    shown = runner()
    assert shown.returncode == 0
    for name, benchmark in run.BENCHMARKS.items():
        assert re.search(rf"^  {name} +{benchmark.duration}  ", shown.stdout, re.MULTILINE)


def test_an_unknown_name_is_an_error_of_one_line():
    shown = runner("nothing")
    assert shown.returncode == 2
    assert "invalid choice: 'nothing'" in shown.stderr


def test_arguments_replace_those_of_a_full_run():
    assert run.command_of("solving", []) == ["solving.py", "-o", "benchmarks/solving.json"]
    assert run.command_of("solving", ["--seeds", "1"]) == ["solving.py", "--seeds", "1"]
    shown = runner("solving", "--help")
    assert "--random-worlds" in shown.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="CPU time of a process by wait4")
def test_two_checkouts_are_run_in_turns_and_compared(tmp_path, capsys):
    for name, spins, figure in (("new", 1, 10), ("old", 4, 40)):
        checkout = tmp_path / name
        (checkout / "benchmarks").mkdir(parents=True)
        (checkout / ".venv/bin").mkdir(parents=True)
        (checkout / ".venv/bin/python").symlink_to(sys.executable)
        (checkout / "benchmarks/spin.py").write_text(
            f"import sys\nfor _ in range({spins}_000_000 * 4): pass\n"
            f"print('table')\nprint('speed', {figure}, sys.argv[1])\n"
        )
    assert against.compare("spin.py", ["2"], tmp_path / "new", tmp_path / "old", 2) == 0
    printed = capsys.readouterr().out
    ratio = float(re.search(r"new / old: ([\d.]+) of the CPU time", printed)[1])
    assert ratio < 1
    assert re.search(r"^speed +10 +40 +0\.25 +1\.00$", printed, re.MULTILINE)


def test_figures_are_named_by_the_text_before_them():
    printed = "\nsmall\n\nread   1,234.5 s (1 to 2)\n\n2 big ones\n\nread 7\nno numbers here"
    assert against.figures(printed) == {"read": [1234.5, 1, 2], "read, 2 big ones": [7]}


def test_a_checkout_without_an_environment_is_refused(tmp_path):
    with pytest.raises(SystemExit, match=r"has no \.venv"):
        against.compare("spin.py", [], tmp_path, tmp_path, 1)
