from diagnosed import found, trace

import resolvent as rs


def test_one_long_log():
    log = trace(["a", "b"] * 50)
    assert found(rs.TraceSet([log]), "one-long-log").figures == {"steps": 99}
    assert "search" in found(rs.TraceSet([log]), "one-long-log").text
    assert found(rs.TraceSet([log, log]), "one-long-log") is None


def test_few_traces_and_the_histories_that_are_seen_once():
    """Read before steps: nothing, x, x y in the first; nothing, x, x z in the second."""
    few = rs.TraceSet([trace("abcd", [None, "x", last, None]) for last in "yz"])
    finding = found(few, "few-traces")
    assert finding.severity == "note"
    assert finding.figures == {"traces": 2, "histories": 4, "histories_once": 2}
    assert found(rs.TraceSet([few[0]] * 20), "few-traces") is None
    assert found(few[:1], "few-traces") is None


def test_traces_too_short_to_read_a_label():
    single = rs.TraceSet([trace("ab", ["x", "y"])] * 3)
    assert found(single, "short-traces").severity == "warning"
    assert found(single, "short-traces", timing="current-with-initial").severity == "note"
    double = rs.TraceSet([trace("abc")] * 3)
    assert found(double, "short-traces").severity == "note"
    assert found(double, "short-traces").figures == {"median": 2.0, "longest": 2}
    assert found(rs.TraceSet([trace("abcd")] * 3), "short-traces") is None


def test_none_terminated():
    cut = rs.TraceSet([trace("abc", truncated=True), trace("ab")])
    assert found(cut, "never-terminated").figures == {"traces": 2, "truncated": 1}
    ended = rs.TraceSet([trace("abc", truncated=True), trace("ab", terminated=True)])
    assert found(ended, "never-terminated") is None


def test_the_same_trace_again_and_again():
    ways = [trace("abc"), trace("abd"), trace("abe"), trace("abf"), trace("abg"), trace("abh")]
    again = found(rs.TraceSet(ways * 2), "repeated-traces")
    assert again.severity == "note"
    assert again.figures == {"traces": 12, "different": 6}
    assert found(rs.TraceSet(ways * 2 + [trace("abi")]), "repeated-traces") is None
    mirrored = [trace("abac"), trace("acab")]  # equal in length and in the sums of their codes
    assert found(rs.TraceSet(mirrored * 2), "repeated-traces").figures["different"] == 2
    monotonous = found(rs.TraceSet(ways[:5] * 4), "repeated-traces")
    assert monotonous.severity == "warning"
    assert found(rs.TraceSet(ways * 4), "repeated-traces").severity == "note"
