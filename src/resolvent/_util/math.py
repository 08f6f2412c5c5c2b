"""Logarithms, exponentials and matrix products with the same bits on every machine.

NumPy's depend on the processor and on its version, so that comparisons may end differently.
Whatever is decided or written by such a function uses this module; rounded numbers that are only
displayed may use NumPy's. See docs/decisions/util.md.
"""

from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resolvent import _core

Reals = NDArray[np.float64]
Many = NDArray[Any] | Sequence[float]

_ROOT_OF_PI = 1.7724538509055160273
_TAIL, _TERMS = 2.0, 100  # start of the tail of `erfc`, a fraction, and the number of terms


class Function:
    """A function of a number, or of each number of an array of any shape, by the core."""

    def __init__(self, scalar: Callable[[float], float], vector: Callable[[Reals], Reals]) -> None:
        self._scalar, self._vector = scalar, vector

    @overload
    def __call__(self, x: float) -> float: ...
    @overload
    def __call__(self, x: Many) -> Any: ...
    def __call__(self, x: float | Many) -> Any:
        """Return the value of a number, or an array of values."""
        if isinstance(x, int | float):
            return self._scalar(x)
        numbers = np.asarray(x, np.float64)
        return self._vector(np.ascontiguousarray(numbers).ravel()).reshape(numbers.shape)[()]


log = Function(_core.natural_log, _core.natural_logs)  # −∞ of 0, without a warning
log2 = Function(_core.binary_log, _core.binary_logs)  # exact for powers of two
log1p = Function(_core.log_one_plus, _core.logs_one_plus)  # ln(1 + x)
exp = Function(_core.exponential, _core.exponentials)  # e to the power of x
log_gamma = Function(_core.log_gamma, _core.log_gammas)  # ln Γ(x)


def erfc(x: float) -> float:
    """Return 1 − erf(x): twice the probability that a normal number exceeds x · √2."""
    if x < 0:
        return 2.0 - erfc(-x)
    if x < _TAIL:  # by its power series, in which nothing cancels
        term = total = 2 * x
        for n in range(1, _TERMS):
            term *= x * x / (n + 0.5)
            total += term
        return 1.0 - total * exp(-x * x) / _ROOT_OF_PI
    fraction = x  # by Laplace's continued fraction, from its end
    for n in range(_TERMS, 0, -1):
        fraction = x + n / 2 / fraction
    return exp(-x * x) / (fraction * _ROOT_OF_PI)


def log_of_sum(x: ArrayLike, y: ArrayLike) -> Any:
    """Return ln(eˣ + eʸ); at least one of x and y must not be −∞."""
    more, less = np.maximum(x, y), np.minimum(x, y)
    return more + log1p(exp(less - more))


def geometric(first: float, last: float, number: int) -> Reals:
    """Return `number` values from `first` to `last`, with a constant ratio."""
    between = exp(np.linspace(log(first), log(last), number))
    between[0], between[-1] = first, last
    return np.asarray(between)


def powers(base: float, number: int) -> Reals:
    """Return base⁰, base¹, … as products, `number` values in total."""
    factors = np.full(number, float(base))
    factors[:1] = 1.0
    return np.cumprod(factors)


def product(left: ArrayLike, right: ArrayLike) -> Any:
    """Return the matrix product of two tables, or of a table and a column on either side."""
    first, second = np.asarray(left, np.float64), np.asarray(right, np.float64)
    inner = first.shape[-1]
    if inner != second.shape[0]:
        raise ValueError(f"tables of {first.shape} and {second.shape} numbers cannot be multiplied")
    shape = (*first.shape[:-1], *second.shape[1:])
    if not inner or 0 in shape:
        return np.zeros(shape)[()]
    factors = np.ascontiguousarray(first).ravel(), np.ascontiguousarray(second).ravel()
    return _core.product(*factors, inner).reshape(shape)[()]
