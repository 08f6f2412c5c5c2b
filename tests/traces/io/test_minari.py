import importlib.util
import itertools
import sys
import types
from pathlib import Path

import gymnasium as gym
import minari
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from minari.data_collector import EpisodeBuffer

from resolvent.errors import MissingExtra, OptionError, TraceError
from resolvent.rl.collect import collect
from resolvent.traces import Trace, TraceSet, read_traces, write_traces
from resolvent.worlds import House
from strategies import trace_sets

LABELS = [frozenset(), frozenset({"key"}), frozenset({"door", "key"})]
TRACES = TraceSet([Trace([0, 1, 2], LABELS, [1, 0], [0.0, 0.5], terminated=True)])
MULTI_HOT = {"door": [False, False, True], "key": [False, True, True]}

pytestmark = [
    # Minari warns of every unknown (author, code, …), and removes temporary folders late.
    pytest.mark.filterwarnings("ignore::UserWarning:minari"),
    pytest.mark.filterwarnings("ignore:Implicitly cleaning up:ResourceWarning"),
]

_numbers = itertools.count()


@pytest.fixture(scope="module", autouse=True)
def datasets(tmp_path_factory):
    folder = tmp_path_factory.mktemp("datasets")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINARI_DATASETS_PATH", str(folder))
        yield folder


def new_id():
    return f"test/data-v{next(_numbers)}"


def there_and_back(traces):
    name = f"minari:{new_id()}"
    traces.save(name)
    return read_traces(name)


def create(buffers, observations=None, actions=None, **options):
    """Make a dataset by Minari alone; return what names it."""
    dataset_id = new_id()
    minari.create_dataset_from_buffers(
        dataset_id,
        buffers,
        observation_space=observations or spaces.Discrete(3),
        action_space=actions or spaces.Discrete(2),
        **options,
    )
    return f"minari:{dataset_id}"


def episode(**changes):
    """The one episode of `TRACES`, as Minari takes it."""
    fields = {
        "observations": [0, 1, 2],
        "actions": [1, 0],
        "rewards": [0.0, 0.5],
        "terminations": [False, True],
        "truncations": [False, False],
        "infos": {"labels": ["", "key", "door & key"]},
    }
    return EpisodeBuffer(**(fields | changes))


class Corridor(gym.Env):
    """Walks through `TRACES`, labelled in the way that a test wants."""

    action_space = spaces.Discrete(2)

    def __init__(self, spell, space=None, show=int, key="labels"):
        self.observation_space = space or spaces.Discrete(3)
        self._spell, self._show, self._key = spell, show, key

    def _seen(self):
        return self._show(self._place), {self._key: self._spell(LABELS[self._place])}

    def reset(self, *, seed=None, options=None):
        self._place = 0
        return self._seen()

    def step(self, action):
        self._place += 1
        observation, info = self._seen()
        return observation, [0.0, 0.5][self._place - 1], self._place == 2, False, info


@pytest.fixture
def collector(monkeypatch):
    """Minari's own collector. It takes one function from JAX, which is large: lend it that."""

    def tree_map(function, tree, *rest):
        if isinstance(tree, dict):
            return {
                key: tree_map(function, value, *(other[key] for other in rest))
                for key, value in tree.items()
            }
        if isinstance(tree, tuple):
            return tuple(tree_map(function, *parts) for parts in zip(tree, *rest, strict=True))
        return function(tree, *rest)

    if importlib.util.find_spec("jax") is None:
        tree_util = types.SimpleNamespace(tree_map=tree_map)
        monkeypatch.setitem(sys.modules, "jax", types.SimpleNamespace(tree_util=tree_util))
        monkeypatch.setitem(sys.modules, "jax.tree_util", tree_util)

    def run(env, actions=(1, 0), **options):
        recorder = minari.DataCollector(env, **({"record_infos": True} | options))
        dataset_id = new_id()
        try:
            recorder.reset(seed=0)
            for action in actions:
                recorder.step(action)
            recorder.create_dataset(dataset_id)
        finally:
            recorder._tmp_dir.cleanup()  # after close() it would warn, at any later time
        return f"minari:{dataset_id}"

    return run


def text(label):
    return " & ".join(sorted(label))


def by_name(label):
    return {name: name in label for name in ("key", "door")}


# Writing and reading back


def test_the_house_comes_back_with_its_names():
    traces = collect(House(), episodes=20, seed=0)
    back = there_and_back(traces)
    assert back == traces
    assert back[0].observations[0] == "corridor"
    assert list(back.actions) == ["down", "left", "right", "sit", "up"]


@given(traces=trace_sets())
@settings(max_examples=25, deadline=None)
def test_any_traces_come_back(traces):
    assert there_and_back(traces) == traces


@pytest.mark.parametrize(
    "symbols",
    [
        [3, -2, 7],
        [-(2**63), 0, 2**63 - 1],
        [2**64, 0, 1],
        [0.1, -0.0, 3.0],
        ["", "é", "no\nevent"],
        ["a\0b", "a", "\0"],
        [True, False, True],
        [(1, 2), (3, 4), (1, 2)],
        [(1, 2.0), (1, 2.5), (1, 3.0)],
        [(1, True), (1, 1), (0, True)],
        [(), (1,), (1, 2)],
        [(("image", (0, 1)), ("mission", "go")), ((), "x"), ()],
    ],
    ids=str,
)
def test_symbols_come_back_as_they_were(symbols):
    traces = TraceSet([Trace(symbols, [[], [], []], symbols[:2], [0, 1], truncated=True)])
    back = there_and_back(traces)
    assert back == traces
    assert repr(list(back)) == repr(list(traces))


@pytest.mark.parametrize("ends", [(True, False), (False, True), (True, True), (False, False)])
def test_both_flags_come_back(ends):
    traces = TraceSet([Trace([0, 1], [[], []], [0], [0], *ends), TRACES[0]])
    assert there_and_back(traces) == traces


def test_what_others_see_in_a_written_dataset():
    dataset_id = new_id()
    write_traces(TRACES, f"minari:{dataset_id}")
    dataset = minari.load_dataset(dataset_id)
    assert dataset.observation_space == spaces.Discrete(3)
    assert dataset.action_space == spaces.Discrete(2)
    (seen,) = dataset.iterate_episodes()
    assert seen.observations.tolist() == [0, 1, 2]
    assert seen.infos["labels"].tolist() == [b"", b"key", b"door & key"]
    assert seen.terminations.tolist() == [False, True]
    house = TraceSet([Trace(["hall", "attic"], [[], []], [(0.5, 1.0)], [0])])
    write_traces(house, f"minari:{(named := new_id())}")
    dataset = minari.load_dataset(named)
    assert dataset.observation_space == spaces.Text(5, min_length=0, charset="achilt")
    assert dataset.action_space == spaces.Box(
        np.array([0.5, 1.0]), np.array([0.5, 1.0]), dtype=np.float64
    )


def test_a_path_names_a_dataset_too():
    path = Path(f"minari:{new_id()}")
    TRACES.save(path)
    assert read_traces(path) == TRACES


@pytest.mark.parametrize("label", [["a & b"], ["a &", "b"], ["no event"], ["a\0"]], ids=str)
def test_labels_that_would_be_read_as_others_are_not_written(datasets, label):
    dataset_id = new_id()
    with pytest.raises(TraceError, match=rf"^minari:{dataset_id}: the label .*write jsonl instead"):
        TraceSet([Trace([0, 1], [[], label], [0], [0])]).save(f"minari:{dataset_id}")
    assert not (datasets / dataset_id).exists()


def test_no_traces_are_not_written():
    with pytest.raises(TraceError, match="no traces to write to minari:"):
        TraceSet().save(f"minari:{new_id()}")


def test_a_dataset_is_never_replaced():
    name = f"minari:{new_id()}"
    TRACES.save(name)
    with pytest.raises(TraceError, match=f"{name} exists already.*minari delete"):
        TraceSet([TRACES[0], TRACES[0]]).save(name)
    assert read_traces(name) == TRACES


@pytest.mark.parametrize("error", [OSError("disk full\nbadly"), KeyboardInterrupt()], ids=repr)
def test_nothing_is_left_of_a_dataset_that_failed(datasets, monkeypatch, error):
    def fail(self, episodes):
        next(iter(episodes))
        raise error

    monkeypatch.setattr("minari.dataset._storages.hdf5_storage.HDF5Storage.update_episodes", fail)
    dataset_id = new_id()
    with pytest.raises((TraceError, KeyboardInterrupt)) as caught:
        TRACES.save(f"minari:{dataset_id}")
    if isinstance(error, OSError):
        assert str(caught.value) == f"minari:{dataset_id}: Minari fails: disk full"
    assert not (datasets / dataset_id).exists()


# Reading what others wrote


@pytest.mark.parametrize("data_format", ["hdf5", "arrow", "parquet"])
@pytest.mark.parametrize("key", ["labels", "label", "events"])
@pytest.mark.parametrize("spell", [text, by_name])
def test_what_minari_collected(collector, spell, key, data_format):
    name = collector(Corridor(spell, key=key), data_format=data_format)
    assert read_traces(name) == TRACES


def test_columns_of_booleans_are_named_by_number(collector):
    name = collector(Corridor(lambda label: np.array(["key" in label, "door" in label])))
    numbered = [frozenset(), frozenset("0"), frozenset("01")]
    assert read_traces(name)[0].labels == tuple(numbered)


@pytest.mark.parametrize(
    ("space", "show", "symbols"),
    [
        (spaces.Box(0, 9, (2,), np.float32), lambda t: np.array([t, 0.5], np.float32), (2.0, 0.5)),
        (spaces.Box(0, 9, (1, 2), np.int8), lambda t: np.array([[t, 1]], np.int8), ((2, 1),)),
        (spaces.MultiBinary(2), lambda t: np.array([t > 1, 0], np.int8), (1, 0)),
        (spaces.Text(3), lambda t: "abc"[: t + 1], "abc"),
        (
            spaces.Dict(where=spaces.Discrete(3), image=spaces.Box(0, 9, (2,), np.int64)),
            lambda t: {"where": t, "image": np.array([t, 1])},
            (("image", (2, 1)), ("where", 2)),
        ),
        (
            spaces.Tuple((spaces.Discrete(3), spaces.Dict(word=spaces.Text(3)))),
            lambda t: (t, {"word": "abc"[: t + 1]}),
            (2, (("word", "abc"),)),
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, gym.Space) else "",
)
def test_observations_of_every_space(collector, space, show, symbols):
    (trace,) = read_traces(collector(Corridor(text, space, show)))
    assert trace.observations[-1] == symbols
    assert trace.labels == tuple(LABELS)
    assert len(set(trace.observations)) == (2 if isinstance(space, spaces.MultiBinary) else 3)


def test_an_episode_that_was_cut_short_is_truncated(collector):
    (trace,) = read_traces(collector(Corridor(text), actions=[1]))
    assert (trace.observations, trace.terminated, trace.truncated) == ((0, 1), False, True)


def test_sets_stop_the_collector_until_they_are_spelled_out(collector):
    class SpellLabels(minari.StepDataCallback):
        def __call__(self, env, info, **step):
            labels = " & ".join(sorted(info["labels"]))
            return super().__call__(env, info={"labels": labels}, **step)

    with pytest.raises(TypeError, match="no native HDF5 equivalent"):
        collector(House(), actions=[3, 4])
    name = collector(House(), actions=[3, 4], step_data_callback=SpellLabels)
    (trace,) = read_traces(name)
    sofa = frozenset({"sofa"})
    assert trace == Trace([0, 3, 3], [[], sofa, sofa], [3, 4], [0, 0], terminated=True)


@pytest.mark.parametrize(
    "labels",
    [
        ["", "key", "door & key"],
        ["no event", "key", "key & door"],
        np.array([b"", b"key", b"door & key"]),
        MULTI_HOT,
        {name: np.array(truth, np.float32) for name, truth in MULTI_HOT.items()},
    ],
    ids=["text", "label_text", "bytes", "booleans", "numbers"],
)
def test_spellings_of_labels(labels):
    assert read_traces(create([episode(infos={"labels": labels})])) == TRACES


@pytest.mark.parametrize("data_format", ["hdf5", "parquet"])
def test_a_slash_in_the_name_of_a_proposition(data_format):
    infos = {"labels": {"hall/key": [False, True, False], "hall/a/b": [True, True, False]}}
    (trace,) = read_traces(create([episode(infos=infos)], data_format=data_format))
    both = frozenset({"hall/key", "hall/a/b"})
    assert trace.labels == (frozenset({"hall/a/b"}), both, frozenset())


def test_the_first_key_counts():
    infos = {"events": ["x"] * 3, "label": ["y"] * 3, "labels": ["", "key", "door & key"]}
    assert read_traces(create([episode(infos=infos)])) == TRACES


def test_progress_goes_from_episode_to_episode():
    heard = []
    read_traces(create([episode(), episode()]), progress=heard.append)
    assert heard == [0.5, 1.0]


def test_rewards_of_ints_and_negative_zero():
    (trace,) = read_traces(create([episode(rewards=np.array([-0.0, 1], np.float32))]))
    assert repr(trace.rewards) == "(0.0, 1.0)"
    (trace,) = read_traces(create([episode(rewards=[0, 2])]))
    assert repr(trace.rewards) == "(0.0, 2.0)"


# Labels made from what was seen


def test_labels_missing_from_a_dataset_are_made_by_a_function(collector):
    name = collector(Corridor(text), record_infos=False)
    assert read_traces(name, labeling_fn=LABELS.__getitem__) == TRACES


def test_a_label_function_comes_before_the_infos():
    (trace,) = read_traces(
        create([episode()]), labeling_fn=lambda place: {"end"} if place == 2 else ()
    )
    assert trace.labels == (frozenset(), frozenset(), frozenset({"end"}))


def test_a_label_function_is_called_for_each_observation():
    observed = []
    name = create([episode(infos=None), episode(infos=None)])
    read_traces(name, labeling_fn=lambda place: observed.append(int(place)))
    assert observed == [0, 1, 2] * 2


def test_a_label_function_of_a_whole_step():
    steps = []

    def labeling_fn(observation, action, following):
        steps.append((int(observation), int(action), int(following)))
        return {"back"} if action == 0 else None

    (trace,) = read_traces(create([episode(infos=None)]), labeling_fn=labeling_fn)
    assert steps == [(0, 1, 1), (1, 0, 2)]
    assert trace.labels == (frozenset(), frozenset(), frozenset({"back"}))


def test_a_label_function_sees_what_the_environment_shows(collector):
    space = spaces.Dict(
        image=spaces.Box(0, 9, (2, 2), np.uint8), more=spaces.Tuple((spaces.Text(3),))
    )

    def show(place):
        return {"image": np.full((2, 2), place, np.uint8), "more": ("abc"[: place + 1],)}

    def labeling_fn(observation):
        assert observation["image"].shape == (2, 2)
        (word,) = observation["more"]
        return {word} if observation["image"].max() == 2 else ()

    (trace,) = read_traces(
        collector(Corridor(text, space, show), record_infos=False), labeling_fn=labeling_fn
    )
    assert trace.labels == (frozenset(), frozenset(), frozenset({"abc"}))


def test_a_label_function_sees_symbols_where_codes_stand_for_them():
    mixed = TraceSet([Trace([("hall", 1), ("attic", 2)], [[], []], ["up"], [0])])
    name = f"minari:{new_id()}"
    mixed.save(name)
    (trace,) = read_traces(name, labeling_fn=lambda seen: seen[0])
    assert trace.labels == (frozenset({"hall"}), frozenset({"attic"}))


def test_what_is_wrong_with_a_label_function(tmp_path):
    name = create([episode(infos=None)])
    where = f"^{name}, episode 0: reset: labeling_fn"
    with pytest.raises(TraceError, match=where + r"\(.*\) gave 0.5: 0.5 cannot be a proposition"):
        read_traces(name, labeling_fn=lambda place: 0.5)
    with pytest.raises(TraceError, match=where + r"\(.*\) raised ZeroDivisionError"):
        read_traces(name, labeling_fn=lambda place: 1 / 0)
    with pytest.raises(OptionError, match="labeling_fn has 2 parameters"):
        read_traces(name, labeling_fn=lambda place, action: None)
    TRACES.save(tmp_path / "traces.jsonl")
    with pytest.raises(OptionError, match=r"traces\.jsonl holds its labels already"):
        read_traces(tmp_path / "traces.jsonl", labeling_fn=lambda place: None)


# What cannot be read


def refused(name):
    with pytest.raises(TraceError) as caught:
        read_traces(name)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(name)
    return message.removeprefix(name)


@pytest.mark.parametrize("infos", [None, {}, {"other": [1, 2, 3]}], ids=str)
def test_no_labels_were_recorded(infos):
    message = refused(create([episode(), episode(infos=infos)]))
    assert message.startswith(", episode 1: the infos hold no labels: record them by DataCollector")
    assert "record_infos=True" in message
    assert "pass labeling_fn=" in message


def test_where_no_episode_has_labels_there_is_no_event(collector):
    read = read_traces(collector(Corridor(text), record_infos=False))
    assert list(read.labels) == [frozenset()]


@pytest.mark.parametrize(
    "labels",
    [
        [0, 1, 2],
        [True, False, True],
        [0.5, 1.0, 2.0],
        np.array([[0, 2]] * 3),
        np.zeros((3, 2, 2), bool),
        {"key": [0, 1, 2]},
        {"key": ["a", "b", "c"]},
        {"key": np.zeros((3, 1))},
        {"key": [True, False, True], "door": [True]},
        {"key": [True, False, True], "hall": {"key": [True]}},
        {},
    ],
    ids=str,
)
def test_labels_that_cannot_be_read(labels):
    message = refused(create([episode(infos={"events": labels})]))
    assert message.startswith(', episode 0: info["events"] does not hold labels that can be read')
    assert 'info["labels"]' in message


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"infos": {"labels": ["", "key"]}}, "3 observations but 2 labels"),
        ({"infos": {"labels": ["", "a & ", ""]}}, "the label 'a & ' has a proposition without"),
        ({"infos": {"labels": np.array([b"", b"\xff", b""])}}, r"the label b'\xff' is not UTF-8"),
        ({"observations": [0, 1]}, "2 observations but 3 labels"),
        ({"actions": [1]}, "1 actions but 2 rewards"),
        ({"rewards": [0.0, np.nan]}, "rewards: step 1: the reward is nan"),
        ({"rewards": np.zeros((2, 1))}, "rewards: give each step one number"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_episodes_that_are_no_traces(changes, message):
    assert refused(create([episode(**changes)])).startswith(f", episode 0: {message}")


def test_observations_that_are_no_symbols():
    box = spaces.Box(-np.inf, np.inf, (2,))
    rows = np.array([[0, 0], [0, 1], [0, np.inf]], np.float32)
    message = refused(create([episode(observations=rows)], observations=box))
    assert message.startswith(", episode 0: observations: step 2: inf cannot be a symbol")


@pytest.mark.parametrize(
    ("codes", "space", "message"),
    [
        ([0, 1, 2], spaces.Discrete(3), "step 2: the code is 2, but the metadata list only"),
        ([0.5, 1, 0], spaces.Box(0, 1, ()), "the metadata list the meanings of codes, but these"),
    ],
)
def test_codes_without_a_meaning(codes, space, message):
    name = create([episode(observations=codes)], observations=space)
    storage = minari.load_dataset(name.removeprefix("minari:")).storage
    storage.update_metadata({"resolvent": {"observations": [["a", 1], ["b", 2]]}})
    assert refused(name).startswith(f", episode 0: observations: {message}")


def test_a_dataset_without_episodes():
    assert refused(create([])) == " holds no episodes"


def test_a_dataset_that_is_not_there():
    message = refused("minari:house/absent-v0")
    assert "is not on this machine: `minari list local`" in message
    assert "`minari download house/absent-v0`" in message


def test_a_damaged_dataset(datasets):
    dataset_id = new_id()
    TRACES.save(f"minari:{dataset_id}")
    (datasets / dataset_id / "data" / "main_data.hdf5").write_bytes(b"not HDF5")
    message = refused(f"minari:{dataset_id}")
    assert message.startswith(", episode 0: Minari fails: ")
    (datasets / dataset_id / "data" / "metadata.json").write_text("{")
    assert refused(f"minari:{dataset_id}").startswith(": Minari fails: ")


@pytest.mark.parametrize("name", ["", "house", "../house-v0", "/house-v0", "h/x-v0", "a b/c-v0"])
def test_names_that_are_no_ids(datasets, name):
    before = sorted(datasets.rglob("*"))
    for act in (read_traces, TRACES.save):
        with pytest.raises(TraceError, match=f"^minari:{name} does not name a Minari dataset"):
            act(f"minari:{name}")
    assert sorted(datasets.rglob("*")) == before


def test_a_dataset_takes_no_format():
    for act in (read_traces, TRACES.save):
        with pytest.raises(OptionError, match="is a Minari dataset: leave out the format 'jsonl'"):
            act("minari:house/absent-v0", format="jsonl")


@pytest.mark.parametrize("module", ["minari", "minari.dataset._storages.hdf5_storage"])
def test_without_minari_the_extra_is_named(monkeypatch, module):
    # The second stands for Minari without h5py or Pillow.
    name = f"minari:{new_id()}"
    TRACES.save(name)
    monkeypatch.setitem(sys.modules, module, None)
    for act in (lambda: read_traces(name), lambda: TRACES.save(f"minari:{new_id()}")):
        with pytest.raises(MissingExtra) as caught:
            act()
        assert str(caught.value) == (
            'Minari datasets need Minari and its storage: pip install "resolvent[minari]"'
        )


def test_further_columns_come_back_unasked():
    columns = {
        "cost": [3, 5], "price": [0.5, -1.0], "fault": [True, False], "word": ["", "é"],
        "place": [(1, 2), (3, 4)], "events": [("a", 1), ("b", 2)],
    }  # fmt: skip
    trace = Trace([0, 1, 2], LABELS, [1, 0], [0.0, 0.5], terminated=True, columns=columns)
    back = there_and_back(TraceSet([trace, trace]))
    assert list(back) == [trace, trace]
    assert repr(back[0]) == repr(trace)


@given(traces=trace_sets(any_columns=True))
@settings(max_examples=25, deadline=None)
def test_any_columns_come_back_or_are_refused(traces):
    odd = any("/" in name or "\0" in name or name == "." for name in traces.columns)
    if odd or "reward" not in traces.columns:
        with pytest.raises(TraceError, match="write jsonl instead"):
            there_and_back(traces)
    else:
        assert there_and_back(traces) == traces


def test_traces_that_minari_cannot_hold():
    plain = Trace([0, 1], [[], []], [0])
    with pytest.raises(TraceError, match="the traces have no rewards, and Minari needs them"):
        TraceSet([plain]).save(f"minari:{new_id()}")
    slashed = Trace([0, 1], [[], []], [0], [0], columns={"a/b": [1]})
    with pytest.raises(TraceError, match="Minari cannot hold a column `a/b`: write jsonl instead"):
        TraceSet([slashed]).save(f"minari:{new_id()}")


def test_columns_are_named_from_the_infos():
    infos = {
        "labels": ["", "key", "door & key"],
        "cost": np.array([9, 3, 4]),
        "word": ["reset", "a", "b"],
        "at": np.array([[0, 0], [0, 1], [1, 1]]),
    }
    name = create([episode(infos=infos)])
    assert read_traces(name) == TRACES
    columns = read_traces(name, columns=["cost", "word", "at"])[0].columns
    assert columns == {"cost": (3, 4), "word": ("a", "b"), "at": ((0, 1), (1, 1))}
    message = r"episode 0: .* no column `cots`: there are at, cost, word"
    with pytest.raises(TraceError, match=message):
        read_traces(name, columns=["cots"])


def test_columns_from_another_storage_of_minari():
    infos = {"labels": MULTI_HOT, "cost": [9, 3, 4], "near": {"end": [False, False, True]}}
    name = create([episode(infos=infos)], data_format="arrow")
    columns = read_traces(name, columns=["cost", "near"])[0].columns
    assert columns == {"cost": (3, 4), "near": ((("end", False),), (("end", True),))}
