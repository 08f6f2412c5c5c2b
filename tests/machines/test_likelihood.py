import numpy as np
import pytest
from chance_oracle import known_chance
from hypothesis import given, settings
from oracles import asked_in

import resolvent as rs
from resolvent.machines.likelihood import Smoothing, output_probabilities, smoothing_of
from strategies import noisy_machines, world_traces

NOISE = (0.3, 0.25, 0.2, 0.15, 0.1, 0.05, 0.01)
FEW = Smoothing(NOISE, strength=2.5, deviating_strength=1.5, uniform_strength=0.75, novelty=0.05)


def coded(machine, state, seen, action, output):
    """State, query and output as the machine numbers them; −1 for what it does not know."""
    observation, done = machine.observations.get(seen), machine.actions.get(action)
    known = observation is not None and done is not None
    query = observation * len(machine.actions) + done if known else -1
    value = machine.outputs.get(output)
    return -1 if state is rs.UNSEEN else state, query, -1 if value is None else value


def plain_chance(machine, state, seen, action, output):
    """The chance of an output, by its definition."""
    if machine.output(state, seen, action) is rs.UNSEEN:
        return np.nan
    if (seen, action) in machine.constant_outputs:
        answers = {}
        for one in range(machine.states):
            for answer, count in machine.counts(one, seen, action).items():
                answers[answer] = answers.get(answer, 0) + count
    else:
        answers = machine.counts(state, seen, action)
    if output not in machine.outputs:
        return FEW.novelty
    return (1 - FEW.novelty) * known_chance(machine, FEW, (state, seen, action), answers, output)


@settings(deadline=None, max_examples=100)
@given(noisy_machines(), world_traces())
def test_chances_follow_their_definition(found, others):
    machines, traces = found
    for kind in ("transition", "reward"):
        machine = machines[kind]
        rows = [row for name, *row in asked_in(machines, [*traces, *others]) if name == kind]
        state, query, output = np.array([coded(machine, *row) for row in rows]).T
        chances = output_probabilities(
            machine, FEW, state.astype(np.int32), query, output.astype(np.int32)
        )
        assert chances == pytest.approx([plain_chance(machine, *row) for row in rows], nan_ok=True)


@settings(deadline=None, max_examples=50)
@given(noisy_machines())
def test_chances_of_all_outputs_and_of_any_other_sum_to_one(found):
    machines, _ = found
    for machine in machines.values():
        states = np.repeat(machine.output_state, len(machine.outputs) + 1)
        queries = np.repeat(machine.output_query, len(machine.outputs) + 1)
        outputs = np.tile(
            np.arange(-1, len(machine.outputs), dtype=np.int32), len(machine.output_value)
        )
        chances = output_probabilities(machine, smoothing_of(machine), states, queries, outputs)
        assert np.all(chances > 0)
        assert chances.reshape(-1, len(machine.outputs) + 1).sum(1) == pytest.approx(1)
