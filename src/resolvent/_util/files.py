"""Write files and folders atomically, read JSON, and open file systems by address.

Errors are one line with the problem, the location and the remedy.
"""

import errno
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from itertools import count
from pathlib import Path
from stat import S_IMODE, S_ISREG
from tempfile import TemporaryFile
from typing import Any, BinaryIO, TypeVar
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

import msgspec

from resolvent._util.text import amount, short
from resolvent.errors import ModelError, ResolventError, StorageError, TraceError

T = TypeVar("T")

# --- Files --------------------------------------------------------------------------------------


@contextmanager
def atomic_write(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file for bytes that appears only when the block succeeds.

    Until then the bytes are in a hidden file beside it, which any exception removes, Ctrl-C
    included. Leave the file open: it is flushed and closed here. A file that is replaced retains
    its permissions; a new one has those that the user's umask allows.
    """
    path = Path(path)
    check_writable(path)
    target = link_target(path)
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        if path.exists() and not path.is_file():
            # A pipe or a device, such as /dev/stdout: nothing there to replace.
            with path.open("wb") as file:
                yield file
            return
        with part.open("xb") as file:
            yield file
            file.flush()
            with suppress(FileNotFoundError):
                os.fchmod(file.fileno(), S_IMODE(target.stat().st_mode))
            os.fsync(file.fileno())
        part.replace(target)
    except BaseException as error:
        part.unlink(missing_ok=True)
        # Writing itself fails without a name (a full disk). A name that is not beside the target
        # belongs to some other file the block was using.
        if isinstance(error, OSError) and _is_beside(error.filename, target):
            raise _write_error(path, error) from error
        raise


def check_writable(path: Path) -> None:
    """Refuse a path that `atomic_write` cannot write, and leave it unchanged."""
    target = link_target(path)
    try:
        if path.is_dir():
            raise ResolventError(f"cannot write {path}: it is a folder; name a file")
        if path.is_file() or not path.exists():
            TemporaryFile(dir=target.parent, prefix=".", suffix=".part").close()
    except OSError as error:
        raise _write_error(path, error) from error


def _write_error(path: Path, error: OSError) -> ResolventError:
    reason = reason_of(error)
    if isinstance(error, FileNotFoundError):
        folder = link_target(path).parent if path.is_symlink() else path.parent
        reason = f"the folder {folder} does not exist; make it first"
    return ResolventError(f"cannot write {path}: {reason}")


def _is_beside(name: str | None, target: Path) -> bool:
    return name is None or link_target(Path(name)).parent == target.parent


def link_target(path: Path) -> Path:
    """Return the target of a path after following links, which writing replaces if it exists."""
    try:
        path.stat()
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ResolventError(
                f"cannot write {path}: links lead from it back to it; name another place"
            ) from None
    return path.resolve()


def reason_of(error: OSError) -> str:
    """Return the reason of the system's error, in lower case."""
    return (error.strerror or str(error)).lower()


def read_content(path: str | Path) -> bytes:
    """Return the content of a file; `ModelError` says in one line why it cannot be read."""
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise ModelError(f"{path} does not exist") from None
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {reason_of(error)}") from error


def read_json(path: str | Path, kind: type[T], wanted: str) -> T:
    """Read a JSON file whose values must have a type; `wanted` names the file in a `ModelError`."""
    try:
        return decode_json(read_content(path), kind)
    except ValueError as error:
        raise ModelError(f"{path}: not {wanted}: {error}") from error


def decode_json(content: bytes, kind: type[T]) -> T:
    """Decode JSON whose values must have a type; `ValueError` describes the mismatch."""
    try:
        return msgspec.json.decode(content, type=kind)
    except UnicodeDecodeError as error:
        raise ValueError("it is not UTF-8") from error
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
    except (msgspec.DecodeError, OverflowError) as error:
        raise ValueError(str(error)) from error


# --- Folders ------------------------------------------------------------------------------------

_numbers = count()


@contextmanager
def atomic_folder(folder: Path, files: tuple[str, ...]) -> Iterator[Path]:
    """Yield a new folder that replaces the existing one when the block succeeds.

    The existing one may hold only these files. If the process is killed between the two
    renames, the old folder has a hidden name: `recover` restores it.
    """
    try:
        if folder.exists() and not folder.is_dir():
            raise ResolventError(f"cannot write {folder}: it is a file; name a folder")
        if folder.is_dir() and any(path.name not in files for path in folder.iterdir()):
            raise ResolventError(
                f"cannot write {folder}: it contains other files; name a new or empty folder"
            )
        recover(folder)
        target = link_target(folder)
        mark = f"{os.getpid()}-{next(_numbers)}"
        part = target.with_name(f".{target.name}.{mark}.part")
        old = target.with_name(f".{target.name}.{mark}.old")
        try:
            part.mkdir(parents=True)
            yield part
            if target.exists():
                target.rename(old)
            part.rename(target)
        finally:
            shutil.rmtree(part, ignore_errors=True)
            if target.exists():
                shutil.rmtree(old, ignore_errors=True)
            elif old.exists():
                old.rename(target)
    except OSError as error:
        raise ResolventError(f"cannot write {short(str(folder))}: {error.strerror}") from error


def recover(folder: Path) -> None:
    """Restore a folder whose writer was killed, and remove the writer's temporary folders."""
    target = link_target(folder)
    if not target.parent.is_dir():
        return
    pattern = re.compile(rf"\.{re.escape(target.name)}\.(\d+)-\d+\.(part|old)")
    for left in sorted(target.parent.iterdir()):
        match = pattern.fullmatch(left.name)
        if match is None or _runs(int(match[1])):
            continue
        if match[2] == "old" and not target.exists():
            left.rename(target)
        else:
            shutil.rmtree(left, ignore_errors=True)


def _runs(process: int) -> bool:
    """Whether a process exists; ours counts, since another of its threads may write."""
    if os.name == "nt":  # where a signal 0 is no query
        return process == os.getpid()
    try:
        os.kill(process, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


@contextmanager
def unchanged(path: Path) -> Iterator[None]:
    """Raise `TraceError` if a file changes while the block reads it.

    Errors of the block are not reported then, because the change may be their cause. Pipes
    are read once and have nothing to compare.
    """
    before, problem = _file_state(path), None
    try:
        yield
    except TraceError as error:
        problem = error
    now = _file_state(path)
    if before is not None and now != before:
        change = "it was written again"
        if now is None:
            change = "it is gone"
        elif now[0] != before[0]:
            change = f"it had {amount(before[0], 'byte')}, and has {now[0]:,}"
        raise TraceError(
            f"{path} changed while it was read ({change}): read it again when no process writes "
            f"to it"
        ) from problem
    if problem is not None:
        raise problem


def _file_state(path: Path) -> tuple[int, int, int] | None:
    """Return the size, inode and modification time of a file; None if it is no regular file."""
    with suppress(OSError):
        status = path.stat()
        if S_ISREG(status.st_mode):
            return status.st_size, status.st_ino, status.st_mtime_ns
    return None


def compression_of(start: bytes) -> str | None:
    """Return the compression of a file with this start, by its name in Arrow; None if none."""
    compressions = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
    return next((name for magic, name in compressions.items() if start.startswith(magic)), None)


# --- Storage ------------------------------------------------------------------------------------

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_CONTAINERS = ("abfs", "abfss")  # Azure's addresses have a container instead of the user
_PUBLIC = "s3://anonymous@"
_GCS_SECONDS = "30"  # to retry an address of Google that does not respond, instead of 15 minutes

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


def is_address(location: object) -> bool:
    """Whether a location is an address rather than a path on this machine."""
    return isinstance(location, str) and bool(_ADDRESS.match(location))


def without_secrets(address: str) -> str:
    """Return an address without its password and options, for messages."""
    parts = urlsplit(address)
    user, at, host = parts.netloc.rpartition("@")
    if parts.scheme in _CONTAINERS:
        host = user.partition(":")[0] + at + host
    return f"{parts.scheme}://{host}{parts.path}"


def root_of(address: str) -> str:
    """Return the address of the file system alone, as in `s3://bucket/?region=eu-west-1`."""
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
    import pyarrow as pa
    from pyarrow import fs

    if root is None:
        return fs.LocalFileSystem(), ""
    if root.startswith(_PUBLIC):
        return _without_credentials(root)
    base, mark, query = root.partition("?")
    address = without_secrets(root).rstrip("/")
    with explain_storage_errors(address, root):
        try:
            system, path = fs.FileSystem.from_uri(f"{base}x{mark}{query}")
        except pa.ArrowInvalid as error:
            reason = first_line(error)
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
    with explain_storage_errors(without_secrets(root).rstrip("/"), root):
        if not options.keys() & {"region", "endpoint_override"}:
            options["region"] = fs.resolve_s3_region(bucket)
        try:
            return fs.S3FileSystem(anonymous=True, **options), f"{bucket}/"
        except TypeError as error:
            raise TraceError(
                f"{without_secrets(root)} has unknown options ({error}): omit them"
            ) from error


@contextmanager
def explain_storage_errors(name: str, root: str | None) -> Iterator[None]:
    """Raise errors of a file system as a `TraceError` of one line, with a remedy."""
    import pyarrow as pa

    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise storage_error(name, root, error) from error


def storage_error(name: str, root: str | None, error: Exception) -> TraceError:
    """Return the error to raise for an error of a file system."""
    reason = first_line(error)
    if isinstance(error, PermissionError) or _mentions(reason, _DENIED):
        scheme = "" if root is None else urlsplit(root).scheme
        remedy = _CREDENTIALS.get(
            {"gcs": "gs", "abfss": "abfs"}.get(scheme, scheme), "ask for the right to read it"
        )
        return TraceError(f"{name} cannot be read, access is denied ({reason}): {remedy}")
    if is_missing(error):
        return TraceError(f"{name} does not exist")
    if root is not None and _mentions(reason, _SILENT):
        return StorageError(
            f"{name}: no response ({reason}): check the address and the network, or try again"
        )
    if is_passing(error):
        return StorageError(f"{name}: the storage fails ({reason}): try again later")
    if "libjvm" in reason or "libhdfs" in reason:
        return TraceError(f"{name} needs Hadoop's client ({reason}): install it, set JAVA_HOME")
    return TraceError(f"{name} cannot be read ({reason})")


def is_missing(error: Exception) -> bool:
    """Whether an error means that a file does not exist."""
    return isinstance(error, FileNotFoundError) or _mentions(first_line(error), _MISSING)


def is_passing(error: Exception) -> bool:
    """Whether an error of storage may be temporary."""
    is_of_disk = isinstance(error, OSError) and error.errno in _PASSING
    return is_of_disk or _mentions(first_line(error), _FAILING)


def is_of_storage(error: Exception) -> bool:
    """Whether an error is about the storage of a file rather than its content."""
    texts = (*_DENIED, *_MISSING, *_SILENT, *_FAILING, "AWS Error")
    of_kind = isinstance(error, FileNotFoundError | PermissionError | ConnectionError)
    return of_kind or _mentions(first_line(error), texts) or is_passing(error)


def is_read_too_small(error: Exception) -> bool:
    """Whether storage refused a read smaller than the refusal, which PyArrow does not retry."""
    return "Failed to flush response stream" in str(error)


def _mentions(reason: str, texts: tuple[str, ...]) -> bool:
    return any(text in reason for text in texts)


def first_line(error: Exception) -> str:
    """Return the first line of an error of Arrow; the others are about Arrow's own code."""
    lines = str(error).splitlines()
    # The request's number differs each time.
    return re.sub(r"\s*\(Request ID: [^)]*\)", "", lines[0]) if lines else type(error).__name__
