"""The paper's experiments: settings → runs, whose records are kept in a folder of results."""

import os
import platform
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import msgspec

from resolvent._util.files import atomic_write, decode_json, read_json
from resolvent.errors import ModelError, OptionError, ResolventError
from resolvent.paper.experiments import (
    ABLATION,
    BASELINES,
    EXPERIMENTS,
    STRATEGIES,
    ablation_runs,
    baseline_runs,
    policy_runs,
)
from resolvent.paper.runs import Run, run_apart

FORMAT: Final = 1
MEMORY_LIMIT_MB: Final = 8_192.0
_ABOUT: Final = "about.json"
_LIMITS: Final = ("time limit", "memory limit")  # status of a run that was stopped
_PACKAGES: Final = (
    "aalpy",
    "gymnasium",
    "highspy",
    "matplotlib",
    "numpy",
    "pyarrow",
    "python-sat",
    "resolvent",
)

Progress = Callable[[int, int, Run], object]
"""Called regularly with the number of finished runs, that of all runs, and the current run."""

Finished = Callable[[int, int, Run, dict[str, Any]], object]
"""Called after each run with the numbers of finished and of all runs, the run, and its record."""


@dataclass(frozen=True)
class Settings:
    """Limits, and numbers of repetitions, of seeds of the learning curve, and of its episodes.

    All results of a folder have the same settings.
    """

    quick: bool
    time_limit: float
    memory_limit_mb: float
    repetitions: int
    learners: int
    episodes: int

    def runs(self, experiment: str) -> Iterator[Run]:
        """Yield the runs of an experiment."""
        if experiment == BASELINES:
            return baseline_runs(self.repetitions)
        if experiment == ABLATION:
            return ablation_runs(self.repetitions, STRATEGIES[:2] if self.quick else STRATEGIES)
        return policy_runs(self.learners, self.episodes)


def settings(
    *, quick: bool = False, time_limit: float | None = None, repetitions: int | None = None
) -> Settings:
    """Return the settings of a reproduction: those of the paper, or short ones.

    Raises:
        OptionError: when a limit or a number is not above 0.
    """
    if time_limit is not None and not 0 < time_limit < float("inf"):
        raise OptionError(f"the time limit is {time_limit:g} s: it must be above 0")
    if repetitions is not None and repetitions < 1:
        raise OptionError(f"repetitions={repetitions}: use at least 1")
    return Settings(
        quick=quick,
        time_limit=float(time_limit or (20 if quick else 1_800)),
        memory_limit_mb=MEMORY_LIMIT_MB,
        repetitions=repetitions or (1 if quick else 3),
        learners=repetitions or (3 if quick else 10),
        episodes=3_000 if quick else 10_000,
    )


# --- The folder of results -----------------------------------------------------------------------


@dataclass(frozen=True)
class Results:
    """The content of a folder: how it was made, and the records of all runs."""

    about: dict[str, Any]
    records: list[dict[str, Any]]

    def of(self, experiment: str) -> list[dict[str, Any]]:
        """Return the records of one experiment."""
        return [record for record in self.records if record["experiment"] == experiment]

    def lines(self) -> bytes:
        """Write all of it as JSON lines, `about` first."""
        return b"\n".join(map(msgspec.json.encode, (self.about, *self.records))) + b"\n"

    @classmethod
    def read(cls, folder: Path) -> "Results":
        """Read all results of a folder."""
        if not (folder / _ABOUT).exists():
            raise ResolventError(f"{folder} has no results: make some with `resolvent reproduce`")
        records = sorted((folder / "runs").rglob("[!.]*.json"))
        return cls(_read(folder / _ABOUT), [_read(path) for path in records])

    @classmethod
    def from_lines(cls, content: bytes) -> "Results":
        """Read results that `lines` wrote."""
        try:
            about, *records = (decode_json(line, dict[str, Any]) for line in content.splitlines())
        except ValueError as error:
            raise ModelError(f"these are no results, as lines of JSON: {error}") from error
        return cls(about, records)


class Store:
    """A folder of results of one version, settings and machine, to add runs to; or an error."""

    def __init__(self, folder: Path, settings: dict[str, Any], command: str) -> None:
        self.folder = folder
        about = {
            "format": FORMAT,
            "settings": settings,
            "machine": {
                "processor": _processor(),
                "cores": os.cpu_count(),
                "system": platform.system(),
                "architecture": platform.machine(),
            },
            "python": platform.python_version(),
            "packages": {name: _version(name) for name in _PACKAGES},
        }
        path = folder / _ABOUT
        if path.exists():
            _check_same(folder, _read(path), about)
            return
        if folder.exists() and not folder.is_dir():
            raise ResolventError(f"{folder} is a file: name a folder for the results with -o")
        if folder.exists() and any(folder.iterdir()):
            raise ResolventError(
                f"{folder} has other files and no results: name an empty or new folder with -o"
            )
        folder.mkdir(parents=True, exist_ok=True)
        _write(path, about | {"command": command})

    def needs(self, run: Run) -> bool:
        """Whether a run is neither done nor the repetition of one that reached a limit."""
        if (self.folder / run.file).exists():
            return False
        first = self.folder / replace(run, repetition=0).file
        return not (first.exists() and _read(first).get("status") in _LIMITS)

    def add(self, run: Run, record: dict[str, Any]) -> None:
        """Store the record of a run and its arguments atomically."""
        path = self.folder / run.file
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(path, record | {"arguments": run.arguments})


def _check_same(folder: Path, stored: dict[str, Any], wanted: dict[str, Any]) -> None:
    if stored.get("format") != FORMAT:
        raise ResolventError(f"{folder} has results in another format: name another folder with -o")
    for name, ours in wanted.items():
        theirs = stored.get(name)
        if theirs == ours:
            continue
        if isinstance(ours, dict) and isinstance(theirs, dict):
            key = next(key for key in (*ours, *theirs) if ours.get(key) != theirs.get(key))
            name, ours, theirs = f"{name}: {key}", ours.get(key), theirs.get(key)
        raise OptionError(
            f"{folder} has results under other conditions ({name}, {theirs} there, {ours} here): "
            f"repeat '{stored.get('command')}' to continue those, or name another folder with -o"
        )


def _processor() -> str:
    """Return the name of the processor, where the system provides it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "unknown")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _read(path: Path) -> dict[str, Any]:
    try:
        return read_json(path, dict[str, Any], "a record of a run")
    except ModelError as error:
        raise ModelError(f"{error}; delete it and repeat the command") from error


def _write(path: Path, value: dict[str, Any]) -> None:
    try:
        with atomic_write(path) as file:
            file.write(msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n")
    except ResolventError as error:
        raise ResolventError(
            f"{error}; finished runs are kept: make room and repeat the command to continue"
        ) from error


# --- Runs ----------------------------------------------------------------------------------------


def reproduce(
    store: Store,
    settings: Settings,
    experiments: Iterable[str] = EXPERIMENTS,
    *,
    methods: Collection[str] | None = None,
    progress: Progress = lambda done, of, run: None,
    finished: Finished = lambda done, of, run, record: None,
) -> Results:
    """Execute the missing runs of some experiments, or of some methods in them, one after another.

    Returns all results of the folder. A run that reaches a limit is not repeated.
    """
    runs = [
        run
        for experiment in experiments
        for run in settings.runs(experiment)
        if methods is None or run.method in methods
    ]
    for done, run in enumerate(runs):
        if not store.needs(run):
            continue
        record = run_apart(
            run,
            time_limit=settings.time_limit,
            memory_limit_mb=settings.memory_limit_mb,
            tick=partial(progress, done, len(runs), run),
        )
        store.add(run, record)
        finished(done + 1, len(runs), run, record)
    return Results.read(store.folder)
