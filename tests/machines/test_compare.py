from dataclasses import replace
from itertools import permutations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from resolvent.machines import (
    UNSEEN,
    Machine,
    OutputCounts,
    TransitionMachine,
    is_isomorphic,
)
from resolvent.machines.compare import LabelClasses
from resolvent.traces import Vocabulary
from resolvent.worlds import House

LABELS, QUESTIONS, OUTPUTS = 2, 2, 3


def machine_of(step, output, labels=("a", "b"), kind=Machine):
    """A machine with −1 for what is unseen, in `step[state][label]` and `answer[state][alpha]`."""
    known = [(s, a, v) for s, row in enumerate(output) for a, v in enumerate(row) if v >= 0]
    state, query, value = np.array(known, np.int64).reshape(-1, 3).T
    nothing = np.array([], np.int64)
    return kind(
        labels=Vocabulary(frozenset({name}) for name in labels),
        observations=Vocabulary(range(len(output[0]))),
        actions=Vocabulary(["ask"]),
        outputs=Vocabulary(range(OUTPUTS)),
        transitions=np.array(step, np.int32).reshape(len(step), len(labels)),
        trivial=(),
        output_state=state.astype(np.int32),
        output_query=query,
        output_value=value.astype(np.int32),
        constant_query=nothing,
        constant_value=nothing.astype(np.int32),
    )


@st.composite
def tables(draw, states=4):
    """Partial tables all of whose states can be reached."""
    n = draw(st.integers(1, states))
    cell = st.integers(-1, n - 1)
    step = [[draw(cell) for _ in range(LABELS)] for _ in range(n)]
    for state in range(1, n):
        step[draw(st.integers(0, state - 1))][draw(st.integers(0, LABELS - 1))] = state
    output = [[draw(st.integers(-1, 1)) for _ in range(QUESTIONS)] for _ in range(n)]
    reached, ahead = {0}, [0]
    while ahead:
        for target in step[ahead.pop()]:
            if target >= 0 and target not in reached:
                reached.add(target)
                ahead.append(target)
    if len(reached) < n:
        return draw(tables(states=n - 1))
    return step, output


def renamed(step, output, names):
    """The same tables with state s called names[s]."""
    new_step, new_answer = [None] * len(step), [None] * len(step)
    for state, (row, told) in enumerate(zip(step, output, strict=True)):
        new_step[names[state]] = [names[x] if x >= 0 else -1 for x in row]
        new_answer[names[state]] = told
    return new_step, new_answer


def renamings(n):
    return [(0, *rest) for rest in permutations(range(1, n))]


@settings(deadline=None, max_examples=150)
@given(tables(), st.data())
def test_renamed_states_make_no_difference(drawn, data):
    names = data.draw(st.sampled_from(renamings(len(drawn[0]))))
    assert is_isomorphic(machine_of(*drawn), machine_of(*renamed(*drawn, names)))


@settings(deadline=None, max_examples=200)
@given(tables(states=3), tables(states=3))
def test_isomorphic_exactly_when_some_renaming_makes_the_tables_equal(one, other):
    expected = len(one[0]) == len(other[0]) and any(
        renamed(*one, names) == (other[0], other[1]) for names in renamings(len(one[0]))
    )
    assert is_isomorphic(machine_of(*one), machine_of(*other)) is expected


@settings(deadline=None, max_examples=200)
@given(tables(), st.data())
def test_one_changed_entry_is_noticed(drawn, data):
    step, output = drawn
    state = data.draw(st.integers(0, len(step) - 1))
    changed = [list(row) for row in output]
    place = data.draw(st.integers(0, QUESTIONS - 1))
    changed[state][place] = data.draw(
        st.sampled_from(sorted({-1, 0, 1, 2} - {output[state][place]}))
    )
    others = [renamed(step, output, names) for names in renamings(len(step))]
    expected = (step, changed) in others
    assert is_isomorphic(machine_of(step, output), machine_of(step, changed)) is expected


def test_two_states_that_behave_alike_are_not_one():
    """Every answer and every way agrees, but two states of one have a single partner."""
    doubled = machine_of([[1, 1], [0, 0]], [[0, 0], [0, 0]])
    other = machine_of([[1, 0], [1, 0]], [[0, 0], [0, 0]])
    assert not is_isomorphic(doubled, other)
    assert not is_isomorphic(other, doubled)
    merged = machine_of([[1, 2], [1, 1], [2, 2]], [[0, 0], [1, 1], [1, 1]])
    crossed = machine_of([[1, 1], [1, 2], [2, 2]], [[0, 0], [1, 1], [1, 1]])
    assert not is_isomorphic(merged, crossed)


def test_letters_that_are_merely_listed_make_no_difference():
    one = machine_of([[0]], [[1]], labels=("a",))
    more = machine_of([[0, -1]], [[1, -1]], labels=("a", "b"))
    assert is_isomorphic(one, more)
    assert is_isomorphic(more, one)
    assert not is_isomorphic(one, machine_of([[0, 0]], [[1, -1]], labels=("a", "b")))


def test_isomorphism_ignores_the_class():
    assert is_isomorphic(
        machine_of([[0]], [[1]], "a"), machine_of([[0]], [[1]], "a", TransitionMachine)
    )


# ---- minimality, by looking at all pairs -----------------------------------


def behaves_alike(machine, q, p):
    """No word of up to n² labels leads to a different answer, "unseen" being one."""
    met, ahead = {(q, p)}, [(q, p)]
    while ahead:
        q, p = ahead.pop()
        if (q is UNSEEN) != (p is UNSEEN):
            return False
        if q is UNSEEN:
            continue
        for query in range(QUESTIONS):
            if machine.output(q, query, "ask") != machine.output(p, query, "ask"):
                return False
        for name in machine.labels:
            pair = (machine.step(q, name), machine.step(p, name))
            if pair not in met:
                met.add(pair)
                ahead.append(pair)
    return True


@settings(deadline=None, max_examples=250)
@given(tables(states=5))
def test_minimal_exactly_when_no_two_states_behave_alike(drawn):
    machine = machine_of(*drawn)
    pairs = [(q, p) for p in range(machine.states) for q in range(p)]
    assert machine.is_minimal() is not any(behaves_alike(machine, q, p) for q, p in pairs)


def test_minimal_by_hand():
    ring = [[1, 0], [2, 1], [0, 2]]
    assert machine_of(ring, [[0, 0], [0, 0], [1, 0]]).is_minimal()
    assert not machine_of(ring, [[0, 0], [0, 0], [0, 0]]).is_minimal()
    assert machine_of([[-1, -1]], [[-1, -1]]).is_minimal()
    # Unseen is a behaviour of its own.
    half = machine_of([[1, -1], [1, -1]], [[0, -1], [0, 1]])
    assert half.is_minimal()


def test_states_that_differ_only_in_shares_are_not_one():
    """Two states answer a query with 0 or 1, the first of them more often with 0."""

    def varying(*counts):
        machine = machine_of([[1, -1], [0, -1]], [[0, -1], [0, -1]])
        columns = np.array([(state, 0, value) for state in (0, 1) for value in (0, 1)]).T
        state, query, value = columns
        output_counts = OutputCounts(
            state.astype(np.int32), query, value.astype(np.int32), np.array(counts)
        )
        return replace(machine, output_counts=output_counts)

    assert varying(9, 1, 6, 4).is_minimal()
    assert not varying(9, 1, 18, 2).is_minimal()
    assert is_isomorphic(varying(9, 1, 6, 4), varying(8, 2, 7, 3))


def test_events_are_the_labels_that_change_a_state():
    assert str(LabelClasses(House().machines())).splitlines() == [
        "transition: 1 event, 3 labels change nothing",
        "  key: state 0 → 1",
        "reward: 1 event, 3 labels change nothing",
        "  toilet: state 0 → 1",
    ]
