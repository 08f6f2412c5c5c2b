import pytest

from resolvent.preprocess.timing import NONE, LabelReader, LabelTiming, labels_read
from resolvent.traces import Trace, TraceSet

# Two traces, of three steps and of one; labels in sorted order are a, b, c, d = 0, 1, 2, 3.
TRACES = TraceSet(
    [
        Trace([0, 0, 0, 0], ["a", "b", "c", "d"], [0, 0, 0], [0, 0, 0]),
        Trace([0, 0], ["d", "a"], [0], [0]),
    ]
)


@pytest.mark.parametrize(
    ("timing", "read"),
    [
        (LabelTiming.CURRENT, [NONE, 1, 2, NONE]),
        (LabelTiming.CURRENT_WITH_INITIAL, [0, 1, 2, 3]),
        (LabelTiming.LAGGED, [NONE, 0, 1, NONE]),
    ],
)
def test_one_label_at_most_is_read_before_each_step(timing, read):
    assert labels_read(TRACES, timing).tolist() == read


@pytest.mark.parametrize("timing", LabelTiming)
def test_reading_leaves_the_traces_alone(timing):
    before = TRACES.digest
    labels_read(TRACES, timing)
    assert TraceSet(TRACES).digest == before


@pytest.mark.parametrize("timing", LabelTiming)
def test_no_traces_read_nothing(timing):
    assert labels_read(TraceSet(), timing).tolist() == []


def test_names_are_those_of_the_flags():
    assert [str(timing) for timing in LabelTiming] == ["current", "current-with-initial", "lagged"]


@pytest.mark.parametrize(
    ("timing", "read"),
    [
        (LabelTiming.CURRENT, [None, {"b"}, {"c"}]),
        (LabelTiming.CURRENT_WITH_INITIAL, [{"a"}, {"b"}, {"c"}]),
        (LabelTiming.LAGGED, [None, {"a"}, {"b"}]),
    ],
)
def test_the_live_reader_reads_the_same(timing, read):
    reader = LabelReader(timing)
    for _ in range(2):  # a reset forgets the episode before
        read_live = [reader.reset(frozenset("a"))]
        read_live += [reader.step(frozenset(label)) for label in "bc"]
        assert read_live == read


def test_a_lagged_reader_must_be_reset_first():
    with pytest.raises(RuntimeError, match=r"call reset\(\)"):
        LabelReader(LabelTiming.LAGGED).step(frozenset("a"))
