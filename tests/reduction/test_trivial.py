import numpy as np
import pytest

from resolvent.errors import OptionError
from resolvent.reduction import remove_trivial, trivial_codes
from resolvent.traces import Vocabulary
from strategies import sample_set

LABELS = Vocabulary(map(frozenset, [(), ("door",), ("key",), ("door", "key")]))
EVENTS = Vocabulary(map(frozenset, [("door",), ("key",)]))


@pytest.mark.parametrize(
    ("named", "codes"),
    [
        ((), (0,)),
        (("key",), (0, 2)),
        (({"key", "door"}, "door"), (0, 1, 3)),
        (("door & key",), (0, 3)),
        (("no event", frozenset()), (0,)),
        ((["key"], ("key",)), (0, 2)),
    ],
)
def test_labels_are_named_as_sets_or_as_they_print(named, codes):
    assert trivial_codes(LABELS, named) == codes


def test_no_event_is_trivial_only_where_it_occurs():
    assert trivial_codes(EVENTS) == ()
    assert trivial_codes(EVENTS, ["key"]) == (1,)


@pytest.mark.parametrize("name", ["kye", {"kye"}])
def test_a_label_that_never_occurs_is_refused(name):
    with pytest.raises(OptionError, match=r"'kye' never occurs.*labels are: door, key"):
        trivial_codes(EVENTS, [name])


def test_trivial_labels_are_blanked_out_and_nothing_else():
    samples = sample_set([[(0, 0, 0), (2, 1, 1), (-1, 0, 1)], [(1, 0, 0), (2, -1, -1)]])
    reduced = remove_trivial(samples.histories, [0, 2])
    assert reduced.beta.tolist() == [-1, -1, -1, 1, -1]
    assert reduced.beta.dtype == np.int32
    assert samples.beta.tolist() == [0, 2, -1, 1, 2]
    assert np.array_equal(reduced.offsets, samples.offsets)
    assert reduced.labels == samples.labels


def test_no_trivial_labels_change_nothing():
    samples = sample_set([[(0, 0, 0), (-1, 1, 1)]])
    assert remove_trivial(samples.histories, ()).beta.tolist() == [0, -1]


def test_all_labels_trivial():
    samples = sample_set([[(0, 0, 0), (1, 1, 1)]])
    assert remove_trivial(samples.histories, (0, 1)).beta.tolist() == [-1, -1]


def test_a_text_that_two_labels_print_as_is_refused():
    labels = Vocabulary([frozenset({"a & b"}), frozenset({"a", "b"})])
    with pytest.raises(OptionError, match="in two ways: name it as a set"):
        trivial_codes(labels, ["a & b"])
    assert trivial_codes(labels, [{"a", "b"}]) == (1,)
