"""Moved."""

from resolvent._util.cache import Packing, Results, Store, digest_of  # noqa: F401
