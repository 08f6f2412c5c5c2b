from dataclasses import asdict

import pytest
from fake_methods import run
from tiny import tiny

from resolvent._util.parallel import Processes
from resolvent.paper.experiments import EXPERIMENTS
from resolvent.paper.reproduce import reproduce, settings
from resolvent.paper.store import Store
from shuffled_workers import ShuffledWorkers


def store_in(folder, chosen):
    return Store(folder, asdict(chosen), "a command")


def test_all_is_run_and_failures_are_kept(tmp_path):
    told = []
    results = reproduce(
        store_in(tmp_path / "r", tiny()),
        tiny(),
        finished=lambda done, of, run, record: told.append((done, of, run.method)),
    )
    assert [one["status"] for one in results.records] == ["found", "error", "found"]
    assert results.records[0]["arguments"] == {"value": 1}
    assert told == [(1, 3, "first"), (2, 3, "second"), (3, 3, "third")]


def test_of_some_methods_only_those_are_run(tmp_path):
    store = store_in(tmp_path / "r", tiny())
    results = reproduce(store, tiny(), methods=["third", "first"])
    assert [one["method"] for one in results.records] == ["first", "third"]


def test_an_interrupted_reproduction_goes_on_where_it_stopped(tmp_path):
    def stop(done, of, run, record):
        if run.method == "second":
            raise KeyboardInterrupt

    store = store_in(tmp_path / "r", tiny())
    with pytest.raises(KeyboardInterrupt):
        reproduce(store, tiny(), finished=stop)
    told = []
    again = store_in(tmp_path / "r", tiny())
    results = reproduce(again, tiny(), finished=lambda done, of, run, record: told.append(done))
    assert told == [3]
    assert len(results.records) == 3
    assert not [path for path in (tmp_path / "r").rglob("*") if path.name.endswith(".part")]


def test_runs_have_files_of_their_own_and_the_same_seed_for_all_methods():
    for chosen in (settings(), settings(quick=True)):
        runs = [run for name in EXPERIMENTS for run in chosen.runs(name)]
        assert len({run.file for run in runs}) == len(runs)
        assert all(run.arguments["seed"] == run.repetition for run in runs)


def test_the_experiments_are_as_large_as_in_the_paper():
    runs = list(settings().runs("baselines"))
    sizes = {(run.setting, run.arguments["traces"]) for run in runs}
    assert sizes == {("3x3", 275), ("4x4", 500), ("5x5", 6_000)}
    assert {run.repetition for run in runs} == {0, 1, 2}
    cells = {(run.setting, run.method.split("--")[0]) for run in settings().runs("ablation")}
    assert len(cells) == 10
    assert len({run.repetition for run in settings().runs("policy")}) == 10


class Repeated(type(tiny())):
    """A method that is too slow, one that is not, and one that is too slow only the second time."""

    def runs(self, experiment):
        if experiment == "baselines":
            for repetition in range(3):
                yield run("sleeps", "slow", repetition, seconds=60)
                yield run("answers", "fast", repetition)
                yield run("sleeps", "at times", repetition, seconds=60 * (repetition == 1))


@pytest.mark.parametrize("on", [None, ShuffledWorkers(3)], ids=["alone", "side by side"])
def test_what_hits_a_limit_the_first_time_is_not_repeated(tmp_path, on):
    chosen = Repeated(**asdict(tiny(time_limit=0.1)))
    records = reproduce(store_in(tmp_path / "r", chosen), chosen, on=on).records
    assert {(one["method"], one["repetition"]) for one in records} == {
        ("slow", 0),
        *(("fast", repetition) for repetition in range(3)),
        *(("at times", repetition) for repetition in range(3)),
    }
    again = []
    reproduce(
        store_in(tmp_path / "r", chosen), chosen, on=on, finished=lambda *told: again.append(told)
    )
    assert again == []


# ---- over workers ----------------------------------------------------------


def told_in(results):
    """What records say but for what the clock says."""
    timed = ("seconds", "processor_seconds", "memory_mb", "memory_before_mb", "processor")
    return [
        {name: value for name, value in record.items() if name not in timed}
        for record in results.records
    ]


@pytest.mark.parametrize(
    "workers", ["threads", "shuffled", pytest.param("processes", marks=pytest.mark.slow)]
)
def test_over_workers_the_records_are_the_same_but_for_the_clock(tmp_path, workers):
    on = {"threads": "threads", "shuffled": ShuffledWorkers(1), "processes": Processes(2)}[workers]
    told = []
    try:
        results = reproduce(
            store_in(tmp_path / "side", tiny()),
            tiny(),
            on=on,
            finished=lambda done, of, run, record: told.append((done, of)),
        )
    finally:
        if workers == "processes":
            on.close()
    alone = reproduce(store_in(tmp_path / "alone", tiny()), tiny())
    assert told_in(results) == told_in(alone)
    assert all(one["processor"] for one in results.records)
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_over_workers_what_is_done_is_kept_as_soon_as_it_is(tmp_path):
    def stop(done, of, run, record):
        if done == 2:
            raise KeyboardInterrupt

    store = store_in(tmp_path / "r", tiny())
    with pytest.raises(KeyboardInterrupt):
        reproduce(store, tiny(), on=ShuffledWorkers(1), finished=stop)
    told = []
    results = reproduce(
        store,
        tiny(),
        on=ShuffledWorkers(2),
        finished=lambda done, of, run, record: told.append(done),
    )
    assert told == [3]
    assert [one["status"] for one in results.records] == ["found", "error", "found"]


def test_over_workers_limits_are_kept(tmp_path):
    class Slow(type(tiny())):
        def runs(self, experiment):
            if experiment == "baselines":
                yield run("sleeps", "slow", seconds=60)
                yield run("answers", "fast")

    chosen = Slow(**asdict(tiny(0.1)))
    results = reproduce(store_in(tmp_path / "r", chosen), chosen, on="threads")
    told = {one["method"]: one["status"] for one in results.records}
    assert told == {"slow": "time limit", "fast": "found"}
