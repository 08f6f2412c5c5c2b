"""Python without its global lock: said so, or refused; in any Python, since the lock is faked."""

import subprocess
import sys

import pytest

from resolvent._util import runtime as installation
from resolvent._util import startup as global_lock

IMPORT = "import sys; sys._is_gil_enabled = lambda: {}; import resolvent; print('imported')"


def imported(enabled, *options, **environment):
    command = [sys.executable, *options, "-c", IMPORT.format(enabled)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_with_the_lock_nothing_is_said():
    done = imported(True)
    assert (done.stdout, done.stderr) == ("imported\n", "")


def test_that_the_lock_comes_back_is_said():
    done = imported(False)
    assert done.stdout == "imported\n"
    assert "RuntimeWarning: Resolvent does not run without Python's global lock" in done.stderr


def test_where_it_cannot_come_back_the_import_is_refused(monkeypatch):
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    monkeypatch.setenv("PYTHON_GIL", "0")
    with pytest.raises(ImportError, match="leave out PYTHON_GIL=0"):
        global_lock.check()
    monkeypatch.setenv("PYTHON_GIL", "1")
    with pytest.warns(RuntimeWarning, match="taken back"):
        global_lock.check()
    monkeypatch.setitem(sys._xoptions, "gil", "0")
    with pytest.raises(ImportError):
        global_lock.check()


def test_the_doctor_says_so(monkeypatch):
    assert installation.system()["global lock"] == "on"
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    assert installation.system()["global lock"].startswith("off: Resolvent does not run without")
