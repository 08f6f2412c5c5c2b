"""A server of the S3 protocol, started for the tests that need one."""

import logging

import pyarrow.fs as fs
import pytest

collect_ignore = ["conftest.py"]  # of doctests, for there is another of that name


class Bucket:
    """A bucket on the server."""

    def __init__(self, system: fs.S3FileSystem, host: str) -> None:
        self.system, self.host = system, host

    def address(self, path: str) -> str:
        return f"s3://data/{path}?endpoint_override={self.host}&scheme=http"

    def put(self, path: str, content: bytes) -> None:
        with self.system.open_output_stream(f"data/{path}") as file:
            file.write(content)


@pytest.fixture(autouse=True)
def _credentials(monkeypatch):
    """Set credentials, so that no test looks for any elsewhere."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture(scope="session")
def _server():
    pytest.importorskip("moto")
    from moto.moto_server.threaded_moto_server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    yield ":".join(map(str, server.get_host_and_port()))
    server.stop()


@pytest.fixture
def bucket(_server):
    system = fs.S3FileSystem(endpoint_override=_server, scheme="http", allow_bucket_creation=True)
    system.create_dir("data")
    yield Bucket(system, _server)
    system.delete_dir_contents("data")
