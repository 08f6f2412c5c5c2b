"""Addresses: files over the S3 protocol, from a server that the tests start."""

import pickle
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import resolvent as rs
from resolvent._util.storage import file_system, storage_error
from resolvent.cli import main
from resolvent.traces.scan import shards
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


def test_a_folder_a_file_a_glob_and_a_list(filled):
    for path in ("logs", "logs/", "logs/*.parquet", "**/*.parquet", "lo*/[0-2].parquet"):
        assert [*rs.scan_traces(filled.address(path))] == EXPECTED
    assert [*rs.scan_traces(filled.address("logs/1.parquet"))] == EXPECTED[1:2]
    listed = [filled.address(f"logs/{number}.parquet") for number in (2, 0)]
    assert [*rs.scan_traces(listed)] == [EXPECTED[2], EXPECTED[0]]
    scanned = rs.scan_traces(filled.address("logs"))
    assert scanned.name(1) == "s3://data/logs/1.parquet"
    assert repr(scanned).startswith("TraceFolder('s3://data/logs', 3 files")


def test_machines_are_those_of_a_folder(filled, tmp_path):
    for number, traces in enumerate(EXPECTED):
        traces.save(tmp_path / f"{number}.parquet")
    here, there = rs.scan_traces(tmp_path), rs.scan_traces(filled.address("logs"))
    assert rs.infer(there).machines == rs.infer(here).machines
    assert rs.infer(filled.address("logs")).machines == rs.infer(here).machines


def test_pieces_of_one_file_are_read_in_another_process(filled, monkeypatch):
    monkeypatch.setattr(shards, "SHARD_ROWS", 100)
    scanned = rs.scan_traces(filled.address("logs/1.parquet"))
    assert len(scanned) > 2
    assert scanned.read_all() == EXPECTED[1]
    sent = pickle.dumps(scanned)
    assert b"secret" not in sent
    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer).read(1).digest)"
    found = subprocess.run(
        [sys.executable, "-c", code], input=sent, capture_output=True, check=True
    )
    assert found.stdout.decode().strip() == scanned.read(1).digest


def test_partitions(bucket):
    for day, run in ((1, 7), (2, 7)):
        table = pa.table({"run": [run] * 2, "event": ["coin", "push"], "answer": [day, 0]})
        bucket.put(f"logs/day={day}/city=S%C3%A3o/part-0.parquet", content(table))
    scanned = rs.scan_traces(
        bucket.address("logs"), episode=["day", "run"], input="event", output=["answer", "city"]
    )
    assert [trace.columns["answer"] for trace in scanned.read_all()] == [(1, 0), (2, 0)]
    assert [trace.columns["city"] for trace in scanned.read_all()] == [("São", "São")] * 2


def test_a_file_that_changes_between_two_passes(filled):
    scanned = rs.scan_traces(filled.address("logs"))
    list(scanned)
    # As long as before: only the ETag tells.
    old = content(WORLD.rollouts(4, 1).to_arrow())
    filled.put("logs/1.parquet", old[:-200] + bytes([old[-200] ^ 1]) + old[-199:])
    with pytest.raises(rs.TraceError, match=r"^s3://data/logs/1\.parquet: the file has changed"):
        list(scanned)
    filled.system.delete_file("data/logs/1.parquet")
    with pytest.raises(rs.TraceError, match=r"^s3://data/logs/1\.parquet does not exist$"):
        list(scanned)


def test_nothing_there(bucket):
    for path, said in (
        ("none", "s3://data/none does not exist, or is empty"),
        ("none/*.parquet", r"nothing matches s3://data/none/\*\.parquet"),
    ):
        with pytest.raises(rs.TraceError, match=said):
            rs.scan_traces(bucket.address(path))
    with pytest.raises(rs.TraceError, match="s3://nobody/x does not exist"):
        rs.scan_traces(bucket.address("x").replace("s3://data", "s3://nobody"))


def test_nobody_answers():
    with pytest.raises(
        rs.TraceError, match=r"^s3://b/x: nobody answers there \(.*\): check"
    ) as caught:
        rs.scan_traces("s3://key:word@b/x?endpoint_override=127.0.0.1:9&scheme=http")
    assert "\n" not in str(caught.value)
    assert "word" not in str(caught.value)


class Denying(BaseHTTPRequestHandler):
    """Answers as a bucket does that is not for everybody."""

    def do_GET(self):
        body = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
        self.send_response(403)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, *said):
        pass


def test_access_that_is_denied():
    with HTTPServer(("127.0.0.1", 0), Denying) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for user in ("", "anonymous@", "key:word@"):
            place = f"s3://{user}b/x?endpoint_override=127.0.0.1:{server.server_port}&scheme=http"
            said = r"^s3://b/x cannot be read, access is denied \(.*\): set AWS_ACCESS_KEY_ID and"
            with pytest.raises(rs.TraceError, match=said) as caught:
                rs.scan_traces(place)
            assert "\n" not in str(caught.value)
            assert "word" not in str(caught.value)
        server.shutdown()


def test_a_public_bucket_needs_no_credentials(filled):
    place = filled.address("logs").replace("s3://", "s3://anonymous@")
    assert [*rs.scan_traces(place)] == EXPECTED
    with pytest.raises(rs.TraceError, match="s3://data/ has options that nobody knows"):
        rs.scan_traces(f"{place}&colour=red")


def test_an_unknown_kind_of_address():
    with pytest.raises(rs.TraceError, match=r"^ftp://x is no address that can be opened .* s3, gs"):
        rs.scan_traces("ftp://x/y")
    with pytest.raises(rs.TraceError, match=r"^s3://b c is no address that can be opened: give"):
        rs.scan_traces("s3://key:word@b c/y")


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("AWS Error ACCESS_DENIED during HeadObject operation", "access is denied .*AWS_PROFILE"),
        ("AWS Error UNKNOWN (HTTP status 403) during HeadObject", "AWS_ACCESS_KEY_ID"),
        ("AWS Error NETWORK_CONNECTION during ListObjectsV2", "nobody answers"),
        ("AWS Error INTERNAL_FAILURE during GetObject", r"the storage fails \(AWS Error INTERNAL"),
        (
            "UNAVAILABLE: Retry policy exhausted, Could not create a OAuth2 access token",
            "access is denied",
        ),
    ],
)
def test_what_storage_says_is_one_line(reason, said):
    error = storage_error("s3://b/x", "s3://b/", OSError(f"{reason}: x (Request ID: 77)\nmore"))
    assert isinstance(error, rs.TraceError)
    assert "\n" not in str(error)
    assert "77" not in str(error)
    with pytest.raises(rs.TraceError, match=said):
        raise error


def test_addresses_of_files_here(tmp_path):
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
    said = capsys.readouterr().err
    assert said == (
        "resolvent: error: s3://data/none does not exist, or is empty: check the address\n"
    )
