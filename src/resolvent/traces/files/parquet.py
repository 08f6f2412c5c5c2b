"""Moved."""

from resolvent.traces.io.parquet import (  # noqa: F401
    own_columns,
    parquet_files,
    read_parquet,
    traces_of_own,
    write_parquet,
)
