"""Draw learning curves as PNG or SVG with matplotlib."""

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from resolvent._util.files import atomic_write
from resolvent._util.validation import quoted
from resolvent.errors import MissingExtra, OptionError
from resolvent.rl.q_table import Curve

Measure: TypeAlias = Literal["return", "discounted return", "steps"]
Numbers: TypeAlias = NDArray[np.float64]

_COLUMNS = {"return": "returns", "discounted return": "discounted_returns", "steps": "steps"}

# Okabe and Ito's colors, which color-blind readers can distinguish.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_STYLE = {"svg.hashsalt": "resolvent", "svg.fonttype": "path", "font.size": 10.0}
_NO_METADATA: dict[str, dict[str, None]] = {".svg": {"Date": None}, ".png": {"Software": None}}


def draw_curves(
    path: str | Path,
    curves: Mapping[str, Sequence[Curve]],
    *,
    measure: Measure = "return",
    window: int = 50,
    optimum: float | None = None,
    title: str | None = None,
) -> None:
    """Draw learning curves into a file, .png or .svg; the same curves give the same SVG.

    The line of each name is the mean over its curves (one for each seed, equally long), smoothed
    over the last `window` episodes, with a band of one standard deviation. `optimum` is a dashed
    line.

    Raises:
        MissingExtra: when matplotlib is not installed.
    """
    path = Path(path)
    check_picture_name(path)
    if window < 1:
        raise OptionError(f"window={window}: use at least 1")
    lines = {name: smoothed(group, measure, window) for name, group in curves.items()}
    matplotlib = import_matplotlib()
    with matplotlib.rc_context(_STYLE):
        figure = importlib.import_module("matplotlib.figure").Figure(
            figsize=(7.0, 4.0), layout="constrained"
        )
        axes = figure.add_subplot()
        for number, (name, rows) in enumerate(lines.items()):
            _draw_line(axes, name, rows, _COLORS[number % len(_COLORS)])
        if optimum is not None:
            axes.axhline(optimum, color="0.4", linestyle="--", linewidth=1, label="optimum")
        _label(axes, measure, window, title)
        metadata = _NO_METADATA[path.suffix]
        with atomic_write(path) as file:
            figure.savefig(file, format=path.suffix[1:], dpi=150, metadata=metadata)


def smoothed(curves: Sequence[Curve], measure: Measure, window: int) -> Numbers:
    """Return for each curve the mean of the last `window` episodes, at each episode.

    >>> steps = np.array([4, 2, 6])
    >>> curve = Curve(steps * 1.0, steps * 1.0, steps, steps * 0.0)
    >>> smoothed([curve], "steps", 2).tolist()
    [[4.0, 3.0, 4.0]]
    """
    if len({len(curve) for curve in curves}) != 1:
        raise OptionError("curves of one line must be equally long, and at least one")
    rows = np.array([_measured(curve, measure) for curve in curves], np.float64)
    sums = np.cumsum(np.hstack([np.zeros((len(rows), 1)), rows]), axis=1)
    end = np.arange(1, rows.shape[1] + 1)
    start = np.maximum(end - window, 0)
    means: Numbers = (sums[:, end] - sums[:, start]) / (end - start)
    return means


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


def _measured(curve: Curve, measure: Measure) -> NDArray[Any]:
    if measure not in _COLUMNS:
        raise OptionError(f"measure={quoted(measure)}: use one of {', '.join(map(repr, _COLUMNS))}")
    column: NDArray[Any] = getattr(curve, _COLUMNS[measure])
    return column


def _draw_line(axes: Any, name: str, rows: Numbers, color: str) -> None:
    episodes = np.arange(1, rows.shape[1] + 1)
    mean, output_counts = rows.mean(axis=0), rows.std(axis=0)
    axes.plot(episodes, mean, color=color, linewidth=1.5, label=name)
    if len(rows) > 1:
        axes.fill_between(
            episodes,
            mean - output_counts,
            mean + output_counts,
            color=color,
            alpha=0.2,
            linewidth=0,
        )


def _label(axes: Any, measure: Measure, window: int, title: str | None) -> None:
    axes.set_xlabel("episode")
    axes.set_ylabel(measure if window == 1 else f"{measure}, mean of {window} episodes")
    axes.margins(x=0)
    axes.grid(color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    if title:
        axes.set_title(title)
    if len(axes.get_legend_handles_labels()[1]) > 1:
        axes.legend(frameon=False)
