"""Prepare the command `resolvent` before anything else of this package is imported.

Programs that import the package are not affected, but for a check of Python's global lock.
"""

import _signal as signal  # type: ignore[import-not-found]  # built in: importing `signal` is slow
import os
import sys

_FIRST = sys.argv[0] if sys.argv else ""
_AS_MODULE = _FIRST == "-m" and sys.orig_argv[1:].count("resolvent") > 0
"""Whether this is `python -m resolvent`; Python has not set the first argument yet."""


def is_command() -> bool:
    """Whether this process is the command `resolvent`, rather than another program."""
    path = os.path
    of_scripts = path.dirname(path.realpath(_FIRST)) == path.dirname(sys.executable)
    named = path.splitext(path.basename(_FIRST))[0] == "resolvent"
    return _AS_MODULE or (named and of_scripts)


def _remove_current_folder() -> None:
    """Remove the folder that `python -m` puts first from the search path.

    A file there, such as a `random.py`, would be imported in place of the module of that name.
    Modules that a user names, as `module:Class`, are still found there, and the folder stays
    if this package itself is in it.
    """
    path = os.path
    here = path.realpath(sys.path[0] or os.curdir)
    ours = path.dirname(path.dirname(path.dirname(path.realpath(__file__))))
    if here == path.realpath(os.curdir) and here != ours:
        del sys.path[0]


def _end_at_once(number: int, frame: object) -> None:
    """End a command that is still being imported, or is done: it has nothing to clean up."""
    os.write(2, b"resolvent: interrupted\n" if number == 2 else b"resolvent: ended by a signal\n")
    os._exit(128 + number)


if is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, _end_at_once)

if _AS_MODULE and sys.path and not sys.flags.safe_path:
    _remove_current_folder()


def end_with_exceptions() -> None:
    """Make Ctrl-C and termination requests raise `KeyboardInterrupt`: it removes partial files."""
    if signal.getsignal(signal.SIGINT) in (_end_at_once, signal.default_int_handler):
        signal.signal(signal.SIGINT, _interrupt)
    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _interrupt)


def end_at_once() -> None:
    """Make Ctrl-C and termination requests end this process at once, without a traceback."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is _interrupt:
            signal.signal(number, _end_at_once)


def was_interrupted() -> bool:
    """Whether Ctrl-C or a termination request came: libraries may raise other errors then."""
    return bool(_signals)


def was_terminated() -> bool:
    """Whether a termination request came, as from `kill` and shutdowns."""
    return signal.SIGTERM in _signals


def _interrupt(number: int, frame: object) -> None:
    _signals.add(number)
    raise KeyboardInterrupt


_signals: set[int] = set()  # numbers of the signals that came

# --- Python's global lock ------------------------------------------------------------------------


def check_gil() -> None:
    """Warn that the lock comes back, or refuse to be imported if it cannot."""
    if getattr(sys, "_is_gil_enabled", lambda: True)():
        return
    if sys._xoptions.get("gil", os.environ.get("PYTHON_GIL")) == "0":
        raise ImportError(
            "Resolvent does not run without Python's global lock: use a Python with it, or leave "
            "out PYTHON_GIL=0 and -X gil=0"
        )
    import warnings  # not before the current folder is off the search path

    warnings.warn(
        "Resolvent does not run without Python's global lock: it is taken back as soon as the "
        "core is loaded",
        RuntimeWarning,
        stacklevel=3,
    )
