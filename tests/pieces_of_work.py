"""Work for workers of all kinds, where other processes can import it."""

import os
import signal
import time
import warnings
from pathlib import Path

import resolvent as rs
from resolvent._util.parallel import available_cores
from resolvent.errors import StorageError


def doubled(text):
    return text * 2


def joined(one, other):
    return one + other


def cores_here(_):
    return [available_cores()]


def hears_ctrl_c(_):
    time.sleep(0.2)  # so that all processes get something to do
    return signal.getsignal(signal.SIGINT) is not signal.SIG_IGN


def refused(number):
    if number >= 3:
        raise rs.TraceError(f"piece {number} is damaged")
    return [number]


def outliers(number):
    raise ZeroDivisionError(number)


def told(number):
    warnings.warn(f"piece {number}: a row was dropped", rs.errors.TableWarning, stacklevel=2)
    warnings.warn("of no interest to users", DeprecationWarning, stacklevel=2)
    return [number]


def slept(seconds):
    time.sleep(seconds)
    return seconds


def is_short(seconds):
    return seconds < 1


def ended(_):
    os._exit(1)


def flaky(path):
    """Storage that fails twice, and then answers."""
    tries = Path(path)
    with tries.open("a") as file:
        file.write("x")
    if len(tries.read_text()) < 3:
        raise StorageError("nobody answers: try again")
    return tries.read_text()


def killed_once(path):
    """A worker that is lost the first time."""
    tries = Path(path)
    if not tries.exists():
        tries.touch()
        os._exit(1)
    return "done"
