"""Moved."""

from resolvent.inference.evidence import evidence  # noqa: F401
from resolvent.inference.infer import (  # noqa: F401
    EVERYTHING,
    FINDING_EVENTS,
    infer,
    infer_with,
    update,
)
