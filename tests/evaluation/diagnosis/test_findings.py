import json

from diagnosed import trace

import resolvent as rs
from resolvent.evaluation.diagnosis.findings import Severity

LONG = "Read --timing current-with-initial, " * 4
NOTE = rs.evaluation.Finding("short-traces", Severity.NOTE, "Traces are short.", {"longest": 2})
WARNING = rs.evaluation.Finding("constant-reward", Severity.WARNING, LONG.strip(), {})


def test_the_text_names_the_size_and_every_finding():
    page = str(rs.evaluation.Diagnosis(1_200, 1, (NOTE,)))
    assert page == "1,200 traces, 1 step\n\nnote: Traces are short. [short-traces]"


def test_lines_are_wrapped_between_options():
    lines = str(rs.evaluation.Diagnosis(1, 1, (WARNING,))).splitlines()
    assert max(map(len, lines)) <= 80
    assert "".join(lines).count("current-with-initial") == 4


def test_warnings_leave_out_notes():
    assert rs.evaluation.Diagnosis(1, 1, (WARNING, NOTE)).warnings == (WARNING,)


def test_as_dict_survives_json():
    figures = rs.diagnose(rs.TraceSet([trace([(0, 1), (1, 1)]), trace([(0, 1), (0, 1)])])).as_dict()
    assert json.loads(json.dumps(figures)) == figures
    assert figures["traces"] == figures["steps"] == 2
    assert figures["findings"][0]["kind"] == "random-start"
    assert figures["findings"][0]["severity"] == "error"


def test_equal_findings_have_equal_hashes():
    again = rs.evaluation.Finding(
        "short-traces", Severity.NOTE, "Traces are short.", {"longest": 2}
    )
    assert (again, hash(again)) == (NOTE, hash(NOTE))
    assert again != rs.evaluation.Finding("short-traces", Severity.NOTE, "Traces are short.", {})
