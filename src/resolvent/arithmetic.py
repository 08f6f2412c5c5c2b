"""Moved."""

from resolvent._util.math import (Many, Reals, _ROOT_OF_PI, _of_each, erfc, exp, geometric, log, log1p, log2, log_gamma, log_of_sum, powers, product)  # noqa: F401
