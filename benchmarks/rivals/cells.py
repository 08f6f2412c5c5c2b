"""Measurements in one file: each finished cell is kept, and never run again."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from resolvent._util.files import atomic_write

FILE = Path(__file__).parent / "results.json"
SEEDS = 5
"""With so many each method is run in each world; where there are fewer, tables say so."""


@dataclass
class Cells:
    """Finished cells by world, method and seed; and what a search for parameters gave."""

    file: Path
    cells: dict[str, dict[str, Any]] = field(default_factory=dict)
    search: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def read(cls, file: Path = FILE) -> "Cells":
        """Read the file, or begin with nothing."""
        if not file.exists():
            return cls(file)
        held = msgspec.json.decode(file.read_bytes())
        return cls(file, held["cells"], held["search"])

    def write(self) -> None:
        """Write the file, whole or not at all, always in the same order."""
        held = {
            "cells": dict(sorted(self.cells.items())),
            "search": dict(sorted(self.search.items())),
        }
        with atomic_write(self.file) as file:
            # A line for each cell: small, and a change is seen where it is.
            parts = (
                f'"{name}": {{\n'
                + ",\n".join(
                    f"{msgspec.json.encode(key).decode()}: {msgspec.json.encode(cell).decode()}"
                    for key, cell in group.items()
                )
                + "\n}"
                for name, group in held.items()
            )
            file.write(("{\n" + ",\n".join(parts) + "\n}\n").encode())

    @classmethod
    def keep(cls, kind: str, name: str, result: dict[str, Any], file: Path = FILE) -> "Cells":
        """Add one cell to what the file holds by now, which others may have added to."""
        cells = cls.read(file)
        getattr(cells, kind)[name] = result
        cells.write()
        return cells

    @staticmethod
    def key(world: str, method: str, seed: int) -> str:
        """Return the name of a cell."""
        return f"{world} | {method} | {seed}"
