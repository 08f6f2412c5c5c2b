"""The bank of protocols: its machines are what the rules say, and strategies are held to it."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

import resolvent as rs
from mealy_machine import Mealy, Table
from protocols import BANK
from resolvent.inference.strategy import STRATEGIES

FOUND = {"stop-and-wait": 2_000, "http2-stream": 128_000}
"""Steps from which every strategy finds a model, twice what `rpni` needs."""

FOUND_BY_DEFAULT = {"stop-and-wait": 1_000, "http2-stream": 64_000, "login": 128_000}
"""The same for the default strategy, twice what `edsm` needs."""

CLOSE = {"tcp": 0.1, "pop3": 0.05}
"""The share of fresh steps that may be wrong after 16,000 steps: some twice that of `rpni`."""

MERGING = [name for name, one in STRATEGIES.items() if not one.proves]


def infer(model, steps, seed, **options):
    return rs.infer(
        model.traces(steps, seed), options=rs.InferenceOptions(outputs=["output"], **options)
    ).machines["output"]


def test_the_bank_has_machines_of_many_sizes():
    sizes = sorted(model.machine.states for model in BANK.values())
    assert len(sizes) >= 20
    assert (sizes[0], sizes[-1]) == (3, 105)
    assert sum(size >= 30 for size in sizes) >= 7
    assert all(5 <= len(model.inputs) <= 25 for model in BANK.values())


@pytest.mark.parametrize("name", BANK)
def test_machines_are_minimal_and_follow_the_rules(name):
    model = BANK[name]
    machine = model.machine
    assert machine.is_minimal()
    assert len(set(model.inputs)) == len(model.inputs)
    given, told, offsets = model.walks(2_000, 3)
    for begin, end in pairwise(offsets.tolist()):
        state = model.start
        for row in range(begin, end):
            state, answer = model.respond(state, model.inputs[given[row]])
            assert machine.answers[told[row]] == answer


RUNS = {
    "tcp": "connect SYN | syn+ack ACK | close FIN | ack - | fin ACK | timeout - | send error",
    "tls12-server": "ClientHello resume: ServerHello, ChangeCipherSpec, Finished | "
    "ChangeCipherSpec - | Finished - | ApplicationData ApplicationData",
    "lcp": "open: layer started | up request | configure ack - | "
    "configure request good: ack, layer up | echo request: echo | close: layer down, terminate | "
    "terminate ack: layer finished",
    "smtp": "MAIL 503 | EHLO: 250 extensions | MAIL 250 | RCPT 250 | DATA 354 | text - | "
    "dot: 250 queued | QUIT 221 | NOOP closed",
    "bank-card": "SELECT 9000 | GET PROCESSING OPTIONS: 9000 options | VERIFY wrong: 63C2 | "
    "VERIFY 9000 | GENERATE AC online: 9000 ARQC | EXTERNAL AUTHENTICATE: 9000 | "
    "GENERATE AC offline: 9000 TC | GENERATE AC offline: 6985",
    "passport": "READ 6985 | SELECT application: 9000 | READ 6982 | GET CHALLENGE: 9000 | "
    "MUTUAL AUTHENTICATE: 9000 secured | SELECT fingers: 6982 secured | "
    "SELECT photo: 9000 secured | READ: 9000 photo | READ plain: 6988 | READ 6982",
    "mqtt-broker": "PINGREQ: no connection | CONNECT CONNACK | SUBSCRIBE SUBACK | "
    "PUBLISH 1: PUBACK, PUBLISH | DISCONNECT closed | CONNECT: CONNACK present | "
    "PUBLISH retained: PUBLISH | CONNECT closed | CONNECT clean: CONNACK | "
    "PUBLISH 0: - | SUBSCRIBE: SUBACK, PUBLISH retained",
    "lift": "call 2: lamp 2 | call 1: lamp 1 | time passes: floor 1, doors open | "
    "time passes: doors close | something in the door: doors open",
}
"""Sessions as the specifications have them: "input output", or "input: several words"."""


@pytest.mark.parametrize("name", RUNS)
def test_sessions_follow_the_specification(name):
    machine = BANK[name].machine
    state = 0
    for step in RUNS[name].split(" | "):
        given, expected = step.split(": ") if ": " in step else step.rsplit(" ", 1)
        number = machine.inputs.index(given)
        assert machine.answers[machine.outputs[state, number]] == expected, step
        state = machine.moves[state, number]


def test_equal_states_are_merged():
    """Two of these four only differ in their names."""

    def respond(state, given):
        return ((state + 1) % 4, "even" if state % 2 == 0 else "odd")

    machine = Mealy.explored(0, ["go"], respond)
    assert machine.states == 2
    assert machine.moves.tolist() == [[1], [0]]


def test_a_machine_with_equal_or_lost_states_is_not_minimal():
    assert Mealy(np.array([[1], [0]]), np.array([[0], [1]])).is_minimal()
    assert not Mealy(np.array([[1], [0]]), np.array([[0], [0]])).is_minimal()
    assert not Mealy(np.array([[0], [0]]), np.array([[0], [1]])).is_minimal()


def test_traces_equal_those_read_from_a_log():
    model = BANK["login"]
    given, told, offsets = model.walks(500, 0)
    rows = {
        "session": np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)),
        "input": [model.inputs[one] for one in given],
        "output": [model.machine.answers[one] for one in told],
    }
    log = rs.read_log(pa.table(rows), episode="session", input="input", output="output")
    assert list(model.traces(500, 0)) == list(log)


def test_longer_samples_begin_with_the_walks_of_shorter_ones():
    few, more = (BANK["tcp"].walks(steps, 7) for steps in (1_000, 4_000))
    for one, other in zip(few, more, strict=True):
        assert np.array_equal(one, other[: len(one)])
    assert 3_500 < len(more[0]) < 4_500


def test_visits_count_inputs_by_state():
    machine = Mealy(np.array([[1, 0], [1, 0]]), np.array([[0, 1], [1, 1]]))
    visits = machine.visits(np.array([0, 0, 1, 1, 1], np.int32), np.array([0, 4, 5]))
    assert visits.tolist() == [[1, 2], [1, 1]]


@pytest.fixture
def login():
    return BANK["login"].machine


def test_a_machine_is_recognized_up_to_names_of_states(login):
    order = np.array([0, *range(login.states - 1, 0, -1)])
    renamed = Table(order[login.moves[order]], login.outputs[order])
    assert login.is_found(renamed)
    for part, value in (("moves", -1), ("moves", 0), ("outputs", -1)):
        tables = {"moves": renamed.moves.copy(), "outputs": renamed.outputs.copy()}
        where = np.argwhere(tables[part] != value)[-1]
        tables[part][tuple(where)] = value
        assert not login.is_found(Table(**tables))
    more = Table(np.vstack([login.moves, login.moves[:1]]), np.vstack([login.outputs] * 2))
    assert not login.is_found(more)


def test_predictions_after_an_unknown_transition_are_wrong():
    machine = Mealy(np.array([[1], [0]]), np.array([[0], [1]]))
    walks = (np.zeros(5, np.int32), np.array([0, 1, 0, 0, 1]), np.array([0, 3, 5]))
    assert machine.wrong_share(machine, walks) == 0
    partial = Table(np.array([[1], [-1]]), machine.outputs)
    assert machine.wrong_share(partial, walks) == pytest.approx(1 / 5)
    assert machine.wrong_share(Table(machine.moves, np.array([[0], [0]])), walks) == 2 / 5


@pytest.mark.parametrize("strategy", MERGING)
@pytest.mark.parametrize("name", FOUND)
def test_strategies_find_the_machines(name, strategy):
    model = BANK[name]
    assert model.machine.is_found(infer(model, FOUND[name], 0, strategy=strategy, noise="none"))


@pytest.mark.parametrize("name", FOUND_BY_DEFAULT)
def test_the_default_strategy_finds_the_machines(name):
    model = BANK[name]
    assert model.machine.is_found(infer(model, FOUND_BY_DEFAULT[name], 0))


@pytest.mark.parametrize("strategy", MERGING)
@pytest.mark.parametrize("name", CLOSE)
def test_strategies_predict_fresh_steps(name, strategy):
    model = BANK[name]
    # With so few steps a search finds nothing smaller, and would look for it a minute.
    found = infer(model, 16_000, 0, strategy=strategy, noise="none", effort=0.02)
    assert model.machine.wrong_share(found, model.walks(10_000, 100)) <= CLOSE[name]
