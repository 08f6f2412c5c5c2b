"""The three experiments, at full length or in a few minutes: settings → records of all runs."""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from resolvent._util.parallel import Workers, get_executor
from resolvent.errors import OptionError
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
from resolvent.paper.store import Results, Store, conditions

MEMORY_LIMIT_MB: Final = 8_192.0

Progress = Callable[[int, int, Run], object]
"""Called regularly with the number of finished runs, that of all runs, and the current run."""

Finished = Callable[[int, int, Run, dict[str, Any]], object]
"""Called after each run with the numbers of finished and of all runs, the run, and its record."""


@dataclass(frozen=True)
class Settings:
    """Repetitions, limits and lengths; all results of a folder have the same settings.

    `learners` is the number of seeds of the learning curve.
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

    >>> settings(quick=True).time_limit, settings(repetitions=5).learners
    (20.0, 5)

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


def reproduce(
    store: Store,
    settings: Settings,
    experiments: Iterable[str] = EXPERIMENTS,
    *,
    methods: Collection[str] | None = None,
    on: str | Workers | None = None,
    progress: Progress = lambda done, of, run: None,
    finished: Finished = lambda done, of, run, record: None,
) -> Results:
    """Execute the missing runs of some experiments, or of some methods in them.

    Returns all results of the folder.

    Runs are executed one by one, so that each has the machine to itself, or side by side with `on`
    workers: then each record names the processor, and seconds are those of a busier machine.
    A run that reaches a limit is not repeated.
    """
    runs = [
        run
        for experiment in experiments
        for run in settings.runs(experiment)
        if methods is None or run.method in methods
    ]
    execute = _Execute(settings.time_limit, settings.memory_limit_mb)
    if on is not None:
        _side_by_side(store, runs, execute, on, finished)
        return store.results()
    for done, run in enumerate(runs):
        if not store.needs(run):
            continue

        def tick(done: int = done, run: Run = run) -> object:
            return progress(done, len(runs), run)

        record = execute.record(run, tick)
        store.add(run, record)
        finished(done + 1, len(runs), run, record)
    return store.results()


@dataclass(frozen=True)
class _Execute:
    """Executes runs under limits.

    Each has a separate process, also on a worker: workers have no limits, and a process that
    had executed another run before would have its memory.
    """

    time_limit: float
    memory_limit_mb: float

    def record(self, run: Run, tick: Callable[[], object] = lambda: None) -> dict[str, Any]:
        limits = {"time_limit": self.time_limit, "memory_limit_mb": self.memory_limit_mb}
        return run_apart(run, tick=tick, **limits)

    def __call__(self, run: Run) -> tuple[Run, dict[str, Any]]:
        return run, self.record(run) | {"processor": conditions()["machine"]["processor"]}


def _side_by_side(
    store: Store, runs: list[Run], execute: _Execute, on: str | Workers, finished: Finished
) -> None:
    done = 0

    def add(result: tuple[Run, dict[str, Any]]) -> bool:
        nonlocal done
        run, record = result
        store.add(run, record)
        done += 1
        finished(done, len(runs), run, record)
        return False  # all others are needed as well

    with get_executor(on) as workers:
        for repeats in (False, True):  # how the first ended decides whether a run is repeated
            missing = [run for run in runs if bool(run.repetition) == repeats and store.needs(run)]
            done = sum(map(store.has, runs))
            workers.map_until(execute, missing, add, called="reproducing")
