"""Whatever takes machines takes those of a result too, and says so where it is given neither."""

from pathlib import Path

import pytest

import resolvent as rs
from resolvent.worlds import House

TRACES = rs.TraceSet([rs.Trace(["hall", "hall"], [None, None], ["look"], [0])])

TAKE_MACHINES = {
    "evidence": lambda given, _: rs.evidence(given, TRACES),
    "plan": lambda given, _: rs.plan(given, TRACES),
    "report": lambda given, folder: rs.report(given, TRACES, folder / "report.html"),
}


@pytest.mark.parametrize("name", TAKE_MACHINES)
@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "a NoneType is not a set of machines: pass machines or a result of rs.infer"),
        ([], "a list is not a set of machines: pass machines or a result of rs.infer"),
        (
            House().machines().reward,
            "a RewardMachine is not a set of machines: pass machines or a result of rs.infer",
        ),
        ("m.json", "a str is not a set of machines: load the file with rs.load"),
    ],
)
def test_other_values_than_machines_are_refused_in_one_line(name, given, message, tmp_path):
    with pytest.raises(rs.errors.ModelError) as refusal:
        TAKE_MACHINES[name](given, tmp_path)
    assert str(refusal.value) == message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", TAKE_MACHINES)
def test_a_path_is_refused_with_a_remedy(name, tmp_path):
    with pytest.raises(
        rs.errors.ModelError, match=r"is not a set of machines: load the file with rs\.load"
    ):
        TAKE_MACHINES[name](Path("m.json"), tmp_path)
