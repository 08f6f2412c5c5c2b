"""One input, tried: how it ended, and where it went wrong if it did."""

import os
import shutil
import sys
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import resolvent as rs
from fuzz.targets import Call, Files, Reader, Target

CORPUS = Path(__file__).parent / "corpus"
OURS = (rs.errors.ResumeWarning, rs.errors.SpaceWarning, rs.errors.TableWarning)
"""Warnings that say what the documentation says they say; any other one is a failure."""

MOST_CHARACTERS = 5_000
"""Of one line that says what is wrong."""


@dataclass(frozen=True)
class Outcome:
    """How trying an input ended.

    Attributes:
        kind: "result", "refused" or "failed".
        where: The kind of error and the line that raised it, by which failures are told apart.
        text: All that is known of the error.
    """

    kind: str
    where: str = ""
    text: str = ""


def input_of(target: Target, seed: int, number: int) -> Random:
    """Return the source of chance of one input."""
    return Random(f"{seed}/{target.name}/{number}")


def files_of(reader: Reader, seed: int, number: int) -> Files:
    """Return the files of one input."""
    return reader.make(input_of(reader, seed, number))


def attempt(target: Target, seed: int, number: int, folder: Path) -> Outcome:
    """Try the input of that number; `folder` is emptied and then holds its files."""
    if isinstance(target, Call):
        _empty(folder)  # what one call writes must not be there for another
        os.chdir(folder)
        call, text = target.prepare(input_of(target, seed, number))
        return tried(call, target.allowed, text)
    return attempt_files(target, files_of(target, seed, number), folder)


def attempt_files(reader: Reader, files: Files, folder: Path) -> Outcome:
    """Try files that are given."""
    _empty(folder)
    for name, content in files.items():
        path = folder / name
        if "/" in name:
            path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return tried(lambda: reader.read(folder), reader.allowed)


def _empty(folder: Path) -> None:
    for old in folder.iterdir():
        shutil.rmtree(old) if old.is_dir() else old.unlink()


def tried(
    call: Callable[[], object], allowed: tuple[type[Exception], ...], text: str = ""
) -> Outcome:
    """Call, and say how that ended; what Python would print as ignored is a failure, too."""
    ignored: list[Any] = []
    sys.unraisablehook = ignored.append
    try:
        outcome = _tried(call, allowed, text)
    finally:
        sys.unraisablehook = sys.__unraisablehook__
    if ignored and outcome.kind != "failed":
        return _failed(ignored[0].exc_value, f"{text}\nignored in {ignored[0].object}")
    return outcome


def _tried(call: Callable[[], object], allowed: tuple[type[Exception], ...], text: str) -> Outcome:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for ours in OURS:
                warnings.simplefilter("ignore", ours)
            call()
    except rs.ResolventError as error:
        said = str(error)
        if not said or "\n" in said or len(said) > MOST_CHARACTERS:
            return _failed(error, f"{text}\na message of {len(said)} characters: {said[:300]!r}")
        return Outcome("refused")
    except allowed:
        return Outcome("refused")
    except (Exception, KeyboardInterrupt, SystemExit) as error:
        return _failed(error, text)
    return Outcome("result")


def _failed(error: BaseException, text: str) -> Outcome:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [one for one in frames if "resolvent" in Path(one.filename).parts] or frames
    last = ours[-1]
    where = f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno}"
    lines = traceback.format_exception(error, limit=-12)
    return Outcome("failed", where, f"{text}\n{''.join(lines)[-6000:]}")
