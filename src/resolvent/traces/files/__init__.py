"""Files of traces ↔ `TraceSet`, each format a module."""
