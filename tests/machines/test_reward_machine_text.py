from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resolvent.errors import ModelError, ResolventError
from resolvent.machines import Edge, EdgeRewardMachine, Guard, read_reward_machine
from resolvent.machines.io.edge_rewards import ENDED, encode_reward_machine

OFFICE = """\
0      # initial state
[2]    # terminal states
(0,0,'!f&!n',ConstantRewardFunction(0))
(0,1,'f&!g&!n',ConstantRewardFunction(0))
( 0, 2, "f & g & !n" , ConstantRewardFunction( 1.5e0 ) ) # coffee in the office

# a line for people
(1,1,'!g&!n',ConstantRewardFunction(-0.25))
(1,2,'g&!n',ConstantRewardFunction(1))
(2,2,'True',ConstantRewardFunction(7))
"""


@pytest.fixture
def read(tmp_path):
    def read(text):
        path = tmp_path / "rm.txt"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_reward_machine(path)

    return read


def every_label(names):
    return [frozenset(some) for size in range(len(names) + 1) for some in combinations(names, size)]


def run_as_python(text):
    """Read a file as the format's own code does: as Python, the first guard that holds counting."""
    lines = text.splitlines()
    constants = {"ConstantRewardFunction": float}
    initial, terminal, *edges = (eval(line, constants) for line in lines)  # noqa: S307

    def literal(text, label):
        return not literal(text[1:], label) if text[0] == "!" else text == "True" or text in label

    def step(state, label):
        for source, target, formula, reward in edges:
            terms = (term.split("&") for term in formula.split("|"))
            if source == state and any(all(literal(one, label) for one in term) for term in terms):
                return target, reward
        return ENDED, 0.0

    return initial, terminal, step


def test_an_office_by_hand(read):
    machine = read(OFFICE)
    assert (machine.initial, machine.terminal, machine.states) == (0, {2}, {0, 1, 2})
    assert machine.propositions == {"f", "g", "n"}
    assert machine.step(0, []) == (0, 0.0)
    assert machine.step(0, "f") == (1, 0.0)
    assert machine.step(0, ["f", "g"]) == (2, 1.5)
    assert machine.step(1, ["f"]) == (1, -0.25)
    assert machine.step(1, ["g", "elsewhere"]) == (2, 1.0)
    assert machine.step(1, ["g", "n"]) == (ENDED, 0.0)  # the plant: no edge, so it is over
    assert machine.has_ended(ENDED)
    assert machine.has_ended(2)
    assert not machine.has_ended(0)


def test_several_edges_of_a_pair_of_states(read):
    machine = read(
        "0\n[]\n(0,0,'a',ConstantRewardFunction(1))\n(0,0,'b&!a',ConstantRewardFunction(2))\n"
    )
    assert machine.step(0, "a") == (0, 1.0)
    assert machine.step(0, "b") == (0, 2.0)


def test_guards_that_overlap_may_agree(read):
    lines = ("(0,1,'a',ConstantRewardFunction(1))", "(0,1,'b',ConstantRewardFunction(1))")
    assert read("\n".join(["0", "[1]", *lines])).step(0, ["a", "b"]) == (1, 1.0)


def test_a_file_of_the_earlier_code_has_no_list_of_terminal_states(read):
    machine = read(
        "0\n(0,0,'!a',ConstantRewardFunction(0))\n(0,1,'a',ConstantRewardFunction(1))\n"
        "(1,1,'True',ConstantRewardFunction(0))\n(0,2,'a&!a',ConstantRewardFunction(0))\n"
    )
    assert machine.terminal == {1, 2}
    assert machine.step(0, "a") == (1, 1.0)


def test_windows_line_ends_and_a_byte_order_mark(read):
    assert read(b"\xef\xbb\xbf" + OFFICE.replace("\n", "\r\n").encode()) == read(OFFICE)


# What cannot be read


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: the file is empty; the first line is the initial state"),
        ("\n# nothing\n", "line 1: the file is empty"),
        ("zero\n[]", "line 1: 'zero' cannot be read: the first line is the initial state"),
        ("0 1\n[]", "line 1: '0 1' cannot be read"),
        ("0.5\n[]", "line 1: '0.5' cannot be read"),
        ("0\n[1", "line 2: '[1' cannot be read: the second line lists the terminal states"),
        ("0\n[1 2]", "line 2: '[1 2]' cannot be read"),
        ("0\n[,]", "line 2: '[,]' cannot be read"),
        ("0\n[]", "line 2: no edge comes after it: an edge is written (0,1,'coffee&!plant'"),
        ("0\n1", "line 2: '1' cannot be read: an edge is written (0,1,'coffee&!plant'"),
        ("0\n[]\n(0,1,a,{c}(1))", "line 3: '(0,1,a,ConstantRewardFunction(1))' cannot be read"),
        ("0\n[]\n(0,1,'a\\\\',{c}(1))", "line 3: "),
        ("0\n[]\n(0,1,'a)", 'line 3: "(0,1,\'a)" cannot be read'),
        ("0\n[]\n\n(0,1,'a&',{c}(1))", "line 4: the formula 'a&' lacks a proposition"),
        ("0\n[]\n(0,1,'a',{c}())", "line 3: the reward is '': give a finite number"),
        ("0\n[]\n(0,1,'a',{c}(one))", "line 3: the reward is 'one': give a finite number"),
        ("0\n[]\n(0,1,'a',{c}(1e999))", "line 3: the reward is '1e999': give a finite number"),
        ("0\n[]\n(0,1,'a',{c}(1)),", "line 3: "),
        ("0\n[]\n(0,1,'a')", "line 3: "),
        ("0\n[]\n(0,1,'a',RewardControl())", "line 3: the reward is RewardControl(…)"),
        ("0\n[]\n(9999999999,1,'a',{c}(1))", "line 3: "),
        ("0\n[]\n(-1,0,'a',{c}(1))", "line 3: "),
        (b"0\n[\xff]", " is not UTF-8 text"),
    ],
)
def test_what_is_wrong_and_where(read, tmp_path, text, message):
    if isinstance(text, str):
        text = text.replace("{c}", "ConstantRewardFunction")
    with pytest.raises(ModelError) as caught:
        read(text)
    said = str(caught.value)
    assert said.startswith(str(tmp_path / "rm.txt"))
    assert message in said


def test_edges_that_disagree_are_both_named(read):
    with pytest.raises(ModelError) as caught:
        read(
            "0\n[]\n(0,1,'a|c',{c}(1))\n(1,0,'a',{c}(2))\n(0,1,'b&!a',{c}(2))".replace(
                "{c}", "ConstantRewardFunction"
            )
        )
    assert "line 3 and line 5 both hold in state 0 for the label 'b & c'" in str(caught.value)
    assert "make one formula exclude the other" in str(caught.value)


def test_nothing_in_a_file_is_run(read, tmp_path):
    trap = tmp_path / "trap"
    call = f"__import__('pathlib').Path({str(trap)!r}).touch()"
    for text in (call, f"0\n{call}", f"0\n[{call}]", f"0\n[]\n{call}", f"0\n[]\n(0,1,'a',{call})"):
        with pytest.raises(ModelError):
            read(text)
    assert not trap.exists()


def test_large_files_are_refused(read, monkeypatch):
    monkeypatch.setattr("resolvent.machines.io.edge_rewards._MAX_BYTES", 100)
    with pytest.raises(ModelError, match="larger than"):
        read(OFFICE)
    monkeypatch.undo()
    with pytest.raises(ModelError, match="10,001 terms over 10,001 propositions, more than"):
        read(f"0\n[]\n(0,0,'{'|'.join(f'a{n}' for n in range(10_001))}',ConstantRewardFunction(0))")


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(ModelError, match=r"no\.txt does not exist"):
        read_reward_machine(tmp_path / "no.txt")
    with pytest.raises(ModelError, match="cannot be read: is a directory"):
        read_reward_machine(tmp_path)


# Writing


@st.composite
def tables(draw):
    """(names, {(state, label): (target, reward)}): partial, over up to three propositions."""
    names = draw(
        st.sampled_from([("a",), ("a", "b"), ("key", "hall door", "it's"), ('x"', "é", "#")])
    )
    targets = st.sampled_from([0, 1, 2, 9])
    rewards = st.sampled_from([0.0, 1.0, -2.0, 1 / 3, 1e300, 5e-324])
    keys = st.sampled_from(list(product((0, 1, 2), every_label(names))))
    return names, draw(st.dictionaries(keys, st.tuples(targets, rewards), min_size=1))


def machine_of(names, table):
    edges = (
        Edge(state, target, Guard.exactly([label], names), reward)
        for (state, label), (target, reward) in table.items()
    )
    return EdgeRewardMachine(0, frozenset({9}), tuple(edges))


@given(tables())
@settings(deadline=None)
def test_what_is_written_comes_back(tmp_path_factory, drawn):
    names, table = drawn
    machine = machine_of(names, table)
    path = tmp_path_factory.mktemp("machines") / "rm.txt"
    machine.save(path)
    back = read_reward_machine(path)
    for state, label in product((0, 1, 2), every_label(names)):
        if state in back.states:
            assert back.step(state, label) == table.get((state, label), (ENDED, 0.0))
    assert back == machine
    assert encode_reward_machine(back) == path.read_bytes()


@given(tables())
def test_what_is_written_is_what_the_formats_own_code_reads(drawn):
    names, table = drawn
    initial, terminal, step = run_as_python(
        encode_reward_machine(machine_of(names, table)).decode()
    )
    assert (initial, terminal) == (0, [9])
    for state, label in product((0, 1, 2), every_label(names)):
        assert step(state, label) == table.get((state, label), (ENDED, 0.0))


def test_a_file_by_hand(tmp_path):
    edges = (
        Edge(0, 0, Guard.exactly([frozenset(), frozenset({"mail"})], ["coffee", "mail"]), 0),
        Edge(0, 1, Guard.parse("coffee"), 1.0),
        Edge(1, 1, Guard.parse("True"), -0.5),
    )
    path = tmp_path / "rm.txt"
    EdgeRewardMachine(0, frozenset(), edges).save(path)
    assert path.read_text() == (
        "0  # initial state\n"
        "[]  # terminal states\n"
        "(0,0,'!coffee&!mail|!coffee&mail',ConstantRewardFunction(0))\n"
        "(0,1,'coffee',ConstantRewardFunction(1))\n"
        "(1,1,'True',ConstantRewardFunction(-0.5))\n"
    )


@pytest.mark.parametrize("names", [["a&b"], ["True"], ["a'b", 'a"b']])
def test_propositions_that_cannot_be_written_leave_no_file(tmp_path, names):
    machine = EdgeRewardMachine(0, frozenset(), (Edge(0, 0, Guard.exactly([set()], names), 0),))
    with pytest.raises(ModelError, match="rename"):
        machine.save(tmp_path / "rm.txt")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there(read, tmp_path):
    with pytest.raises(ResolventError, match="cannot write"):
        read(OFFICE).save(tmp_path / "no" / "rm.txt")
