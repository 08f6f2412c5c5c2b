"""Print results, warnings and progress, and check files before they are written."""

import json
import os
import shlex
import shutil
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any, Final

from resolvent._util.files import check_writable, link_target
from resolvent._util.parallel import Listener, Progress
from resolvent._util.records import builtin
from resolvent._util.text import amount, visible
from resolvent.errors import OptionError, ResumeWarning, TableWarning
from resolvent.replay.corpus import READING, REPLAYING
from resolvent.traces import TraceSet
from resolvent.traces.io.formats import minari_id, written_format
from resolvent.viz.terminal import Amount, ProgressBar

SHARD_STAGES: Final = READING, REPLAYING  # of work on scanned files, whose progress counts shards


def print_json(value: Mapping[str, Any]) -> None:
    """Print the one JSON object of a command."""
    print(json.dumps(value, allow_nan=False, default=builtin))  # ASCII, for any terminal


@contextmanager
def working() -> Iterator[ProgressBar]:
    """Yield a progress bar; warnings, and what environments print, go to standard error."""
    before = warnings.showwarning

    def show(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, TableWarning | ResumeWarning):
            print(f"resolvent: warning: {visible(str(message))}", file=sys.stderr)
        else:
            before(message, category, *where, **more)

    with redirect_stdout(sys.stderr), ProgressBar() as bar, warnings.catch_warnings():
        warnings.simplefilter("always", TableWarning)
        warnings.simplefilter("always", ResumeWarning)
        warnings.showwarning = show
        yield bar


def size(traces: TraceSet) -> str:
    """Return the numbers of traces and steps as text."""
    return f"{amount(len(traces), 'trace')}, {amount(traces.steps, 'step')}"


def command(*words: object) -> str:
    """Write a command of this program so that it can be copied into a shell."""
    return " ".join(map(_quoted, map(str, (program_name(), *words))))


def option_words(values: Mapping[str, Any]) -> list[str]:
    """Return options as they are typed, without those that are not given."""
    words: list[str] = []
    for name, value in values.items():
        for occurrence in value if isinstance(value, list) else [value]:
            if occurrence is None or occurrence is False:
                continue
            words.append(f"--{name.replace('_', '-')}")
            parts = occurrence if isinstance(occurrence, tuple) else (occurrence,)
            if occurrence is not True:
                words += (f"{n:.15g}" if isinstance(n, float) else str(n) for n in parts)
    return words


def _quoted(word: str) -> str:
    """Quote a word for a shell, with escapes for what does not show."""
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
        text, of = shard_progress(stage, now) if stage in SHARD_STAGES else (stage, None)
        bar.show(text, now.fraction, of=of, stage=stage)

    return show


def shard_progress(stage: str, now: Progress) -> tuple[str, Amount | None]:
    """Return the number of shards that a stage has finished as text, and the steps in all."""
    text = f"{stage}: {now.done:,} of {amount(now.total, 'shard')}"
    return text, Amount(now.steps, "steps") if now.steps else None


def rounded(seconds: Mapping[str, float]) -> dict[str, float]:
    """Return seconds to the microsecond, for JSON."""
    return {name: round(value, 6) for name, value in seconds.items()}


# --- Files to write -----------------------------------------------------------------------------


def check_targets(*paths: Path | None, inputs: tuple[Path | None, ...] = ()) -> None:
    """Refuse files that cannot be written, that are one file, or that the command reads.

    Two paths are one file also by links and hard links, and by other spellings of folders.
    """
    identities: dict[object, Path] = {}
    for path in filter(None, paths):
        if path.is_file():
            for source in filter(None, inputs):
                files = source.rglob("*.parquet") if source.is_dir() else [source]
                if _identity(path) in map(_identity, files):
                    raise OptionError(
                        f"cannot write {path}: it would replace what is read from {source}; "
                        f"name another file"
                    )
        check_writable(path)
        first = identities.setdefault(_identity(path), path)
        if first is not path:
            also = "" if first == path else f", which is the same file as {first}"
            raise OptionError(
                f"cannot write two things to {path}{also}: give each a file of its own"
            )


def _identity(path: Path) -> object:
    """Return a value that is equal for all paths of a file, and for none of a pipe or terminal."""
    if path.is_file():
        return path.stat().st_dev, path.stat().st_ino
    return object() if path.exists() else link_target(path)


def check_trace_target(path: Path, name: str | None = None, *inputs: Path | None) -> None:
    """Refuse traces to write as `check_targets` does, or if the file's name has no format."""
    if minari_id(path) is None:
        check_targets(path, inputs=inputs)
        written_format(path, name)
