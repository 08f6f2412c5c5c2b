"""Stores: results under keys, whole or not at all, and none that is damaged is trusted."""

import pickle
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import resolvent as rs
from resolvent._util.cache import _DIGEST, _MAGIC, CachedFunction, CachedType, Packing, Store


def only_file(folder):
    (path,) = (path for path in folder.rglob("*") if path.is_file())
    return path


def test_what_was_put_is_found_by_whoever_looks(tmp_path):
    store = Store(str(tmp_path / "a" / "b"))
    assert store.get("00ff") is None
    store.put("00ff", b"one")
    store.put("00ff", b"two")
    assert pickle.loads(pickle.dumps(store)).get("00ff") == b"two"  # noqa: S301
    assert only_file(tmp_path).name == "00ff.kept"  # and nothing else was left


@settings(max_examples=25)
@given(st.binary(max_size=40), st.data())
def test_no_change_goes_unnoticed(tmp_path_factory, content, data):
    folder = tmp_path_factory.mktemp("kept")
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
            rs.errors.ResumeWarning, match="ab.kept is damaged, or of another version"
        ):
            assert store.get("ab") is None
    path.write_bytes(whole)
    assert store.get("ab") == content


def test_a_file_under_another_key_is_not_trusted(tmp_path):
    store = Store(str(tmp_path))
    store.put("ab1", b"one")
    only_file(tmp_path).rename(tmp_path / "ab" / "ab2.kept")
    with pytest.warns(rs.errors.ResumeWarning):
        assert store.get("ab2") is None


def test_places_that_cannot_be_stores(tmp_path):
    file = tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(rs.OptionError, match="is a file; name a folder"):
        Store(str(file))
    with pytest.raises(rs.OptionError, match="name a folder"):
        Store("")
    with pytest.raises(rs.OptionError, match="cannot be made"):
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
    return CachedFunction(function, store, Numbers(), "squares", CachedType(int))


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
    store.put(function.key(3), Packing().pack("nine"))  # complete, but by another version
    with pytest.warns(rs.errors.ResumeWarning):
        assert function(3) == 9
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert function(3) == 9
    assert work.done == [3]


def test_the_head_of_a_file_says_what_it_is(tmp_path):
    Store(str(tmp_path)).put("ab", b"")
    content = only_file(tmp_path).read_bytes()
    assert content.startswith(b"resolvent kept 1\n")
    assert len(content) > len(_MAGIC) + _DIGEST
