"""Moved."""

from resolvent._util.storage import file_system, is_address, storage_error  # noqa: F401
