"""The command `resolvent`: its errors are one line and an exit code, never a traceback.

Input: the arguments of a process. Output: an exit code; `resolvent --help` lists them.
"""

import atexit
import io
import os
import sys
from collections.abc import Sequence
from textwrap import wrap

from resolvent._util import startup
from resolvent._util.text import visible
from resolvent.errors import ResolventError, TimeLimitReached

_INTERRUPTED = 130
_ENDED = 143
_THREADED = {"ray", "wasmtime"}
"""Modules with threads that outlive Python, so that it would wait or crash at its end."""
_COMPLETION = "_RESOLVENT_COMPLETE"  # environment variable of a shell that asks for completions
_PURPOSE = "Infer the smallest memory that makes a partially observable world Markovian."

COMMANDS = {
    "demo": "Show every step in a small house: traces, two machines, a check and a plan.",
    "solve": "Explore an environment until no policy is provably better, and say why it stops.",
    "collect": "Play episodes of random actions in an environment, and write their traces.",
    "diagnose": "Describe traces, and report problems that would prevent or weaken inference.",
    "infer": "Infer the machines that explain traces: by default a Transition and a Reward "
    "Machine.",
    "show": "Print machines as tables, as a drawing, or as other tools read them.",
    "check": "Replay traces through machines: how many steps do they predict right?",
    "report": "Write one HTML page: the machines drawn, traces replayed, and the evidence.",
    "plan": "Find the best policy from machines and traces, with no further interaction.",
    "train": "Learn to act in an environment by tabular Q-learning, as in the paper.",
    "convert": "Write traces in another format; that of TRACES is recognized by its content.",
    "reproduce": "Run the paper's experiments again, and compare the results with its figures.",
    "doctor": "Check this installation: versions, the build of the core, extras, a trial run.",
}
"""Each command with the first sentence of its docstring.

A command `name` is the function `name` of the module `resolvent.cli.commands.name`.
"""

OPTIONS = {
    "--version": "Print the version and exit.",
    "--install-completion": "Install completion for the current shell.",
    "--show-completion": "Show completion for the current shell, to copy it or customize the "
    "installation.",
    "--help, -h": "Show this message and exit.",
}
"""The options of `resolvent` itself."""


def help_text() -> str:
    """Return the text of `resolvent --help`, as wide as the terminal."""
    width = min(_columns(), 100)
    exits = (
        "Exit codes: 0 done, 1 `check` found a wrong prediction (or no prediction), or `doctor` a "
        "fault, 2 bad input or options, 3 time limit reached, 130 interrupted, 143 ended by a "
        "signal."
    )
    lines = [
        "Usage: resolvent [OPTIONS] COMMAND [ARGS]...",
        *("", *wrap(_PURPOSE, width), "", "New here? Run `resolvent demo`."),
        *("", "Options:", *_rows(OPTIONS, width)),
        *("", "Commands:", *_rows(COMMANDS, width)),
        *("", "`resolvent COMMAND --help` explains a command.", "", *wrap(exits, width)),
    ]
    return "\n".join(lines)


def _rows(texts: dict[str, str], width: int) -> list[str]:
    name_width = max(map(len, texts)) + 4
    return [
        f"{'' if number else f'  {name}':<{name_width}}{line}"
        for name, text in texts.items()
        for number, line in enumerate(wrap(text, max(width - name_width, 20)))
    ]


def _columns() -> int:
    # As shutil.get_terminal_size, whose import takes as long as all the rest here.
    try:
        return int(os.environ.get("COLUMNS") or os.get_terminal_size().columns)
    except (ValueError, OSError):
        return 80


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, by default the one of this process, and return its exit code."""
    is_process = arguments is None
    if is_process:
        _open_missing_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal may lack a character
    try:
        try:
            if is_process:
                startup.end_with_exceptions()
            code = _exit_code(arguments)
        finally:
            if is_process:  # nothing is left to clean up
                startup.end_at_once()
    except KeyboardInterrupt:  # it came while Typer was ending
        code = _INTERRUPTED
    if code == _INTERRUPTED:
        reason = "interrupted"
        if startup.was_terminated():
            code, reason = _ENDED, "ended by a signal"
        print(f"resolvent: {reason}", file=sys.stderr)
        if is_process and not _THREADED.isdisjoint(sys.modules):
            # Finalizing Python would wait for threads.
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    return code


def _exit_code(arguments: Sequence[str] | None) -> int:
    """Run a command, and report an error in one line on standard error."""
    try:
        try:
            code = _run(sys.argv[1:] if arguments is None else list(arguments))
        except Exception as error:
            if startup.was_interrupted():  # PyArrow may report it as a fault of its arguments
                raise KeyboardInterrupt from error
            raise
        sys.stdout.flush()
    except ResolventError as error:
        return _report(str(error), 3 if isinstance(error, TimeLimitReached) else 2)
    except MemoryError:
        return _report("memory ran out: use less data at once, or a machine with more memory", 2)
    except BrokenPipeError:
        # The reader of the output has ended, as `head` does. Python flushes once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _report(f"{where}{(error.strerror or str(error)).lower()}", 2)
    return int(code)


def _run(arguments: list[str]) -> int:
    # Typer takes longer to import than help takes to print.
    if arguments in ([], ["-h"], ["--help"]) and _COMPLETION not in os.environ:
        print(help_text())
        return 0
    import typer

    from resolvent.cli.flags import app

    # Typer's versions take this class from different places; its child is always here.
    usage_error: type[Exception] = typer.BadParameter.__mro__[1]
    try:
        return app(arguments, prog_name="resolvent", standalone_mode=False) or 0
    except usage_error as error:
        raise ResolventError(_usage_text(error)) from error


def _open_missing_streams() -> None:
    """Open `/dev/null` for closed standard streams, whose place the next opened file would take."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number)
                os.close(null)
            setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w", encoding="utf-8"))


def _report(message: str, code: int) -> int:
    # The message may quote a file, whose control characters must not reach the terminal.
    print(f"resolvent: error: {visible(' '.join(message.split()))}", file=sys.stderr)
    return code


def _usage_text(error: Exception) -> str:
    """Return an error of Typer about the arguments in the form of our own errors."""
    message = str(getattr(error, "message", ""))
    if "Did you mean" not in message:  # some versions of click repeat the query
        message = str(getattr(error, "format_message", error.__str__)()).rstrip(".")
    context = getattr(error, "ctx", None)
    path = "resolvent" if context is None else context.command_path
    return f"{message[:1].lower()}{message[1:]} (see `{path} --help`)"
