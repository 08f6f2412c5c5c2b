from dataclasses import asdict

import pytest
from fake_methods import run
from tiny import tiny

from resolvent.paper import runs
from resolvent.paper.experiments import EXPERIMENTS
from resolvent.paper.reproduce import Store, reproduce, settings


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


def test_what_hits_a_limit_the_first_time_is_not_repeated(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "SECONDS_TO_STOP", 0.3)
    chosen = Repeated(**asdict(tiny(time_limit=0.1)))
    records = reproduce(store_in(tmp_path / "r", chosen), chosen).records
    assert {(one["method"], one["repetition"]) for one in records} == {
        ("slow", 0),
        *(("fast", repetition) for repetition in range(3)),
        *(("at times", repetition) for repetition in range(3)),
    }
    again = []
    reproduce(store_in(tmp_path / "r", chosen), chosen, finished=lambda *told: again.append(told))
    assert again == []


def test_a_number_of_repetitions_replaces_all():
    assert settings(quick=True).time_limit == 20.0
    assert settings(repetitions=5).learners == settings(repetitions=5).repetitions == 5
