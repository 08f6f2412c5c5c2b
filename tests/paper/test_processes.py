import dataclasses
import time

import pytest
from fake_methods import run

from resolvent.paper import processes
from resolvent.paper.processes import Clock, record_of, run_apart


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(processes, "SECONDS_OF_PATIENCE", 0.3)
    monkeypatch.setattr(processes, "WALL_SECONDS_A_SECOND", 1_000)  # however busy the machine is


def apart(one, time_limit=30.0, memory_limit_mb=4_096.0):
    return run_apart(one, time_limit=time_limit, memory_limit_mb=memory_limit_mb)


def test_a_record_says_whose_it_is_what_came_out_and_what_it_took():
    record = apart(run("answers", value=7, work=0.05))
    assert (record["experiment"], record["setting"]) == ("tiny", "here")
    assert (record["method"], record["repetition"]) == ("fake", 0)
    assert (record["status"], record["value"]) == ("found", 7)
    assert record["seconds"] >= 0.05
    assert record["processor_seconds"] >= 0
    assert record["memory_mb"] >= record["memory_before_mb"] > 0


def test_a_method_that_works_past_its_limit_is_ended():
    record = apart(run("works", seconds=60), time_limit=0.2)
    assert (record["status"], record["ended_from_outside"]) == ("time limit", True)
    assert 0.2 < record["processor_seconds"] < 30


def test_a_method_that_sleeps_far_past_its_limit_is_ended(monkeypatch):
    monkeypatch.setattr(processes, "WALL_SECONDS_A_SECOND", 2)
    began = time.monotonic()
    record = apart(run("sleeps", seconds=600), time_limit=0.2)
    assert (record["status"], record["ended_from_outside"]) == ("time limit", True)
    assert record["processor_seconds"] < 0.2 < record["seconds"] < 300
    assert time.monotonic() - began < 300


def test_a_method_that_comes_too_late_has_not_found_anything():
    record = apart(run("works", seconds=0.2), time_limit=0.1)
    assert record["status"] == "time limit"
    assert record["processor_seconds"] >= 0.2
    assert "ended_from_outside" not in record


def test_limits_are_of_the_processor_and_waiting_does_not_count():
    record = apart(run("sleeps", seconds=0.5), time_limit=0.2)
    assert record["status"] == "found"
    assert record["processor_seconds"] < 0.2 < record["seconds"]


def test_methods_count_the_same_seconds():
    record = apart(run("keeps_its_limit"), time_limit=0.2)
    assert "error" not in record
    assert record["processor_seconds"] >= 0.2
    assert record["seconds"] - record["processor_seconds"] > 0.3  # it waited for 0.4


def test_what_comes_after_the_clock_has_no_limit():
    assert apart(run("judges_long", seconds=0.8), time_limit=0.2)["status"] == "found"


def test_a_method_that_raises_is_recorded_with_its_error_in_one_line():
    record = apart(run("raises"))
    assert (record["status"], record["error"]) == ("error", "ValueError: two lines")


def test_what_no_file_can_hold_is_an_error_of_that_run():
    record = apart(run("gives_an_object"))
    assert record["status"] == "error"
    assert "object" in record["error"]


def test_a_method_that_takes_its_process_down_is_recorded_too():
    record = apart(run("dies"))
    assert (record["status"], record["error"]) == ("error", "its process was ended by SIGKILL")


def test_a_method_that_hoards_memory_is_ended():
    record = apart(run("hoards"), memory_limit_mb=200.0)
    assert record["status"] == "memory limit"
    assert record["memory_mb"] > 200


def test_a_solver_that_prints_is_not_heard(capfd):
    assert apart(run("prints"))["status"] == "found"
    assert capfd.readouterr() == ("", "")


def test_what_is_not_installed_is_named():
    lacking = dataclasses.replace(run("answers"), needs=("no_such_solver",), extra="solvers")
    record = record_of(lacking, Clock(1.0))
    assert record == {"status": "not installed", "error": 'pip install "resolvent[solvers]"'}


def test_who_waits_hears_of_it_now_and_then(tmp_path):
    enough, ticks = tmp_path / "enough", []

    def tick():
        ticks.append(1)
        if len(ticks) == 3:
            enough.touch()

    record = run_apart(
        run("waits_for", path=str(enough)), time_limit=30, memory_limit_mb=4_096, tick=tick
    )
    assert (record["status"], len(ticks) >= 3) == ("found", True)


def test_an_interruption_ends_the_process_at_once():
    def interrupt():
        raise KeyboardInterrupt

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_apart(
            run("sleeps", seconds=600), time_limit=1_000, memory_limit_mb=4_096, tick=interrupt
        )
    assert time.monotonic() - began < 300
