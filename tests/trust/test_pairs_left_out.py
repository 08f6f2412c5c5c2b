"""Machines with so many states that pairs of them take too much memory: what is said instead."""

import json
import re

import pytest

import resolvent as rs
from resolvent.cli import main


@pytest.fixture(scope="module")
def counting():
    """A log whose reward counts ticks: a chain of 60 states, each unlike all others."""
    ticks = rs.Trace([0] * 61, [None] + ["tick"] * 60, ["go"] * 60, range(60))
    return rs.TraceSet([ticks])


@pytest.fixture(scope="module")
def machines(counting):
    found = rs.infer(counting, outputs=["reward"], noise="none").machines
    assert found["reward"].states == 60
    return found


ROOM = 59 * 30 * 36
"""Bytes for all pairs of 60 states."""


def test_pairs_that_fit_are_told_apart(machines, counting):
    with rs.Limits(table_bytes=ROOM):
        gathered = rs.evidence(machines, counting)["reward"]
    assert gathered.separations.left_out is None
    assert len(gathered.separations) == 60 * 59 // 2


def test_pairs_that_do_not_fit_are_left_out_and_that_is_said(machines, counting):
    whole = rs.evidence(machines, counting)["reward"]
    with rs.Limits(table_bytes=ROOM - 1):
        gathered = rs.evidence(machines, counting)["reward"]
    said = gathered.separations.left_out
    assert "59 by 30, take" in said
    assert f"RESOLVENT_MAX_TABLE_BYTES={ROOM}" in said
    assert len(gathered.separations) == 0
    assert gathered.inseparable == ()
    assert f"what tells states apart is left out: {said}" in str(gathered)
    assert gathered.as_dict()["separations_left_out"] == said
    # All else is as it is with them.
    assert gathered == whole
    assert gathered.weakness == whole.weakness
    assert gathered.transitions(3) == whole.transitions(3)


def test_commands_leave_them_out(machines, counting, tmp_path, monkeypatch, capsys):
    machines.save(tmp_path / "m.json")
    counting.save(tmp_path / "t.jsonl")
    files = [str(tmp_path / "m.json"), str(tmp_path / "t.jsonl")]
    monkeypatch.setenv("RESOLVENT_MAX_TABLE_BYTES", str(ROOM - 1))
    page = tmp_path / "page.html"
    assert main(["report", *files, "-o", str(page)]) == 0
    told = re.search(r'"proof":(\{.*?"left_out":"[^"]*")', page.read_text(encoding="utf-8"))
    proof = json.loads(told[1] + "}")
    assert (proof["shown"], proof["matrix"], proof["weakest"], proof["pairs"]) == (0, [], [], 0)
    assert "more than the limit" in proof["left_out"]
    capsys.readouterr()
    assert main(["check", *files, "--evidence"]) == 0
    assert "what tells states apart is left out: pairs of states" in capsys.readouterr().out
