"""Machines ↔ files: one versioned JSON format, checked before any of it is used."""
