from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolvent.errors import ModelError
from resolvent.machines.io.guards import Guard, check_proposition

NAMES = ("a", "b", "c")
LABELS = [frozenset(some) for size in range(4) for some in combinations(NAMES, size)]

literals = st.builds(str.__add__, st.sampled_from(["", "!", "!!"]), st.sampled_from(NAMES))
literals |= st.sampled_from(["True", "False", "!True", "!False"])
formulas = st.lists(
    st.lists(literals, min_size=1, max_size=3).map("&".join), min_size=1, max_size=3
)
formulas = formulas.map("|".join)


def means(formula, label):
    """What a formula says of a label, by its definition and without simplifying anything."""

    def literal(text):
        return not literal(text[1:]) if text[0] == "!" else text == "True" or text in label

    return any(all(map(literal, term.split("&"))) for term in formula.split("|"))


@given(formulas)
def test_a_guard_holds_where_its_formula_does(formula):
    guard = Guard.parse(formula)
    assert [guard.holds(label) for label in LABELS] == [means(formula, one) for one in LABELS]


@given(formulas)
def test_what_is_written_means_the_same(formula):
    written = str(Guard.parse(formula))
    assert " " not in written
    assert [means(written, label) for label in LABELS] == [means(formula, one) for one in LABELS]
    assert Guard.parse(written) == Guard.parse(formula)


@given(st.sets(st.sampled_from(LABELS)))
def test_exactly_these_labels(labels):
    guard = Guard.exactly(labels, NAMES)
    assert {label for label in LABELS if guard.holds(label)} == labels
    assert {label for label in LABELS if means(str(guard), label)} == labels


def test_by_hand():
    assert str(Guard.parse("b&!a | True & c")) == "!a&b|c"
    assert str(Guard.parse("a&!a")) == "False"
    assert str(Guard.parse("!False")) == "True"
    assert repr(Guard.parse("a|a")) == "Guard('a')"
    assert Guard.parse("key & !hall door").propositions == {"key", "hall door"}


@pytest.mark.parametrize("formula", ["", " ", "a&", "|a", "a||b", "!", "a&!", "!&a"])
def test_something_is_missing(formula):
    with pytest.raises(ModelError, match="lacks a proposition"):
        Guard.parse(formula)


def test_no_parentheses():
    with pytest.raises(ModelError, match=r"'a&\(b\|c\)' has parentheses: write terms"):
        Guard.parse("a&(b|c)")


@pytest.mark.parametrize(
    "name",
    ["True", "False", "", "a&b", "a|b", "(a", "a)", "!a", " a", "a ", "a\nb", "a\\b", "\x1f"],
)
def test_names_that_a_formula_would_not_give_back(name):
    with pytest.raises(ModelError, match="rename it"):
        check_proposition(name)


@pytest.mark.parametrize(
    "name", ["key", "4", "None", "], [[", 'a"b', "é", "a!b", "hall door", "#1"]
)
def test_names_that_it_gives_back(name):
    check_proposition(name)
    assert Guard.parse(f"!{name}").propositions == {name}


def test_many_signs_and_long_formulas_are_read_once_and_not_repeated():
    for sign in ("!", "! "):
        assert str(Guard.parse(sign * 1_000_001 + "a")) == "!a"
    for formula in ("(a" * 1_000_000, "a&" * 100_000, "\\" * 1_000_000):
        with pytest.raises(ModelError) as caught:
            Guard.parse(formula)
        assert len(str(caught.value)) < 400
