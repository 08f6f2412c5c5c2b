"""Discovered events of worlds, and labels of tables computed by hand."""

from contextlib import suppress

import gymnasium as gym
import numpy as np
import pytest

import resolvent as rs
from resolvent.preprocess.event_discovery import events_of, label_candidates
from resolvent.preprocess.event_steps import event_steps
from resolvent.preprocess.labeling import LabelingFunction
from resolvent.preprocess.timing import LabelTiming
from resolvent.traces import Trace, TraceSet

BOTH = ("observation", "reward")


def blank(name, episodes, seed=0):
    """Traces of a built-in world that tell no events, and its true machines."""
    env = gym.make(f"resolvent/{name}-v0")
    traces = rs.collect(env, episodes=episodes, seed=seed)
    return LabelingFunction("observation", {}).transform(traces), env.unwrapped.machines()


def first_that_explains(traces, outputs=BOTH, **options):
    """The first candidate whose machines explain all traces, and these machines."""
    for group in label_candidates(traces, outputs, **options):
        for candidate in group:
            labeled = candidate.labeling.transform(traces)
            with suppress(rs.ContradictoryTraces):
                return candidate, rs.infer(
                    labeled, outputs=outputs, timing=candidate.timing, noise="none"
                ).machines
    return None


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
    candidate, machines = first_that_explains(traces)
    assert machines.transition.states == truth.transition.states
    assert machines.reward.states == truth.reward.states
    assert candidate.states["reward"] >= truth.reward.states


def test_events_of_the_phase_grid_are_the_cells_of_its_task():
    traces, _ = blank("PhaseGrid4", 100)
    discovered, _ = first_that_explains(traces)
    # Coffee and sofa; the stair, where the episode ends, need not be remembered.
    assert discovered.labeling.events == {(3, 0): "(3, 0)", (0, 1): "(0, 1)"}
    assert discovered.timing is LabelTiming.CURRENT


def test_without_memory_nothing_is_an_event():
    traces = TraceSet([Trace([0, 1, 0], [None] * 3, ["a", "b"], [0, 1])] * 3)
    discovered, machines = first_that_explains(traces)
    assert discovered.labeling == LabelingFunction("observation", {})
    assert machines.transition.states == machines.reward.states == 1


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
    discovered, machines = first_that_explains(TraceSet(traces), outputs)
    assert discovered.labeling == LabelingFunction("action", {"coin": "coin", "push": "push"})
    assert machines["response"].states == 2


def test_order_and_number_of_traces_and_their_labels_make_no_difference():
    traces, _ = blank("PhaseGrid3", 60)
    once = first_that_explains(traces)[0].labeling
    order = np.random.default_rng(0).permutation(np.tile(np.arange(60), 2))
    labelled = LabelingFunction("action").transform(traces.take(order))
    again = first_that_explains(labelled)[0].labeling
    assert again == once
    assert str(again) == str(once)


def test_random_traces_have_the_finest_labels_as_their_only_candidate():
    random = np.random.default_rng(0)
    coins = [Trace([0, int(side)], [None] * 2, ["toss"]) for side in random.integers(0, 2, 50)]
    groups = list(label_candidates(TraceSet(coins), ["observation"]))
    assert [[candidate.labeling.reads for candidate in group] for group in groups] == [
        ["action+observation"]
    ]
    with pytest.raises(rs.ContradictoryTraces, match="different next observations"):
        rs.infer(TraceSet(coins), outputs=["observation"], labels="auto", noise="none")


def test_without_time_there_are_no_events():
    traces, _ = blank("House", 50)
    groups = list(label_candidates(traces, BOTH, in_time=lambda: False))
    assert [[candidate.labeling for candidate in group] for group in groups] == [
        [LabelingFunction("observation"), LabelingFunction("action")],
        [LabelingFunction("action+observation")],
    ]


def test_a_search_for_a_smaller_machine_runs_whatever_the_engine():
    """Merging in the paper's order misses a machine that the discovery of events has found."""
    traces, _ = blank("House", 30)
    options = rs.InferenceOptions(engine="python")
    result = rs.infer(traces, labels="auto", strategy="rpni", options=options)
    assert [machine.states for machine in result.machines.values()] == [2, 2]


def test_the_time_limit_ends_the_search_for_events():
    traces, _ = blank("House", 50)
    assert rs.infer(traces, labels="auto").preprocessor.labeling.events is not None
    assert rs.infer(traces, labels="auto", time_limit=1e-6).preprocessor.labeling.events is None


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
        next(label_candidates(traces, outputs, **options))


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
    labeling = LabelingFunction("observation")
    return events_of(traces, labeling, [(event_steps(traces, labeling, "observation"), table)])


def test_sources_with_the_same_transitions_are_one_class():
    labeling, timing = events(walks("saxbyabx"), {"a": [1, 1], "b": [1, 1], "x": [0, 0]})
    assert labeling == LabelingFunction("observation", {"a": "a or b", "b": "a or b", "x": "x"})
    assert timing is LabelTiming.CURRENT_WITH_INITIAL


def test_transitions_never_read_do_not_separate_classes():
    """In state 1 "b" is never read, so that it stays there says nothing."""
    labeling, _ = events(walks("sasas", "sbs"), {"a": [1, 0], "b": [1, 1]})
    assert labeling.events == {"a": "a or b", "b": "a or b"}


def test_a_transition_never_read_is_no_event():
    assert events(walks("sas"), {"a": [0, 0]})[0].events == {}


def test_a_start_without_effect_is_not_read():
    labeling, timing = events(walks("aas", "saas"), {"a": [1, 1]})
    assert labeling.events == {"a": "a"}
    assert timing is LabelTiming.CURRENT


def test_a_start_that_changes_the_state_is_read():
    labeling, timing = events(walks("csss", "dsss"), {}, {"c": [1, 1]})
    assert labeling.events == {"c": "c"}
    assert timing is LabelTiming.CURRENT_WITH_INITIAL


def test_a_start_with_another_effect_has_a_separate_label():
    """Read later, "c" moves nothing, although it does so at the beginning; "a" the reverse."""
    labeling, timing = events(walks("csss", "scss", "assa", "sass"), {"a": [1, 1]}, {"c": [1, 1]})
    assert labeling.reads == "action+observation"
    assert labeling.events == {("c",): "→ c or go → a", ("go", "a"): "→ c or go → a"}
    assert timing is LabelTiming.CURRENT_WITH_INITIAL
