"""The error names both traces and steps, their history, and what to try; as text and as data."""

from collections import Counter
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import NO_EVENT, labels_before

import resolvent as rs
from resolvent.errors import StepLocation
from resolvent.inference.conflict import Sampling, explain_conflict
from resolvent.preprocess.samples import ContradictoryRows, output_samples

NONE = "the environment is not deterministic under these labels"
FUTILE = "no later label can help, since initial states differ or the environment is random"
SHOW = "include the difference in the first observation or its label"
INITIAL = "timing='current-with-initial' (--timing current-with-initial)"
LABEL = "label the event that makes the difference, or pass labels='auto' (--labels auto) to discover it"
ROUND = ", or round noisy rewards with reward_digits=N (--reward-digits N)"


def walk(observations, labels, rewards=None, actions=None):
    steps = len(observations) - 1
    return rs.Trace(observations, labels, actions or ["go"] * steps, rewards or [0] * steps)


def refusal(traces, **options):
    with pytest.raises(rs.ContradictoryTraces) as caught:
        rs.infer(rs.TraceSet(traces), options=rs.InferenceOptions(noise="none", **options))
    return caught.value


def message(traces, **options):
    return str(refusal(traces, **options))


@pytest.mark.parametrize("engine", ["native", "python"])
def test_next_observations_that_differ(engine):
    traces = [
        walk(["a", "a"], [None, None]),
        walk(["a", "a", "a", "c"], [None, "k", "k", None]),
        walk(["b", "a", "b"], [None, "k", None]),
        walk(["b", "a", "a", "b"], [None, "k", "k", None]),
    ]
    error = refusal(traces, engine=engine)
    # After k alone, traces 1 and 2 differ at (a, go): that comes before the longer history k, k.
    assert str(error) == (
        "trace 1, step 1 and trace 2, step 1 read the same labels (k) but have different next "
        f"observations for (a, go): a (2 times) and b (1 time); {NONE}: {LABEL}"
    )
    assert (error.output, error.machine) == ("observation", "transition")
    assert error.locations == (StepLocation(1, 1), StepLocation(2, 1))
    assert (error.query, error.values) == (("a", "go"), ("a", "b"))
    assert error.outcomes == (("a", 2), ("b", 1))  # trace 3 goes on as trace 1 does
    assert error.label_sequence == (frozenset({"k"}),)
    assert error.labels_read
    assert error.timing is None
    assert error.advice == f"{NONE}: {LABEL}"


def test_rewards_that_differ():
    traces = [walk([0, 0, 0], [None, "k", None], [0, pay]) for pay in (1, 2)]
    error = refusal(traces)
    assert str(error) == (
        "trace 0, step 1 and trace 1, step 1 read the same labels (k) but have different "
        f"rewards for (0, go): 1.0 and 2.0; {NONE}: {LABEL}{ROUND}"
    )
    assert (error.output, error.machine) == ("reward", "reward")
    assert error.outcomes == ((1.0, 1), (2.0, 1))
    assert str(refusal(traces, supplement=False)) == str(error)


def test_values_of_another_column_that_differ():
    traces = rs.TraceSet([walk([0, 0, 0], [None, "k", None], [0, pay]) for pay in (1, 2)])
    timing = rs.LabelTiming.CURRENT
    pays = partial(output_samples, predicts="reward")
    error = explain_conflict(
        ContradictoryRows(1, 3), Sampling(traces, pays, "cost", timing)
    ).error()
    assert (error.output, error.machine) == ("cost", "cost")
    assert "have different values of cost for (0, go): 1.0 and 2.0; " in str(error)
    assert error.advice == f"{NONE}: {LABEL}"


@pytest.mark.parametrize(
    ("timing", "remedy"),
    [
        ("current", f"{SHOW}, and pass {INITIAL}"),
        ("lagged", f"{SHOW}, and pass {INITIAL}"),
        ("current-with-initial", SHOW),
    ],
)
def test_conflicts_before_any_label_advise_no_later_label(timing, remedy):
    error = refusal([walk([0, 0], [None, "k"], [pay]) for pay in (1, 2)], timing=timing)
    assert error.advice == f"{FUTILE}: {remedy}{ROUND}"
    assert error.label_sequence == ()
    assert error.timing is None
    # The last timing has read "no event" at reset: a label, but a trivial one.
    assert error.labels_read is (timing == "current-with-initial")
    same = "read the same labels (start) but have different rewards for (0, go): "
    none = "have different rewards for (0, go) before any label is read: "
    assert str(error) == (
        f"trace 0, step 0 and trace 1, step 0 {same if error.labels_read else none}"
        f"1.0 and 2.0; {error.advice}"
    )


def test_conflicting_first_steps_are_preferred():
    """Between the two steps of trace 0 something without a label may have happened."""
    later = walk([0, 0, 0], [None, None, None], [1, 2])
    error = refusal([later, walk([0, 0], [None, None], [1])], trivial=())
    assert error.locations == (StepLocation(0, 0), StepLocation(0, 1))
    assert error.advice.startswith("a label treated as trivial is needed")
    error = refusal([later, walk([0, 0], [None, None], [2])], trivial=())
    assert error.locations == (StepLocation(0, 0), StepLocation(1, 0))
    assert error.advice.startswith(FUTILE)
    assert error.outcomes == ((2.0, 2), (1.0, 1))
    assert "1.0 (1 time) and 2.0 (2 times); " in str(error)


def test_first_labels_that_distinguish_some_steps():
    """Read from the start, x and y explain the first steps; the second ones differ all the same."""
    traces = [
        walk([0, 1], ["x", None], [1]),
        walk([0, 1], ["y", None], [2]),
        walk([0, 1, 0], ["x", "k", None], [1, 3]),
        walk([0, 1, 0], ["x", "k", None], [1, 4]),
    ]
    error = refusal(traces)
    assert error.timing is None
    assert error.advice == (
        f"{FUTILE}: pass {INITIAL} to read the first labels, which distinguish these steps; "
        f"other steps then contradict each other{ROUND}; "
        "to predict only observation, pass outputs=['observation'] (--outputs observation)"
    )
    after = refusal(traces, timing="current-with-initial")
    assert after.locations == (StepLocation(2, 1), StepLocation(3, 1))
    assert after.label_sequence == (frozenset({"x"}), frozenset({"k"}))


def test_many_outcomes_are_counted_and_rare_ones_may_be_noise():
    paid = [5] * 2000 + [7] * 3 + [6] * 3 + [4] * 1994 + [8]
    traces = [walk([0, 0, 0], [None, "k", None], [0, pay]) for pay in paid]
    error = refusal(traces)
    assert error.outcomes == ((5.0, 2000), (4.0, 1994), (6.0, 3), (7.0, 3), (8.0, 1))
    assert error.values == (5.0, 7.0)
    assert "for (0, go): 5.0 (2,000 times) and 7.0 (3 times), and 3 others (1,998 times); " in (
        str(error)
    )
    assert str(error).endswith(
        f"{ROUND}; the outcome is rare at 7 of these 4,001 steps: "
        "to treat it as noise, pass noise='auto' (--noise auto)"
    )


@pytest.mark.parametrize(("usual", "noisy"), [(9, False), (10, True)])
def test_one_in_ten_is_not_rare(usual, noisy):
    ends = ["a"] * usual + ["b"]
    error = refusal([walk(["a", "a", end], [None, "k", None]) for end in ends])
    assert error.outcomes == (("a", usual), ("b", 1))
    assert ("noise" in error.advice) is noisy


def test_locations_in_files(tmp_path):
    pays = {"a": [1, 1], "b": [1, 1, 2]}
    for name, paid in pays.items():
        traces = [walk([0, 0, 0], [None, "k", None], [0, pay]) for pay in paid]
        rs.TraceSet(traces).save(tmp_path / f"{name}.parquet")
    with pytest.raises(rs.ContradictoryTraces) as caught:
        rs.infer(rs.scan_traces(tmp_path), noise="none")
    one, other = caught.value.locations
    assert (one.trace_in_source, one.step, one.source) == (0, 1, str(tmp_path / "a.parquet"))
    assert other == StepLocation(4, 1, str(tmp_path / "b.parquet"), 2)
    assert str(other) == f"{tmp_path / 'b.parquet'}, trace 2, step 1"
    assert str(caught.value).startswith(f"{one} and {other} read")


def test_long_histories_are_cut():
    labels = [None, *"abcdefgh"]
    traces = [walk([0] * 9, [*labels], [0] * 7 + [pay]) for pay in (1, 2)]
    error = refusal(traces)
    assert "trace 0, step 7 and trace 1, step 7" in str(error)
    assert "read the same labels (… b, c, d, e, f, g)" in str(error)
    assert error.label_sequence == tuple(map(frozenset, "abcdefg"))


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
def test_a_consistent_label_timing_is_advised(traces, timing, fits):
    error = refusal(traces, timing=timing)
    assert error.timing == fits
    assert error.advice.endswith(f"timing='{fits}' (--timing {fits})")
    assert str(error).endswith(f"; {error.advice}")
    assert rs.infer(rs.TraceSet(traces), timing=fits).machines.score(rs.TraceSet(traces)).perfect


def test_a_needed_label_that_is_treated_as_trivial():
    traces = [
        walk([0, 0, 0], [None, "k", None], [0, 1]),
        walk([0, 0, 0], [None, "m", None], [0, 0]),
    ]
    text = message(traces, trivial=["k", "m"])
    assert text.endswith("remove_trivial=False (--keep-trivial)")
    assert rs.infer(rs.TraceSet(traces)).machines.reward.states == 2


def test_a_label_dropped_on_evidence_is_not_to_blame():
    """Without y the first step and the last differ as well, but those did not read the same."""
    traces = [walk([0] * 4, [None, "y", None, "y"], [0, 0, 1])]
    error = refusal(traces, timing="current-with-initial")
    assert error.locations == (StepLocation(0, 1), StepLocation(0, 2))
    assert error.label_sequence == (frozenset({"y"}),)


def test_time_without_events_that_matters():
    """Only the number of steps without an event makes the difference."""
    traces = [walk([0, 0, 0, 0], [None] * 4, [0, 0, 1])]
    text = message(traces, trivial=())
    assert text.endswith("remove_trivial=False (--keep-trivial)")
    kept = rs.infer(rs.TraceSet(traces), options=rs.InferenceOptions(remove_trivial=False))
    assert kept.machines.score(rs.TraceSet(traces)).perfect


def test_no_option_helps():
    traces = [walk([0] * 4, ["x", "k", "k", None], [0, 0, pay]) for pay in (1, 2)]
    for timing in rs.LabelTiming:
        assert NONE in message(traces, timing=timing)


def test_a_timing_is_not_advised_if_it_needs_trivial_labels():
    """ "lagged" never reads "no event" here, "current-with-initial" does, and takes it as trivial.

    So with the latter both steps of trace 0 have read x, and pay differently.
    """
    traces = [walk([0, 0, 0], ["x", None, None], [0, 1]), walk([0, 0], [None, None], [1])]
    error = refusal(traces, timing="lagged")
    assert error.timing is None
    assert "other steps then contradict each other" in error.advice


def complaint(traces, options):
    try:
        rs.infer(traces, options=rs.InferenceOptions(noise="none", **options))
    except rs.ContradictoryTraces as error:
        return error
    return None


def follow(traces, error, options):
    """Do what the error says; then only the other machine may still find a contradiction."""
    if error.timing is not None:
        options = {**options, "timing": error.timing}
    elif "--keep-trivial" in error.advice:
        options = {**options, "remove_trivial": False}
    else:
        return
    still = complaint(traces, options)
    assert still is None or still.output != error.output


@st.composite
def contradictory_traces(draw):
    def column(values, length):
        return draw(st.lists(st.sampled_from(values), min_size=length, max_size=length))

    traces = []
    for steps in draw(st.lists(st.integers(1, 3), min_size=1, max_size=4)):
        seen = column(draw(st.sampled_from([[0], [0, 1]])), steps + 1)
        labels = column([None, "x", "y"], steps + 1)
        traces.append(walk(seen, labels, column([0, 1], steps)))
    return rs.TraceSet(traces)


@settings(deadline=None, max_examples=150)
@given(contradictory_traces(), st.sampled_from(rs.LabelTiming), st.booleans())
def test_advice_that_is_followed_helps(traces, timing, supplement):
    options = {"timing": timing, "supplement": supplement}
    error = complaint(traces, options)
    if error is not None:
        follow(traces, error, options)


def alike(traces, error, timing):
    """Every (trace, step, output) with the query and the labels of an error, by definition."""
    for number, trace in enumerate(traces):
        for step, query in enumerate(zip(trace.observations, trace.actions, strict=False)):
            read = labels_before(trace, step, timing)
            history = tuple(label for label in read if label != NO_EVENT)
            if (history, query) == (error.label_sequence, error.query):
                after = (trace.observations[step + 1], trace.rewards[step])
                yield number, step, after[error.output == "reward"], read


@settings(deadline=None, max_examples=100)
@given(contradictory_traces(), st.sampled_from(rs.LabelTiming))
def test_the_fields_match_the_traces(traces, timing):
    error = complaint(traces, {"timing": timing, "trivial": ()})
    if error is None:
        return
    found = list(alike(traces, error, timing))
    counted = Counter(value for _, _, value, _ in found)
    assert list(error.outcomes) == sorted(counted.items(), key=lambda one: (-one[1], one[0]))
    assert len(counted) > 1
    shown = {
        (trace, step): (value, read)
        for trace, step, value, read in found
        if StepLocation(trace, step) in error.locations
    }
    values, read = zip(*(shown[at.trace, at.step] for at in error.locations), strict=True)
    assert values == error.values
    assert values[0] != values[1]
    assert error.labels_read is any(map(len, read))
    # A label is asked for unless first steps differ already.
    at_reset = {value for _, step, value, _ in found if step == 0}
    assert (FUTILE in error.advice) <= (len(at_reset) > 1)
    assert (NONE in error.advice) <= (len(at_reset) < 2)


def test_images_are_not_written_out():
    black, grey = ([shade] * 400 for shade in (0, 1))
    dotted = [*grey[:300], 7, *grey[301:]]
    text = message([walk([black, grey], [None] * 2), walk([black, dotted], [None] * 2)])
    assert len(text) < 500
    assert ", 1, 1" not in text
    assert "(400), which differ in 1 of 400 values: [300] is 1 and 7; " in text
    often = [walk([black, grey], [None] * 2)] * 2 + [walk([black, dotted], [None] * 2)]
    other = walk([black, black], [None] * 2)
    text = message([*often, other])
    assert ", and 1 other (1 time); the first two differ in 1 of 400 values: [300] is " in text


def test_both_remedies_are_named():
    """Late labels explain the second step, and so does counting steps by "no event"."""
    traces = rs.TraceSet([rs.Trace([0, 0, 0], ["a", None, None], ["go", "go"], [0, 1])])
    with pytest.raises(rs.ContradictoryTraces) as caught:
        rs.infer(traces)
    assert caught.value.timing == "lagged"
    assert "--timing lagged" in caught.value.advice
    assert "--keep-trivial" in caught.value.advice
    for way in ({"timing": "lagged"}, {"remove_trivial": False}):
        assert rs.infer(traces, options=rs.InferenceOptions(**way)).machines.score(traces).perfect


def test_outputs_without_contradiction_are_named():
    """Cards are drawn at random, and pay is for those that were seen before."""
    shown = ["a", "b", "a", "b"]
    traces = [walk([card, other], [None, None], [card == "a"]) for card in shown for other in "ab"]
    assert str(refusal(traces)).endswith(
        "; to predict only reward, pass outputs=['reward'] (--outputs reward)"
    )
    assert rs.infer(rs.TraceSet(traces), outputs=["reward"]).machines["reward"].states == 1
    traces += [walk(["a", other], [None] * 2, [0]) for other in "ab"]
    assert "without it" not in str(refusal(traces))


def test_a_conflict_is_a_value_with_the_fields_of_its_error():
    traces = rs.TraceSet([walk([0, 0, 0], [None, "k", None], [0, pay]) for pay in (1, 2)])
    rewards = partial(output_samples, predicts="reward")
    sampling = Sampling(traces, rewards, "reward", rs.LabelTiming.CURRENT)
    conflict = explain_conflict(ContradictoryRows(1, 3), sampling)
    assert conflict == explain_conflict(ContradictoryRows(1, 3), sampling)
    assert conflict.locations == (StepLocation(0, 1), StepLocation(1, 1))
    assert conflict.label_sequence == (frozenset({"k"}),)
    error = conflict.error()
    assert str(error) == str(conflict) == message(traces)
    for name, value in vars(conflict).items():
        assert getattr(error, name) == value
