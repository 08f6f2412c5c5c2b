"""Model files: written whole, and refused in one line when they are not what they should be."""

import json

import pytest

import resolvent as rs
from resolvent.machines.storage import decode, encode

TRACES = rs.TraceSet(
    [
        rs.Trace(
            ["hall", "hall", "hall", "room"],
            [None, None, "key", None],
            ["push", "look", "push"],
            [0, 0, 1],
            True,
        ),
        rs.Trace(["hall", "hall", "hall"], [None, "bell", None], ["push", "push"], [0, 0.5]),
    ]
)
PAIR = rs.infer(TRACES).machines
DATA = encode(PAIR)


def edited(path, value):
    """The file with one entry changed; None takes it out."""
    content = json.loads(DATA)
    *way, last = path
    place = content
    for key in way:
        place = place[key]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return json.dumps(content).encode()


def refused(data, message):
    with pytest.raises(rs.ModelError, match=message) as caught:
        decode(data, "door.json")
    assert str(caught.value).startswith("door.json ")
    assert "\n" not in str(caught.value)


def test_the_file_is_json_with_a_format_and_a_version():
    content = json.loads(DATA)
    assert (content["format"], content["version"]) == ("resolvent-machines", 1)
    assert content["timing"] == "current"
    assert content["transition"]["states"] == 2
    assert content["transition"]["labels"] == [[], ["bell"], ["key"]]
    assert content["transition"]["trivial"] == [0]
    # hall = 0, look = 0, push = 1: pushing depends on the state, looking does not.
    assert content["transition"]["by_state"] == [[0, 0, 1, 0], [1, 0, 1, 1]]
    assert content["transition"]["constant"] == [[0, 0, 0]]
    assert content["transition"]["transitions"] == [[0, 0, 0], [0, 1, 0], [0, 2, 1], [1, 0, 1]]
    assert content["provenance"]["traces_sha256"] == TRACES.digest


def test_nothing_depends_on_the_clock():
    assert encode(rs.infer(TRACES).machines) == DATA


def test_a_pair_without_support_or_provenance_comes_back():
    from dataclasses import replace

    bare = replace(
        PAIR,
        transition=replace(PAIR.transition, support=None),
        reward=replace(PAIR.reward, support=None),
        provenance=None,
    )
    again = decode(encode(bare))
    assert again == bare
    assert again.transition.support is None
    assert encode(again) == encode(bare)


@pytest.mark.parametrize("data", [b"", b" \n\t"])
def test_empty_files(data):
    refused(data, "is empty")


def test_files_cut_short_anywhere():
    for length in range(1, len(DATA) - 2, 50):
        refused(DATA[:length], "not valid JSON, perhaps it was cut short")
    refused(DATA[: len(DATA) - 2], "cut short")


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xfe",
        b'{"format": "\xff"}',
        b'{"fo\xffrmat": 1}',
        DATA.replace(b"hall", b"h\xffll"),
        DATA.replace(b'"key"', b'"k\xc3y"'),
        bytes(range(256)),
        DATA.decode().encode("utf-16"),
        b"\x00" * 100,
        b"[" * 100_000,
        b'{"a":' * 100_000,
        DATA.replace(
            b'"observations": [', b'"observations": [' + b"[" * 50_000 + b"]" * 50_000 + b","
        ),
    ],
    ids=[
        "ff",
        "value",
        "name",
        "symbol",
        "label",
        "bytes",
        "utf-16",
        "nul",
        "deep",
        "deeper",
        "in",
    ],
)
def test_bytes_that_are_no_text_or_no_json(data):
    refused(data, "not valid JSON|is damaged|is not a machine file")


@pytest.mark.parametrize("data", [b"[]", b"3", b"null", b'"text"', b"{}", b'{"format": 3}'])
def test_json_of_another_kind(data):
    refused(data, 'is not a machine file: it lacks "format": "resolvent-machines"')


def test_another_format_or_version():
    refused(edited(["format"], "aalpy"), "is not a machine file")
    refused(edited(["version"], 2), "has format version 2, this Resolvent reads version 1")
    refused(edited(["version"], 0), "has format version 0")


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["transition", "states"], 0, "no state"),
        (["transition", "states"], -1, "no state"),
        (["transition", "states"], 3, "cannot be reached"),
        (["transition", "states"], 1, "out of range"),
        (["transition", "states"], 2_000_000_000_000, "more states than"),
        (["transition", "states"], 10**30, "damaged"),
        (["transition", "states"], 2.5, "damaged"),
        (["transition", "states"], "2", "damaged"),
        (["transition", "transitions", 0, 2], 2, "transitions holds a number out of range"),
        (["transition", "transitions", 0, 2], -1, "transitions holds a number out of range"),
        (["transition", "transitions", 0, 1], 3, "transitions holds a number out of range"),
        (["transition", "transitions", 0, 0], 10**30, "damaged"),
        (["transition", "transitions", 0], [0, 0], "damaged"),
        (["transition", "transitions", 0], [0, 1, 0], "twice"),
        (["transition", "transitions"], [], "more states"),
        (["transition", "transitions", 2], [1, 0, 1], "sorted|reached"),
        (["transition", "by_state", 0, 3], 2, "by_state holds a number out of range"),
        (["transition", "by_state", 0, 1], 9, "by_state holds a number out of range"),
        (["transition", "by_state", 0, 2], -2, "by_state holds a number out of range"),
        (["transition", "by_state", 0, 0], 1, "by_state is not sorted or has an entry twice"),
        (["transition", "constant", 0, 0], 7, "constant holds a number out of range"),
        (["transition", "trivial"], [3], "trivial names a label that does not exist"),
        (["transition", "trivial"], [-1], "trivial names a label that does not exist"),
        (["transition", "trivial"], [1], "a trivial label changes a state"),
        (["transition", "labels"], [[], ["bell"]], "out of range"),
        (["transition", "labels"], [[], ["key"], ["key"]], "distinct"),
        (["transition", "labels"], [[], [1], ["key"]], "damaged"),
        (["transition", "observations"], ["hall", "hall"], "distinct"),
        (["transition", "observations"], ["hall", None], "damaged"),
        (["transition", "actions"], [], "out of range"),
        (["transition", "outputs"], [], "out of range"),
        (["reward", "outputs"], ["a", "b", "c"], "not a number"),
        (["reward", "supplemented"], "yes", "damaged"),
        (["reward", "reward_digits"], "two", "damaged"),
        (["termination", "ends"], [[9, 0, 0, 0]], "ends holds a number out of range"),
        (["termination", "ambiguous"], [[0, 5, 0, 0]], "ambiguous holds a number out of range"),
        (["support", "transition", "by_state"], [1], "support does not fit the tables"),
        (["support", "transition", "constant"], [10**30], "damaged"),
        (["timing"], "soon", "damaged"),
        (["timing"], None, "damaged"),
        (["reward"], None, "damaged"),
        (["transition", "outputs"], None, "damaged"),
        (["colour"], "red", "unknown field `colour`"),
        (["transition", "colour"], "red", "unknown field `colour`"),
        (["provenance", "colour"], "red", "unknown field `colour`"),
        (["provenance"], 3, "damaged"),
    ],
)
def test_entries_that_make_no_sense(path, value, message):
    refused(edited(path, value), message)


def test_any_number_changed_to_any_other_loads_or_is_refused():
    """Whatever stands in the tables: an error of ours, or a machine that can be asked."""
    content = json.loads(DATA)

    def places(node, way):
        entries = enumerate(node) if isinstance(node, list) else node.items()
        for key, value in entries:
            if isinstance(value, list | dict):
                yield from places(value, [*way, key])
            elif isinstance(value, int) and not isinstance(value, bool):
                yield [*way, key]

    for path in places(content, []):
        for value in (-1, 0, 1, 2, 7, 2**31, 2**63, 1.5, "x", [], {}):
            try:
                pair = decode(edited(path, value))
            except rs.ModelError:
                continue
            pair.score(TRACES)
            str(pair)
            encode(pair)


def test_files_that_cannot_be_opened(tmp_path):
    with pytest.raises(rs.ModelError, match=r"nowhere\.json does not exist"):
        rs.load(tmp_path / "nowhere.json")
    with pytest.raises(rs.ModelError, match="cannot be read: Is a directory"):
        rs.load(tmp_path)


def test_saving_over_a_file_replaces_it_whole(tmp_path):
    path = tmp_path / "door.json"
    path.write_bytes(b"x" * 100_000)
    PAIR.save(path)
    assert path.read_bytes() == DATA
    assert rs.load(str(path)) == PAIR
    assert [file.name for file in tmp_path.iterdir()] == ["door.json"]


@pytest.mark.parametrize("data", [b"PAR1\x15\x04", b"[[1]]\n", b"\x1f\x8b\x08", b"digraph {}"])
def test_some_other_file_is_named_as_such(data):
    refused(data, "is not a machine file.*resolvent infer TRACES -o FILE")
