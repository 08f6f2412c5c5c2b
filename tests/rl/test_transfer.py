"""Values that were learned with other machines: each goes to the states that come of it."""

import dataclasses

import gymnasium as gym
import numpy as np
import pytest

import resolvent as rs
from resolvent.machines import MachinePair
from resolvent.traces.symbols import as_symbol
from resolvent.worlds import House, TMaze


def house():
    return gym.make("resolvent/House-v0", max_episode_steps=50)


@pytest.fixture(scope="module")
def traces():
    return rs.collect(House(), episodes=200, seed=0)


@pytest.fixture(scope="module")
def machines(traces):
    return rs.infer(traces).machines


@pytest.fixture(scope="module")
def learned(machines):
    return rs.q_learning(rs.AugmentObservation(house(), machines), episodes=300, seed=0)


def turned_round(machine):
    """The same machine, with its states numbered the other way but for the first."""
    numbers = np.array([0, *range(machine.states - 1, 0, -1)], np.int32)
    moves = machine.transitions[numbers]
    answered, asked = numbers[machine.output_state], numbers[machine.asked_state]
    of_answer = np.lexsort((machine.output_question, answered))
    of_question = np.lexsort((machine.asked_question, asked))
    return dataclasses.replace(
        machine,
        transitions=np.where(moves < 0, -1, numbers[moves]).astype(np.int32),
        output_state=answered[of_answer],
        output_question=machine.output_question[of_answer],
        output_value=machine.output_value[of_answer],
        asked_state=asked[of_question],
        asked_question=machine.asked_question[of_question],
    )


def test_with_the_same_machines_nothing_changes(learned, machines, traces):
    env = rs.AugmentObservation(house(), machines)
    carried = learned.carried(env, env, traces)
    values = dict(zip(learned.situations, learned.q.tolist(), strict=True))
    assert dict(zip(carried.situations, carried.q.tolist(), strict=True)) == values
    assert carried.evaluate(env).value == learned.evaluate(env).value


@pytest.mark.parametrize("mode", ["dict", "flatten", "discrete"])
def test_states_with_other_numbers_keep_their_values(mode):
    """More than two, of which the first stays the first."""
    symbol = gym.make("resolvent/Symbol-v0", max_episode_steps=100)
    traces = rs.collect(symbol, episodes=400, seed=0)
    pair = symbol.unwrapped.machines()
    assert pair.transition.states == 10
    other = MachinePair(
        *map(turned_round, (pair.transition, pair.reward)), pair.timing, pair.termination
    )
    assert rs.is_isomorphic(other.transition, pair.transition)
    before = rs.AugmentObservation(symbol, pair, mode=mode)
    after = rs.AugmentObservation(symbol, other, mode=mode)
    learned = rs.q_learning(before, episodes=100, epsilon=1.0, epsilon_decay=1.0, seed=0)
    carried = learned.carried(before, after, traces)
    old = dict(zip(learned.situations, learned.q.tolist(), strict=True))
    new = dict(zip(carried.situations, carried.q.tolist(), strict=True))
    numbers = [0, *range(9, 0, -1)]
    both = [
        (as_symbol(before.encode(room, state, 0)), as_symbol(after.encode(room, number, 0)))
        for room in range(int(symbol.observation_space.n))
        for state, number in enumerate(numbers)
    ]
    known = [(earlier, later) for earlier, later in both if earlier in old]
    assert len(known) == len(old) == len(new) > 100
    assert all(new[later] == old[earlier] for earlier, later in known)


def test_a_state_that_splits_hands_its_values_to_both(traces, machines):
    """Machines of one state know no key: what they learned counts with and without it."""
    each = (rs.infer(traces[number : number + 1]).machines for number in range(len(traces)))
    first = next(one for one in each if one.transition.states == one.reward.states == 1)
    before = rs.AugmentObservation(house(), first)
    after = rs.AugmentObservation(house(), machines)
    learned = rs.q_learning(before, episodes=20, seed=0, max_steps=50)
    carried = learned.carried(before, after, traces)
    old = dict(zip(learned.situations, learned.q.tolist(), strict=True))
    assert len(carried.situations) > len(old)
    for symbol, values in zip(carried.situations, carried.q.tolist(), strict=True):
        room = dict(symbol)["observation"]
        assert values == old[("observation", room), ("reward_state", 0), ("transition_state", 0)]


@pytest.mark.parametrize("shaping", [False, True])
@pytest.mark.parametrize("engine", ["native", "python"])
def test_a_learner_goes_on_where_another_stopped(machines, traces, engine, shaping):
    """With alpha 0 it learns nothing: so it is as good as what it began with."""
    env = rs.AugmentObservation(house(), machines)
    plan = rs.plan(machines, traces)
    first = rs.q_learning(env, episodes=300, seed=0, engine=engine, shaping=shaping and plan)
    begun = rs.q_learning(env, episodes=3, alpha=0.0, start=first, engine=engine)
    returns = dict(zip(first.situations, first.returns, strict=True))
    there = dict(zip(begun.situations, begun.returns, strict=True))
    for symbol, values in returns.items():
        assert there[symbol] == pytest.approx(values)
    assert begun.evaluate(env).value == pytest.approx(0.95**5)
    # And back: shaped, it holds less by what each situation promises.
    again = rs.q_learning(env, episodes=1, alpha=0.0, start=begun, shaping=plan, engine=engine)
    for symbol, values in zip(again.situations, again.returns, strict=True):
        if symbol in returns:
            assert values == pytest.approx(returns[symbol])
    assert again.evaluate(env).value == pytest.approx(0.95**5)


def test_both_engines_begin_alike(machines, traces):
    env = rs.AugmentObservation(house(), machines)
    plan = rs.plan(machines, traces)
    start = rs.q_learning(env, episodes=5, seed=0)
    for guided in ({}, {"shaping": plan}, {"model": plan.model, "counterfactual": True}):
        native, python = (
            rs.q_learning(env, episodes=30, start=start, seed=1, engine=engine, **guided)
            for engine in ("native", "python")
        )
        assert dataclasses.replace(native, engine="python") == python


def test_values_and_promises_are_saved_together(machines, traces, tmp_path):
    env = rs.AugmentObservation(house(), machines)
    shaped = rs.q_learning(env, episodes=20, shaping=rs.plan(machines, traces))
    shaped.save(tmp_path / "shaped.json")
    again = rs.rl.QTable.load(tmp_path / "shaped.json")
    assert again == shaped
    assert again.returns == pytest.approx(shaped.q + shaped.potential[:, None])


def test_what_does_not_fit_is_refused(learned, machines, traces):
    env = rs.AugmentObservation(house(), machines)
    with pytest.raises(rs.OptionError, match="does not show the states of machines"):
        learned.carried(house(), env, traces)
    maze = TMaze()
    with pytest.raises(rs.OptionError, match="start has values for 5 actions from 0 on"):
        rs.q_learning(rs.AugmentObservation(maze, maze.machines()), start=learned)
