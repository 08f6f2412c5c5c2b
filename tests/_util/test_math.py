"""The core's logarithms and their kin, beside values known to 60 digits.

`known_values.json` holds arguments and values, as Python writes doubles in hexadecimal. They
were computed by mpmath with 60 digits and rounded once.
"""

import json
import math
from pathlib import Path

import pytest

from resolvent import _core

KNOWN = json.loads((Path(__file__).parent / "known_values.json").read_text(encoding="utf-8"))

# By how many units in the last place a value may be off. Near its zeros ln Γ is a sum that
# cancels, and is held to the last place of 1 there, which is all that matters where it is added up.
WITHIN = {
    "natural_log": 1,
    "exponential": 1,
    "binary_log": 2,
    "log_one_plus": 2,
    "log_gamma": 2,
}


def pairs(name):
    return [(float.fromhex(x), float.fromhex(value)) for x, value in KNOWN[name]]


@pytest.mark.parametrize("name", WITHIN)
def test_known_values(name):
    assert len(pairs(name)) > 90
    for x, value in pairs(name):
        found = getattr(_core, name)(x)
        unit = math.ulp(max(abs(value), 1) if name == "log_gamma" else value)
        # The known value is itself rounded, by half a unit at most: one off is one off in all.
        assert abs(found - value) <= WITHIN[name] * unit, (x, found, value)


def test_powers():
    for base, exponent in [(0.01, 0.3), (2.0, 10.0), (0.9, 0.0), (1e-3, 0.999), (7.5, -2.25)]:
        known = math.pow(base, exponent)
        assert _core.power(base, exponent) == pytest.approx(known, rel=4e-15)


def test_what_is_exact():
    assert [_core.binary_log(2.0**n) for n in range(-1074, 1024)] == list(range(-1074, 1024))
    assert _core.natural_log(1) == _core.log_gamma(1) == _core.log_gamma(2) == 0
    assert _core.exponential(0) == _core.power(3, 0) == 1


def test_the_edges():
    infinity = math.inf
    assert _core.natural_log(0) == _core.binary_log(0) == -infinity
    assert _core.natural_log(infinity) == _core.log_gamma(infinity) == infinity
    assert _core.log_gamma(0) == infinity
    assert (_core.exponential(710), _core.exponential(-746)) == (infinity, 0)
    assert (_core.exponential(infinity), _core.exponential(-infinity)) == (infinity, 0)
    assert _core.exponential(-745) == 5e-324
    for undefined in (
        _core.natural_log(-1),
        _core.binary_log(math.nan),
        _core.exponential(math.nan),
        _core.log_gamma(-0.5),
    ):
        assert math.isnan(undefined)


def test_a_larger_argument_has_no_smaller_value():
    steps = [1 + n * 2.0**-40 for n in range(2000)]
    for function in (_core.natural_log, _core.exponential):
        values = [function(x) for x in steps]
        assert values == sorted(values)
