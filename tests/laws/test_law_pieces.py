"""Pieces of files hold the episodes of the table, whole, or are refused: nothing is ever cut."""

import tempfile
from itertools import groupby, pairwise
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import resolvent as rs
from resolvent.traces.scan import opening

WORDS = {"input": "event", "output": "answer"}


@st.composite
def stored(draw):
    """Rows by the run they are of, where files end, and how rows are put into groups and pieces."""
    texts = draw(st.booleans())
    ids = st.sampled_from(["a", "b", "ba", "c", ""]) if texts else st.integers(-2, 4)
    runs = draw(st.lists(st.tuples(ids, st.integers(1, 9)), min_size=1, max_size=8))
    if draw(st.booleans()):  # each run once, as a file that somebody sorted has them
        runs = list(dict(runs).items())
    rows = [run for run, length in runs for _ in range(length)]
    cuts = sorted(draw(st.sets(st.integers(1, max(len(rows) - 1, 1)), max_size=3)))
    group, piece = draw(st.integers(1, 6)), draw(st.integers(1, 12))
    return rows, [cut for cut in cuts if cut < len(rows)], group, piece, draw(st.booleans())


def write(folder, rows, cuts, group, statistics):
    table = pa.table({"run": rows, "event": ["go"] * len(rows), "answer": list(range(len(rows)))})
    for number, (start, end) in enumerate(pairwise([0, *cuts, len(rows)])):
        pq.write_table(
            table.slice(start, end - start),
            Path(folder) / f"{number}.parquet",
            row_group_size=group,
            write_statistics=statistics,
        )


def runs_of(rows):
    """The numbers of the rows of each run, by hand."""
    found = {}
    for number, run in enumerate(rows):
        found.setdefault(run, []).append(number)
    return sorted(map(tuple, found.values()))


@settings(deadline=None, max_examples=40)
@given(stored())
@example(([1, 5, 4, 3, 9, 5, 6, 7], [], 4, 4, True))
@example(([1, 5, 5, 5, 5, 5, 5, 6, 5], [], 2, 2, True))
@example(([3, 3, 2, 2, 1, 1], [2, 4], 1, 2, True))
@example(([1, 1, 5, 5, 2, 3, 3, 3, 5, 5, 6, 6, 7, 8, 9, 9], [], 4, 8, True))
@example((["b"] * 7 + ["a"] * 7, [], 2, 3, True))
def test_shards_hold_whole_episodes_or_are_refused(drawn):
    rows, cuts, group, piece, statistics = drawn
    together = len({run for run, _ in groupby(rows)}) == sum(1 for _ in groupby(rows))
    refused, steps, found, again, facts = None, 0, [], [], {}
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(opening, "SHARD_ROWS", piece):
        write(folder, rows, cuts, group, statistics)
        try:
            scanned = rs.scan_traces(folder, episode="run", **WORDS)
            for number in reversed(range(len(scanned))):
                traces, facts[number] = scanned.scan(number)
                found += [trace.columns["answer"] for trace in traces]
                steps += traces.steps
            # Later reads rely on the facts that the first read found.
            for source in (scanned, scanned.with_facts(facts)):
                passed = [trace.columns["answer"] for traces in source for trace in traces]
                again.append(sorted(passed))
        except rs.TraceError as error:
            refused = str(error)
    if refused:
        assert "are not consecutive" in refused
        assert not together
    else:
        assert sorted(found) == runs_of(rows)
        assert again == [sorted(found)] * 2
        assert steps == scanned.rows == len(rows)


@pytest.mark.parametrize("group", [1, 4, 30, 1000])
def test_machines_do_not_depend_on_shards(tmp_path, group):
    # A turnstile: a push opens after a coin. Some runs are longer than a piece.
    rows = {"run": [], "event": [], "answer": []}
    for run in range(60):
        paid = False
        for step in range(1 + run * 7 % 50):
            event = "coin" if (run * 31 + step * step) % 3 == 0 else "push"
            answer = "thanks" if event == "coin" else ("open" if paid else "locked")
            paid = event == "coin"
            for name, value in zip(rows, (run, event, answer), strict=True):
                rows[name].append(value)
    table = pa.table(rows)
    whole = rs.infer(rs.read_log(table, episode="run", **WORDS)).machines
    pq.write_table(table, tmp_path / "log.parquet", row_group_size=group)
    with mock.patch.object(opening, "SHARD_ROWS", 20):
        scanned = rs.scan_traces(tmp_path / "log.parquet", episode="run", **WORDS)
        assert rs.infer(scanned).machines == whole
    assert whole["answer"].states == 2
