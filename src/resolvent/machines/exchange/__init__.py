"""Machines ↔ what other tools read and write: rewards on edges, guards, Mealy machines."""
