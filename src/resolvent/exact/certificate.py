"""Moved."""

from resolvent.inference.exact.certificate import Effort  # noqa: F401
