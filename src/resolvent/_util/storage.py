"""Open the file systems of addresses such as `s3://bucket/logs`, with clear errors."""

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
"""Schemes of Azure, whose addresses have a container in place of the user."""

_PUBLIC = "s3://anonymous@"
_GCS_SECONDS = "30"
"""Seconds to retry an address of Google that does not answer; PyArrow's default is 15 minutes."""

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
"""Messages of storage about failures that may be temporary."""

_READ_TOO_SMALL = "Failed to flush response stream"
"""PyArrow's message if storage refuses a read of fewer bytes than the refusal itself has."""

_PASSING = (errno.ESTALE, errno.ETIMEDOUT, errno.EAGAIN, errno.ECONNRESET, errno.ENETUNREACH)
"""Error numbers of network disks that may be temporary."""

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
    """Return an address without its password and options, to be shown.

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
    """Return the address of the file system alone, without the path.

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
    """Return the file system of a root, and the prefix of its paths; None is this machine."""
    from pyarrow import fs

    if root is None:
        return fs.LocalFileSystem(), ""
    if root.startswith(_PUBLIC):
        return _without_credentials(root)
    base, mark, query = root.partition("?")
    address = without_secrets(root).rstrip("/")
    with reaching(address, root):
        try:
            system, path = fs.FileSystem.from_uri(f"{base}x{mark}{query}")
        except pa.ArrowInvalid as error:
            reason = _first_line(error)
            why = "" if "@" in reason else f" ({reason})"  # it may spell out a password
            raise TraceError(
                f"{address} is no address that can be opened{why}: give one that begins with file, "
                f"s3, gs, abfs or hdfs, or a path"
            ) from None
    return system, path.removesuffix("x")


def _without_credentials(root: str) -> tuple[Any, str]:
    """Return the file system of a public bucket, which PyArrow's addresses cannot express."""
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
    """Raise errors of a file system as a `TraceError` of one line, with a remedy."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise storage_error(name, root, error) from error


def storage_error(name: str, root: str | None, error: Exception) -> TraceError:
    """Return the error to raise for an error of a file system."""
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
    """Whether an error means that a file does not exist."""
    return isinstance(error, FileNotFoundError) or _says(_first_line(error), _MISSING)


def is_passing(error: Exception) -> bool:
    """Whether an error of storage may be temporary."""
    if isinstance(error, OSError) and error.errno in _PASSING:
        return True
    return _says(_first_line(error), _FAILING)


def is_read_too_small(error: Exception) -> bool:
    """Whether storage refused a read smaller than the refusal, which PyArrow does not retry."""
    return _READ_TOO_SMALL in str(error)


def is_of_storage(error: Exception) -> bool:
    """Whether an error is about the storage of a file rather than its content."""
    by_message = _says(_first_line(error), (*_DENIED, *_MISSING, *_SILENT, *_FAILING, "AWS Error"))
    of_kind = isinstance(error, FileNotFoundError | PermissionError | ConnectionError)
    return by_message or of_kind or is_passing(error)


def _says(reason: str, texts: tuple[str, ...]) -> bool:
    return any(text in reason for text in texts)


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines()
    # The request's number differs each time.
    return re.sub(r"\s*\(Request ID: [^)]*\)", "", lines[0]) if lines else type(error).__name__
