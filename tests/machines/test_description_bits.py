"""How many bits a machine takes, beside coding symbol after symbol in plain Python."""

from math import factorial, log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import resolvent as rs
from resolvent.machines.build import Vocabularies, machine_of_tables
from resolvent.machines.likelihood import description_bits
from resolvent.traces import Vocabulary


def machine(table, answers=(), outputs=2):
    """A machine of a table and of answers {(state, query): output}."""
    rows = [(state, query, output) for (state, query), output in sorted(dict(answers).items())]
    columns = np.array(rows, np.int64).reshape(-1, 3).T
    made, _ = machine_of_tables(
        rs.TransitionMachine,
        Vocabularies(
            Vocabulary(frozenset({f"l{number}"}) for number in range(len(table[0]))),
            Vocabulary(["here"]),
            Vocabulary([f"a{number}" for number in range(9)]),
            Vocabulary(range(outputs)),
        ),
        np.array(table, np.int32),
        (columns[0], columns[1], columns[2].astype(np.int32)),
    )
    return made


def in_turn(symbols, of):
    """Bits of symbols, each by how often it came before, and a little that is taken for granted."""
    prior, seen, bits = min(0.5, 1 / of), [], 0.0
    for symbol in symbols:
        share = (seen.count(symbol) + prior) / (len(seen) + prior * of)
        bits -= log2(share)
        seen.append(symbol)
    return bits


def by(contexts, symbols, of):
    return sum(
        in_turn([one for at, one in zip(contexts, symbols, strict=True) if at == context], of)
        for context in set(contexts)
    )


def mixed(*ways):
    return -log2(sum(2.0**-way for way in ways) / len(ways))


def expected(table, answers):
    """The code as docs/decisions/inference.md has it, one symbol after the other."""
    states = len(table)
    known = [
        (state, label, target)
        for state, row in enumerate(table)
        for label, target in enumerate(row)
        if target >= 0
    ]
    bits = 2 * log2(states) + 1
    if states > 1:
        loops = [target == state for state, _, target in known]
        bits += mixed(
            by([one[0] for one in known], loops, 2), by([one[1] for one in known], loops, 2)
        )
        moving = [one for one in known if one[0] != one[2]]
        targets = [one[2] for one in moving]
        bits += mixed(
            by([0] * len(moving), targets, states),
            by([one[1] for one in moving], targets, states),
            by([one[0] for one in moving], targets, states),
        )
        bits -= log2(factorial(states - 1))
    queries = {query for (_, query) in answers}
    varying = [
        one
        for one in queries
        if len({output for (_, query), output in answers.items() if query == one}) > 1
    ]
    kept = {key: output for key, output in answers.items() if key[1] in varying}
    return bits + by([key[1] for key in kept], list(kept.values()), len(set(kept.values())) or 1)


@st.composite
def tables(draw):
    """Tables in which every state is reached from the first."""
    states, labels = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    targets = st.integers(-1, states - 1)
    table = [[draw(targets) for _ in range(labels)] for _ in range(states)]
    for state in range(1, states):
        table[state - 1][0] = state
    keys = st.tuples(st.integers(0, states - 1), st.integers(0, 3))
    return table, draw(st.dictionaries(keys, st.integers(0, 2), max_size=10))


@settings(deadline=None)
@given(tables())
def test_as_if_each_symbol_was_written_after_the_other(drawn):
    table, answers = drawn
    bits = description_bits(machine(table, answers, outputs=3))
    assert bits == pytest.approx(expected(table, answers), abs=1e-6)


def test_one_state_takes_a_bit_and_its_outputs_nothing():
    assert description_bits(machine([[0, 0]], {(0, 0): 1, (0, 1): 0})) == 1.0


def test_how_states_are_numbered_makes_no_difference():
    one = machine([[1, 2], [1, 0], [2, 2]], {(0, 0): 1, (1, 0): 0, (2, 0): 0})
    other = machine([[2, 1], [1, 1], [2, 0]], {(0, 0): 1, (2, 0): 0, (1, 0): 0})
    assert description_bits(one) == pytest.approx(description_bits(other))


def sink(states, labels, where):
    """All states but the first lead to the next by label 0, and by all others as `where` says."""
    return [
        [min(state + 1, states - 1), *(where(state, label) for label in range(1, labels))]
        for state in range(states)
    ]


def test_loops_sinks_and_patterns_are_cheap():
    random = np.random.default_rng(0)
    looping, falling, resetting, at_random = (
        description_bits(machine(sink(12, 8, where)))
        for where in (
            lambda state, label: state,
            lambda state, label: 11,
            lambda state, label: 0,
            lambda state, label: int(random.integers(12)),
        )
    )
    assert max(looping, falling, resetting) < 0.55 * at_random


def test_more_states_take_more_bits():
    random = np.random.default_rng(1)
    bits = [
        description_bits(machine(sink(size, 4, lambda state, label: int(random.integers(size)))))  # noqa: B023
        for size in (2, 4, 8, 16, 32)
    ]
    assert bits == sorted(bits)
