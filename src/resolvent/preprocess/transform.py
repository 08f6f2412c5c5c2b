"""Preprocessing as one value of the model: raw traces → the traces that machines read."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import isfinite
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resolvent._util.math import erfc
from resolvent._util.text import listed
from resolvent.errors import ModelError
from resolvent.preprocess.discretize import Discretizer
from resolvent.preprocess.labeling import LabelingFunction
from resolvent.traces.schema import REWARD
from resolvent.traces.source import InMemorySource, MappedSource, TraceSource
from resolvent.traces.trace_set import TraceSet, with_column

_MAX_SHOWN: Final = 8  # maximum number of levels in the text


@dataclass(frozen=True)
class RewardLevels:
    """Replaces each reward by the nearest of the values that rewards vary around.

    Machines cannot predict rewards with noise, since hardly two are equal. If levels are so close
    that noise moves some rewards to the next level, the machine's distribution shows these errors.

    Attributes:
        centers: The values that rewards vary around, ascending.
        sigma: The standard deviation of the noise, the same for all.
        exact: Values without noise; all others are replaced by the nearest center.
    """

    centers: tuple[float, ...]
    sigma: float
    exact: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "centers", _ascending("centers", self.centers))
        object.__setattr__(self, "exact", _ascending("exact", self.exact))
        if not self.centers:
            raise ModelError("levels of rewards need a center that rewards vary around")
        if type(self.sigma) not in (int, float) or not (isfinite(self.sigma) and self.sigma > 0):
            raise ModelError(f"rewards vary by {self.sigma!r}: that must be a number above 0")
        object.__setattr__(self, "sigma", float(self.sigma))

    def __call__(self, reward: float) -> float:
        """Return the level of a reward."""
        return float(self.nearest([reward])[0])

    def nearest(self, rewards: ArrayLike) -> NDArray[np.float64]:
        """Return the level of each reward."""
        values, centers = np.asarray(rewards, np.float64), np.array(self.centers)
        nearest = np.searchsorted(_midpoints(centers), values, side="right")
        return np.where(np.isin(values, self.exact), values, centers[nearest]) + 0.0

    def transform(self, traces: TraceSet) -> TraceSet:
        """Return the traces with the levels of their rewards; unchanged if they have none.

        A second transformation changes nothing.
        """
        if REWARD not in traces.columns or not len(traces):
            return traces
        rewards, codes = traces.columns[REWARD]
        levels, level_codes = np.unique(self.nearest(list(rewards)), return_inverse=True)
        if len(levels) == len(rewards) and np.array_equal(levels, list(rewards)):
            return traces
        return with_column(traces, REWARD, levels.tolist(), level_codes.astype(np.int32)[codes])

    def confusion(self, values: Sequence[float]) -> NDArray[np.float64]:
        """Return the probability that a reward of each value (row) has each level (column).

        Exact values keep their level with probability 1.
        """
        midpoints = _midpoints(np.array(self.centers))
        confusion = np.eye(len(values))
        for row, value in enumerate(values):
            if value in self.centers:
                deviations = ((value - midpoints) / (self.sigma * 2**0.5)).tolist()
                below = [0.0, *(0.5 * erfc(deviation) for deviation in deviations), 1.0]
                probability = dict(zip(self.centers, np.diff(below).tolist(), strict=True))
                confusion[row] = [probability.get(level, 0.0) for level in values]
        return confusion

    def as_dict(self) -> dict[str, Any]:
        """Return the levels as JSON values, which `from_dict` reads."""
        fields: dict[str, Any] = {"centers": list(self.centers), "sigma": self.sigma}
        return fields | ({"exact": list(self.exact)} if self.exact else {})

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "RewardLevels":
        """Return the levels that `as_dict` wrote; `ModelError` if a field is wrong."""
        if not {"centers", "sigma"} <= set(fields) <= {"centers", "sigma", "exact"}:
            raise ModelError(
                f"levels of rewards have centers, sigma and exact, not {listed(sorted(fields))}"
            )
        return cls(**fields)

    def __str__(self) -> str:
        text = f"rewards vary by ±{self.sigma:.2g} around {_list_text(self.centers)}"
        return text + (f"; exact is {_list_text(self.exact)}" if self.exact else "")


def _midpoints(centers: NDArray[np.float64]) -> NDArray[np.float64]:
    midpoints: NDArray[np.float64] = (centers[:-1] + centers[1:]) / 2
    return midpoints


def _ascending(name: str, values: Any) -> tuple[float, ...]:
    numbers = tuple(values) if isinstance(values, Iterable) else (None,)
    if not all(type(number) in (int, float) and isfinite(number) for number in numbers):
        raise ModelError(f"levels of rewards: {name} must be numbers, not {values!r}")
    if any(low >= high for low, high in pairwise(numbers)):
        raise ModelError(f"levels of rewards: {name} must ascend, and {values!r} do not")
    return tuple(map(float, numbers))


def _list_text(numbers: tuple[float, ...]) -> str:
    texts = [f"{number:.6g}" for number in numbers[:_MAX_SHOWN]]
    n_hidden = len(numbers) - len(texts)
    return listed([*texts, f"{n_hidden} more"] if n_hidden else texts)


@dataclass(frozen=True)
class Preprocessor:
    """Transforms raw steps: discretizes numbers, denoises rewards, then derives labels.

    A second transformation of the same traces changes nothing.
    """

    labeling: LabelingFunction = field(default_factory=LabelingFunction)
    discretize: Discretizer | None = None
    rewards: RewardLevels | None = None

    @property
    def is_identity(self) -> bool:
        """Whether traces stay as they are."""
        return self.labeling.is_given and self.discretize is None and self.rewards is None

    def transform(self, traces: TraceSet) -> TraceSet:
        """Return the transformed traces."""
        if self.discretize is not None:
            traces = self.discretize.transform(traces)
        if self.rewards is not None:
            traces = self.rewards.transform(traces)
        return self.labeling.transform(traces)

    __call__ = transform

    def transform_source(self, source: TraceSource) -> TraceSource:
        """Return a source of the transformed traces; each shard is transformed when read."""
        if self.is_identity:
            return source
        if isinstance(source, InMemorySource):
            return InMemorySource([self.transform(shard) for shard in source])
        return MappedSource(source, self)
