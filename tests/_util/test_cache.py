"""The cache: plain data ↔ bytes of equal types, and results under keys, complete or absent."""

import pickle
import warnings
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import resolvent as rs
from resolvent._util.cache import _DIGEST, _MAGIC, CachedFunction, Store, digest_of, pack, unpack
from resolvent.traces import Vocabulary
from strategies import trace_sets


class Color(StrEnum):
    RED = "red"


class Point(NamedTuple):
    x: int
    y: object


@dataclass(frozen=True)
class Note:
    text: str
    about: object


TYPES = (Color, Point, Note)

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.just(Color.RED)
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
    back = unpack(pack(value, TYPES), TYPES)
    assert back == value
    assert spelled(back) == spelled(value)
    assert digest_of(back) == digest_of(value)


@settings(max_examples=25)
@given(trace_sets(any_columns=True), st.integers(0, 3))
def test_traces_and_vocabularies(traces, more):
    back = unpack(pack((traces, traces.labels, more)))
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
    back = unpack(pack(array))
    assert (back.dtype, back.shape) == (array.dtype, array.shape)
    assert back.tobytes() == np.ascontiguousarray(array).tobytes()
    back[...] = back  # it can be written to, as what was made can


def test_what_is_not_plain_is_refused():
    with pytest.raises(TypeError, match="a set is no plain data"):
        pack({1})
    with pytest.raises(TypeError, match="Python objects"):
        pack(np.array([None]))
    with pytest.raises(TypeError, match="a Note is no plain data"):
        pack(Note("", None))


def test_bytes_make_no_other_kind():
    with pytest.raises(ValueError, match="no packed data"):
        unpack(pack(Note("", None), TYPES))
    with pytest.raises(ValueError, match=r"there is a 'os.system'"):
        unpack(b"\x92\xa9os.system\xa2ls")


@given(st.binary(max_size=60))
def test_any_bytes_are_a_value_or_an_error(content):
    with suppress(ValueError):
        unpack(content)


def test_a_digest_tells_fields_and_kinds_apart():
    apart = [1, True, 1.0, "1", b"1", (1,), [1], Note("1", 1), Point(1, 1), np.array([1]), {1: 1}]
    assert len({digest_of(one) for one in apart}) == len(apart)
    assert digest_of(frozenset("abc")) == digest_of(frozenset("cba"))


# --- Stores ---


def only_file(folder):
    (path,) = (path for path in folder.rglob("*") if path.is_file())
    return path


def test_what_was_put_is_found_by_whoever_looks(tmp_path):
    store = Store(str(tmp_path / "a" / "b"))
    assert store.get("00ff") is None
    store.put("00ff", b"one")
    store.put("00ff", b"two")
    assert pickle.loads(pickle.dumps(store)).get("00ff") == b"two"  # noqa: S301
    assert only_file(tmp_path).name == "00ff.cache"  # and nothing else was left


@settings(max_examples=25)
@given(st.binary(max_size=40), st.data())
def test_no_change_goes_unnoticed(tmp_path_factory, content, data):
    folder = tmp_path_factory.mktemp("cache")
    store = Store(str(folder))
    store.put("ab", content)
    path = only_file(folder)
    whole = path.read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    bit = 1 << data.draw(st.integers(0, 7))
    changed = bytes([*whole[:at], whole[at] ^ bit, *whole[at + 1 :]])
    for other in (changed, whole[:at], whole + b"x"):
        path.write_bytes(other)
        with pytest.warns(
            rs.errors.ResumeWarning, match="ab.cache is damaged, or of another version"
        ):
            assert store.get("ab") is None
    path.write_bytes(whole)
    assert store.get("ab") == content


def test_a_file_under_another_key_is_not_trusted(tmp_path):
    store = Store(str(tmp_path))
    store.put("ab1", b"one")
    only_file(tmp_path).rename(tmp_path / "ab" / "ab2.cache")
    with pytest.warns(rs.errors.ResumeWarning):
        assert store.get("ab2") is None


def test_places_that_cannot_be_stores(tmp_path):
    file = tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(rs.OptionError, match="is a file; name a folder"):
        Store(str(file))
    with pytest.raises(rs.OptionError, match="name a folder"):
        Store("")
    with pytest.raises(rs.OptionError, match="cannot be created"):
        Store(str(file / "below")).put("ab", b"")


class Squares:
    """A function that counts its calls."""

    def __init__(self):
        self.done = []

    def __call__(self, piece):
        self.done.append(piece)
        return piece * piece


class Numbers:
    """A source whose shards are numbers; negative ones are in memory."""

    def fingerprint(self, shard):
        return None if shard < 0 else ("number", shard)


def cached(function, store):
    return CachedFunction(function, store, Numbers(), "squares", (int,))


def test_work_is_done_once(tmp_path):
    work = Squares()
    function = cached(work, Store(str(tmp_path)))
    assert [function(piece) for piece in (3, 4, 3, -2, -2)] == [9, 16, 9, 4, 4]
    assert work.done == [3, 4, -2, -2]
    again = Squares()
    assert cached(again, Store(str(tmp_path)))(4) == 16
    assert again.done == []


def test_work_is_done_again_where_a_cached_result_is_unusable(tmp_path):
    work, store = Squares(), Store(str(tmp_path))
    function = cached(work, store)
    store.put(function.key(3), pack("nine"))  # complete, but by another version
    with pytest.warns(rs.errors.ResumeWarning):
        assert function(3) == 9
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert function(3) == 9
    assert work.done == [3]


def test_the_head_of_a_file_says_what_it_is(tmp_path):
    Store(str(tmp_path)).put("ab", b"")
    content = only_file(tmp_path).read_bytes()
    assert content.startswith(b"resolvent cache 1\n")
    assert len(content) > len(_MAGIC) + _DIGEST
