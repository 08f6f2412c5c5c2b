"""Results → standard output: one JSON object, or lines for people."""

import json
import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

from resolvent.traces import TraceSet
from resolvent.wording import amount


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
    return shlex.join([program_name(), *map(str, words)])


def program_name() -> str:
    """Return what to type to run this program again: its name, or its path if need be."""
    if shutil.which("resolvent") is None and Path(sys.argv[0]).name == "resolvent":
        return os.path.relpath(sys.argv[0])
    return "resolvent"
