"""Moved."""

from resolvent.traces.schema import (  # noqa: F401
    ACTION,
    ALWAYS_READ,
    BASIC,
    LABEL,
    OBSERVATION,
    RESERVED,
    REWARD,
    SEEN,
    TERMINATED,
    check_column_name,
    check_column_names,
    check_same_columns,
    column_text,
    default_outputs,
    in_column_order,
    no_column,
)
