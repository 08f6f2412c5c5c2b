import json
import re
from random import Random
from urllib.parse import unquote

import numpy as np
import pytest
from aalpy.utils import load_automaton_from_file
from hypothesis import given, settings
from hypothesis import strategies as st

import resolvent as rs
from resolvent.machines import UNSEEN, TransitionMachine
from resolvent.machines.io.mealy_dot import label_input, query_input, symbol_name
from resolvent.traces import Vocabulary
from resolvent.traces.symbols import label_order, symbol_order
from strategies import alphabets, labels, world_traces

HOSTILE = [
    'say "hi"',
    "two\nlines",
    "back\\slash",
    "a/b",
    "a -> b",
    "__start0 ->",
    " x ",
    "{x}",
    "é",
]


def two_states(names=("key",), observation="hall", outputs=("hall", "yard")):
    """Each label leads from 0 to 1, the first one back as well; "go" depends on the state."""
    known = Vocabulary(frozenset({name}) for name in names)
    return TransitionMachine(
        labels=known,
        observations=Vocabulary([observation]),
        actions=Vocabulary(["go", "look", "pray"]),
        outputs=Vocabulary(outputs),
        transitions=np.array([[1] * len(known), [0] + [-1] * (len(known) - 1)], np.int32),
        trivial=(),
        output_state=np.array([0, 1, 1], np.int32),
        output_query=np.array([0, 0, 2], np.int64),
        output_value=np.array([0, 1, 0], np.int32),
        constant_query=np.array([1], np.int64),
        constant_value=np.array([0], np.int32),
    )


def test_by_hand():
    assert two_states(["bell", "key"]).to_mealy_dot() == (
        "digraph transition_machine {\n"
        '  s0 [label="s0"];\n'
        '  s1 [label="s1"];\n'
        '  s0 -> s1 [label="label:bell/ok"];\n'
        '  s0 -> s1 [label="label:key/ok"];\n'
        '  s0 -> s0 [label="ask:hall:go/hall"];\n'
        '  s0 -> s0 [label="ask:hall:look/hall"];\n'
        '  s1 -> s0 [label="label:bell/ok"];\n'
        '  s1 -> s1 [label="ask:hall:go/yard"];\n'
        '  s1 -> s1 [label="ask:hall:look/hall"];\n'
        '  s1 -> s1 [label="ask:hall:pray/hall"];\n'
        '  __start0 [label="", shape=none];\n'
        "  __start0 -> s0;\n"
        "}\n"
    )


def test_a_complete_machine_marks_unseen_entries():
    added = set(two_states(["bell", "key"]).to_mealy_dot(complete=True).splitlines())
    added -= set(two_states(["bell", "key"]).to_mealy_dot().splitlines())
    assert added == {
        '  unseen [label="unseen"];',
        '  s0 -> s0 [label="ask:hall:pray/unseen"];',
        '  s1 -> unseen [label="label:key/unseen"];',
        '  unseen -> unseen [label="label:bell/unseen"];',
        '  unseen -> unseen [label="label:key/unseen"];',
        '  unseen -> unseen [label="ask:hall:go/unseen"];',
        '  unseen -> unseen [label="ask:hall:look/hall"];',
        '  unseen -> unseen [label="ask:hall:pray/unseen"];',
    }


# What the readers make of it


def read_by_aalpy(machine, folder, **options):
    path = folder / "machine.dot"
    path.write_text(machine.to_mealy_dot(**options), encoding="ascii")
    return load_automaton_from_file(path, "mealy")


def split_by_learnlib(text):
    """(source, target, input, output) as AutomataLib's DOT parser has them.

    A quoted string ends at the first quote without a backslash, a label must have
    two parts around its slashes, and both are trimmed.
    """
    edges = []
    for source, target, label in re.findall(r'(\w+) -> (\w+) \[label="((?:\\"|[^"])*)"', text):
        one, other = label.split("/")
        edges.append((source, target, one.strip(), other.strip()))
    return edges


def value_of(name):
    """The symbol behind a name, as the module's docstring says to find it."""
    text = unquote(name)
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if not isinstance(value, list) else as_tuple(value)


def as_tuple(value):
    return tuple(map(as_tuple, value)) if isinstance(value, list) else value


def inputs_of(machine):
    """Each input's name and what it does to our machine: (state) → (state, answer)."""
    steps = {}
    for label in machine.labels:

        def read(state, label=label):
            target = machine.step(state, label)
            return target, UNSEEN if target is UNSEEN else "read"

        steps[label_input(label)] = read
    for answer in machine.entries():

        def ask(state, query=(answer.observation, answer.action)):
            return state, machine.output(state, *query)

        steps[query_input(answer.observation, answer.action)] = ask
    return steps


def check_random_words(machine, automaton, random, complete):
    steps = inputs_of(machine)
    known = set(automaton.get_input_alphabet())
    assert known == set(steps) if complete else known <= set(steps)
    for _ in range(5):
        automaton.reset_to_initial()
        state = 0
        for name in random.choices(sorted(steps), k=20):
            following, answer = steps[name](state)
            if answer is UNSEEN and not complete:
                assert name not in automaton.current_state.transitions
                continue
            given = automaton.step(name)
            if answer is UNSEEN:
                assert given == "unseen"
            elif name.startswith("label:"):
                assert given == "ok"
            else:
                # AALpy itself makes ints of digits.
                found = value_of(str(given))
                assert (found, type(found)) == (answer, type(answer))
            state = following


@pytest.mark.slow
@given(traces=world_traces(), seed=st.integers(0, 99), complete=st.booleans())
@settings(deadline=None, max_examples=60)
def test_aalpy_runs_what_our_machines_run(tmp_path_factory, traces, seed, complete):
    pair = rs.infer(traces).machines
    folder = tmp_path_factory.mktemp("dot")
    for machine in (pair.transition, pair.reward):
        automaton = read_by_aalpy(machine, folder, complete=complete)
        assert complete <= automaton.is_input_complete()
        check_random_words(machine, automaton, Random(seed), complete)


def machine_behind(automaton, kind):
    """Our machine, made anew from what AALpy read; every answer is kept by state."""
    numbers = {state.state_id: number for number, state in enumerate(automaton.states)}
    moves, answers = {}, {}
    for state in automaton.states:
        for name, target in state.transitions.items():
            what, *parts = name.split(":")
            if what == "label":
                label = frozenset(unquote(part) for part in parts[0].split("&") if part)
                moves[numbers[state.state_id], label] = numbers[target.state_id]
            else:
                assert target is state
                query = tuple(map(value_of, parts))
                answers[numbers[state.state_id], query] = value_of(str(state.output_fun[name]))
    known = Vocabulary(sorted({label for _, label in moves}, key=label_order))
    seen = Vocabulary(sorted({query[0] for _, query in answers}, key=symbol_order))
    done = Vocabulary(sorted({query[1] for _, query in answers}, key=symbol_order))
    outputs = Vocabulary(sorted(set(answers.values()), key=symbol_order))
    step = np.full((len(numbers), len(known)), -1, np.int32)
    for (source, label), target in moves.items():
        step[source, known.code(label)] = target
    rows = sorted(
        (state, seen.code(o) * len(done) + done.code(a), outputs.code(value))
        for (state, (o, a)), value in answers.items()
    )
    state, query, value = np.array(rows, np.int64).T
    nothing = np.empty(0, np.int64)
    return kind(
        labels=known,
        observations=seen,
        actions=done,
        outputs=outputs,
        transitions=step,
        trivial=(),
        output_state=state.astype(np.int32),
        output_query=query,
        output_value=value.astype(np.int32),
        constant_query=nothing,
        constant_value=nothing.astype(np.int32),
    )


@given(traces=world_traces())
@settings(deadline=None, max_examples=60)
def test_a_machine_read_back_is_the_same_machine(tmp_path_factory, traces):
    pair = rs.infer(traces).machines
    for machine in (pair.transition, pair.reward):
        automaton = read_by_aalpy(machine, tmp_path_factory.mktemp("dot"))
        assert rs.is_isomorphic(machine_behind(automaton, type(machine)), machine)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_pass_both_readers(tmp_path, name):
    machine = two_states(["bell", name], observation=name, outputs=("hall", name))
    automaton = read_by_aalpy(machine, tmp_path, complete=True)
    check_random_words(machine, automaton, Random(0), complete=True)
    edges = split_by_learnlib(machine.to_mealy_dot(complete=True))
    assert len(edges) == 15
    assert {
        (source.state_id, target.state_id, one, str(source.output_fun[one]))
        for source in automaton.states
        for one, target in source.transitions.items()
    } == set(edges)


@given(first=alphabets, second=alphabets)
def test_symbols_have_names_of_their_own(first, second):
    kinds = {(value, repr(value)) for value in (*first, *second)}
    names = {symbol_name(value) for value, _ in kinds}
    assert len(names) == len({shown for _, shown in kinds})
    for value, shown in kinds:
        assert re.fullmatch(r"[\w.~%,\[\]-]+", symbol_name(value), re.ASCII)
        assert repr(value_of(symbol_name(value))) == shown


@pytest.mark.parametrize(
    "text", ["", "ok", "unseen", "7", "true", "null", "NaN", "[1]", '"x"', " 1"]
)
def test_strings_that_would_be_read_as_something_else(text):
    assert symbol_name(text) not in ("", "ok", "unseen")
    assert value_of(symbol_name(text)) == text


@given(st.sets(labels))
def test_labels_have_names_of_their_own(some):
    assert len({label_input(label) for label in some}) == len(some)
    for label in some:
        parts = label_input(label).removeprefix("label:").split("&")
        assert {unquote(part) for part in parts if part} == label
