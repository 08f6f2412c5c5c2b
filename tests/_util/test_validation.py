"""What a signature says is what may be given, and anything else is refused in one line."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import resolvent as rs
from resolvent._util.validation import check_arguments, shown


def call(
    number: float = 1,
    count: int | None = None,
    way: Literal["a", "b"] = "a",
    path: str | Path = "x",
    names: Iterable[str] = (),
    both: tuple[float, float] | None = None,
    by_name: Mapping[str, Any] | None = None,
    function: Callable[[], object] | None = None,
    anything: Any = None,
    quoted: "rs.Plan | None" = None,
) -> None:
    check_arguments(call, locals())


@pytest.mark.parametrize(
    "given",
    [
        {"number": np.float32(2), "count": np.int64(3)},
        {"number": 10**300, "path": Path("x"), "names": ["a", "b"]},
        {"names": (name for name in "ab"), "both": [1, 2]},
        {"by_name": {"a": 1}, "function": len, "anything": object(), "quoted": 3},
    ],
)
def test_what_the_signature_says_is_taken(given):
    call(**given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"number": "1"}, "number='1': give a number"),
        ({"number": 10**400}, "give a number"),
        ({"count": 1.5}, "count=1.5: give a whole number or None"),
        ({"way": "c"}, "way='c': give 'a' or 'b'"),
        ({"way": np.array([1, 2])}, "give 'a' or 'b'"),
        ({"path": 3}, "path=3: give a text or a path"),
        ({"path": "a\0b"}, "give a text or a path"),
        ({"names": 3}, "names=3: give a list of a text"),
        ({"names": ["a", 3]}, "give a list of a text"),
        ({"names": np.array(3)}, "give a list of a text"),
        ({"both": (1, 2, 3)}, "give a tuple of a number and a number or None"),
        ({"by_name": [1]}, "by_name=[1]: give a mapping"),
        ({"function": 3}, "function=3"),
    ],
)
def test_anything_else_is_refused_in_one_line(given, message):
    with pytest.raises(rs.OptionError) as refused:
        call(**given)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_value_that_cannot_write_itself_is_named_by_its_type():
    nested: list[Any] = []
    for _ in range(5000):
        nested = [nested]
    assert shown(nested) == "a list"


def test_public_calls_refuse_numbers_that_are_texts():
    traces = rs.collect("resolvent/House-v0", episodes=3, seed=0)
    with pytest.raises(rs.OptionError, match="gamma='high': give a number"):
        rs.plan(rs.infer(traces), traces, gamma="high")
    with pytest.raises(rs.OptionError, match="episodes='many'"):
        rs.collect("resolvent/House-v0", episodes="many")


def test_every_error_is_one_line_however_its_names_look():
    assert str(rs.TraceError("no column a\nb\x1b[31m")) == "no column a\\nb\\x1b[31m"
    assert len(str(rs.errors.ModelError("x" * 10**6))) <= 4000
