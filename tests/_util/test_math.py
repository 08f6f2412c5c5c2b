"""Arithmetic that gives the same bits everywhere, compared with values known to 60 digits.

`known_values.json` has arguments and values, as Python writes doubles in hexadecimal. They
were computed by mpmath with 60 digits and rounded once. Functions of arrays give for each number
what the core gives. Nothing in the package that decides or writes anything uses a logarithm or an
exponential of NumPy or the C library; the last test looks for them.
"""

import ast
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import resolvent
from resolvent import _core
from resolvent._util import math as arithmetic

KNOWN = json.loads((Path(__file__).parent / "known_values.json").read_text(encoding="utf-8"))

WITHIN = {
    "natural_log": 1,
    "exponential": 1,
    "binary_log": 2,
    "log_one_plus": 2,
    "log_gamma": 2,
}
"""Maximum error in units in the last place. Near its zeros ln Γ is a sum that cancels; there it is
compared with the last place of 1, which is all that matters where it is added."""


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


def test_power():
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


# --- Arrays ---

SOURCE = Path(resolvent.__file__).parent
OTHERS = {"log", "log2", "log10", "log1p", "exp", "exp2", "expm1", "logaddexp", "geomspace"} | {
    "logspace",
    "lgamma",
    "gamma",
    "erf",
    "erfc",
    "hypot",
    "pow",
    "float_power",
    "einsum",
    "dot",
    "matmul",
    "linalg",
}
"""Functions of NumPy and of `math` whose last bits depend on the machine."""

ELSEWHERE = {
    # Only shown, in pixels and in rounded figures.
    "worlds/drawing.py": {"hypot"},
    "_util/text.py": {"exp", "log"},
    # A start of iterations that continue until the error is below a bound.
    "planning/stochastic.py": {"linalg", "@"},
    # Baselines.
    "paper/baselines/ilp.py": {"@"},
    # Whole numbers: exact.
    "machines/io/edge_rewards.py": {"@"},
    "machines/score.py": {"@"},
    "worlds/grid_world.py": {"@"},
}

FUNCTIONS = {
    arithmetic.log: _core.natural_log,
    arithmetic.log2: _core.binary_log,
    arithmetic.log1p: _core.log_one_plus,
    arithmetic.exp: _core.exponential,
    arithmetic.log_gamma: _core.log_gamma,
}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_arrays_are_taken_number_by_number(function):
    numbers = np.linspace(0.01, 30, 60).reshape(3, 4, 5)
    known = [FUNCTIONS[function](one) for one in numbers.ravel().tolist()]
    for given_ in (numbers, np.asfortranarray(numbers)):
        found = function(given_)
        assert found.shape == (3, 4, 5)
        assert found.ravel().tolist() == known
    assert function(3) == FUNCTIONS[function](3.0)
    assert function(np.arange(1, 4)).tolist() == [FUNCTIONS[function](one) for one in (1, 2, 3)]
    assert function(np.zeros((0, 2))).shape == (0, 2)


# As mpmath gives them with 30 digits, rounded.
@pytest.mark.parametrize(
    ("x", "value"),
    [
        (0.5, 0.4795001221869535),
        (1.0, 0.15729920705028513),
        (2.0, 0.004677734981047266),
        (3.0, 2.209049699858544e-05),
        (5.0, 1.5374597944280349e-12),
        (-1.0, 1.8427007929497149),
    ],
)
def test_the_tail_of_normal_numbers(x, value):
    assert arithmetic.erfc(x) == pytest.approx(value, rel=1e-13)
    assert arithmetic.erfc(x) == pytest.approx(math.erfc(x), rel=1e-13)


def test_sums_of_exponentials():
    far = arithmetic.log_of_sum(np.array([0.0, -1000.0, -np.inf]), np.array([0.0, 3.0, 2.0]))
    assert far == pytest.approx([math.log(2), 3.0, 2.0])


def test_steps_of_equal_ratio():
    grid = arithmetic.geometric(0.002, 0.1, 20)
    assert (grid[0], grid[-1]) == (0.002, 0.1)
    assert grid == pytest.approx(np.geomspace(0.002, 0.1, 20))


def test_powers_are_products():
    assert arithmetic.powers(0.9, 300) == pytest.approx(0.9 ** np.arange(300))
    assert arithmetic.powers(0.0, 3).tolist() == [1, 0, 0]
    assert arithmetic.powers(0.5, 0).tolist() == []


whole = st.integers(-9, 9).map(float)


@given(st.data(), *[st.integers(0, 4)] * 3)
def test_products_are_those_of_linear_algebra(data, rows, inner, columns):
    def table(*shape):
        count = math.prod(shape)
        cells = data.draw(st.lists(whole, min_size=count, max_size=count))
        return np.array(cells).reshape(shape)

    # Of whole numbers all sums are exact, in whatever order they are taken.
    left, right, column = table(rows, inner), table(inner, columns), table(inner)
    assert arithmetic.product(left, right).tolist() == (left @ right).tolist()
    assert arithmetic.product(left.T.copy().T, right).tolist() == (left @ right).tolist()
    assert arithmetic.product(left, column).tolist() == (left @ column).tolist()
    assert arithmetic.product(column, right).tolist() == (column @ right).tolist()
    assert arithmetic.product(column, column) == column @ column


def test_sums_are_taken_from_the_first_to_the_last():
    assert arithmetic.product([1e16, 1.0, -1e16], [1.0, 1.0, 1.0]) == 0.0
    assert arithmetic.product([1e16, -1e16, 1.0], [1.0, 1.0, 1.0]) == 1.0


def test_tables_that_do_not_fit():
    with pytest.raises(ValueError, match="cannot be multiplied"):
        arithmetic.product(np.zeros((2, 3)), np.zeros((2, 3)))


def _used(path):
    """Return which functions of others a module calls, and whether it multiplies matrices."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            found.add("@")
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found |= {node.attr} & OTHERS if node.value.id in ("np", "math") else set()
        if isinstance(node, ast.ImportFrom) and node.module == "math":
            found |= {one.name for one in node.names} & OTHERS
    return found


def test_nothing_is_decided_by_arithmetic_of_others():
    found = {
        str(path.relative_to(SOURCE)): used
        for path in sorted(SOURCE.rglob("*.py"))
        if (used := _used(path)) and path.relative_to(SOURCE).as_posix() != "_util/math.py"
    }
    assert found == ELSEWHERE
