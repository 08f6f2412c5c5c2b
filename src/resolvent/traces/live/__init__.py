"""Live environments, one or many side by side → `TraceSet`."""
