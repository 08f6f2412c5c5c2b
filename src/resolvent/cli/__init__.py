"""The command `resolvent`: its errors are one line and an exit code, never a traceback.

Exit codes: 0 done; 1 `check` found a wrong prediction or none at all, or `doctor` a
fault; 2 bad input or options; 3 time limit reached; 130 interrupted; 143 ended by a
request to end.
"""

import atexit
import io
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from resolvent._util.startup import end_at_once, end_by_exceptions, was_ended, was_interrupted
from resolvent._util.text import visible
from resolvent.errors import ResolventError, TimeLimitReached

_INTERRUPTED = 130
_ENDED = 143
_LASTING = {"ray", "wasmtime"}
"""Modules with threads that Python would wait for at its end, or crash in."""
_COMPLETING = "_RESOLVENT_COMPLETE"
"""What a shell sets when it asks how to complete what stands in another variable."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, by default the one of this process, and return its exit code."""
    own = arguments is None  # this process is the command, and nothing else
    if own:
        _open_missing_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal may lack a letter
    try:
        try:
            if own:
                end_by_exceptions()
            code = _done(arguments)
        finally:
            if own:  # from here on there is nothing to tidy up
                end_at_once()
    except KeyboardInterrupt:  # it came when Typer had already begun to end
        code = _INTERRUPTED
    if code == _INTERRUPTED:
        if was_ended():
            code = _ENDED
        words = "interrupted" if code == _INTERRUPTED else "ended by a signal"
        print(f"resolvent: {words}", file=sys.stderr)
        if own and not _LASTING.isdisjoint(sys.modules):
            _leave_at_once(code)
    return code


def _done(arguments: Sequence[str] | None) -> int:
    """Run a command, and say on standard error why it failed, if it does."""
    try:
        code = _interruptible(sys.argv[1:] if arguments is None else list(arguments))
        sys.stdout.flush()
    except _UsageError as error:
        return _failed(str(error), 2)
    except TimeLimitReached as error:
        return _failed(str(error), 3)
    except ResolventError as error:
        return _failed(str(error), 2)
    except MemoryError:
        return _failed("memory ran out: use less data at once, or a machine with more memory", 2)
    except BrokenPipeError:
        # Whoever read the output has had enough, as `head` does. Python flushes
        # once more on its way out, and must not complain then.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _failed(f"{where}{(error.strerror or str(error)).lower()}", 2)
    return int(code)


class _UsageError(Exception):
    """Arguments that no command takes, as text."""


def _interruptible(arguments: list[str]) -> int:
    """Run a command; what a library has made of an interruption becomes one again.

    PyArrow, for one, may take it for a fault of its arguments.
    """
    try:
        return _run(arguments)
    except Exception as error:
        if was_interrupted():
            raise KeyboardInterrupt from error
        raise


def _run(arguments: list[str]) -> int:
    # Typer takes longer to import than help takes to print.
    if arguments in ([], ["-h"], ["--help"]) and _COMPLETING not in os.environ:
        from resolvent.cli.table import help_text

        print(help_text())
        return 0
    import typer

    from resolvent.cli.app import app

    # Typer's versions take this class from different places; its child is always here.
    usage_error: type[Exception] = typer.BadParameter.__mro__[1]
    try:
        return app(arguments, prog_name="resolvent", standalone_mode=False) or 0
    except usage_error as error:
        raise _UsageError(_usage_text(error)) from error


def _open_missing_streams() -> None:
    """Let standard output or error that is closed lead nowhere, as if to `/dev/null`.

    Otherwise the next file that is opened would take its place, and what is printed.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w", encoding="utf-8"))


def _leave_at_once(code: int) -> NoReturn:
    """End this process without taking Python apart, for which threads would have to end."""
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _failed(message: str, code: int) -> int:
    # It may quote what a file holds, and that does nothing to a terminal.
    print(f"resolvent: error: {visible(' '.join(message.split()))}", file=sys.stderr)
    return code


def _usage_text(error: Exception) -> str:
    """Write what Typer has against the arguments as our own errors are written."""
    message = str(getattr(error, "message", ""))
    if "Did you mean" not in message:  # some Typers ask this, and some clicks ask it once more
        message = str(getattr(error, "format_message", error.__str__)()).rstrip(".")
    context = getattr(error, "ctx", None)
    path = "resolvent" if context is None else context.command_path
    return f"{message[:1].lower()}{message[1:]} (see `{path} --help`)"
