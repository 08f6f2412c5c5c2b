from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolvent.errors import ModelError
from resolvent.machines import Edge, EdgeRewardMachine, Guard
from resolvent.machines.io.edge_rewards import ENDED


def machine(*edges, terminal=()):
    return EdgeRewardMachine(
        0, frozenset(terminal), tuple(Edge(u, v, Guard.parse(guard), r) for u, v, guard, r in edges)
    )


COFFEE = machine((0, 0, "!c", 0), (0, 1, "c", 0), (1, 1, "!o", 0), (1, 2, "o", 1), terminal=[2])


def test_states_that_cannot_be_stepped_in():
    for state in (2, ENDED):
        with pytest.raises(ModelError, match="terminal"):
            COFFEE.step(state, ())
    with pytest.raises(ModelError, match=r"state 7 does not exist: the states are \[0, 1, 2\]"):
        COFFEE.step(7, ())


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([(1, 0, "a", 0)], "edge 0 leaves state 1, which is terminal"),
        ([(0, 0, "a", float("nan"))], "edge 0 has the reward nan: make it finite"),
        ([(ENDED, 0, "a", 0)], "-1 stands for an ended episode"),
        ([(0, 0, "a", 0), (0, 1, "b", 0)], "edge 0 and edge 1 both hold in state 0"),
        ([(0, 0, "a", 0), (0, 0, "True", 1)], "for the label 'a' and disagree: 'a' leads to 0"),
        ([(0, 0, "!a", 0), (0, 0, "!b", 1)], "for the label 'no event' and disagree"),
    ],
)
def test_machines_that_make_no_sense(edges, message):
    with pytest.raises(ModelError, match=message):
        machine(*edges, terminal=[1])


def test_thousands_of_edges_are_compared_all_at_once():
    names = [f"p{number}" for number in range(12)]

    def exactly(code):
        return "&".join(name if code >> bit & 1 else f"!{name}" for bit, name in enumerate(names))

    edges = [Edge(0, code + 1, Guard.parse(exactly(code)), code) for code in range(4000)]
    EdgeRewardMachine(0, frozenset(), tuple(edges))
    late = Edge(0, 1, Guard.parse("False|p0&p1&!p2"), -1.0)
    with pytest.raises(ModelError, match="edge 3 and edge 4000 both hold in state 0"):
        EdgeRewardMachine(0, frozenset(), (*edges, late))


literals = st.sampled_from(["a", "b", "c", "!a", "!b", "!c"])
conjunctions = st.lists(literals, min_size=1, max_size=3).map("&".join)
guards = st.lists(conjunctions, min_size=1, max_size=3).map("|".join)


@given(st.lists(st.tuples(guards, st.integers(0, 1)), max_size=6))
def test_edges_that_disagree_are_those_that_a_label_shows(parts):
    edges = [Edge(0, target, Guard.parse(text), 0.0) for text, target in parts]
    every = [frozenset(kept) for size in range(4) for kept in combinations("abc", size)]
    first = next(
        (
            (one, other)
            for one, other in combinations(range(len(edges)), 2)
            if edges[one].target != edges[other].target
            and any(edges[one].guard.holds(x) and edges[other].guard.holds(x) for x in every)
        ),
        None,
    )
    if first is None:
        EdgeRewardMachine(0, frozenset(), tuple(edges))
        return
    with pytest.raises(ModelError, match=f"edge {first[0]} and edge {first[1]} both"):
        EdgeRewardMachine(0, frozenset(), tuple(edges))


def test_guards_may_not_have_very_many_terms_and_propositions(monkeypatch):
    monkeypatch.setattr("resolvent.machines.io.edge_rewards.MAX_TERM_TABLE", 6)
    EdgeRewardMachine(0, frozenset(), (Edge(0, 1, Guard.parse("a&b|c"), 0.0),))
    with pytest.raises(ModelError, match="2 terms over 4 propositions, more than"):
        EdgeRewardMachine(0, frozenset(), (Edge(0, 1, Guard.parse("a&b|c&d"), 0.0),))
