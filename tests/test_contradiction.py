"""The message names both traces and steps, their history, and what to try."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import resolvent as rs

NONE = "the world is not deterministic under these labels"


def walk(observations, labels, rewards=None, actions=None):
    steps = len(observations) - 1
    return rs.Trace(observations, labels, actions or ["go"] * steps, rewards or [0] * steps)


def message(traces, **options):
    with pytest.raises(rs.ContradictoryTraces) as caught:
        rs.infer(rs.TraceSet(traces), **options)
    return str(caught.value)


@pytest.mark.parametrize("engine", ["native", "python"])
def test_next_observations_that_differ(engine):
    traces = [
        walk(["a", "a"], [None, None]),
        walk(["a", "a", "a", "c"], [None, "k", "k", None]),
        walk(["b", "a", "b"], [None, "k", None]),
        walk(["b", "a", "a", "b"], [None, "k", "k", None]),
    ]
    text = message(traces, engine=engine)
    # After k alone, traces 1 and 2 differ at (a, go): that comes before the longer history k, k.
    assert text.startswith(
        "trace 1, step 1 and trace 2, step 1 read the same labels (k) but have different next "
        "observations for (a, go): a and b; "
    )


def test_rewards_that_differ():
    text = message([walk([0, 0], [None, None], [1]), walk([0, 0], [None, None], [2])])
    assert text == (
        "trace 0, step 0 and trace 1, step 0 read the same labels (start) but have different "
        "rewards for (0, go): 1.0 and 2.0; the world is not deterministic under these labels: "
        "label what makes the difference, or round noisy rewards: reward_digits=N "
        "(--reward-digits N)"
    )
    assert "for (0, go): 1.0 and 2.0" in message(
        [walk([0, 0], [None, None], [1]), walk([0, 0], [None, None], [2])], supplement=False
    )


def test_long_histories_are_cut():
    labels = [None, *"abcdefgh"]
    traces = [walk([0] * 9, [*labels], [0] * 7 + [pay]) for pay in (1, 2)]
    text = message(traces)
    assert "trace 0, step 7 and trace 1, step 7" in text
    assert "read the same labels (… b, c, d, e, f, g)" in text


def test_within_one_trace():
    text = message([walk([0, 0, 0], [None, None, None], [1, 2])], trivial=())
    assert text.startswith("trace 0, step 0 and trace 0, step 1 read the same labels (start)")


@pytest.mark.parametrize(
    ("traces", "timing", "fits"),
    [
        # The first observation's label makes the difference: current ignores it.
        (
            [walk([0, 0], ["cue", None], [1]), walk([0, 0], ["other", None], [2])],
            "current",
            "current-with-initial",
        ),
        # The label of the very observation that is asked about: lagged has not read it yet.
        (
            [
                walk([0, 0, 0], [None, "k", None], [0, 1]),
                walk([0, 0, 0], [None, None, None], [0, 0]),
            ],
            "lagged",
            "current",
        ),
    ],
)
def test_another_timing_that_fits_is_named(traces, timing, fits):
    assert message(traces, timing=timing).endswith(f"timing='{fits}' (--timing {fits})")
    assert rs.infer(rs.TraceSet(traces), timing=fits).machines.score(rs.TraceSet(traces)).perfect


def test_a_label_taken_as_trivial_that_matters():
    traces = [
        walk([0, 0, 0], [None, "k", None], [0, 1]),
        walk([0, 0, 0], [None, "m", None], [0, 0]),
    ]
    text = message(traces, trivial=["k", "m"])
    assert text.endswith("remove_trivial=False (--keep-trivial)")
    assert rs.infer(rs.TraceSet(traces)).machines.reward.states == 2


def test_waiting_that_matters():
    """Only the number of steps without an event makes the difference."""
    traces = [walk([0, 0, 0, 0], [None] * 4, [0, 0, 1])]
    text = message(traces, trivial=())
    assert text.endswith("remove_trivial=False (--keep-trivial)")
    kept = rs.infer(rs.TraceSet(traces), remove_trivial=False)
    assert kept.machines.score(rs.TraceSet(traces)).perfect


def test_nothing_helps():
    traces = [walk([0, 0], [None, None], [1]), walk([0, 0], [None, None], [2])]
    for timing in rs.LabelTiming:
        assert NONE in message(traces, timing=timing)


def test_a_timing_is_not_advised_when_trivial_labels_would_spoil_it():
    """ "lagged" never reads "no event" here, "current-with-initial" does, and takes it as trivial.

    So with the latter both steps of trace 0 have read x, and pay differently.
    """
    traces = [walk([0, 0, 0], ["x", None, None], [0, 1]), walk([0, 0], [None, None], [1])]
    assert NONE in message(traces, timing="lagged")


def complaint(traces, options):
    try:
        rs.infer(traces, **options)
    except rs.ContradictoryTraces as error:
        return str(error)
    return None


def follow(traces, text, options):
    """Do what the message says; then only the other machine may still find a contradiction."""
    if "--timing" in text:
        options = {**options, "timing": text.split()[-1].rstrip(")")}
    elif "--keep-trivial" in text:
        options = {**options, "remove_trivial": False}
    else:
        return
    still = complaint(traces, options)
    assert still is None or ("rewards" in text) != ("rewards" in still)


@st.composite
def quarrelling_traces(draw):
    def column(values, length):
        return draw(st.lists(st.sampled_from(values), min_size=length, max_size=length))

    traces = []
    for steps in draw(st.lists(st.integers(1, 3), min_size=1, max_size=4)):
        seen = column(draw(st.sampled_from([[0], [0, 1]])), steps + 1)
        labels = column([None, "x", "y"], steps + 1)
        traces.append(walk(seen, labels, column([0, 1], steps)))
    return rs.TraceSet(traces)


@settings(deadline=None, max_examples=400)
@given(quarrelling_traces(), st.sampled_from(rs.LabelTiming), st.booleans())
def test_advice_that_is_followed_helps(traces, timing, supplement):
    options = {"timing": timing, "supplement": supplement}
    text = complaint(traces, options)
    if text is not None:
        follow(traces, text, options)


def test_images_are_not_written_out():
    black, grey = ([shade] * 400 for shade in (0, 1))
    dotted = [*grey[:300], 7, *grey[301:]]
    text = message([walk([black, grey], [None] * 2), walk([black, dotted], [None] * 2)])
    assert len(text) < 500
    assert ", 1, 1, 1, 1" in text
    assert ", 1, 7, 1" in text
