"""Results → standard output: one JSON object, or lines for people."""

import json
import os
import shlex
import shutil
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from resolvent._util.text import amount, visible
from resolvent.errors import ResumeWarning, TableWarning
from resolvent.traces import TraceSet


def print_json(value: dict[str, Any]) -> None:
    """Print the one JSON object of a command."""
    print(json.dumps(value, allow_nan=False))  # ASCII, whatever the terminal's encoding


_OURS: Final = TableWarning, ResumeWarning


@contextmanager
def saying_warnings() -> Iterator[None]:
    """Say on standard error what of a table is not read, or of a folder not used, as it turns out.

    >>> with saying_warnings():
    ...     warnings.showwarning.__name__
    'say'
    """
    before = warnings.showwarning

    def say(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, _OURS):
            print(f"resolvent: warning: {visible(str(message))}", file=sys.stderr)
        else:
            before(message, category, *where, **more)

    with warnings.catch_warnings():
        for one in _OURS:
            warnings.simplefilter("always", one)
        warnings.showwarning = say
        yield


def size(traces: TraceSet) -> str:
    """Write how many traces and steps there are."""
    return f"{amount(len(traces), 'trace')}, {amount(traces.steps, 'step')}"


def command(*words: str | Path) -> str:
    """Write a command of this program so that it can be copied into a shell.

    >>> command("show", Path("my machines.json"))
    "resolvent show 'my machines.json'"
    """
    return " ".join(_quoted(str(word)) for word in (program_name(), *words))


def _quoted(word: str) -> str:
    r"""Quote a word for a shell, with escapes for what does not show.

    >>> print(_quoted("two words"), _quoted("red\x1b[31m's"))
    'two words' $'red\x1b[31m\'s'
    """
    if word.isprintable():
        return shlex.quote(word)
    return "$'" + visible(word.replace("\\", "\\\\").replace("'", "\\'")) + "'"


def name_text(name: str | Path) -> str:
    r"""Write the name of a file so that it does nothing to a terminal.

    >>> print(name_text(Path("red\x1b[31m.json")))
    red\x1b[31m.json
    """
    return visible(str(name))


def program_name() -> str:
    """Return what to type to run this program again: its name, or its path if need be."""
    if shutil.which("resolvent") is None and Path(sys.argv[0]).name == "resolvent":
        return os.path.relpath(sys.argv[0])
    return "resolvent"
