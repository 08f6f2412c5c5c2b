"""Moved."""

from resolvent._util.parallel import (  # noqa: F401
    Processes,
    Report,
    Threads,
    Workers,
    at_work,
    workers_named,
)
from resolvent._util.processes import cores  # noqa: F401
from resolvent._util.ray import Ray  # noqa: F401
