"""Moved."""

from resolvent._util.files import (_is_beside, _plain_errors, atomic_write, link_target)  # noqa: F401
