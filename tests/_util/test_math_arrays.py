"""Arithmetic of arrays: number by number what the core gives, whatever their shape.

Nothing in the package that decides or writes anything down passes through a logarithm or an
exponential of NumPy or the C library; the last test looks for them.
"""

import ast
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import resolvent
from resolvent import _core
from resolvent._util import math as arithmetic

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
    # Only looked at, in pixels and in figures that are rounded.
    "worlds/pixels.py": {"hypot"},
    "_util/text.py": {"exp", "log"},
    # A start of iterations that go on until the error is below a bound.
    "planning/markov_chain.py": {"linalg", "@"},
    # Other methods, to be compared with.
    "paper/baselines/hmm_em.py": {"@"},
    "paper/baselines/ilp.py": {"@"},
    # Whole numbers: exact.
    "machines/likelihood.py": {"@"},
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
