"""Python without its global lock: a warning or an error; in any Python, since the lock is faked."""

import subprocess
import sys

import pytest

from resolvent._util import startup

IMPORT = "import sys; sys._is_gil_enabled = lambda: {}; import resolvent; print('imported')"


def imported(enabled, *options, **environment):
    command = [sys.executable, *options, "-c", IMPORT.format(enabled)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_with_the_lock_there_is_no_warning():
    done = imported(True)
    assert (done.stdout, done.stderr) == ("imported\n", "")


def test_a_warning_if_the_lock_comes_back():
    done = imported(False)
    assert done.stdout == "imported\n"
    assert "RuntimeWarning: Resolvent does not run without Python's global lock" in done.stderr


def test_an_error_if_it_cannot_come_back(monkeypatch):
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    monkeypatch.setenv("PYTHON_GIL", "0")
    with pytest.raises(ImportError, match="leave out PYTHON_GIL=0"):
        startup.check_gil()
    monkeypatch.setenv("PYTHON_GIL", "1")
    with pytest.warns(RuntimeWarning, match="taken back"):
        startup.check_gil()
    monkeypatch.setitem(sys._xoptions, "gil", "0")
    with pytest.raises(ImportError):
        startup.check_gil()
