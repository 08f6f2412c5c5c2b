import re

import gymnasium as gym
import numpy as np
import pyarrow as pa
import pytest

import resolvent as rs
from noisy_worlds import loaded_die
from resolvent._util.text import visible
from resolvent.machines import TransitionMachine
from resolvent.traces import Vocabulary
from resolvent.viz.dot import edges, to_dot, to_mermaid
from resolvent.viz.text import short_name, table, to_text
from vending_machine import log

HOSTILE = [
    *('say "hi"', "two\nlines", "back\\slash", "a --> b", "x];", "%% no", ": ;#", "\\", "<b>&"),
    "\x1b[31mred\u202e",
]


def machine_with(names, trivial=()):
    """Two states; each label leads from 0 to 1, the first one back as well."""
    labels = Vocabulary(frozenset({name}) for name in names)
    step = np.array([[1] * len(labels), [0] + [-1] * (len(labels) - 1)], np.int32)
    for code in trivial:
        step[:, code] = [0, 1]
    return TransitionMachine(
        labels=labels,
        observations=Vocabulary(["hall"]),
        actions=Vocabulary(["go", "look"]),
        outputs=Vocabulary(["hall", "yard"]),
        transitions=step,
        trivial=trivial,
        output_state=np.array([0, 1], np.int32),
        output_query=np.array([0, 0], np.int64),
        output_value=np.array([0, 1], np.int32),
        constant_query=np.array([1], np.int64),
        constant_value=np.array([0], np.int32),
    )


def test_text_by_hand():
    assert to_text(machine_with(["bell", "key", "rain"], trivial=(2,))) == (
        "TransitionMachine: 2 states, predicts the next observation\n"
        "\n"
        "state  reached after  bell  key\n"
        "-----  -------------  ----  ---\n"
        "0      start          1     1\n"
        "1      bell           0     ·\n"
        "\n"
        "labels that change nothing: rain\n"
        "\n"
        "observation  action  state 0  state 1\n"
        "-----------  ------  -------  -------\n"
        "hall         go      hall     yard\n"
        "\n"
        "the same in every state: 1 output\n"
    )


def test_text_shows_no_more_outputs_than_asked():
    text = to_text(machine_with(["bell"]), most_outputs=0)
    assert "… and 1 more that depend on the state" in text
    assert "observation  action" not in text
    assert "yard" not in text


def test_dot_by_hand():
    assert to_dot(machine_with(["bell", "key", "rain"], trivial=(2,))) == (
        "digraph transition_machine {\n"
        "  rankdir=LR;\n"
        "  node [shape=circle];\n"
        '  start [shape=point, label=""];\n'
        "  start -> s0;\n"
        '  s0 [label="0", tooltip="start"];\n'
        '  s1 [label="1", tooltip="after bell"];\n'
        '  s0 -> s1 [label="bell, key"];\n'
        '  s1 -> s0 [label="bell"];\n'
        "}\n"
    )


def test_mermaid_by_hand():
    assert to_mermaid(machine_with(["bell", "key", "rain"], trivial=(2,))) == (
        "stateDiagram-v2\n"
        "  direction LR\n"
        "  [*] --> s0\n"
        '  state "0" as s0\n'
        '  state "1" as s1\n'
        "  s0 --> s1: bell, key\n"
        "  s1 --> s0: bell\n"
    )


def dot_strings(text):
    """The quoted strings of a DOT file, read by its grammar: a backslash guards the next letter."""
    return re.findall(r'"((?:[^"\\]|\\.)*)"', text, re.DOTALL)


@pytest.mark.parametrize("name", HOSTILE)
def test_dot_quotes_hostile_labels(name):
    text = to_dot(machine_with([name]))
    assert len(text.splitlines()) == 10  # one line a statement
    for line in text.splitlines():
        bare = re.sub(r'"(?:[^"\\]|\\.)*"', '""', line)
        assert re.fullmatch(r'[\w \[\]=;,{}>"-]*', bare), bare
    meant = visible(name).replace("\\", "\\\\").replace('"', '\\"')
    assert meant in dot_strings(text)


@pytest.mark.parametrize("name", HOSTILE)
def test_mermaid_keeps_its_syntax_out_of_hostile_labels(name):
    text = to_mermaid(machine_with([name]))
    lines = text.splitlines()
    assert len(lines) == 7
    for line in lines[5:]:
        arrow, _, label = line.partition(": ")
        assert re.fullmatch(r"  s\d --> s\d", arrow)
        assert "-->" not in label
        assert re.fullmatch(r"(?:[\w ,.()-]|#\d+;)*", label), label
        assert re.sub(r"#(\d+);", lambda code: chr(int(code[1])), label) == visible(name)


@pytest.mark.parametrize("name", HOSTILE)
def test_text_survives_hostile_labels(name):
    text = to_text(machine_with([name]))
    assert "2 states" in text
    assert visible(name) in text
    assert all(line.isprintable() for line in text.split("\n"))


def test_parallel_edges_are_joined_and_trivial_ones_left_out():
    joined = edges(machine_with(["bell", "key", "rain"], trivial=(2,)))
    assert [edge[:3] for edge in joined] == [(0, 1, ("bell", "key")), (1, 0, ("bell",))]


def test_labels_of_several_propositions_and_none():
    machine = machine_with(["a"])
    labels = Vocabulary([frozenset(), frozenset({"b", "a"})])
    from dataclasses import replace

    both = replace(machine, labels=labels, transitions=np.array([[1, 0], [1, 1]], np.int32))
    assert [edge[:3] for edge in edges(both)] == [
        (0, 0, ("a & b",)),
        (0, 1, ("no event",)),
        (1, 1, ("no event", "a & b")),
    ]


def test_tables_are_as_wide_as_what_they_hold():
    assert table(["a", "long"], [["xxx", "y"]]) == "a    long\n---  ----\nxxx  y"
    assert table(["a"], []) == "a\n-"


def test_answers_that_vary_are_shown_with_their_share():
    text = to_text(loaded_die(6.0, 1.0, 1.0, 1.0).reward)
    assert text.endswith(
        "observation  action  state 0\n"
        "-----------  ------  -------\n"
        "0            roll    1.0 75%\n"
        "\n"
        "noise: 25% of all outputs differ from the most frequent one\n"
    )
    assert "%" not in to_text(loaded_die(1.0, 1.0).reward)


def machine_of_log(sessions):
    traces = rs.read_log(
        pa.Table.from_pylist(log(sessions, seed=0)),
        episode="session",
        order="time",
        input="event",
        output="response",
    )
    return rs.infer(traces).machines["response"]


def test_every_move_and_answer_is_told_once():
    machine = machine_of_log(400)
    assert machine.states == 15
    title, empty, *lines = to_text(machine).splitlines()
    assert title.startswith("Response Machine: 15 states, predicts the response")
    assert empty == ""
    data, state = {}, None
    for line in lines:
        if not line.startswith(" "):
            state = int(re.match(r"state (\d+), (after|the start)", line)[1])
            continue
        where, rest = re.match(r"  (stays|→ \d+) +(.*)", line).groups()
        target = state if where == "stays" else int(where[2:])
        for part in rest.split("; "):
            names, answer = part.split(" / ")
            for name in names.split(", "):
                assert (state, name) not in data
                data[state, name] = (target, answer)
    assert data == {
        (state, event): (
            machine.step(state, {event}),
            machine.output(state, "nothing", event),
        )
        for state in range(15)
        for event in machine.actions
    }


def test_what_was_never_given_is_left_out():
    machine = machine_of_log(8)
    assert machine.states > 13
    lines = to_text(machine).splitlines()
    unseen = next(
        (state, event)
        for state in range(machine.states)
        for event in machine.actions
        if machine.output(state, "nothing", event) is rs.UNSEEN
        and machine.step(state, {event}) is rs.UNSEEN
    )
    start = next(n for n, line in enumerate(lines) if line.startswith(f"state {unseen[0]}, "))
    own = []
    for line in lines[start + 1 :]:
        if not line.startswith(" "):
            break
        own.append(line)
    assert unseen[1] not in " ".join(own)


def test_machines_of_worlds_keep_their_tables():
    of_log = machine_of_log(400)
    assert "reached after" not in to_text(of_log)
    house = rs.infer(rs.collect(gym.make("resolvent/House-v0"), episodes=50))
    assert "reached after" in to_text(house.machines.transition)


def test_short_names_of_machines():
    assert [*map(short_name, ("transition", "reward", "cost"))] == ["TM", "RM", "cost"]
