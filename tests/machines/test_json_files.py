"""Model files: written whole, and refused in one line when they are not what they should be."""

import json
from dataclasses import replace

import numpy as np
import pytest
from observed_machines import with_observed

import resolvent as rs
from noisy_worlds import dice, loaded_die
from resolvent.machines import Machines, Support, machines_of
from resolvent.machines.augmented_state import LabelNoise, StateUncertainty
from resolvent.machines.io.json import decode, encode
from resolvent.traces import Vocabulary
from resolvent.worlds import House

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
PAIR = with_observed(rs.infer(TRACES).machines, TRACES)
DATA = encode(PAIR)
DIE = encode(loaded_die(1.0, 6.0, 6.0))
NOISY = encode(loaded_die(1.0, 2.0, 6.0, 2.0, 2.0, 6.0))
NONE, KEY = frozenset(), frozenset({"key"})
UNCERTAINTY = StateUncertainty(
    LabelNoise(0.05, 0.01, 0.0), {NONE: 0.8, KEY: 0.2}, {NONE: 0.5, KEY: 0.5}
)
TM, RM = (("machines", number, "tables") for number in (0, 1))
OBSERVED = ("machines", 0, "observed_constants")


def edited(path, value, data=DATA):
    """The file with one entry changed; None takes it out."""
    content = json.loads(data)
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
    with pytest.raises(rs.errors.ModelError, match=message) as caught:
        decode(data, "door.json")
    assert str(caught.value).startswith("door.json ")
    assert "\n" not in str(caught.value)


def test_the_file_is_json_with_a_format_and_a_version():
    content = json.loads(DATA)
    assert (content["format"], content["version"]) == ("resolvent-machines", 2)
    assert content["timing"] == "current"
    transition, reward = content["machines"]
    assert list(transition) == [
        *("predicts", "supplemented", "digits", "tables"),
        *("observed_constants", "support", "decisions"),
    ]
    assert [machine["predicts"] for machine in (transition, reward)] == ["observation", "reward"]
    assert [machine["supplemented"] for machine in (transition, reward)] == [False, True]
    tables = transition["tables"]
    assert tables["states"] == 2
    assert tables["labels"] == [[], ["bell"], ["key"]]
    assert tables["trivial"] == [0]
    # hall = 0, look = 0, push = 1: pushing depends on the state, looking does not.
    assert tables["by_state"] == [[0, 0, 1, 0], [1, 0, 1, 1]]
    assert tables["constant"] == [[0, 0, 0]]
    assert tables["transitions"] == [[0, 0, 0], [0, 1, 0], [0, 2, 1], [1, 0, 1]]
    # Looking was observed before the key was read, and never after it.
    assert transition["observed_constants"] == {"sets": [[0]], "rows": [0]}
    assert content["provenance"]["traces_sha256"] == TRACES.digest


def test_nothing_depends_on_the_clock():
    assert encode(with_observed(rs.infer(TRACES).machines, TRACES)) == DATA


def test_a_pair_without_support_or_provenance_comes_back():
    bare = PAIR.replacing(*(replace(one, support=None) for one in PAIR.values()), provenance=None)
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
def test_json_of_another_type(data):
    refused(data, 'is not a machine file: it lacks "format": "resolvent-machines"')


def test_another_format_or_version():
    refused(edited(["format"], "aalpy"), "is not a machine file")
    refused(edited(["version"], 3), "has format version 3, this Resolvent reads version 2")
    refused(edited(["version"], 1), "has format version 1")
    refused(edited(["version"], 0), "has format version 0")


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ([*TM, "states"], 0, "`int` >= 1"),
        ([*TM, "states"], -1, "`int` >= 1"),
        ([*TM, "states"], 3, "cannot be reached"),
        ([*TM, "states"], 1, "out of range"),
        ([*TM, "states"], 2_000_000_000_000, "more states than"),
        ([*TM, "states"], 10**30, "damaged"),
        ([*TM, "states"], 2.5, "damaged"),
        ([*TM, "states"], "2", "damaged"),
        (
            [*TM, "transitions", 0, 2],
            2,
            "transitions holds a number out of range",
        ),
        (
            [*TM, "transitions", 0, 2],
            -1,
            "transitions holds a number out of range",
        ),
        (
            [*TM, "transitions", 0, 1],
            3,
            "transitions holds a number out of range",
        ),
        ([*TM, "transitions", 0, 0], 10**30, "damaged"),
        ([*TM, "transitions", 0], [0, 0], "damaged"),
        ([*TM, "transitions", 0], [0, 1, 0], "twice"),
        ([*TM, "transitions"], [], "more states"),
        ([*TM, "transitions", 2], [1, 0, 1], "sorted|reached"),
        ([*TM, "by_state", 0, 3], 2, "by_state holds a number out of range"),
        ([*TM, "by_state", 0, 1], 9, "by_state holds a number out of range"),
        ([*TM, "by_state", 0, 2], -2, "by_state holds a number out of range"),
        (
            [*TM, "by_state", 0, 0],
            1,
            "by_state is not sorted or has an entry twice",
        ),
        ([*TM, "constant", 0, 0], 7, "constant holds a number out of range"),
        ([*TM, "trivial"], [3], "trivial names a label that does not exist"),
        ([*TM, "trivial"], [-1], "trivial names a label that does not exist"),
        ([*TM, "trivial"], [1], "a trivial label changes a state"),
        ([*TM, "labels"], [[], ["bell"]], "out of range"),
        ([*TM, "labels"], [[], ["key"], ["key"]], "distinct"),
        ([*TM, "labels"], [[], [1], ["key"]], "damaged"),
        ([*TM, "observations"], ["hall", "hall"], "distinct"),
        ([*TM, "observations"], ["hall", None], "damaged"),
        ([*TM, "labels"], [], r"length >= 1.*tables\.labels`"),
        ([*TM, "observations"], [], r"length >= 1.*tables\.observations`"),
        ([*TM, "actions"], [], r"length >= 1.*tables\.actions`"),
        ([*TM, "outputs"], [], r"length >= 1.*tables\.outputs`"),
        ([*RM, "outputs"], ["a", "b", "c"], "not a number"),
        (["machines", 1, "supplemented"], "yes", "damaged"),
        (["machines", 1, "digits"], "two", "damaged"),
        (["termination", "ends"], [[9, 0, 0, 0]], "ends holds a number out of range"),
        (["termination", "ambiguous"], [[0, 5, 0, 0]], "ambiguous holds a number out of range"),
        (["machines", 0, "support", "by_state"], [1], "support does not fit the tables"),
        (["machines", 0, "support", "constant"], [10**30], "damaged"),
        (["timing"], "soon", "damaged"),
        (["timing"], None, "damaged"),
        (["machines", 0], None, "Transition Machine, which is missing"),
        (["machines"], [], "there are no machines"),
        (["machines", 0, "predicts"], "cost", "Transition Machine, which is missing"),
        (["machines", 0, "predicts"], "reward", "not a number"),
        (["machines", 0, "predicts"], "", "rename the column"),
        (["machines", 0, "predicts"], "transition", "rename the column"),
        (["machines", 1, "predicts"], "observation", "its own states"),
        (["machines", 0, "supplemented"], True, "its own states"),
        ([*OBSERVED, "rows"], [], "observed_constants does not fit the constant outputs"),
        ([*OBSERVED, "rows", 0], 1, "another order"),
        ([*OBSERVED, "rows", 0], -1, "another order"),
        ([*OBSERVED, "sets"], [[0], [1]], "another order"),
        ([*OBSERVED, "sets", 0], [2], "observed_constants holds a number out of range"),
        ([*OBSERVED, "sets", 0], [1, 0], "observed_constants is not sorted"),
        ([*OBSERVED, "sets", 0], [0, 0], "observed_constants is not sorted"),
        ([*TM, "constant", 0, 1], 1, "depends on the state as well"),
        (
            ["machines", 0, "support", "constant_by_state"],
            [1, 2],
            "support does not fit the tables",
        ),
        (["termination", "ends"], [[0, 0, 0]], "ends has a row of another length than 4"),
        ([*TM, "outputs"], None, "damaged"),
        (["machines", 0, "colour"], "red", "unknown field `colour`"),
        (["colour"], "red", "unknown field `colour`"),
        ([*TM, "colour"], "red", "unknown field `colour`"),
        (["provenance", "colour"], "red", "unknown field `colour`"),
        (["provenance"], 3, "damaged"),
    ],
)
def test_entries_that_make_no_sense(path, value, message):
    refused(edited(path, value), message)


@pytest.mark.parametrize("of", ["a door", "a die"])
def test_any_number_changed_to_any_other_loads_or_is_refused(of):
    """Whatever stands in the tables: an error of ours, or a machine that can be asked."""
    data, traces = (DATA, TRACES) if of == "a door" else (DIE, dice(1.0, 6.0, 6.0))
    content = json.loads(data)

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
                machines = decode(edited(path, value, data))
            except rs.errors.ModelError:
                continue
            machines.score(traces)
            str(machines)
            encode(machines)


def test_files_that_cannot_be_opened(tmp_path):
    with pytest.raises(rs.errors.ModelError, match=r"nowhere\.json does not exist"):
        rs.load(tmp_path / "nowhere.json")
    with pytest.raises(rs.errors.ModelError, match="cannot be read: is a directory"):
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


def test_machines_out_of_order_or_twice():
    content = json.loads(DATA)
    first, second = content["machines"]
    for machines, message in (
        ([second, first], "the machines are not in their order, transition, reward"),
        ([first, second, second], "two machines predict the same column"),
    ):
        refused(json.dumps({**content, "machines": machines}).encode(), message)


def three():
    """The pair and a machine that tells whether a step ends the episode."""
    reward = PAIR.reward
    ending = rs.Machine(
        labels=reward.labels,
        observations=reward.observations,
        actions=reward.actions,
        outputs=Vocabulary([False, True]),
        transitions=reward.transitions,
        trivial=reward.trivial,
        output_state=np.array([], np.int32),
        output_query=np.array([], np.int64),
        output_value=np.array([], np.int32),
        constant_query=np.array([0], np.int64),
        constant_value=np.array([1], np.int32),
        predicts="terminated",
        supplemented=True,
    )
    return machines_of([ending, *PAIR.values()], PAIR.timing)


def test_any_number_of_machines_comes_back(tmp_path):
    alone = machines_of([PAIR.transition])
    for machines in (three(), alone):
        machines.save(tmp_path / "machines.json")
        again = rs.load(tmp_path / "machines.json")
        assert again == machines
        assert type(again) is Machines
        assert encode(again) == encode(machines)


def test_termination_over_three_machines():
    ends = frozenset({("hall", 1, 0, 0, "push"), ("room", 0, 0, 0, "look")})
    known = rs.machines.Termination(ends, frozenset({("hall", 0, 0, 0, "look")}))
    machines = three().replacing(termination=known)
    content = json.loads(encode(machines))
    # hall = 0, room = 1; look = 0, push = 1.
    assert content["termination"] == {
        "ends": [[0, 1, 0, 0, 1], [1, 0, 0, 0, 0]],
        "ambiguous": [[0, 0, 0, 0, 0]],
    }
    assert decode(encode(machines)).termination == known


def test_sets_of_states_are_written_once():
    machine = PAIR.transition
    machine = replace(
        machine,
        output_state=machine.output_state[:0],
        output_query=machine.output_query[:0],
        output_value=machine.output_value[:0],
        constant_query=np.array([0, 1, 2], np.int64),
        constant_value=np.array([0, 0, 1], np.int32),
        observed_constant_state=np.array([0, 0, 1, 1], np.int32),
        observed_constant_query=np.array([0, 2, 0, 2], np.int64),
        support=Support(
            np.zeros((2, 3), np.int64),
            np.array([], np.int64),
            np.array([5, 0, 7]),
            np.array([1, 2, 4, 5]),
        ),
        decisions=None,
    )
    data = encode(machines_of([machine]))
    content = json.loads(data)
    (stored,) = content["machines"]
    assert stored["observed_constants"] == {"sets": [[0, 1], []], "rows": [0, 1, 0]}
    assert stored["support"]["constant_by_state"] == [1, 2, 4, 5]
    again = decode(data)["transition"]
    assert again == machine
    assert again.support.constants_by_state.tolist() == [1, 2, 4, 5]
    assert encode(decode(data)) == data


def test_a_small_file_cannot_name_more_pairs_than_fit(monkeypatch):
    monkeypatch.setattr("resolvent.machines.io.json._CELL_BYTES", 0)
    monkeypatch.setenv("RESOLVENT_MAX_TABLE_BYTES", "1")
    with pytest.raises(rs.errors.TooLarge, match="pairs of a state and a query") as caught:
        decode(DATA)
    assert "damaged" not in str(caught.value)


def edited_die(**entries):
    """Return the file of a noisy machine with some entries changed."""
    content = json.loads(NOISY)
    (machine,) = content["machines"]
    for name, value in entries.items():
        (machine if name == "output_counts" else machine["tables"])[name] = value
    return json.dumps(content).encode()


def test_the_file_holds_every_output_with_its_count():
    (machine,) = json.loads(NOISY)["machines"]
    assert machine["tables"]["outputs"] == [1.0, 2.0, 6.0]
    assert machine["tables"]["by_state"] == [[0, 0, 0, 1]]
    assert machine["tables"]["constant"] == []
    assert machine["output_counts"] == [[0, 0, 1], [0, 1, 3], [0, 2, 2]]
    assert machine["support"]["by_state"] == [6]
    assert decode(NOISY).reward.counts(0, 0, "roll") == {2.0: 3, 6.0: 2, 1.0: 1}


def test_a_machine_without_noise_has_no_output_counts():
    assert b"output_counts" not in encode(rs.infer(dice(1.0, 1.0)).machines)


@pytest.mark.parametrize(
    ("output_counts", "message"),
    [
        ([[0, 1, 6]], "only one output"),
        ([[0, 0, 3], [0, 1, 1], [0, 2, 2]], "does not hold the most frequent output"),
        ([[0, 0, 3], [0, 1, 3]], "does not hold the most frequent output"),
        ([[0, 1, 4], [0, 0, 2]], "not sorted or has an entry twice"),
        ([[0, 1, 4], [0, 1, 2]], "not sorted or has an entry twice"),
        ([[0, 0, 0], [0, 1, 6]], "`int` >= 1"),
        ([[0, 0, -1], [0, 1, 7]], "`int` >= 1"),
        ([[0, 0, 1], [0, 1, 2**41]], "`int` <= 1099511627776"),
        ([[0, 0, 1], [0, 1, 2**80]], "damaged"),
        ([[0, 0, 1], [1, 1, 5]], "out of range"),
        ([[0, 0, 1], [0, 3, 5]], "out of range"),
        ([[-1, 0, 1], [0, 1, 5]], "out of range"),
        ([[0, 0, 1], [0, 1, 4]], "support does not fit output_counts"),
        ([[0, 0], [0, 1]], "damaged"),
        ([[0, 0, 0.5], [0, 1, 5]], "damaged"),
        ({}, "damaged"),
    ],
)
def test_output_counts_that_do_not_fit_are_refused(output_counts, message):
    with pytest.raises(rs.errors.ModelError, match=message) as caught:
        decode(edited_die(output_counts=output_counts), "dice.json")
    assert str(caught.value).startswith("dice.json is damaged: ")
    assert "\n" not in str(caught.value)


def test_state_uncertainty_is_in_the_file(tmp_path):
    machines = House().machines().replacing(state_uncertainty=UNCERTAINTY)
    machines.save(tmp_path / "machines.json")
    read = rs.load(tmp_path / "machines.json")
    assert read == machines
    assert read.state_uncertainty == UNCERTAINTY
    assert read != House().machines()
    assert hash(read.state_uncertainty) == hash(UNCERTAINTY)


def test_the_file_of_certain_states_has_no_uncertainty(tmp_path):
    House().machines().save(tmp_path / "machines.json")
    assert "state_uncertainty" not in json.loads((tmp_path / "machines.json").read_text())


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"label_noise": {"missed": 0.5, "false": 0.0, "swapped": 0.6}}, "shares above 1"),
        ({"label_noise": {"missed": -0.1, "false": 0.0, "swapped": 0.0}}, "`float` >= 0"),
        ({"label_shares": [[[], 0.5], [["key"], 0.4]]}, "label_shares does not add up to 1"),
        ({"label_shares": [[["fire"], 1.0]]}, "label_shares names a label that no machine knows"),
        ({"label_shares": []}, "must be given together"),
        ({"starts": [[["key"], 0.5], [["key"], 0.5]]}, "starts names a label twice"),
    ],
)
def test_damaged_uncertainty_is_refused(tmp_path, damage, message):
    path = tmp_path / "machines.json"
    House().machines().replacing(state_uncertainty=UNCERTAINTY).save(path)
    content = json.loads(path.read_text())
    content["state_uncertainty"].update(damage)
    path.write_text(json.dumps(content))
    with pytest.raises(rs.errors.ModelError, match=message):
        rs.load(path)
