"""The bulk update of the model from all steps equals the update step by step."""

import gymnasium as gym
import numpy as np
import pytest

import resolvent as rs
from resolvent import _core
from resolvent.exploration.buffer import Columns
from resolvent.exploration.empirical_model import EmpiricalModel, Outcome
from resolvent.exploration.hypothesis import explains, predicts_endings, repaired
from resolvent.exploration.tables import ITSELF, QueriedSteps
from resolvent.worlds import RandomWorld

WORLDS = [
    ("House", lambda: gym.make("resolvent/House-v0"), 300),
    ("TMaze", lambda: gym.make("resolvent/TMaze-v0"), 300),
    ("TwoKeys", lambda: gym.make("resolvent/TwoKeys-v0"), 600),
    ("RandomWorld", lambda: RandomWorld(world_seed=0), 900),
]


@pytest.fixture(params=WORLDS, ids=lambda one: one[0])
def state(request):
    """A learner that was shown random steps, a fifth of them in an episode under way."""
    _, make, steps = request.param
    env, draw = make(), np.random.default_rng(0)
    explorer = rs.Explorer(env, seed=0)
    for _ in range(5):
        observation, info = env.reset(seed=int(draw.integers(99)))
        while explorer.act(observation, info) is None:
            pass
        for _ in range(steps // 5):
            action = draw.integers(env.action_space.n)
            observation, reward, *ended, info = env.step(action)
            explorer.learn(action, observation, reward, *ended, info)
            if any(ended):
                break
        else:
            explorer.truncate()
    explorer.state.rebuild()
    return explorer.state


def one_by_one(model: EmpiricalModel, columns: Columns) -> EmpiricalModel:
    """Return what is known after all steps were taken one after another."""
    known = EmpiricalModel(model.tables, model.buffer, model.usual_reward)
    for number, (first, stop) in enumerate(zip(columns.offsets, columns.offsets[1:], strict=False)):
        place = int(first) + number
        seen, labels = columns.observations.tolist(), columns.labels.tolist()
        row = known.begin(seen[place], labels[place])
        context, before = (-1, seen[place], labels[place]), ()
        for step in range(int(first), int(stop)):
            place, action = step + number, int(columns.actions[step])
            query = known.augmented_states[row][0], action
            known.note_query(context, before, query)
            ended = bool(columns.terminated[number]) and step == stop - 1
            read = labels[place] if known.lag else labels[place + 1]
            if read not in known.neutral_labels:
                before, context = context, (read, *known.augmented_states[row][1:])
            reward = float(columns.rewards[step])
            outcome = Outcome(seen[place + 1], labels[place + 1], read, reward, ended)
            taken = known.add_step(row, action, outcome)
            assert not taken.contradicts
            row = taken.next_row
    return known


def steps_of(known: EmpiricalModel) -> dict:
    """Return what is known of each step, by augmented states instead of their rows."""
    found = {}
    for augmented, row in known.rows.items():
        for action, led in enumerate(known.next_row[row]):
            follows = known.augmented_states[led] if led >= 0 else led
            unsettled = (row, action) in known.nondeterministic
            reward = None if led == -2 else known.reward[row][action]
            if led != -2 or unsettled:
                found[augmented, action] = follows, reward, unsettled, known.label_read[row][action]
    return found


def test_bulk_and_stepwise_updates_are_equal(state):
    columns, known = state.buffer.columns(), state.model
    slow = one_by_one(known, columns)
    assert steps_of(known) == steps_of(slow)
    assert known.n_known == slow.n_known
    starts = {known.augmented_states[row]: times for row, times in known.starts.items()}
    assert starts == {slow.augmented_states[row]: times for row, times in slow.starts.items()}
    assert (known.initial_symbols, known.label_of) == (slow.initial_symbols, slow.label_of)
    assert (known.least, known.most, known.terminates) == (slow.least, slow.most, slow.terminates)
    assert known.terminating == slow.terminating
    assert known.informative >= slow.informative  # one by one, what varies is known from then on


def test_contexts_list_their_observed_queries(state):
    """One by one, all queries are noted; all at once, only informative ones."""
    known, slow = state.model, one_by_one(state.model, state.buffer.columns())
    for fast, plain in (
        (known.queries_after, slow.queries_after),
        (known.queries_after_pair, slow.queries_after_pair),
    ):
        informative = {key: asked & known.informative for key, asked in plain.items()}
        assert fast == {key: asked for key, asked in informative.items() if asked}


def test_outputs_are_those_of_each_step(state):
    columns, known = state.buffer.columns(), state.model
    steps = QueriedSteps(columns, known.tables)
    states = [steps.walk(one).tolist() for one in known.tables.transitions]
    for step in range(columns.steps):
        outputs = {"transition": columns.observations_after, "reward": columns.rewards}
        for place, kind in enumerate(known.tables.names):
            here = [one[step] for one in states]
            asked = int(columns.observations_before[step]), int(columns.actions[step])
            assert (
                known.machines.output(place, here, asked)
                == outputs.get(kind, steps.terminated)[step]
            )


def test_words_are_label_sequences_that_were_read(state):
    columns, known = state.buffer.columns(), state.model
    for length in (1, 2, 3):
        words = set()
        for number, first in enumerate(columns.offsets[:-1]):
            stop = columns.offsets[number + 1] + number + 1
            read = columns.labels[first + number + 1 : stop].tolist()
            read = [one for one in read if one not in known.neutral_labels]
            read = [one for place, one in enumerate(read) if not place or read[place - 1] != one]
            words |= {tuple(read[at : at + length]) for at in range(len(read) - length + 1)}
        assert known.words(length) == words


def test_columns_are_cached_until_a_step_is_added(state):
    log = state.buffer
    assert log.columns() is log.columns()
    before = log.columns()
    under_way = log.begin(5, 0, 0)
    assert log.columns() is before
    under_way.step(0, 0.5, 0, 0)
    assert log.columns().steps == before.steps + 1
    assert 0.5 in log.columns().reward_levels[0]


def conflicts_by_loop(steps, place, states, beside):
    """Return the steps with another answer than the first one in the same state, and that one."""
    first, found = {}, []
    for step, state in enumerate(states):
        other = 0 if beside is None else beside[step]
        if min(state, other) < 0:
            continue
        key = state, other, int(steps.query[step])
        witness = first.setdefault(key, step)
        if steps.outputs[place][witness] != steps.outputs[place][step]:
            found.append((step, witness))
    return found


def test_conflicts_equal_those_of_a_plain_loop(state):
    believed, draw = state.model.tables, np.random.default_rng(1)
    steps = QueriedSteps(state.buffer.columns(), believed)
    assert explains(believed, steps)
    for place in (0, 1):
        condition = steps.condition(believed.transitions[0]) if place else ITSELF
        beside = condition[0] if place else None
        for _ in range(20):
            moves = believed.transitions[place].copy()
            moves.ravel()[draw.integers(moves.size)] = draw.integers(-1, len(moves))
            states = steps.walk(moves)
            by_hand = conflicts_by_loop(steps, place, states.tolist(), beside)
            found = steps.conflicts(place, moves, condition)
            assert (found.count, found.lost) == (len(by_hand), int((states < 0).sum()))
            if by_hand:
                assert (found.step, found.witness) == by_hand[0]
                assert steps.conflicts(place, moves, condition, enough=1).count == 1


def test_a_wrong_transition_is_repaired(state):
    believed = state.model.tables
    steps = QueriedSteps(state.buffer.columns(), believed)
    for state, label in zip(*np.nonzero(believed.transitions[0] >= 0), strict=True):
        moves = [one.copy() for one in believed.transitions]
        moves[0][state, label] = (moves[0][state, label] + 1) % len(moves[0])
        wrong = type(believed)(believed.names, tuple(moves), believed.timing)
        if not explains(wrong, steps):
            found = repaired(wrong, steps)
            assert found is None or explains(found, steps)


def test_endings_are_predicted_if_no_augmented_state_both_ends_and_continues(state):
    believed = state.model.tables
    steps = QueriedSteps(state.buffer.columns(), believed)
    together = zip(*(steps.walk(one).tolist() for one in believed.transitions), strict=True)
    ends = {}
    for states, query, ended in zip(together, steps.query, steps.terminated, strict=True):
        ends.setdefault((states, int(query)), set()).add(bool(ended))
    assert predicts_endings(believed, steps) == all(len(one) == 1 for one in ends.values())


def test_values_are_numbered_by_first_occurrence():
    draw = np.random.default_rng(0)
    for size, most in ((0, 1), (1, 1), (50, 5), (5_000, 3_000), (5_000, 2**62)):
        values = draw.integers(-most, most, size)
        first, number = _core.numbered(values)
        order = {}
        for value in values.tolist():
            order.setdefault(value, len(order))
        assert number.tolist() == [order[value] for value in values.tolist()]
        assert values[first].tolist() == list(order)


@pytest.mark.parametrize(
    "wrong",
    [
        {"query": np.int32([0, 2])},
        {"query": np.int32([0])},
        {"read": np.int32([-2, 0])},
        {"offsets": np.int64([0, 1])},
    ],
)
def test_steps_that_do_not_fit_are_refused(wrong):
    right = {"read": np.int32([0, 1]), "offsets": np.int64([0, 2]), "query": np.int32([0, 1])}
    with pytest.raises(ValueError, match=r"range|equally long|below -1|offsets"):
        _core.QueriedSteps(**(right | wrong), queries=2)


@pytest.mark.parametrize(
    "wrong",
    [
        {"transitions": np.int32([0, 2])},
        {"output": np.int32([0])},
        {"condition": np.int32([0])},
        {"condition": np.int32([0, 1])},
        {"condition_states": 0},
        {"condition_states": 2**62},
    ],
)
def test_transitions_that_do_not_fit_are_refused(wrong):
    steps = _core.QueriedSteps(np.int32([0, 1]), np.int64([0, 2]), np.int32([0, 1]), queries=2)
    right = {
        "transitions": np.int32([0, 0]), "labels": 2, "output": np.int32([0, 1]),
        "condition": np.empty(0, np.int32), "condition_states": 1, "enough": 1,
    }  # fmt: skip
    assert steps.conflicts(**right) == (0, 0, -1, -1)
    with pytest.raises(ValueError, match=r"range|equally long|exist|at least one|too many"):
        steps.conflicts(**(right | wrong))
