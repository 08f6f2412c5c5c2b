"""Results, warnings and progress → one JSON object, lines for people, and a progress bar."""

import json
import os
import shlex
import shutil
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from resolvent._util.progress import Listener, Progress
from resolvent._util.text import amount, visible
from resolvent.errors import ResumeWarning, TableWarning
from resolvent.replay.corpus import READING, REPLAYING
from resolvent.traces import TraceSet
from resolvent.viz.terminal import Amount, ProgressBar


def print_json(value: dict[str, Any]) -> None:
    """Print the one JSON object of a command."""
    print(json.dumps(value, allow_nan=False))  # ASCII, whatever the terminal's encoding


SHARD_STAGES: Final = READING, REPLAYING
"""Stages of work on scanned files, whose progress counts shards."""

_OURS: Final = TableWarning, ResumeWarning


@contextmanager
def saying_warnings() -> Iterator[None]:
    """Print warnings about tables and folders on standard error, one line each, as they come.

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
        for category in _OURS:
            warnings.simplefilter("always", category)
        warnings.showwarning = say
        yield


def size(traces: TraceSet) -> str:
    """Return the numbers of traces and steps as text."""
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
    """Return the command that runs this program again: its name, or its path if necessary."""
    if shutil.which("resolvent") is None and Path(sys.argv[0]).name == "resolvent":
        return os.path.relpath(sys.argv[0])
    return "resolvent"


def shown_by(bar: ProgressBar) -> Listener:
    """Return a listener that shows the progress of stages on a bar."""

    def show(stage: str, now: Progress) -> None:
        if stage in SHARD_STAGES:
            bar.show(
                shard_text(stage, now), now.fraction, of=Amount(now.steps, "steps"), stage=stage
            )
        else:
            bar.show(stage, now.fraction)

    return show


def shard_text(stage: str, now: Progress) -> str:
    """Return the number of shards that a stage has finished as text."""
    return f"{stage}: {now.done:,} of {amount(now.total, 'shard')}"


def rounded(seconds: Mapping[str, float]) -> dict[str, float]:
    """Return seconds to the microsecond, for JSON."""
    return {name: round(value, 6) for name, value in seconds.items()}
