"""File formats: files and tables of traces ↔ `TraceSet`."""
