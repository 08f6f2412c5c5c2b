"""Threads, processes and Ray do the same: pieces in order, errors as they were raised."""

import os
import pickle
import subprocess
import sys
import time

import pytest

import resolvent as rs
from pieces_of_work import (
    cores_here,
    doubled,
    ended,
    flaky,
    hears_ctrl_c,
    is_short,
    joined,
    killed_once,
    outliers,
    refused,
    slept,
    told,
)
from resolvent._util.parallel import (
    CORES,
    Processes,
    Threads,
    Workers,
    available_cores,
    executor_named,
    get_executor,
    limit_cores,
    safe_import_path,
    split_evenly,
)
from resolvent._util.ray import Ray

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def copied(value):
    return pickle.loads(pickle.dumps(value))  # noqa: S301 -- our own bytes


@pytest.fixture(scope="module")
def processes():
    workers = Processes(2)
    yield workers
    workers.close()


SLOW = pytest.param("processes", marks=pytest.mark.slow)  # it takes them long to begin


ONCE = pytest.param("ray", marks=pytest.mark.xdist_group("ray"))  # with all that needs Ray


@pytest.fixture(params=["threads", SLOW, ONCE])
def workers(request):
    if request.param == "threads":
        return Threads(2)
    if request.param == "ray":
        request.getfixturevalue("ray_of_two")
        return Ray()
    return request.getfixturevalue("processes")


def test_results_come_in_the_order_of_pieces_and_combined_in_it(workers):
    said = []
    results = workers.map(doubled, LETTERS, called="doubling", report=said.append)
    assert list(results) == [letter * 2 for letter in LETTERS]
    assert said == list(range(1, 27))
    said.clear()
    found = workers.map_reduce(doubled, LETTERS, joined, called="doubling", report=said.append)
    assert found == "".join(letter * 2 for letter in LETTERS)
    assert said == sorted(said)
    assert said[-1] == 26
    assert workers.map_reduce(doubled, "x", joined, called="doubling") == "xx"


def test_an_error_is_the_one_of_the_first_piece_that_fails(workers):
    for run in (
        lambda: workers.map_reduce(refused, range(40), joined, called="reading"),
        lambda: list(workers.map(refused, range(40), called="reading")),
    ):
        with pytest.raises(rs.TraceError, match=r"^piece 3 is damaged$") as caught:
            run()
        assert type(caught.value) is rs.TraceError


def test_what_is_no_error_of_ours_is_not_hidden(workers):
    with pytest.raises(ZeroDivisionError):
        workers.map_reduce(outliers, range(4), joined, called="reading")


def test_a_report_that_raises_stops_the_work(workers):
    def stop(done):
        raise rs.errors.TimeLimitReached(f"{done} done")

    with pytest.raises(rs.errors.TimeLimitReached):
        workers.map_reduce(refused, range(3), joined, called="reading", report=stop)
    assert workers.map_reduce(doubled, "ab", joined, called="doubling") == "aabb"


def test_the_first_that_is_enough_ends_the_others(workers):
    long = 2 if isinstance(workers, Threads) else 600  # a thread cannot be ended
    began = time.monotonic()
    made = workers.map_until(slept, [long, 0.01], is_short, called="sleeping")
    assert made[1] == 0.01
    assert made[0] in (None, long)
    assert time.monotonic() - began < 300


@pytest.mark.parametrize("on", [Threads(2), Processes(2)], ids=["threads", "processes"])
def test_no_pieces_are_no_work(on):
    assert list(on.map(doubled, [], called="doubling")) == []
    assert on.map_until(slept, [], is_short, called="sleeping") == []
    on.close()


def test_the_core_uses_a_share_of_the_cores(workers):
    shares = workers.map_reduce(cores_here, range(2), joined, called="looking")
    assert shares == ([max(CORES // 2, 1)] * 2 if isinstance(workers, Threads) else [1, 1])
    with limit_cores(3):
        assert available_cores() == 3
        assert Threads(1).map_reduce(cores_here, range(1), joined, called="looking") == [3]
    assert available_cores() == CORES


def test_warnings_of_tasks_are_said_here_once(ray_of_two):
    with pytest.warns(rs.errors.TableWarning) as said:
        Ray().map_reduce(told, range(20), joined, called="reading")
    assert [str(one.message) for one in said] == ["piece 0: a row was dropped"]


def test_processes_in_short(processes):
    with pytest.warns(rs.errors.TableWarning, match="piece 0"):
        assert processes.map_reduce(told, range(3), joined, called="reading") == [0, 1, 2]
    with pytest.raises(rs.TraceError, match="piece 3"):
        processes.map_reduce(refused, range(9), joined, called="reading")


def test_ctrl_c_reaches_no_process_but_the_one_that_began_them(processes):
    assert {*processes.map(hears_ctrl_c, range(4), called="asking")} == {False}


def test_lost_workers_and_failing_storage_are_tried_again_by_ray(ray_of_two, tmp_path):
    paths = [str(tmp_path / "one"), str(tmp_path / "two")]
    assert Ray().map_reduce(flaky, paths, joined, called="reading") == "xxxxxx"
    lost = [str(tmp_path / "lost")]
    assert list(Ray().map(killed_once, lost, called="reading")) == ["done"]


@pytest.mark.slow
def test_work_that_always_ends_its_process_is_named(ray_of_two, monkeypatch):
    monkeypatch.setattr("resolvent._util.ray.RETRIES", 0)
    with pytest.raises(rs.errors.ClusterError, match=r"^replaying: the cluster lost .*nodes"):
        Ray().map_reduce(ended, range(2), joined, called="replaying")
    alone = Processes(1)
    with pytest.raises(rs.errors.ClusterError, match=r"^replaying: a process ended"):
        alone.map_reduce(ended, range(2), joined, called="replaying")
    assert alone.map_reduce(doubled, "ab", joined, called="doubling") == "aabb"
    alone.close()


def test_workers_have_names_and_are_plain_data(processes):
    assert executor_named("threads").name == "threads"
    assert executor_named("processes") is executor_named("processes")
    assert executor_named("ray:ray://host:10001") == Ray("ray://host:10001")
    assert executor_named("ray:auto").name == "ray:auto"
    own: Workers = Threads(3)
    assert executor_named(own) is own
    assert copied(processes).processes == 2
    assert copied(Ray("auto")) == Ray("auto")
    for wrong in ("", "ray:", "dask", "threads:2", None, 7):
        with pytest.raises(rs.OptionError, match="choose threads, processes, ray"):
            executor_named(wrong)


def test_workers_with_a_name_are_closed_after_their_last_use(monkeypatch):
    closed = []
    monkeypatch.setattr(Threads, "close", lambda self: closed.append(self))
    with get_executor("threads") as outer:
        with get_executor("threads") as inner:
            assert inner is outer
        assert closed == []
    assert closed == [outer]
    with get_executor(Threads(1)):
        pass
    assert closed == [outer]


def test_processes_import_nothing_from_the_current_folder():
    program = "import os, sys; print(sys.flags.safe_path, os.environ['OF_TESTS'])"
    with safe_import_path(OF_TESTS="here"):
        shown = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert shown.stdout.split() == [b"True", b"here"]
    assert "OF_TESTS" not in os.environ


def test_runs_of_items_are_about_equally_long():
    runs = split_evenly(range(20), slots=1)
    assert [list(run) for run in runs] == [
        [0, 1],
        [2, 3, 4],
        [5, 6],
        [7, 8, 9],
        [10, 11],
        [12, 13, 14],
        [15, 16],
        [17, 18, 19],
    ]
