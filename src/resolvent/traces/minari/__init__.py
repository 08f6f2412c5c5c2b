"""Minari datasets ↔ `TraceSet`."""
