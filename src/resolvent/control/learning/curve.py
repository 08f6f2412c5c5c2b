"""A learning curve: what each episode paid, how long it was, and the file it is written to."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from resolvent.atomic_file import atomic_write
from resolvent.by_value import ByValue
from resolvent.errors import OptionError

SUFFIXES = (".csv", ".json")


@dataclass(frozen=True, eq=False)
class Curve(ByValue):
    """Episodes of learning, one entry for each; `epsilons` is how much was left to chance."""

    returns: NDArray[np.float64]
    discounted_returns: NDArray[np.float64]
    steps: NDArray[np.int64]
    epsilons: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.returns)

    @property
    def total_steps(self) -> NDArray[np.int64]:
        """The steps taken up to the end of each episode."""
        return np.cumsum(self.steps)

    def columns(self) -> dict[str, list[Any]]:
        """Return it as columns, as files have it."""
        return {
            "episode": list(range(1, len(self) + 1)),
            "return": self.returns.tolist(),
            "discounted_return": self.discounted_returns.tolist(),
            "steps": self.steps.tolist(),
            "epsilon": self.epsilons.tolist(),
            "total_steps": self.total_steps.tolist(),
        }


def check_curve_name(path: Path) -> None:
    """Refuse a file for a curve whose name tells no format."""
    if path.suffix not in SUFFIXES:
        raise OptionError(f"{path}: a learning curve is written as {' or '.join(SUFFIXES)}")


def write_curve(path: Path, columns: Mapping[str, Sequence[Any]]) -> None:
    """Write columns as .csv or .json, whole or not at all."""
    check_curve_name(path)
    with atomic_write(path) as file:
        if path.suffix == ".json":
            file.write(msgspec.json.encode(columns) + b"\n")
        else:
            file.write(_csv(columns).encode())


def _csv(columns: Mapping[str, Sequence[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()
