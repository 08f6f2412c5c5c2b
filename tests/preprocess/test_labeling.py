"""Labels made of what is seen and done: on traces, live, and one the same as the other."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolvent.errors import OptionError, TraceError
from resolvent.preprocess.labeling import LABEL_ORIGINS, LabelingFunction, as_labeling_function
from resolvent.rl.collect import collect
from resolvent.traces import NO_EVENT, Trace, TraceSet
from resolvent.worlds import House
from strategies import trace_sets

MADE = LABEL_ORIGINS[1:]

made = pytest.mark.parametrize("reads", MADE)


def label_by_label(labeling: LabelingFunction, trace: Trace) -> list[Any]:
    """The labels of one trace, made one step after the other as in a live episode."""
    steps = zip(trace.actions, trace.observations[1:], strict=True)
    first = labeling.at_reset(trace.observations[0])
    return [first, *(labeling.after_step(done, seen) for done, seen in steps)]


@given(trace_sets(any_columns=True), st.sampled_from(MADE), st.data())
def test_traces_have_the_labels_that_a_live_episode_has(traces, reads, data):
    sources, _ = LabelingFunction(reads).sources(traces)
    events = data.draw(
        st.none() | st.dictionaries(st.sampled_from(sources), st.sampled_from(["a", "b"]))
    )
    labeling = LabelingFunction(reads, events)
    labelled = labeling.transform(traces)
    assert [list(trace.labels) for trace in labelled] == [
        label_by_label(labeling, trace) for trace in traces
    ]
    for before, after in zip(traces, labelled, strict=True):  # and nothing else is changed
        assert after == Trace(
            before.observations,
            after.labels,
            before.actions,
            before.rewards,
            before.terminated,
            before.truncated,
            columns=before.columns,
        )


@given(trace_sets(), st.sampled_from(MADE))
def test_deriving_labels_twice_changes_nothing(traces, reads):
    once = LabelingFunction(reads).transform(traces)
    assert LabelingFunction(reads).transform(once) == once


@given(trace_sets(), st.sampled_from(MADE))
def test_sources_that_differ_have_labels_that_differ(traces, reads):
    labeling = LabelingFunction(reads)
    sources, codes = labeling.sources(traces)
    assert len({labeling.source_name(one) for one in sources}) == len(sources)
    assert codes.max() < len(sources)


def test_names_distinguish_numbers_from_their_texts():
    traces = TraceSet([Trace([("7", 7), (7, "7")], [None] * 2, "a")])
    assert len(LabelingFunction("observation").transform(traces).labels) == 2
    names = [
        LabelingFunction("action").source_name(one)
        for one in (7, "7", True, "True", "a → b", "a#1")
    ]
    assert names == ["7", "'7'", "True", "'True'", "'a → b'", "'a#1'"]


def test_given_labels_stay():
    traces = collect(House(), episodes=3, seed=0)
    assert LabelingFunction().transform(traces) is traces


def test_an_unknown_source_is_no_event_where_events_are_named():
    labeling = LabelingFunction(
        "action+observation", {("up", "attic"): "climbed", ("hall",): "began"}
    )
    assert labeling.at_reset("hall") == {"began"}
    assert labeling.at_reset("attic") == NO_EVENT
    assert labeling.after_step("up", "attic") == {"climbed"}
    assert labeling.after_step("down", "attic") == NO_EVENT


def test_labeling_functions_as_text():
    assert str(LabelingFunction()) == "as recorded with each step"
    assert str(LabelingFunction("action")) == "each action is a separate event"
    assert str(LabelingFunction("observation", {})) == "no observation is an event"
    events = {("up", "attic"): "a", ("up", "loft"): "a", ("hall",): "b"}
    assert str(LabelingFunction("action+observation", events)).splitlines() == [
        "2 events, made of pairs of action and observation",
        "b: → hall",
        "a: up → attic, up → loft",
    ]


@pytest.mark.parametrize("word", ["obs", "", None, 3])
def test_an_unknown_origin_is_refused(word):
    with pytest.raises(OptionError, match=r"^labels=.*: use one of 'given', 'observation'"):
        as_labeling_function(word)


def test_labels_and_labeling_fn_exclude_each_other():
    with pytest.raises(
        OptionError, match="labels='observation' and labeling_fn both define labels"
    ):
        collect(House(), episodes=1, labels="observation", labeling_fn=lambda room: room)


# Live


@made
def test_collected_labels_are_those_made_afterwards(reads):
    plain = collect(House(), episodes=20, seed=0)
    assert collect(House(), episodes=20, seed=0, labels=reads) == LabelingFunction(reads).transform(
        plain
    )


@made
@pytest.mark.parametrize("autoreset", gym.vector.AutoresetMode, ids=lambda mode: mode.value)
def test_collected_labels_of_vector_environments_are_those_made_afterwards(reads, autoreset):
    def houses():
        return gym.vector.SyncVectorEnv([House] * 3, autoreset_mode=autoreset)

    options = {"episodes": 7, "seed": 0, "max_steps": 12}
    if autoreset is gym.vector.AutoresetMode.SAME_STEP:
        options["max_steps"] = None
    plain = collect(houses(), **options)
    assert collect(houses(), labels=reads, **options) == LabelingFunction(reads).transform(plain)


class Silent(gym.Wrapper[Any, Any, Any, Any]):
    """A world that tells no labels."""

    def reset(self, **options):
        observation, info = self.env.reset(**options)
        return observation, {key: info[key] for key in info if key != "labels"}

    def step(self, action):
        *outcome, _ = self.env.step(action)
        return *outcome, {}


def test_auto_takes_the_labels_there_are_and_else_none():
    options = {"episodes": 3, "seed": 0}
    collected = collect(House(), **options)
    assert collect(House(), labels="auto", **options) == collected
    silent = collect(Silent(House()), labels="auto", **options)
    assert list(silent.labels) == [NO_EVENT]
    assert silent == LabelingFunction("observation", {}).transform(collected)
    with pytest.raises(TraceError, match='the environment gives no label: pass labels="auto"'):
        collect(Silent(House()), **options)


def test_a_function_of_five_gets_all_arguments_and_is_called_at_reset():
    calls = []

    def labeling_fn(observation, action, reward, following, info):
        calls.append((observation, action, reward, following, sorted(info)))
        return "begins" if action is None else None

    traces = collect(
        House(), episodes=2, seed=0, max_steps=2, labeling_fn=labeling_fn, policy=lambda room: 2
    )
    assert [sorted(label) for label in traces[1].labels] == [["begins"], [], []]
    info = ["labels"]
    episode = [(None, None, None, 0, info), (0, 2, 0.0, 1, info), (1, 2, 0.0, 1, info)]
    assert calls == episode * 2


def test_a_function_of_five_gets_the_same_arguments_in_a_vector_env():
    def labeling_fn(observation, action, reward, following, info):
        if action is None:
            return f"begins in {following}"
        return f"{observation} {action} {float(reward)} {following} {sorted(info['labels'])}"

    options = {"episodes": 6, "seed": 0, "max_steps": 9, "labeling_fn": labeling_fn}
    envs = gym.vector.SyncVectorEnv([House] * 2, autoreset_mode=gym.vector.AutoresetMode.DISABLED)
    together = collect(envs, policy=lambda rooms: np.array([2, 2]), **options)
    alone = collect(House(), policy=lambda room: 2, **options)
    assert list(together) == list(alone)


def test_names_given_by_a_function():
    names = ["hall", "den", "bath", "sofa"]
    traces = collect(
        House(), episodes=5, seed=0, observation_fn=names.__getitem__, labels="action+observation"
    )
    plain = collect(House(), episodes=5, seed=0)
    rooms = dict(zip(House().observation_names, names, strict=True))
    assert [trace.observations for trace in traces] == [
        tuple(rooms[one] for one in trace.observations) for trace in plain
    ]
    assert frozenset({"→ hall"}) in traces.labels


@pytest.mark.parametrize(
    ("observation_fn", "says"),
    [
        (lambda room: None, r"observation_fn\(0\) gave None: a NoneType cannot be a symbol"),
        (lambda room: 1 / room, r"observation_fn\(0\) raised ZeroDivisionError"),
    ],
)
def test_observation_fn_that_returns_no_symbol_is_refused(observation_fn, says):
    with pytest.raises(TraceError, match=f"^episode 0: reset: {says}"):
        collect(House(), episodes=1, observation_fn=observation_fn)
    with pytest.raises(OptionError, match=r"observation_fn='room': give a function or None"):
        collect(House(), episodes=1, observation_fn="room")


@pytest.mark.parametrize(
    ("events", "says"),
    [
        ([("attic", "key")], "events is a list: give a mapping"),
        ("key", "events is a str: give a mapping"),
        ({"attic": 3}, "'attic' is named 3: give each event a name"),
        ({"attic": ""}, "'attic' is named '': give each event a name"),
        ({"attic": set()}, "give each event a name"),
        ({"attic": {"key", 3}}, "give each event a name"),
        ({None: "key"}, "a NoneType cannot be a symbol"),
        ({float("nan"): "key"}, "nan cannot be a symbol"),
    ],
)
def test_invalid_events_are_refused(events: Any, says: str) -> None:
    with pytest.raises(OptionError, match=says):
        LabelingFunction("observation", events)


def test_a_source_is_taken_as_traces_hold_it():
    assert LabelingFunction("observation", {np.int64(3): "key"}) == LabelingFunction(
        "observation", {3: "key"}
    )


def test_a_name_in_an_array_is_refused():
    with pytest.raises(OptionError, match="use one of 'given'"):
        as_labeling_function(np.array(["observation"]))  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="use one of 'given'"):
        LabelingFunction(np.array(["observation"]))  # type: ignore[arg-type]


def test_an_exception_of_the_function_becomes_one_line():
    def labeling_fn(observation):
        raise ValueError("first\nsecond")

    def observation_fn(observation):
        raise ValueError("first\nsecond")

    for function in ({"labeling_fn": labeling_fn}, {"observation_fn": observation_fn}):
        with pytest.raises(TraceError, match=r"raised ValueError: first\\nsecond$"):
            collect(House(), episodes=1, **function)
