"""Discovered events of worlds, and labels of tables computed by hand."""

import gymnasium as gym
import numpy as np
import pytest

import resolvent as rs
from resolvent.preprocess.event_discovery import discover_labels, events_of
from resolvent.preprocess.event_steps import event_steps
from resolvent.preprocess.labeling import LabelingFunction
from resolvent.preprocess.timing import LabelTiming
from resolvent.traces import Trace, TraceSet

BOTH = ("observation", "reward")


def blank(name, episodes, seed=0):
    """Traces of a built-in world that tell no events, and its true machines."""
    env = gym.make(f"resolvent/{name}-v0")
    traces = rs.collect(env, episodes=episodes, seed=seed)
    return LabelingFunction("observation", {}).on(traces), env.unwrapped.machines()


def infer(outputs=BOTH):
    return lambda traces, timing: (
        rs.infer(traces, outputs=outputs, timing=timing, noise="none").machines
    )


@pytest.mark.parametrize(
    ("name", "episodes"),
    [
        ("House", 50),
        ("HouseInterference", 50),
        ("TMaze", 50),
        ("PhaseGrid3", 100),
        ("PhaseGrid4", 100),
    ],
)
def test_small_worlds_have_as_many_states_as_with_labels(name, episodes):
    traces, truth = blank(name, episodes)
    discovered = discover_labels(traces, BOTH, infer()).inferred
    assert discovered.transition.states == truth.transition.states
    assert discovered.reward.states == truth.reward.states


def test_the_phase_grids_events_are_the_places_of_its_task():
    traces, _ = blank("PhaseGrid4", 100)
    discovered = discover_labels(traces, BOTH, infer())
    # Coffee and sofa; the stair, where the episode ends, need not be remembered.
    assert discovered.labelling.events == {(3, 0): "(3, 0)", (0, 1): "(0, 1)"}
    assert discovered.timing is LabelTiming.CURRENT


def test_without_memory_nothing_is_an_event():
    traces = TraceSet([Trace([0, 1, 0], [None] * 3, ["a", "b"], [0, 1])] * 3)
    discovered = discover_labels(traces, BOTH, infer())
    assert discovered.labelling == LabelingFunction("observation", {})
    assert discovered.inferred.transition.states == discovered.inferred.reward.states == 1


def test_actions_are_events_without_observations():
    """A turnstile's log: a coin unlocks it, a push through locks it."""
    random = np.random.default_rng(0)
    traces = []
    for _ in range(30):
        locked, actions, answers = True, [], []
        for coin in random.random(20) < 0.4:
            actions.append("coin" if coin else "push")
            answers.append("thanks" if coin else "no" if locked else "pass")
            locked = not coin
        seen = [0] * 21
        columns = {"response": answers}
        traces.append(Trace(seen, [None] * 21, actions, columns=columns))
    outputs = ("response",)
    discovered = discover_labels(TraceSet(traces), outputs, infer(outputs))
    assert discovered.labelling == LabelingFunction("action", {"coin": "coin", "push": "push"})
    assert discovered.inferred["response"].states == 2


def test_order_and_number_of_traces_and_their_labels_make_no_difference():
    traces, _ = blank("PhaseGrid3", 60)
    once = discover_labels(traces, BOTH, infer()).labelling
    order = np.random.default_rng(0).permutation(np.tile(np.arange(60), 2))
    labelled = LabelingFunction("action").on(traces.take(order))
    again = discover_labels(labelled, BOTH, infer()).labelling
    assert again == once
    assert str(again) == str(once)


def test_random_traces_raise_their_contradiction():
    random = np.random.default_rng(0)
    coins = [Trace([0, int(side)], [None] * 2, ["toss"]) for side in random.integers(0, 2, 50)]
    with pytest.raises(rs.ContradictoryTraces, match="different next observations"):
        discover_labels(TraceSet(coins), ["observation"], infer(["observation"]))


def test_without_time_each_observation_is_a_label():
    traces, _ = blank("House", 50)
    discovered = discover_labels(traces, BOTH, infer(), time_left=lambda: 0.0)
    assert discovered.labelling == LabelingFunction("observation")


@pytest.mark.parametrize(
    ("traces", "outputs", "options", "words"),
    [
        (TraceSet(), BOTH, {}, "there are no traces"),
        (blank("House", 2)[0], (), {}, "outputs is empty"),
        (blank("House", 2)[0], ["cost"], {}, "no column"),
        (blank("House", 2)[0], BOTH, {"effort": 0.0}, "effort is 0.0"),
        (blank("House", 2)[0], BOTH, {"effort": float("nan")}, "effort is nan"),
    ],
)
def test_invalid_arguments_are_refused(traces, outputs, options, words):
    with pytest.raises(rs.ResolventError, match=words):
        discover_labels(traces, outputs, infer(outputs), **options)


def walks(*observations):
    return TraceSet(
        [Trace(list(seen), [None] * len(seen), ["go"] * (len(seen) - 1)) for seen in observations]
    )


def events(traces, moves, begins=(), states=2):
    """Make a table of moves by observation, those at the beginning apart."""
    names = list(traces.observations)
    table = np.tile(np.arange(states), (2 * len(names), 1))
    for name, row in dict(moves).items():
        table[names.index(name)] = row
    for name, row in dict(begins).items():
        table[names.index(name) + len(names)] = row
    labelling = LabelingFunction("observation")
    return events_of(traces, labelling, [(event_steps(traces, labelling, "observation"), table)])


def test_sources_with_the_same_moves_are_one_class():
    discovered = events(walks("saxbyabx"), {"a": [1, 1], "b": [1, 1], "x": [0, 0]})
    assert discovered.labelling == LabelingFunction(
        "observation", {"a": "a or b", "b": "a or b", "x": "x"}
    )
    assert discovered.timing is LabelTiming.CURRENT_WITH_INITIAL


def test_moves_that_were_never_made_keep_nothing_apart():
    """In state 1 "b" is never read, so that it stays there says nothing."""
    discovered = events(walks("sasas", "sbs"), {"a": [1, 0], "b": [1, 1]})
    assert discovered.labelling.events == {"a": "a or b", "b": "a or b"}


def test_a_move_that_was_never_made_is_no_event():
    assert events(walks("sas"), {"a": [0, 0]}).labelling.events == {}


def test_a_beginning_that_does_not_count_is_not_read():
    discovered = events(walks("aas", "saas"), {"a": [1, 1]})
    assert discovered.labelling.events == {"a": "a"}
    assert discovered.timing is LabelTiming.CURRENT


def test_a_beginning_that_moves_is_read():
    discovered = events(walks("csss", "dsss"), {}, {"c": [1, 1]})
    assert discovered.labelling.events == {"c": "c"}
    assert discovered.timing is LabelTiming.CURRENT_WITH_INITIAL


def test_a_beginning_that_acts_in_its_own_way_has_a_label_of_its_own():
    """Read later, "c" moves nothing, although it does so at the beginning; "a" the reverse."""
    discovered = events(walks("csss", "scss", "assa", "sass"), {"a": [1, 1]}, {"c": [1, 1]})
    assert discovered.labelling.reads == "action+observation"
    assert discovered.labelling.events == {("c",): "→ c or go → a", ("go", "a"): "→ c or go → a"}
    assert discovered.timing is LabelTiming.CURRENT_WITH_INITIAL
