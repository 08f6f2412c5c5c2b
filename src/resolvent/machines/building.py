"""Moved."""

from resolvent.machines.build import build_machine, loop_where_read, machine_of_tables  # noqa: F401
from resolvent.machines.tables import breadth_first  # noqa: F401
