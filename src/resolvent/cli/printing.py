"""Results → standard output: one JSON object, or lines for people."""

import json
import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

from resolvent.traces import TraceSet
from resolvent.wording import amount, visible


def print_json(value: dict[str, Any]) -> None:
    """Print the one JSON object of a command."""
    print(json.dumps(value, allow_nan=False))  # ASCII, whatever the terminal's encoding


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
