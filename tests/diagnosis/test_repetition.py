from diagnosed import found, trace

import resolvent as rs


def readings(number, digits=None, seen=0.0):
    """Traces of five steps that read a number which never comes again, unless it is rounded."""
    return rs.TraceSet(
        trace([seen + round((7 * one + place) / 1000, digits or 9) for place in range(6)])
        for one in range(number)
    )


def test_continuous_readings_are_told_and_what_to_do():
    finding = found(readings(10), "unique-observations")
    assert finding.severity == "warning"
    assert finding.figures == {"values": 60, "once": 60, "positions": 60, "fractions": True}
    assert "60 of 60 observations occur once" in finding.text
    assert "Round them" in finding.text


def test_rounded_readings_repeat():
    assert found(readings(10, digits=1), "unique-observations") is None
    assert found(readings(10, digits=1), "hardly-repeats") is None


def test_ids_are_no_continuous_readings():
    ids = rs.TraceSet(trace([f"{one}-{place}" for place in range(4)]) for one in range(9))
    finding = found(ids, "unique-observations")
    assert finding.figures["fractions"] is False
    assert "an id" in finding.text
    whole = rs.TraceSet(trace([(1.0, 4 * one + place) for place in range(4)]) for one in range(9))
    assert found(whole, "unique-observations").figures["fractions"] is False


def test_where_nothing_repeats_all_fresh_steps_will_be_unseen():
    finding = found(readings(10), "hardly-repeats")
    assert finding.severity == "warning"
    assert finding.figures == {
        "share": 1.0,
        "unseen": 50,
        "steps": 50,
        "questions": 50,
        "questions_once": 50,
    }
    assert finding.text.startswith("Hardly anything repeats: on fresh traces about 100%")


def test_what_repeats_within_its_trace_alone_is_unseen_in_others():
    """Every trace goes to and fro in rooms of its own: each question comes five times."""
    own = rs.TraceSet(trace([(one, place % 2) for place in range(11)]) for one in range(8))
    finding = found(own, "hardly-repeats")
    assert (finding.figures["share"], finding.figures["questions_once"]) == (1.0, 0)
    assert found(own, "unique-observations") is None


def test_the_share_is_of_steps_that_no_other_trace_knows():
    """Of 4 × 5 steps two are asked in one trace alone, one of them once."""
    common = ["a", "b", "c", "d", "e", "f"]
    traces = [trace(common)] * 3 + [trace(["a", "b", "c", "d", "x", "y"])]
    finding = found(rs.TraceSet(traces), "hardly-repeats")
    assert (finding.figures["unseen"], finding.figures["steps"]) == (1, 20)
    assert finding.severity == "note"
    much = rs.TraceSet([*traces, trace(["x", "z", "z", "z", "z", "z"])])
    finding = found(much, "hardly-repeats")
    assert (finding.figures["unseen"], finding.figures["steps"]) == (4, 25)
    assert finding.severity == "warning"
    assert finding.text.startswith("Much is seen just once: on fresh traces about 16%")


def test_of_one_trace_it_is_what_is_asked_once():
    finding = found(rs.TraceSet([trace(["a", "b", "a", "b", "c", "d"])]), "hardly-repeats")
    assert (finding.figures["unseen"], finding.figures["steps"]) == (1, 5)
