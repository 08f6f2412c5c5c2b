"""Settings and a folder → all runs that are not in it yet, one after another."""

from collections.abc import Callable, Iterable

from resolvent.reproduction.running.processes import run_apart
from resolvent.reproduction.running.run import Run
from resolvent.reproduction.running.settings import EXPERIMENTS, Settings
from resolvent.reproduction.running.store import Results, Store

Listener = Callable[[int, int, Run], object]
"""Told now and then how many runs are done, of how many, and which one is going on."""


def reproduce(
    store: Store,
    settings: Settings,
    experiments: Iterable[str] = EXPERIMENTS,
    *,
    going_on: Listener = lambda done, of, run: None,
    finished: Callable[[int, int, Run, dict[str, object]], object] = lambda done, of, run, r: None,
) -> Results:
    """Do the runs of some experiments that a folder lacks, and return all it then holds."""
    runs = [run for experiment in experiments for run in settings.runs(experiment)]
    for done, run in enumerate(runs):
        if store.has(run):
            continue

        def tick(done: int = done, run: Run = run) -> object:
            return going_on(done, len(runs), run)

        record = run_apart(
            run,
            time_limit=settings.time_limit,
            memory_limit_mb=settings.memory_limit_mb,
            tick=tick,
        )
        store.add(run, record | {"arguments": run.arguments})
        finished(done + 1, len(runs), run, record)
    return store.results()
