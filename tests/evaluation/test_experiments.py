"""Two sets of machines that explain the same traces: what to ask the world."""

from dataclasses import replace

import pytest

import resolvent as rs
from resolvent.worlds import House

KEY = frozenset({"key"})


def swapped(machines: rs.Machines, kind: str, state: int, label, target: int) -> rs.Machines:
    """The same machines with one move that leads elsewhere."""
    machine = machines[kind]
    moves = machine.transitions.copy()
    moves[state, machine.labels.code(label)] = target
    return machines.replacing(replace(machine, transitions=moves))


@pytest.fixture(scope="module")
def house() -> rs.InferenceResult:
    return rs.infer(rs.collect(House(), episodes=200, seed=0))


def test_the_same_machines_do_not_differ(house):
    assert house.machines.difference(house.machines) is None


def test_a_move_that_leads_elsewhere_is_told_by_the_shortest_history(house):
    other = swapped(house.machines, "transition", 0, KEY, 0)
    found = house.machines.difference(other)
    assert found is not None
    assert found.history == (KEY,)
    assert found.query == ("corridor", "up")
    assert (found.machine, found.exact) == ("transition", True)
    assert "'" not in found.why
    assert "cyanroom" in found.why
    assert "corridor" in found.why


def test_no_shorter_history_tells(house):
    """Every history up to the length found, by hand: both sets answer alike before it."""
    other = swapped(house.machines, "transition", 1, KEY, 0)
    found = house.machines.difference(other)
    assert found is not None
    mine, theirs = house.machines.transition, other.transition
    histories = [()]
    for _ in range(len(found.history) - 1):
        histories += [(*one, label) for one in histories for label in mine.labels]
    for history in histories:
        states = mine.run(history), theirs.run(history)
        if rs.UNSEEN in states:
            continue
        for answer in mine.entries():
            asked = answer.observation, answer.action
            both = [
                machine.output(state, *asked, generalized=False)
                for machine, state in zip((mine, theirs), states, strict=True)
            ]
            assert rs.UNSEEN in both or both[0] == both[1]
    last = [machine.run(found.history) for machine in (mine, theirs)]
    assert mine.output(last[0], *found.query) != theirs.output(last[1], *found.query)


def test_it_can_be_carried_out_and_decides(house):
    other = swapped(house.machines, "transition", 0, KEY, 0)
    found = house.machines.difference(other)
    trial = found.policy(House(), house, house.all_traces())
    more = rs.collect(House(), episodes=1, seed=1, policy=trial, max_steps=10)
    assert trial.done
    assert house.machines.score(more)["transition"].wrong == 0
    assert other.score(more)["transition"].wrong > 0


def test_the_alternative_of_a_certificate_is_told_apart():
    traces = rs.collect(House(), episodes=12, seed=3)
    result = rs.infer(traces, strategy="exact")
    for kind, certificate in result.certificates.items():
        if certificate.alternative is not None:
            other = result.machines.replacing(certificate.alternative)
            assert other.score(traces)[kind].wrong == 0
            found = result.machines.difference(other)
            assert found is None or found.machine is not None
