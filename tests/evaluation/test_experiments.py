"""Two sets of machines that explain the same traces: what to ask the world."""

from dataclasses import replace

import pytest

import resolvent as rs
from resolvent.worlds import House

KEY = frozenset({"key"})


def swapped(machines: rs.Machines, kind: str, state: int, label, target: int) -> rs.Machines:
    """The same machines with another target of one transition."""
    machine = machines[kind]
    transitions = machine.transitions.copy()
    transitions[state, machine.labels.code(label)] = target
    return machines.replacing(replace(machine, transitions=transitions))


@pytest.fixture(scope="module")
def house() -> rs.InferenceResult:
    return rs.infer(rs.collect(House(), episodes=200, seed=0))


def test_the_same_machines_do_not_differ(house):
    assert house.machines.difference(house.machines) is None


def test_a_transition_that_leads_elsewhere_is_distinguished_by_the_shortest_sequence(house):
    other = swapped(house.machines, "transition", 0, KEY, 0)
    experiment = house.machines.difference(other)
    assert experiment is not None
    assert experiment.history == (KEY,)
    assert experiment.query == ("corridor", "up")
    assert (experiment.machine, experiment.exact) == ("transition", True)
    assert "'" not in experiment.why
    assert "cyanroom" in experiment.why
    assert "corridor" in experiment.why


def test_no_shorter_sequence_distinguishes_the_machines(house):
    """All shorter sequences, by hand: both sets have the same outputs after each."""
    other = swapped(house.machines, "transition", 1, KEY, 0)
    experiment = house.machines.difference(other)
    assert experiment is not None
    mine, theirs = house.machines.transition, other.transition
    histories = [()]
    for _ in range(len(experiment.history) - 1):
        histories += [(*one, label) for one in histories for label in mine.labels]
    for history in histories:
        states = mine.run(history), theirs.run(history)
        if rs.UNSEEN in states:
            continue
        for entry in mine.entries():
            query = entry.observation, entry.action
            both = [
                machine.output(state, *query, generalized=False)
                for machine, state in zip((mine, theirs), states, strict=True)
            ]
            assert rs.UNSEEN in both or both[0] == both[1]
    last = [machine.run(experiment.history) for machine in (mine, theirs)]
    assert mine.output(last[0], *experiment.query) != theirs.output(last[1], *experiment.query)


def test_an_experiment_can_be_executed_and_decides(house):
    other = swapped(house.machines, "transition", 0, KEY, 0)
    experiment = house.machines.difference(other)
    trial = experiment.policy(House(), house, house.all_traces())
    more = rs.collect(House(), episodes=1, seed=1, policy=trial, max_steps=10)
    assert trial.done
    assert house.machines.score(more)["transition"].wrong == 0
    assert other.score(more)["transition"].wrong > 0


def test_the_alternative_of_a_certificate_is_distinguished():
    traces = rs.collect(House(), episodes=12, seed=3)
    result = rs.infer(traces, strategy="exact")
    for kind, certificate in result.certificates.items():
        if certificate.alternative is not None:
            other = result.machines.replacing(certificate.alternative)
            assert other.score(traces)[kind].wrong == 0
            experiment = result.machines.difference(other)
            assert experiment is None or experiment.machine is not None
