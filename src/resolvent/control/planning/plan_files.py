"""Moved."""

from resolvent.planning.plan_io import (  # noqa: F401
    FORMAT,
    VERSION,
    PlanFile,
    Row,
    State,
    content_of,
    json_number,
    load,
    save,
)
