"""Draw learning curves, and any figure of matplotlib, into PNG and SVG files."""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from resolvent._util.files import atomic_write
from resolvent.errors import MissingExtra, OptionError
from resolvent.rl.q_table import Curve

WINDOW: Final = 50  # number of episodes that a point of a learning curve is the mean of
_NO_METADATA: Final[dict[str, dict[str, None]]] = {
    ".svg": {"Date": None},
    ".png": {"Software": None},
}


def draw_curve(path: Path, curve: Curve, *, title: str, optimum: float | None = None) -> None:
    """Draw means of the last `WINDOW` returns, discounted ones beside an `optimum` (dashed)."""
    check_picture_name(path)
    returns = curve.returns if optimum is None else curve.discounted_returns
    with figure(path, (7.0, 4.0)) as drawing:
        axes = drawing.add_subplot()
        episodes = np.arange(1, len(returns) + 1)
        axes.plot(episodes, moving_mean(returns, WINDOW), color="#0072B2", linewidth=1.5)
        if optimum is not None:
            axes.axhline(optimum, color="0.4", linestyle="--", linewidth=1, label="optimum")
            axes.legend(frameon=False)
        measure = "return" if optimum is None else "discounted return"
        axes.set_xlabel("episode")
        axes.set_ylabel(f"{measure}, mean of {WINDOW} episodes")
        axes.margins(x=0)
        axes.grid(color="0.9", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_title(title)


def moving_mean(values: NDArray[np.float64], window: int) -> NDArray[np.float64]:
    """Return at each place the mean of the last `window` values."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    end = np.arange(1, len(sums))
    start = np.maximum(end - window, 0)
    means: NDArray[np.float64] = (sums[end] - sums[start]) / (end - start)
    return means


@contextmanager
def figure(path: Path, size: tuple[float, float], font_size: float = 10.0) -> Iterator[Any]:
    """Yield a figure to draw into, then write it; the same drawing gives the same SVG."""
    matplotlib = import_matplotlib()
    style = {"svg.hashsalt": "resolvent", "svg.fonttype": "path", "font.size": font_size}
    with matplotlib.rc_context(style):
        drawing = importlib.import_module("matplotlib.figure").Figure(
            figsize=size, layout="constrained"
        )
        yield drawing
        metadata = _NO_METADATA[path.suffix]
        with atomic_write(path) as file:
            drawing.savefig(file, format=path.suffix[1:], dpi=150, metadata=metadata)


def check_picture_name(path: Path) -> None:
    """Refuse a file name without the suffix of a picture."""
    if path.suffix not in _NO_METADATA:
        raise OptionError(f"{path}: a picture of a curve is written as .png or .svg")


def import_matplotlib() -> Any:
    """Import matplotlib, or name the missing extra."""
    try:
        return importlib.import_module("matplotlib")
    except ImportError as error:
        raise MissingExtra(
            'drawing learning curves needs matplotlib: pip install "resolvent[figures]"'
        ) from error
