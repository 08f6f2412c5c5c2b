import time

import pytest
from fake_methods import run

from resolvent.paper import runs
from resolvent.paper.runs import Stopwatch, record_of, run_apart


@pytest.fixture(autouse=True)
def strict_limits(monkeypatch):
    monkeypatch.setattr(runs, "SECONDS_TO_STOP", 0.3)
    monkeypatch.setattr(runs, "WALL_SECONDS_PER_SECOND", 1_000)  # for busy machines


def apart(run, time_limit=30.0, memory_limit_mb=4_096.0):
    return run_apart(run, time_limit=time_limit, memory_limit_mb=memory_limit_mb)


def test_a_record_has_identity_result_and_costs():
    record = apart(run("answers", value=7, work=0.05))
    assert (record["experiment"], record["setting"]) == ("tiny", "here")
    assert (record["method"], record["repetition"]) == ("fake", 0)
    assert (record["status"], record["value"]) == ("found", 7)
    assert record["seconds"] >= 0.05
    assert record["processor_seconds"] >= 0
    assert record["memory_mb"] > 0


def test_a_method_that_works_past_its_limit_is_ended():
    record = apart(run("works", seconds=60), time_limit=0.2)
    assert (record["status"], record["ended_from_outside"]) == ("time limit", True)
    assert 0.2 < record["processor_seconds"] < 30


def test_a_method_that_sleeps_far_past_its_limit_is_ended(monkeypatch):
    monkeypatch.setattr(runs, "WALL_SECONDS_PER_SECOND", 2)
    began = time.monotonic()
    record = apart(run("sleeps", seconds=600), time_limit=0.2)
    assert (record["status"], record["ended_from_outside"]) == ("time limit", True)
    assert record["processor_seconds"] < 0.2 < record["seconds"] < 300
    assert time.monotonic() - began < 300


def test_a_late_result_has_the_status_time_limit():
    record = apart(run("works", seconds=0.2), time_limit=0.1)
    assert record["status"] == "time limit"
    assert record["processor_seconds"] >= 0.2
    assert "ended_from_outside" not in record


def test_limits_count_cpu_seconds():
    record = apart(run("sleeps", seconds=0.5), time_limit=0.2)
    assert record["status"] == "found"
    assert record["processor_seconds"] < 0.2 < record["seconds"]


def test_methods_use_the_same_clock():
    record = apart(run("keeps_its_limit"), time_limit=0.2)
    assert "error" not in record
    assert record["processor_seconds"] >= 0.2
    assert record["seconds"] - record["processor_seconds"] > 0.3  # it waited for 0.4


def test_evaluation_after_the_measured_work_has_no_limit():
    assert apart(run("evaluates_long", seconds=0.8), time_limit=0.2)["status"] == "found"


def test_an_exception_is_recorded_in_one_line():
    record = apart(run("raises"))
    assert (record["status"], record["error"]) == ("error", "ValueError: two lines")


def test_a_result_that_json_cannot_hold_is_an_error():
    record = apart(run("gives_an_object"))
    assert record["status"] == "error"
    assert "object" in record["error"]


def test_a_crash_is_recorded():
    record = apart(run("dies"))
    assert (record["status"], record["error"]) == ("error", "its process was ended by SIGKILL")


def test_a_method_over_the_memory_limit_is_ended():
    record = apart(run("hoards"), memory_limit_mb=200.0)
    assert record["status"] == "memory limit"
    assert record["memory_mb"] > 200


def test_output_of_solvers_is_discarded(capfd):
    assert apart(run("prints"))["status"] == "found"
    assert capfd.readouterr() == ("", "")


def test_a_missing_package_is_named():
    record = record_of(run("misses_a_module"), Stopwatch(1.0))
    assert record == {"status": "not installed", "error": "No module named 'no_such_solver'"}


def test_tick_is_called_while_a_run_works(tmp_path):
    enough, ticks = tmp_path / "enough", []

    def tick():
        ticks.append(1)
        if len(ticks) == 3:
            enough.touch()

    record = run_apart(
        run("waits_for", path=str(enough)), time_limit=30, memory_limit_mb=4_096, tick=tick
    )
    assert (record["status"], len(ticks) >= 3) == ("found", True)


def test_ctrl_c_ends_the_process():
    def interrupt():
        raise KeyboardInterrupt

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_apart(
            run("sleeps", seconds=600), time_limit=1_000, memory_limit_mb=4_096, tick=interrupt
        )
    assert time.monotonic() - began < 300
