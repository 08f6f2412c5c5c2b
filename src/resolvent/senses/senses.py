"""Moved."""

from resolvent.preprocess.transform import Senses  # noqa: F401
