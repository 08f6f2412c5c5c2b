"""Moved."""

from resolvent.traces.io.read_table import Names, read_log, read_table  # noqa: F401
from resolvent.traces.schema import roles_of  # noqa: F401
