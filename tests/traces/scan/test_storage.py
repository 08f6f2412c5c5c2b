"""Files over the S3 protocol, from a server that the tests start and that may fail."""

import errno
import os
import pickle
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from failing_server import FailingServer

import resolvent as rs
from resolvent._util.cache import Store
from resolvent._util.files import file_system, storage_error
from resolvent.cli import main
from resolvent.traces.scan import opening, storage
from worlds import random_world

WORLD = random_world(1, size=9, labels=3, tm_states=3)


def content(table):
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=50)
    return sink.getvalue().to_pybytes()


@pytest.fixture
def filled(bucket):
    for number in range(3):
        bucket.put(f"logs/{number}.parquet", content(WORLD.rollouts(4, number).to_arrow()))
    bucket.put("logs/_SUCCESS", b"done")
    return bucket


EXPECTED = [WORLD.rollouts(4, number) for number in range(3)]


def test_folders_files_globs_and_lists(filled):
    for path in ("logs", "logs/", "logs/*.parquet", "**/*.parquet", "lo*/[0-2].parquet"):
        assert [*rs.scan_traces(filled.address(path))] == EXPECTED
    assert [*rs.scan_traces(filled.address("logs/1.parquet"))] == EXPECTED[1:2]
    listed = [filled.address(f"logs/{number}.parquet") for number in (2, 0)]
    assert [*rs.scan_traces(listed)] == [EXPECTED[2], EXPECTED[0]]
    dataset = rs.scan_traces(filled.address("logs"))
    assert dataset.name(1) == "s3://data/logs/1.parquet"
    assert repr(dataset).startswith("TraceDataset('s3://data/logs', 3 files")


def test_machines_are_those_of_a_local_folder(filled, tmp_path):
    for number, traces in enumerate(EXPECTED):
        traces.save(tmp_path / f"{number}.parquet")
    here, there = rs.scan_traces(tmp_path), rs.scan_traces(filled.address("logs"))
    assert rs.infer(there).machines == rs.infer(here).machines
    assert rs.infer(filled.address("logs")).machines == rs.infer(here).machines


def test_shards_of_a_file_are_read_in_another_process(filled, monkeypatch):
    monkeypatch.setattr(opening, "SHARD_ROWS", 100)
    dataset = rs.scan_traces(filled.address("logs/1.parquet"))
    assert len(dataset) > 2
    assert dataset.read_all() == EXPECTED[1]
    sent = pickle.dumps(dataset)
    assert b"secret" not in sent
    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer).read(1).digest)"
    outcome = subprocess.run(
        [sys.executable, "-c", code], input=sent, capture_output=True, check=True
    )
    assert outcome.stdout.decode().strip() == dataset.read(1).digest


def test_partitions(bucket):
    for day, run in ((1, 7), (2, 7)):
        table = pa.table({"run": [run] * 2, "event": ["coin", "push"], "answer": [day, 0]})
        bucket.put(f"logs/day={day}/city=S%C3%A3o/part-0.parquet", content(table))
    dataset = rs.scan_traces(
        bucket.address("logs"), episode=["day", "run"], input="event", output=["answer", "city"]
    )
    assert [trace.columns["answer"] for trace in dataset.read_all()] == [(1, 0), (2, 0)]
    assert [trace.columns["city"] for trace in dataset.read_all()] == [("São", "São")] * 2


def test_a_file_that_changes_between_two_passes(filled):
    dataset = rs.scan_traces(filled.address("logs"))
    list(dataset)
    # As long as before: only the ETag tells.
    old = content(WORLD.rollouts(4, 1).to_arrow())
    filled.put("logs/1.parquet", old[:-200] + bytes([old[-200] ^ 1]) + old[-199:])
    with pytest.raises(rs.TraceError, match=r"^s3://data/logs/1\.parquet: the file has changed"):
        list(dataset)
    filled.system.delete_file("data/logs/1.parquet")
    with pytest.raises(rs.TraceError, match=r"^s3://data/logs/1\.parquet does not exist$"):
        list(dataset)


def test_addresses_without_files(bucket):
    for path, message in (
        ("none", "s3://data/none does not exist, or is empty"),
        ("none/*.parquet", r"nothing matches s3://data/none/\*\.parquet"),
    ):
        with pytest.raises(rs.TraceError, match=message):
            rs.scan_traces(bucket.address(path))
    with pytest.raises(rs.TraceError, match="s3://nobody/x does not exist"):
        rs.scan_traces(bucket.address("x").replace("s3://data", "s3://nobody"))


def test_servers_that_do_not_answer():
    with pytest.raises(rs.TraceError, match=r"^s3://b/x: no response \(.*\): check") as caught:
        rs.scan_traces("s3://key:word@b/x?endpoint_override=127.0.0.1:9&scheme=http")
    assert "\n" not in str(caught.value)
    assert "word" not in str(caught.value)


class Denying(BaseHTTPRequestHandler):
    """Answers as a bucket without public access does."""

    def do_GET(self):
        body = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
        self.send_response(403)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, *arguments):
        pass


def test_denied_access():
    with HTTPServer(("127.0.0.1", 0), Denying) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for user in ("", "anonymous@", "key:word@"):
            place = f"s3://{user}b/x?endpoint_override=127.0.0.1:{server.server_port}&scheme=http"
            message = (
                r"^s3://b/x cannot be read, access is denied \(.*\): set AWS_ACCESS_KEY_ID and"
            )
            with pytest.raises(rs.TraceError, match=message) as caught:
                rs.scan_traces(place)
            assert "\n" not in str(caught.value)
            assert "word" not in str(caught.value)
        server.shutdown()


def test_a_public_bucket_needs_no_credentials(filled):
    place = filled.address("logs").replace("s3://", "s3://anonymous@")
    assert [*rs.scan_traces(place)] == EXPECTED
    with pytest.raises(rs.TraceError, match="s3://data/ has unknown options"):
        rs.scan_traces(f"{place}&colour=red")


def test_unknown_kinds_of_addresses():
    with pytest.raises(rs.TraceError, match=r"^ftp://x is no address that can be opened .* s3, gs"):
        rs.scan_traces("ftp://x/y")
    with pytest.raises(rs.TraceError, match=r"^s3://b c is no address that can be opened: give"):
        rs.scan_traces("s3://key:word@b c/y")


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("AWS Error ACCESS_DENIED during HeadObject operation", "access is denied .*AWS_PROFILE"),
        ("AWS Error UNKNOWN (HTTP status 403) during HeadObject", "AWS_ACCESS_KEY_ID"),
        ("AWS Error NETWORK_CONNECTION during ListObjectsV2", "no response"),
        ("AWS Error INTERNAL_FAILURE during GetObject", r"the storage fails \(AWS Error INTERNAL"),
        (
            "UNAVAILABLE: Retry policy exhausted, Could not create a OAuth2 access token",
            "access is denied",
        ),
    ],
)
def test_errors_of_storage_are_one_line(reason, message):
    error = storage_error("s3://b/x", "s3://b/", OSError(f"{reason}: x (Request ID: 77)\nmore"))
    assert isinstance(error, rs.TraceError)
    assert "\n" not in str(error)
    assert "77" not in str(error)
    with pytest.raises(rs.TraceError, match=message):
        raise error


def test_addresses_of_local_files(tmp_path):
    WORLD.rollouts(4, 0).save(tmp_path / "a b.parquet")
    assert rs.scan_traces(f"file://{tmp_path}").read(0) == WORLD.rollouts(4, 0)
    assert rs.scan_traces(f"file://{tmp_path}/a%20b.parquet").read(0) == WORLD.rollouts(4, 0)
    assert file_system("file:///")[1] == "/"


def test_commands_take_addresses(filled, tmp_path, capsys):
    machines = tmp_path / "machines.json"
    assert main(["infer", filled.address("logs/*.parquet"), "-o", str(machines)]) == 0
    assert "s3://data/logs/*.parquet: 12 traces" in capsys.readouterr().out
    assert rs.load(machines) == rs.infer(rs.TraceSet.concatenate(EXPECTED)).machines
    assert main(["check", str(machines), filled.address("logs")]) == 0
    assert "12 traces" in capsys.readouterr().out
    assert main(["diagnose", filled.address("logs/1.parquet")]) == 0
    assert capsys.readouterr().out.startswith("s3://data/logs/1.parquet: 4 traces")
    assert main(["infer", filled.address("none")]) == 2
    assert capsys.readouterr().err == (
        "resolvent: error: s3://data/none does not exist, or is empty: check the address\n"
    )


# Storage that fails now and then.


@pytest.fixture
def failing(bucket):
    """A server in front of the bucket that fails as it is told to."""
    for number in range(2):
        bucket.put(f"logs/{number}.parquet", content(WORLD.rollouts(4, number).to_arrow()))
    servers = []

    def start(fails):
        servers.append(FailingServer(bucket.host, fails))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def address(server, path="logs"):
    return f"s3://data/{path}?endpoint_override={server.host}&scheme=http"


@pytest.mark.parametrize("how", [503, 500, "cut"])
def test_every_third_request_fails(failing, how):
    server = failing(lambda request: how if request % 3 == 0 else None)
    expected = [WORLD.rollouts(4, number) for number in range(2)]
    assert [*rs.scan_traces(address(server))] == expected
    assert server.failed >= 5


def test_a_refused_small_read_is_repeated(failing):
    """PyArrow does not repeat a request whose refusal is longer than the bytes requested."""
    server = failing(lambda _: None)
    dataset = rs.scan_traces(address(server), damaged="skip")
    server.fails = lambda request: 503 if request % 2 else None
    traces, facts = dataset.scan(0)
    assert traces == WORLD.rollouts(4, 0)
    assert facts.skipped is None  # a failure for a while is no damage


def test_results_are_cached_there(failing):
    server = failing(lambda request: 503 if request % 3 == 0 else None)
    store = Store(address(server, "kept/run-1"))
    assert store.get("ab12") is None
    store.put("ab12", b"a result" * 1000)
    assert store.get("ab12") == b"a result" * 1000
    assert server.failed


@pytest.mark.parametrize(
    ("reason", "is_temporary"),
    [
        ("AWS Error SLOW_DOWN during GetObject operation", True),
        ("AWS Error UNKNOWN (HTTP status 503) during HeadObject operation", True),
        ("AWS Error NETWORK_CONNECTION during GetObject operation: curlCode: 28", True),
        ("AWS Error ACCESS_DENIED during GetObject operation", False),
        ("AWS Error NO_SUCH_BUCKET during ListObjectsV2 operation", False),
    ],
)
def test_temporary_failures_are_storage_errors(reason, is_temporary):
    error = storage_error("s3://b/x", "s3://b/", OSError(reason))
    assert isinstance(error, rs.errors.StorageError) is is_temporary


def test_network_disks(tmp_path, monkeypatch):
    WORLD.rollouts(4, 0).save(tmp_path / "0.parquet")
    dataset = rs.scan_traces(tmp_path, damaged="skip")

    def fails(*_, **__):
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    monkeypatch.setattr(storage.pq.ParquetFile, "read_row_groups", fails)
    with pytest.raises(rs.errors.StorageError, match="try again later"):
        dataset.scan(0)
