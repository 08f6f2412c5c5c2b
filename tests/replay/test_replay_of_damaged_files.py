"""Scores, evidence, plans and reports of a place some of whose files are damaged."""

import warnings

import gymnasium as gym
import numpy as np
import pytest

import resolvent as rs
from resolvent.errors import DamagedFile, TableWarning
from shuffled_workers import ShuffledWorkers

FILES = 4
LOST = 2


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder of files of which one is cut short."""
    folder = tmp_path_factory.mktemp("damaged")
    traces = rs.collect(gym.make("resolvent/House-v0"), episodes=120, seed=0)
    for number, part in enumerate(np.array_split(np.arange(len(traces)), FILES)):
        traces.take(part).save(folder / f"{number}.parquet")
    lost = folder / f"{LOST}.parquet"
    lost.write_bytes(lost.read_bytes()[:1000])
    return folder


@pytest.fixture(scope="module")
def machines(place):
    return rs.infer(whole_files(place)).machines


def whole_files(place):
    return rs.scan_traces([place / f"{n}.parquet" for n in range(FILES) if n != LOST])


def page(machines, traces, folder):
    rs.report(machines, traces, folder / "page.html")
    return (folder / "page.html").read_text()


DONE = {
    "score": lambda machines, traces, _: machines.score(traces),
    "score in any grouping": lambda machines, traces, _: machines.score(
        traces, on=ShuffledWorkers(0)
    ),
    "evidence": lambda machines, traces, _: rs.evidence(machines, traces).as_dict(),
    "plan": lambda machines, traces, _: str(rs.plan(machines, traces)),
    "report": page,
}


@pytest.mark.parametrize("done", DONE.values(), ids=list(DONE))
def test_remaining_rows_count_and_skipped_ones_are_reported_once(done, machines, place, tmp_path):
    with pytest.warns(TableWarning, match=r"^skipped, since .* 1 shard .*2\.parquet") as told:
        found = done(machines, rs.scan_traces(place, damaged="skip"), tmp_path)
    assert len(told) == 1
    assert found == done(machines, whole_files(place), tmp_path)


def test_damaged_files_are_refused_unless_one_asks(machines, place):
    with pytest.raises(DamagedFile, match=r"2\.parquet"):
        rs.scan_traces(place)


def test_a_result_knows_the_skipped_rows_and_does_not_warn_again(place):
    scanned = rs.scan_traces(place, damaged="skip")
    result = rs.infer(scanned)
    with warnings.catch_warnings():
        warnings.simplefilter("error", TableWarning)
        rs.evidence(result, scanned)
    assert [one.kind for one in result.warnings] == ["skipped"]
