"""Whatever is public may be used from several threads at once, and forked from."""

import os
import re
import signal
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import gymnasium as gym
import pytest

import resolvent as rs

THREADS = 8


def properties_of(thing):
    """What an object computes when it is first asked for, and what it prints."""
    names = [
        name
        for kind in type(thing).__mro__
        for name, value in vars(kind).items()
        if not name.startswith("_") and hasattr(value, "__get__") and not callable(value)
    ]
    found = {}
    for name in dict.fromkeys(names):
        try:
            found[name] = repr(getattr(thing, name))
        except rs.ResolventError as error:
            found[name] = str(error)
    return {**found, "repr": repr(thing), "str": str(thing)}


def made():
    """Fresh objects of which nothing has been asked yet."""
    traces = rs.collect(gym.make("resolvent/House-v0"), episodes=60, seed=0)
    result = rs.infer(traces)
    machines = result.machines
    plan = rs.plan(machines, traces)
    return {
        "traces": traces,
        "result": result,
        "machines": machines,
        "transition": machines.transition,
        "plan": plan,
        "model": plan.model,
        "evidence": rs.evidence(machines, traces),
    }


def without_seconds(told):
    """Leave out how long things took, as "0.021 s" or in a table of seconds."""
    kept = {name: text for name, text in told.items() if "second" not in text}
    return {name: re.sub(r"\d+\.\d+ s\b", "… s", text) for name, text in kept.items()}


def test_eight_threads_read_the_same_as_one():
    alone = {name: properties_of(thing) for name, thing in made().items()}
    shared = made()
    together = threading.Barrier(THREADS)

    def read(number):
        together.wait()
        order = list(shared)
        order = order[number % len(order) :] + order[: number % len(order)]
        return {name: properties_of(shared[name]) for name in order}

    with ThreadPoolExecutor(THREADS) as threads:
        for found in threads.map(read, range(THREADS)):
            for name, told in found.items():
                assert without_seconds(told) == without_seconds(alone[name]), name


def test_eight_threads_compute_the_same_as_one(tmp_path):
    traces = rs.collect(gym.make("resolvent/House-v0"), episodes=60, seed=0)
    traces.save(tmp_path / "traces.parquet")
    scanned = rs.scan_traces(tmp_path / "traces.parquet")
    machines = rs.infer(traces).machines
    target = tmp_path / "machines.json"

    def work(number):
        again = rs.infer(
            scanned if number % 2 else traces, options=rs.InferenceOptions(engine="native")
        ).machines
        again.save(target)  # all of them at once
        plan = rs.plan(again, traces)
        return again, again.score(traces), plan.value, rs.load(target)

    expected = work(0)
    with ThreadPoolExecutor(THREADS) as threads:
        for again, score, value, loaded in threads.map(work, range(THREADS)):
            assert dict(again) == dict(machines) == dict(loaded)
            assert (score, value) == expected[1:3]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["machines.json", "traces.parquet"]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
@pytest.mark.parametrize("kind", ["memory", "scanned"])
def test_a_fork_while_another_thread_works_does_not_deadlock(tmp_path, kind):
    traces = rs.collect(gym.make("resolvent/House-v0"), episodes=100, seed=0)
    traces.save(tmp_path / "traces.parquet")
    work = {
        "memory": lambda: rs.infer(traces),
        "scanned": lambda: rs.infer(rs.scan_traces(tmp_path / "traces.parquet")),
    }[kind]
    stop = threading.Event()

    def again_and_again():
        while not stop.is_set():
            work()

    threads = [threading.Thread(target=again_and_again) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(10):
            time.sleep(0.05)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Python 3.12 warns of what is tested here
                child = os.fork()
            if child == 0:
                signal.alarm(600)
                try:
                    work()
                finally:
                    os._exit(0)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()
