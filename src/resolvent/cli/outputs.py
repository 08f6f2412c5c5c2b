"""Print results, warnings and progress, and check files before they are written."""

import json
import os
import shlex
import shutil
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from itertools import combinations
from pathlib import Path
from typing import Any, Final

from resolvent._util.files import check_writable, link_target
from resolvent._util.progress import Listener, Progress
from resolvent._util.text import amount, visible
from resolvent.errors import OptionError, ResumeWarning, TableWarning
from resolvent.replay.corpus import READING, REPLAYING
from resolvent.traces import TraceSet
from resolvent.traces.io.formats import minari_id, written_format
from resolvent.viz.terminal import Amount, ProgressBar

SHARD_STAGES: Final = READING, REPLAYING
"""Stages of work on scanned files, whose progress counts shards."""

_PRINTED_WARNINGS: Final = TableWarning, ResumeWarning


def print_json(value: Mapping[str, Any]) -> None:
    """Print the one JSON object of a command, with paths as text."""
    print(json.dumps(value, allow_nan=False, default=os.fspath))  # ASCII, for any terminal


@contextmanager
def working() -> Iterator[ProgressBar]:
    """Yield a progress bar; warnings, and what environments print, go to standard error."""
    before = warnings.showwarning

    def show(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, _PRINTED_WARNINGS):
            print(f"resolvent: warning: {visible(str(message))}", file=sys.stderr)
        else:
            before(message, category, *where, **more)

    with redirect_stdout(sys.stderr), ProgressBar() as bar, warnings.catch_warnings():
        for category in _PRINTED_WARNINGS:
            warnings.simplefilter("always", category)
        warnings.showwarning = show
        yield bar


def size(traces: TraceSet) -> str:
    """Return the numbers of traces and steps as text."""
    return f"{amount(len(traces), 'trace')}, {amount(traces.steps, 'step')}"


def command(*words: object) -> str:
    """Write a command of this program so that it can be copied into a shell.

    >>> command("show", Path("my machines.json"))
    "resolvent show 'my machines.json'"
    """
    return " ".join(map(_quoted, map(str, (program_name(), *words))))


def option_words(values: Mapping[str, Any]) -> list[str]:
    """Return options as they are typed, without those that are not given.

    >>> option_words({"quick": True, "set": ["length=5"], "reward_range": (0.0, 2.5), "on": None})
    ['--quick', '--set', 'length=5', '--reward-range', '0', '2.5']
    """
    words: list[str] = []
    for name, value in values.items():
        if value is None or value is False:
            continue
        for occurrence in value if isinstance(value, list) else [value]:
            words.append(f"--{name.replace('_', '-')}")
            if occurrence is not True:
                parts = occurrence if isinstance(occurrence, tuple) else (occurrence,)
                words += [
                    f"{part:.15g}" if isinstance(part, float) else str(part) for part in parts
                ]
    return words


def _quoted(word: str) -> str:
    r"""Quote a word for a shell, with escapes for what does not show.

    >>> print(_quoted("two words"), _quoted("red\x1b[31m's"))
    'two words' $'red\x1b[31m\'s'
    """
    if word.isprintable():
        return shlex.quote(word)
    return "$'" + visible(word.replace("\\", "\\\\").replace("'", "\\'")) + "'"


def name_text(name: str | Path) -> str:
    """Write the name of a file so that it does nothing to a terminal."""
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


# --- Files to write -----------------------------------------------------------------------------


def check_targets(*paths: Path | None, inputs: tuple[Path | None, ...] = ()) -> None:
    """Refuse files that cannot be written, that are one file, or that the command reads.

    Two paths are one file also by links and hard links, and by other spellings of folders.
    """
    targets = [path for path in paths if path is not None]
    for path in targets:
        for source in inputs:
            if source is not None and _would_replace(path, source):
                raise OptionError(
                    f"cannot write {path}: it would replace what is read from {source}; "
                    f"name another file"
                )
        check_writable(path)
    for first, second in combinations(targets, 2):
        if _is_same(first, second):
            also = "" if first == second else f", which is the same file as {first}"
            raise OptionError(
                f"cannot write two things to {second}{also}: give each a file of its own"
            )


def check_trace_target(
    path: Path,
    format: str | None = None,  # noqa: A002
    *inputs: Path | None,
) -> None:
    """Refuse traces to write as `check_targets` does, or if the file's name has no format."""
    if minari_id(path) is None:
        check_targets(path, inputs=inputs)
        written_format(path, format)


def _would_replace(target: Path, source: Path) -> bool:
    """Return whether writing a file changes a file that is read, or one of a folder's."""
    if not target.is_file():  # pipes and terminals may be read and written at once
        return False
    files = source.rglob("*.parquet") if source.is_dir() else [source]
    return any(file.exists() and target.samefile(file) for file in files)


def _is_same(first: Path, second: Path) -> bool:
    if first.exists() and second.exists():
        return first.is_file() and first.samefile(second)
    return link_target(first) == link_target(second)
