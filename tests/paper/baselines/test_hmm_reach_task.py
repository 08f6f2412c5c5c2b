"""What hidden Markov models see of traces, and which traces they cannot learn from."""

import pytest

from resolvent.errors import TraceError
from resolvent.paper.baselines.reach_task import ReachTask
from resolvent.traces import Trace, TraceSet


def walk(places, rewards, **ends):
    labels = ["key" if place == "attic" else None for place in places]
    return Trace(places, labels, ["go"] * len(rewards), rewards, **ends)


def test_places_and_payment_are_read_trace_by_trace():
    task = ReachTask.of(
        TraceSet(
            [
                walk(["hall", "attic", "hall"], [0, 2], terminated=True),
                walk(["attic", "attic"], [0], truncated=True),
            ]
        )
    )
    assert task.places.tolist() == [1, 0, 1, 0, 0]
    assert task.moves_from.tolist() == [1, 0, 0]
    assert task.moves_to.tolist() == [0, 1, 0]
    assert task.starts.tolist() == [1, 0]
    assert task.paid.tolist() == [True, False]
    assert task.labels == (frozenset({"key"}), frozenset())
    assert task.reward == 2


@pytest.mark.parametrize(
    ("traces", "message"),
    [
        ([], "there are no traces"),
        ([walk(["a", "b"], [0])], "no trace is paid"),
        ([walk(["a", "b", "a"], [1, 0])], "trace 0, step 0 pays 1: .* only the last step may pay"),
        ([walk(["a", "b", "a"], [-1, 1])], "trace 0, step 0 pays -1: .* no step may cost"),
        ([walk(["a", "b"], [1]), walk(["a", "b"], [2])], "trace 0, step 0 pays 1: .* here 2"),
        (
            [walk(["a", "b"], [1]), walk(["a", "b"], [0], terminated=True)],
            "trace 1 ends unpaid without being cut",
        ),
        (
            [Trace(["a", "a"], ["key", "lamp"], ["go"], [1])],
            "the observation 'a' comes with the labels 'key' and 'lamp'",
        ),
    ],
)
def test_traces_of_other_tasks_are_refused_with_the_reason(traces, message):
    with pytest.raises(TraceError, match=message):
        ReachTask.of(TraceSet(traces))
