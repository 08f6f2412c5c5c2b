from diagnosed import finding_of, trace

import resolvent as rs

ROOMS = ["hall", "attic"] * 10


def labelled(labels, observations=ROOMS, times=1):
    return rs.TraceSet([trace(observations, labels)] * times)


def test_labels_that_are_never_there():
    assert finding_of(labelled([None] * 20), "no-labels").figures == {"labels": 1, "positions": 20}
    assert finding_of(labelled([None] * 19 + ["key"]), "no-labels") is None


def test_labels_that_are_always_there():
    finding = finding_of(labelled(["tick"] * 20), "constant-label")
    assert finding.figures == {"labels": 1, "positions": 20, "always": ["tick"]}
    partly = finding_of(labelled([{"tick"}, {"tick", "key"}] * 10), "constant-label")
    assert partly.figures["always"] == ["tick"]
    assert "Every label holds tick" in partly.text
    assert finding_of(labelled([{"tick"}, {"key"}] * 10), "constant-label") is None
    assert finding_of(labelled([None] * 20), "constant-label") is None


def test_as_many_labels_as_steps():
    finding = finding_of(labelled([f"at {place}" for place in range(20)]), "labels-all-differ")
    assert finding.severity == "warning"
    assert finding.figures == {"labels": 20, "positions": 20}
    halved = [f"at {place % 9}" for place in range(20)]
    assert finding_of(labelled(halved), "labels-all-differ") is None


def test_a_clock_as_label_is_found_although_it_starts_again():
    clock = labelled([f"at {place}" for place in range(20)], times=5)
    assert "within a trace" in finding_of(clock, "labels-all-differ").text
    twice = [f"at {place}" for place in range(19)] + ["at 0"]
    assert finding_of(labelled(twice, times=5), "labels-all-differ") is None


def test_labels_of_short_traces_are_not_judged():
    assert finding_of(labelled(["a", "b", "c"], ROOMS[:3], times=9), "labels-all-differ") is None


def test_labels_that_are_the_observations():
    finding = finding_of(labelled(["in the hall", None] * 10), "labels-are-observations")
    assert finding.severity == "note"
    assert finding.figures == {"labels": 2, "positions": 20}
    other = ["in the hall", None] * 9 + [None, None]
    assert finding_of(labelled(other), "labels-are-observations") is None
    assert finding_of(labelled([None] * 20, ["hall"] * 20), "labels-are-observations") is None
