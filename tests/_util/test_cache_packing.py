"""Packing: plain data ↔ bytes, equal type by type, and nothing else."""

from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resolvent._util.cache import Packing, digest_of
from resolvent.traces import Vocabulary
from strategies import trace_sets


class Colour(StrEnum):
    RED = "red"


class Point(NamedTuple):
    x: int
    y: object


@dataclass(frozen=True)
class Note:
    text: str
    about: object


PACKING = Packing((Colour, Point, Note))

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.just(Colour.RED)
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.frozensets(st.text() | st.integers())
        | st.dictionaries(st.text() | st.tuples(st.integers()), inner)
        | st.builds(Point, st.integers(), inner)
        | st.builds(Note, st.text(), inner)
    ),
)


def spelled(value):
    """A text that tells 1 from 1.0 and True, and a named tuple from another."""
    if isinstance(value, frozenset):
        return sorted(map(repr, value))
    if isinstance(value, dict):
        return [(repr(key), spelled(one)) for key, one in value.items()]
    if isinstance(value, Note):
        return ["Note", value.text, spelled(value.about)]
    if isinstance(value, list | tuple):
        return [type(value).__name__, *map(spelled, value)]
    return repr(value)


@settings(max_examples=60)
@given(values)
def test_round_trip(value):
    back = PACKING.unpack(PACKING.pack(value))
    assert back == value
    assert spelled(back) == spelled(value)
    assert digest_of(back) == digest_of(value)


@settings(max_examples=25)
@given(trace_sets(any_columns=True), st.integers(0, 3))
def test_traces_and_vocabularies(traces, more):
    back = PACKING.unpack(PACKING.pack((traces, traces.labels, more)))
    assert back == (traces, traces.labels, more)
    assert back[0].digest == traces.digest
    assert back[0].values == traces.values
    assert isinstance(back[1], Vocabulary)


@pytest.mark.parametrize(
    "array",
    [
        np.array([[1.5, np.nan]]),
        np.array([], np.int64),
        np.array([True, False]),
        np.array([(1, 2**40)], [("state", np.int32), ("key", np.int64)]),
        np.arange(12, dtype=np.uint16)[::2],
    ],
)
def test_arrays(array):
    back = PACKING.unpack(PACKING.pack(array))
    assert (back.dtype, back.shape) == (array.dtype, array.shape)
    assert back.tobytes() == np.ascontiguousarray(array).tobytes()
    back[...] = back  # it can be written to, as what was made can


def test_what_is_not_plain_is_refused():
    with pytest.raises(TypeError, match="a set is no plain data"):
        PACKING.pack({1})
    with pytest.raises(TypeError, match="Python objects"):
        PACKING.pack(np.array([None]))
    with pytest.raises(TypeError, match="a Note is no plain data"):
        Packing().pack(Note("", None))


def test_bytes_make_no_other_kind():
    with pytest.raises(ValueError, match="no packed data"):
        Packing().unpack(PACKING.pack(Note("", None)))
    with pytest.raises(ValueError, match=r"there is a 'os.system'"):
        PACKING.unpack(b"\x92\xa9os.system\xa2ls")


@given(st.binary(max_size=60))
def test_any_bytes_are_a_value_or_an_error(content):
    with suppress(ValueError):
        PACKING.unpack(content)


def test_a_digest_tells_fields_and_kinds_apart():
    apart = [1, True, 1.0, "1", b"1", (1,), [1], Note("1", 1), Point(1, 1), np.array([1]), {1: 1}]
    assert len({digest_of(one) for one in apart}) == len(apart)
    assert digest_of(frozenset("abc")) == digest_of(frozenset("cba"))
