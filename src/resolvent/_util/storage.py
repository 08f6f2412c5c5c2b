"""Addresses such as `s3://bucket/logs` → file systems that PyArrow opens, and clear errors."""

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

import pyarrow as pa

from resolvent.errors import StorageError, TraceError

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_CONTAINERS = ("abfs", "abfss")
"""In addresses of Azure a container stands where others have a user."""

_PUBLIC = "s3://anonymous@"
_GCS_SECONDS = "30"
"""How long an unanswered address of Google's is tried; PyArrow would try for 15 minutes."""

_DENIED = (
    *("ACCESS_DENIED", "INVALID_ACCESS_KEY_ID", "SIGNATURE_DOES_NOT_MATCH", "INVALID_CLIENT_TOKEN"),
    *("MISSING_AUTHENTICATION_TOKEN", "UNRECOGNIZED_CLIENT", "EXPIRED_TOKEN"),
    *("HTTP status 401", "HTTP status 403", "PERMISSION_DENIED", "UNAUTHENTICATED"),
    *("Permission denied", "Could not create credentials", "InvalidAccessKeyId"),
    "Could not create a OAuth2 access token",
    *("AuthenticationException", "AuthenticationFailed", "AuthorizationFailure"),
)
_MISSING = ("NO_SUCH_BUCKET", "NO_SUCH_KEY", "RESOURCE_NOT_FOUND", "HTTP status 404", "NOT_FOUND")
_SILENT = (
    *("NETWORK_CONNECTION", "curlCode", "timed out", "Timeout", "REQUEST_TIMEOUT", "UNAVAILABLE"),
    *("Could not connect", "Connection refused", "resolve host", "Retry policy exhausted"),
)
_FAILING = (
    *("HTTP status 500", "HTTP status 502", "HTTP status 503", "HTTP status 504", "SLOW_DOWN"),
    *("SlowDown", "SERVICE_UNAVAILABLE", "INTERNAL_FAILURE", "INTERNAL_ERROR", "InternalError"),
    *("ServiceUnavailable", "THROTTLING", "REQUEST_TIME_TOO_SKEWED", "ServerBusy", "INTERNAL:"),
)
"""What storage says that may have passed when it is asked again."""

_NO_ROOM = "Failed to flush response stream"
"""What PyArrow says if storage refuses a read of fewer bytes than its words of refusal have."""

_PASSING = (errno.ESTALE, errno.ETIMEDOUT, errno.EAGAIN, errno.ECONNRESET, errno.ENETUNREACH)
"""What a disk of another machine says that may have passed when it is asked again."""

_CREDENTIALS = {
    "s3": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or AWS_PROFILE, or write "
    "s3://anonymous@BUCKET for a public one",
    "gs": "set GOOGLE_APPLICATION_CREDENTIALS, or write gs://anonymous@BUCKET for a public one",
    "abfs": "log in with `az login`, or set AZURE_CLIENT_ID, AZURE_TENANT_ID and "
    "AZURE_CLIENT_SECRET",
    "hdfs": "log in as a user who may read it",
}


def is_address(place: object) -> bool:
    """Whether a place is an address rather than a path on this machine.

    >>> is_address("s3://bucket/logs"), is_address("logs/2024"), is_address("minari:a/b-v0")
    (True, False, False)
    """
    return isinstance(place, str) and bool(_ADDRESS.match(place))


def without_secrets(address: str) -> str:
    """Return an address as it may be shown: without a password, and without its options.

    >>> without_secrets("s3://key:secret@bucket/logs?endpoint_override=localhost:9000")
    's3://bucket/logs'
    >>> without_secrets("abfs://container:secret@account.dfs.core.windows.net/logs")
    'abfs://container@account.dfs.core.windows.net/logs'
    """
    parts = urlsplit(address)
    user, at, host = parts.netloc.rpartition("@")
    if parts.scheme in _CONTAINERS:
        host = user.partition(":")[0] + at + host
    return f"{parts.scheme}://{host}{parts.path}"


def root_of(address: str) -> str:
    """Return what an address says of its file system alone, without the path.

    >>> root_of("s3://bucket/logs/a.parquet?region=eu-west-1")
    's3://bucket/?region=eu-west-1'
    """
    parts = urlsplit(address)
    options = dict(parse_qsl(parts.query))
    if parts.scheme in ("gs", "gcs"):
        options.setdefault("retry_limit_seconds", _GCS_SECONDS)
    query = f"?{urlencode(options, safe=':/')}" if options else ""
    return f"{parts.scheme}://{parts.netloc}/{query}"


def path_of(address: str) -> str:
    """Return the path of an address within its file system; `TraceError` if none opens it."""
    prefix = file_system(root_of(address))[1]
    return prefix + unquote(urlsplit(address).path).lstrip("/")


@cache
def file_system(root: str | None) -> tuple[Any, str]:
    """Return the file system of an address without path, and what its paths begin with.

    None is that of this machine.
    """
    from pyarrow import fs

    if root is None:
        return fs.LocalFileSystem(), ""
    if root.startswith(_PUBLIC):
        return _without_credentials(root)
    base, mark, query = root.partition("?")
    shown = without_secrets(root).rstrip("/")
    with reaching(shown, root):
        try:
            found, path = fs.FileSystem.from_uri(f"{base}x{mark}{query}")
        except pa.ArrowInvalid as error:
            reason = _first_line(error)
            why = "" if "@" in reason else f" ({reason})"  # it may spell out a password
            raise TraceError(
                f"{shown} is no address that can be opened{why}: give one that begins with file, "
                f"s3, gs, abfs or hdfs, or a path"
            ) from None
    return found, path.removesuffix("x")


def _without_credentials(root: str) -> tuple[Any, str]:
    """Return the file system of a public bucket; in an address PyArrow has no words for that."""
    from pyarrow import fs

    parts = urlsplit(root)
    bucket, options = parts.netloc.rpartition("@")[2], dict(parse_qsl(parts.query))
    with reaching(without_secrets(root).rstrip("/"), root):
        if not options.keys() & {"region", "endpoint_override"}:
            options["region"] = fs.resolve_s3_region(bucket)
        try:
            return fs.S3FileSystem(anonymous=True, **options), f"{bucket}/"
        except TypeError as error:
            raise TraceError(
                f"{without_secrets(root)} has options that nobody knows ({error}): leave them out"
            ) from error


@contextmanager
def reaching(name: str, root: str | None) -> Iterator[None]:
    """Turn what a file system says into a `TraceError` of one line, with what to do."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise storage_error(name, root, error) from error


def storage_error(name: str, root: str | None, error: Exception) -> TraceError:
    """Return the error for what a file system says of a file or folder."""
    reason = _first_line(error)
    if isinstance(error, PermissionError) or _says(reason, _DENIED):
        scheme = "" if root is None else urlsplit(root).scheme
        what = _CREDENTIALS.get(
            {"gcs": "gs", "abfss": "abfs"}.get(scheme, scheme), "ask for the right to read it"
        )
        return TraceError(f"{name} cannot be read, access is denied ({reason}): {what}")
    if is_missing(error):
        return TraceError(f"{name} does not exist")
    if root is not None and _says(reason, _SILENT):
        return StorageError(
            f"{name}: nobody answers there ({reason}): check the address and the network, or try "
            f"again"
        )
    if is_passing(error):
        return StorageError(f"{name}: the storage fails ({reason}): try again later")
    if "libjvm" in reason or "libhdfs" in reason:
        return TraceError(f"{name} needs Hadoop's client ({reason}): install it, set JAVA_HOME")
    return TraceError(f"{name} cannot be read ({reason})")


def is_missing(error: Exception) -> bool:
    """Whether a file system says that there is no such file."""
    return isinstance(error, FileNotFoundError) or _says(_first_line(error), _MISSING)


def is_passing(error: Exception) -> bool:
    """Whether storage has trouble that may pass."""
    if isinstance(error, OSError) and error.errno in _PASSING:
        return True
    return _says(_first_line(error), _FAILING)


def is_without_room(error: Exception) -> bool:
    """Whether storage refused so small a read that PyArrow could not take in why.

    PyArrow tries again whatever storage refuses for a while, but not that.
    """
    return _NO_ROOM in str(error)


def is_of_storage(error: Exception) -> bool:
    """Whether an error came from where a file is stored, not from what the file holds."""
    told = _says(_first_line(error), (*_DENIED, *_MISSING, *_SILENT, *_FAILING, "AWS Error"))
    of_kind = isinstance(error, FileNotFoundError | PermissionError | ConnectionError)
    return told or of_kind or is_passing(error)


def _says(reason: str, texts: tuple[str, ...]) -> bool:
    return any(text in reason for text in texts)


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines()
    # A request's number is of use to nobody here, and would make each message another.
    return re.sub(r"\s*\(Request ID: [^)]*\)", "", lines[0]) if lines else type(error).__name__
