"""Storage that fails now and then: PyArrow asks again, and nothing else is read for it."""

import errno
import os

import pytest
from failing_server import FailingServer
from test_scan_storage import content

import resolvent as rs
from resolvent._util.cache import Store
from resolvent._util.storage import storage_error
from worlds import random_world

WORLD = random_world(1, size=9, labels=3, tm_states=3)


@pytest.fixture
def failing(bucket):
    """A way to the bucket that fails as it is told to."""
    for number in range(2):
        bucket.put(f"logs/{number}.parquet", content(WORLD.rollouts(4, number).to_arrow()))
    begun = []

    def through(fails):
        begun.append(FailingServer(bucket.host, fails))
        return begun[-1]

    yield through
    for server in begun:
        server.close()


def address(server, path="logs"):
    return f"s3://data/{path}?endpoint_override={server.host}&scheme=http"


@pytest.mark.parametrize("how", [503, 500, "cut"])
def test_every_third_request_fails(failing, how):
    server = failing(lambda request: how if request % 3 == 0 else None)
    expected = [WORLD.rollouts(4, number) for number in range(2)]
    assert [*rs.scan_traces(address(server))] == expected
    assert server.failed >= 5


def test_a_refusal_of_a_small_read_is_asked_again(failing):
    """PyArrow by itself gives up if the words of a refusal are longer than what it asked for."""
    server = failing(lambda _: None)
    scanned = rs.scan_traces(address(server), damaged="skip")
    server.fails = lambda request: 503 if request % 2 else None
    traces, gap, _ = scanned.scan(0)
    assert traces == WORLD.rollouts(4, 0)
    assert gap is None  # what fails for a while is not damaged


def test_results_are_kept_there(failing):
    server = failing(lambda request: 503 if request % 3 == 0 else None)
    store = Store(address(server, "kept/run-1"))
    assert store.get("ab12") is None
    store.put("ab12", b"a result" * 1000)
    assert store.get("ab12") == b"a result" * 1000
    assert server.failed


@pytest.mark.parametrize(
    ("reason", "passes"),
    [
        ("AWS Error SLOW_DOWN during GetObject operation", True),
        ("AWS Error UNKNOWN (HTTP status 503) during HeadObject operation", True),
        ("AWS Error NETWORK_CONNECTION during GetObject operation: curlCode: 28", True),
        ("AWS Error ACCESS_DENIED during GetObject operation", False),
        ("AWS Error NO_SUCH_BUCKET during ListObjectsV2 operation", False),
    ],
)
def test_trouble_that_may_pass_is_told_from_what_will_not(reason, passes):
    error = storage_error("s3://b/x", "s3://b/", OSError(reason))
    assert isinstance(error, rs.errors.StorageError) is passes


def test_a_disk_of_another_machine(tmp_path, monkeypatch):
    from resolvent.traces.scan import row_groups

    WORLD.rollouts(4, 0).save(tmp_path / "0.parquet")
    scanned = rs.scan_traces(tmp_path, damaged="skip")

    def fails(*_, **__):
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    monkeypatch.setattr(row_groups.pq.ParquetFile, "read_row_groups", fails)
    with pytest.raises(rs.errors.StorageError, match="try again later"):
        scanned.scan(0)
