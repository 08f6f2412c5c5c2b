"""Settings and a folder → all runs that are not in it yet, one by one or side by side."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

from resolvent.reproduction.running.processes import run_apart
from resolvent.reproduction.running.run import Run
from resolvent.reproduction.running.settings import EXPERIMENTS, Settings
from resolvent.reproduction.running.store import Results, Store, here
from resolvent.workers import Workers, at_work

Listener = Callable[[int, int, Run], object]
"""Told now and then how many runs are done, of how many, and which one is going on."""

Finished = Callable[[int, int, Run, dict[str, Any]], object]
"""Told of each run that is done: how many are, of how many, which one, and its record."""


def reproduce(
    store: Store,
    settings: Settings,
    experiments: Iterable[str] = EXPERIMENTS,
    *,
    methods: Collection[str] | None = None,
    on: str | Workers | None = None,
    going_on: Listener = lambda done, of, run: None,
    finished: Finished = lambda done, of, run, record: None,
) -> Results:
    """Do the runs of some experiments, or of some methods in them, that a folder lacks.

    Returns all that it then holds.

    They are done one by one, so that each has the machine to itself, or `on` workers side by side:
    then each record names the processor, and seconds are those of a machine that had more to do.
    What ran into a limit the first time is not repeated: it would cost as much again.
    """
    runs = [
        run
        for experiment in experiments
        for run in settings.runs(experiment)
        if methods is None or run.method in methods
    ]
    apart = _Apart(settings.time_limit, settings.memory_limit_mb)
    if on is not None:
        _side_by_side(store, runs, apart, on, finished)
        return store.results()
    for done, run in enumerate(runs):
        if not store.wants(run):
            continue

        def tick(done: int = done, run: Run = run) -> object:
            return going_on(done, len(runs), run)

        record = apart.record(run, tick)
        store.add(run, record | {"arguments": run.arguments})
        finished(done + 1, len(runs), run, record)
    return store.results()


@dataclass(frozen=True)
class _Apart:
    """Does runs under limits.

    Each has a process of its own, wherever its worker is: workers know of no limits, and one that
    had done another run before would have its memory.
    """

    time_limit: float
    memory_limit_mb: float

    def record(self, run: Run, tick: Callable[[], object] = lambda: None) -> dict[str, Any]:
        limits = {"time_limit": self.time_limit, "memory_limit_mb": self.memory_limit_mb}
        return run_apart(run, tick=tick, **limits)

    def __call__(self, run: Run) -> tuple[Run, dict[str, Any]]:
        return run, self.record(run) | {"processor": here()["machine"]["processor"]}


def _side_by_side(
    store: Store, runs: list[Run], apart: _Apart, on: str | Workers, finished: Finished
) -> None:
    done = 0

    def kept(made: tuple[Run, dict[str, Any]]) -> bool:
        nonlocal done
        run, record = made
        store.add(run, record | {"arguments": run.arguments})
        done += 1
        finished(done, len(runs), run, record)
        return False  # the others are wanted as well

    with at_work(on) as workers:
        for again in (False, True):  # whether a run is repeated depends on how the first one ended
            left = [run for run in runs if bool(run.repetition) == again and store.wants(run)]
            done = sum(store.has(run) for run in runs)
            workers.first(apart, left, kept, called="reproducing")
