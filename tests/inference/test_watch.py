"""Time limits and progress, in both engines."""

import time

import numpy as np
import pytest

from automata import unexplained
from resolvent._util.progress import Progress
from resolvent.errors import TimeLimitReached
from resolvent.inference.engine import Limits, merge
from resolvent.inference.state_merging import Watch
from strategies import sample_set

both_engines = pytest.mark.parametrize("engine", ["native", "python"])
both_orders = pytest.mark.parametrize("order", ["edsm", "rpni"])


@pytest.fixture(scope="module")
def slow_samples():
    """Answers at random on random traces: hardly anything merges, and the search takes ages."""
    random = np.random.default_rng(0)
    traces = []
    for _ in range(120):
        labels, answers = random.integers(0, 4, 300), random.integers(0, 2, 300)
        # No two traces share a history as long as ten labels, so the answers cannot clash.
        trace = [
            (int(label), 0 if step > 10 else -1, int(answer))
            for step, (label, answer) in enumerate(zip(labels, answers, strict=True))
        ]
        traces.append(trace)
    return sample_set(traces)


@both_engines
@both_orders
def test_undecided_nodes_are_merged_cheaply_when_time_is_up(slow_samples, engine, order):
    found = merge(slow_samples, order, engine, Limits(0.005))
    assert not found.finished
    assert 1 <= found.states < found.tree_nodes
    assert len(unexplained(found, slow_samples)) == found.wrong > 0


@both_engines
def test_progress_is_reported_and_grows(slow_samples, engine):
    reports = []

    def listen(progress):
        reports.append(progress)
        time.sleep(0.05)  # so that the next check reports again
        if len(reports) == 5:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        merge(slow_samples, "rpni", engine, Limits(listener=listen))
    assert all(isinstance(report, Progress) for report in reports)
    assert all(0 < report.done <= report.total for report in reports[1:])
    for name in ("states", "done"):
        values = [getattr(report, name) for report in reports]
        assert values == sorted(values)
    assert reports[-1].states >= 1
    assert reports[-1].undecided >= 1


@both_engines
@both_orders
def test_exceptions_of_a_listener_pass_through(slow_samples, engine, order):
    class Enough(Exception):  # noqa: N818
        pass

    def listener(progress):
        raise Enough(progress.total)

    with pytest.raises(Enough) as caught:
        merge(slow_samples, order, engine, Limits(listener=listener))
    assert caught.value.args[0] >= 0


@both_engines
def test_a_limit_that_is_not_reached_changes_nothing(engine):
    samples = sample_set([[(0, 0, 1), (0, 0, 0), (0, 0, 1)]])
    free, limited = (merge(samples, engine=engine, limits=Limits(limit)) for limit in (None, 60))
    assert free.events == limited.events
    assert free.attempts == limited.attempts


def test_the_watch_reports_at_intervals(monkeypatch):
    clock = iter([0.0, 0.01, 0.06, 0.07, 0.2, 1.01])
    monkeypatch.setattr("resolvent.inference.state_merging.time.monotonic", lambda: next(clock))
    reports = []
    watch = Watch(1.0, reports.append)
    for number in range(4):
        watch.check(Progress(number, 0, 0, 0))
    assert [report.states for report in reports] == [1, 3]
    with pytest.raises(TimeLimitReached):
        watch.check(Progress(9, 0, 0, 0))
