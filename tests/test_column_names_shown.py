"""A column may have any name, and so may the machine that predicts it: both are shown safely."""

from xml.etree import ElementTree

import pytest

import resolvent as rs

ODD = "co\x1b[31mst\x07"
SHOWN = r"co\x1b[31mst\x07"
LONG = "x" * 20_000


def traces_with(name):
    """Traces in which a column depends on whether the bell rang."""
    return rs.TraceSet(
        rs.Trace(
            ["hall", "hall", "hall"],
            [None, label, None],
            ["go", "go"],
            columns={name: [0, 1 if label else 0]},
        )
        for label in (None, "bell", None, "bell")
    )


@pytest.fixture(scope="module")
def traces():
    return traces_with(ODD)


@pytest.fixture(scope="module")
def result(traces):
    return rs.infer(traces)


OTHERWISE = rs.TraceSet([rs.Trace(["hall", "hall"], [None, None], ["go"], columns={ODD: [1]})])
"""What contradicts the traces above: a mismatch for a machine, an error for a diagnosis."""

TOLD = {
    "repr(traces)": lambda traces, result: repr(traces),
    "repr(machines)": lambda traces, result: repr(result.machines),
    "str(machines)": lambda traces, result: str(result.machines),
    "title": lambda traces, result: result.machines[ODD].title,
    "str(result)": lambda traces, result: str(result),
    "repr(result)": lambda traces, result: repr(result),
    "str(evidence)": lambda traces, result: str(rs.evidence(result, traces)),
    "repr(evidence)": lambda traces, result: repr(rs.evidence(result, traces)),
    "str(score)": lambda traces, result: str(result.machines.score(traces)),
    "mismatch": lambda traces, result: str(result.machines.score(OTHERWISE).first_mismatch),
    "notebook": lambda traces, result: result.machines._repr_html_(),
    "diagnosis": lambda traces, result: str(rs.diagnose(rs.TraceSet([*traces, *OTHERWISE]))),
}


@pytest.mark.parametrize("what", TOLD)
def test_control_characters_in_names_are_written_out(traces, result, what):
    told = TOLD[what](traces, result)
    assert not {"\x1b", "\x07"} & set(told)
    assert SHOWN.removeprefix("c") in told  # a title begins with a capital


def test_pictures_with_any_name_are_xml(result):
    drawn = ElementTree.fromstring(result.machines[ODD].to_svg())  # noqa: S314
    assert drawn.attrib["aria-label"] == rf"C{SHOWN[1:]} Machine, 2 states"


def test_a_report_has_no_control_characters(result, traces, tmp_path):
    path = tmp_path / "report.html"
    rs.report(result, traces, path)
    page = path.read_text(encoding="utf-8")
    assert not {"\x1b", "\x07"} & set(page)
    assert r"\u001b" not in page  # as JSON would hide it, and a script show it
    assert r"[31mst\\x07" in page


LONG_TRACES = traces_with(LONG)
LONG_RESULT = rs.infer(LONG_TRACES)
OTHERS = rs.TraceSet([rs.Trace(["hall", "attic"], [None, None], ["go"], [0])])

REFUSED = {
    "an output that is missing": lambda: rs.infer(OTHERS, outputs=[LONG]),
    "an output beside it": lambda: rs.infer(LONG_TRACES, outputs=["cost"]),
    "an output named twice": lambda: rs.infer(LONG_TRACES, outputs=[LONG, LONG]),
    "an output that is no list": lambda: rs.infer(LONG_TRACES, outputs=LONG),
    "a machine that is missing": lambda: LONG_RESULT.machines.reward,
    "statistics that are missing": lambda: LONG_RESULT.reward,
    "a score that is missing": lambda: LONG_RESULT.machines.score(LONG_TRACES).reward,
    "a column of other traces": lambda: LONG_RESULT.machines.score(OTHERS),
    "a column that is missing": lambda: rs.diagnose(OTHERS, outputs=[LONG]),
    "a plan": lambda: rs.plan(LONG_RESULT, LONG_TRACES),
    "a contradiction": lambda: rs.infer(
        rs.TraceSet(
            rs.Trace(["hall", "hall"], [None, None], ["go"], columns={LONG: [cost]})
            for cost in (0, 1)
        ),
        noise="none",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_long_names_are_shortened_in_errors(what):
    with pytest.raises(rs.ResolventError) as refusal:
        REFUSED[what]()
    assert len(str(refusal.value)) < 1_000
    assert "x…x" in str(refusal.value)
