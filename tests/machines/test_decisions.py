"""The log of merges: by hand on a small example, and files that hold another than they could."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import resolvent as rs
from resolvent.machines import MergeDecision
from resolvent.machines.io.json import decode, encode

BELL, KEY = frozenset({"bell"}), frozenset({"key"})

# Pushing opens the door once the key was read; the bell changes nothing, with or without it.
TRACES = rs.TraceSet(
    [
        rs.Trace(
            ["hall", "hall", "hall", "room"], [None, None, "key", None], ["push"] * 3, [0, 0, 1]
        ),
        rs.Trace(
            ["hall", "hall", "hall", "room"], [None, "bell", "key", None], ["push"] * 3, [0, 0, 1]
        ),
    ]
)
PAIR = rs.infer(TRACES, strategy="rpni", options=rs.InferenceOptions(trivial=[])).machines
DATA = encode(PAIR)
LOG = json.loads(DATA)["machines"][0]["decisions"]


def test_decisions_by_hand():
    # The tree: start answers no, bell no, key yes, bell then key yes. In shortlex order bell
    # comes first: its no agrees with the start's, and the yes below it with that of key.
    assert PAIR.transition.decisions == (
        MergeDecision(0, BELL, 0, new=False, agreeing=2, folded=2),
        MergeDecision(0, KEY, 1, new=True, agreeing=0, folded=0),
    )


def test_the_file_names_rows_of_transitions():
    content = json.loads(DATA)
    tables = content["machines"][0]["tables"]
    assert tables["transitions"] == [
        [0, 0, 0],
        [0, 1, 0],
        [0, 2, 1],
        [1, 0, 1],
    ]
    assert LOG == {"transitions": [1, 2], "agreeing": [2, 0], "folded": [2, 0]}
    assert list(content) == [
        *("format", "version", "timing", "machines", "termination", "provenance")
    ]


def test_files_without_a_log_load_and_stay_as_they_are():
    content = json.loads(DATA)
    for machine in content["machines"]:
        del machine["decisions"]
    old = decode(json.dumps(content).encode())
    assert old == PAIR
    assert hash(old) == hash(PAIR)
    assert (old.transition.decisions, old.reward.decisions) == (None, None)
    assert b"decisions" not in encode(old)
    assert decode(encode(old)) == old


def test_one_machine_may_have_a_log_and_the_other_none():
    half = PAIR.replacing(replace(PAIR.transition, decisions=None))
    again = decode(encode(half))
    assert (again.transition.decisions, again.reward.decisions) == (None, PAIR.reward.decisions)
    assert encode(again) == encode(half)


def test_a_machine_without_labels_has_a_log_without_decisions():
    alone = rs.infer(rs.TraceSet([rs.Trace(["a", "b"], [None, None], ["go"], [0])])).machines
    assert alone.transition.decisions == ()
    assert decode(encode(alone)).transition.decisions == ()


def with_log(**changes):
    content = json.loads(DATA)
    content["machines"][0]["decisions"] = {**LOG, **changes}
    return json.dumps(content).encode()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"transitions": [1, 4]}, "name a transition that does not exist"),
        ({"transitions": [-1, 2]}, "name a transition that does not exist"),
        ({"transitions": [1, 10**30]}, "damaged"),
        ({"transitions": [2, 2]}, "settle a transition twice"),
        ({"transitions": [1, 3]}, "leave state 1 before they reach it"),
        ({"transitions": [1], "agreeing": [1], "folded": [1]}, "never reach some of the states"),
        ({"transitions": [], "agreeing": [], "folded": []}, "never reach some of the states"),
        ({"agreeing": [1]}, "differ in length"),
        ({"folded": [1, 0, 0]}, "differ in length"),
        ({"agreeing": [-1, 0]}, "`int` >= 0"),
        ({"agreeing": [2**63, 0]}, "count out of range|damaged"),
        ({"folded": [1, -5]}, "`int` >= 0"),
        ({"folded": [0, 0]}, "fold nothing into state 0"),
        ({"folded": [1, 3]}, "or too much"),
        ({"agreeing": [1, 1]}, "or too much"),
        ({"agreeing": ["1", 0]}, "damaged"),
        ({"agreeing": [1.5, 0]}, "damaged"),
        ({"agreeing": None}, "damaged"),
        ({"transitions": {"0": 1}}, "damaged"),
        ({"colour": []}, "unknown field `colour`"),
    ],
)
def test_logs_that_no_search_can_have_written(changes, message):
    with pytest.raises(rs.errors.ModelError, match=message) as caught:
        decode(with_log(**changes), "door.json")
    assert str(caught.value).startswith("door.json is damaged: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("section", [3, [], {}, {"fault": LOG}, {"transitions": []}])
def test_sections_of_another_type(section):
    content = json.loads(DATA)
    content["machines"][0]["decisions"] = section
    with pytest.raises(rs.errors.ModelError, match="damaged"):
        decode(json.dumps(content).encode())


@settings(deadline=None, max_examples=300)
@given(
    st.dictionaries(
        st.sampled_from(["transitions", "agreeing", "folded"]),
        st.lists(st.integers(-2, 5) | st.integers() | st.floats() | st.text(), max_size=5),
        min_size=1,
    )
)
def test_any_columns_load_or_are_refused(changes):
    try:
        data = with_log(**changes)
        pair = decode(data)
    except rs.errors.ModelError:
        return
    assert pair == PAIR
    assert decode(encode(pair)).transition.decisions == pair.transition.decisions


def test_the_log_takes_no_part_in_equality():
    other = replace(PAIR.transition, decisions=PAIR.transition.decisions[:1])
    assert other == PAIR.transition
    assert hash(other) == hash(PAIR.transition)
