"""What the paper reports, to be set beside what is measured here.

Measured by its authors on an Intel i7-9750H. None stands for what they do not give.
"""

from typing import Final, NamedTuple

PROCESSOR: Final = "Intel i7-9750H"

SECONDS: Final[dict[str, dict[str, str]]] = {
    "3x3": {"rpni": "1.3", "hmm-dense": "104.0", "ilp": "5.3"},
    "4x4": {"rpni": "3.9", "hmm-dense": "> 6,000", "ilp": "≈ 5,500"},
    "5x5": {"rpni": "56.1", "hmm-dense": "time out", "ilp": "time out"},
}
"""Of the baseline comparison, by grid and method."""

PLOTTED: Final[dict[str, dict[str, tuple[float, bool]]]] = {
    "3x3": {"rpni": (1.3, True), "hmm-dense": (104.0, True), "ilp": (5.3, True)},
    "4x4": {"rpni": (3.9, True), "hmm-dense": (6_000.0, False), "ilp": (5_500.0, True)},
    "5x5": {"rpni": (56.1, True)},
}
"""The same as numbers: seconds, and whether that was the end or a limit."""

MEAN_LENGTHS: Final = {"3x3": 26.7, "4x4": 124.4, "5x5": 257.6}
"""Steps of a trace, on average, as the paper states them."""


class Cell(NamedTuple):
    """A cell of the ablation table."""

    tm_states: str
    rm_states: str
    seconds: str

    def __str__(self) -> str:
        return f"{self.tm_states} / {self.rm_states}, {self.seconds} s"


ABLATION: Final[dict[str, dict[str, Cell]]] = {
    "low": {
        "full": Cell("7", "2", "412.2"),
        "no-supplement": Cell("7", "218", "26,976.9"),
        "keep-redundant": Cell("7", "2", "3,176.2"),
        "keep-trivial": Cell("> 250", "–", "> 172,800"),
        "keep-both": Cell("–", "–", "–"),
    },
    "high": {
        "full": Cell("7", "2", "4,174.6"),
        "no-supplement": Cell("7", "15", "4,252.5"),
        "keep-redundant": Cell("7", "2", "30,395.8"),
        "keep-trivial": Cell("8", "2", "65,728.3"),
        "keep-both": Cell("–", "–", "> 172,800"),
    },
}
