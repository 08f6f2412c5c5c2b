"""Numbers of observations, put into intervals that have names."""

import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resolvent.errors import MissingExtra, ModelError, OptionError, TraceError
from resolvent.preprocess.discretize import Discretizer
from resolvent.preprocess.labeling import LabelingFunction
from resolvent.preprocess.transform import Preprocessor
from resolvent.traces import Trace, TraceSet, as_symbol

readings = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False, width=32),
    st.integers(-30, 30).map(lambda tenths: tenths / 10),
)
shapes = st.sampled_from(["number", "row", "row with text", "mapping", "nested"])


def shaped(shape, number):
    """An observation of a shape, with numbers made of one."""
    text = "on" if number > 0 else "off"
    return {
        "number": number,
        "row": (number, -number / 3, 0.5),
        "row with text": (text, number, 7),
        "mapping": as_symbol({"heat": number, "door": text}),
        "nested": as_symbol({"place": [number, number / 7], "light": text, "level": 3}),
    }[shape]


@st.composite
def measured(draw):
    """Traces of observations of one shape, with numbers in them."""
    shape = draw(shapes)
    traces = []
    for _ in range(draw(st.integers(1, 4))):
        numbers = draw(st.lists(readings, min_size=2, max_size=9))
        seen = [shaped(shape, number) for number in numbers]
        traces.append(Trace(seen, [None] * len(seen), "a" * (len(seen) - 1)))
    return TraceSet(traces)


@st.composite
def fitted(draw, traces):
    method = draw(st.sampled_from(["quantile", "uniform"]))
    return Discretizer(method, draw(st.integers(2, 9))).fit(traces)


@given(st.data())
@settings(deadline=None)
def test_a_second_transformation_changes_nothing(data):
    traces = data.draw(measured())
    preprocessor = data.draw(fitted(traces))
    once = preprocessor.transform(traces)
    assert preprocessor.transform(once) == once


@given(st.data())
@settings(deadline=None)
def test_traces_are_discretized_as_each_observation_is(data):
    traces = data.draw(measured())
    preprocessor = data.draw(fitted(traces))
    transformed = preprocessor.transform(traces)
    for raw, read in zip(traces, transformed, strict=True):
        assert read.observations == tuple(map(preprocessor, raw.observations))
        assert (read.actions, read.labels) == (raw.actions, raw.labels)


@given(st.data(), st.randoms(use_true_random=False))
@settings(deadline=None)
def test_order_and_number_of_traces_make_no_difference(data, chance):
    traces = data.draw(measured())
    again = [*traces, *chance.choices(list(traces), k=3)]
    chance.shuffle(again)
    discretizer = Discretizer(data.draw(st.sampled_from(["quantile", "uniform"])), 3)
    assert discretizer.fit(traces) == discretizer.fit(TraceSet(again))


@given(st.data())
@settings(deadline=None)
def test_json_and_pickle_give_back_an_equal_one(data):
    traces = data.draw(measured())
    one = data.draw(fitted(traces))
    stored = Discretizer.from_dict(json.loads(json.dumps(one.as_dict())))
    for copy in (stored, pickle.loads(pickle.dumps(one))):  # noqa: S301
        assert copy == one
        assert hash(copy) == hash(one)
        assert copy.transform(traces) == one.transform(traces)


@given(st.lists(readings, min_size=2, max_size=60), st.integers(2, 9))
def test_quantile_intervals_are_not_empty_and_at_most_bins(numbers, bins):
    names = [Discretizer("quantile", bins).fit(numbers)(number) for number in numbers]
    made = dict(Discretizer("quantile", bins).fit(numbers).intervals_)[()]
    assert set(made.names) == set(names)
    assert len(made) <= min(bins, len(set(numbers)))


@pytest.mark.parametrize("bins", [2, 5, 8])
def test_quantiles_are_those_of_numpy(bins):
    numbers = np.random.default_rng(0).normal(size=5000)
    edges = np.array(dict(Discretizer("quantile", bins).fit(numbers).intervals_)[()].edges)
    exact = np.quantile(numbers, np.arange(1, bins) / bins)
    held = np.histogram(numbers, [-np.inf, *edges, np.inf])[0]
    assert np.abs(held - 5000 / bins).max() <= 0.02 * 5000 / bins + 1
    assert np.abs(edges - exact).max() < 0.05


@pytest.mark.parametrize("bins", [2, 5, 8])
def test_equal_widths_are_those_of_scikit_learn(bins):
    from sklearn.preprocessing import KBinsDiscretizer

    table = np.random.default_rng(1).normal(size=(400, 2)).round(2)
    theirs = KBinsDiscretizer(bins, encode="ordinal", strategy="uniform").fit(table)
    ours = Discretizer("uniform", bins).fit(table)
    codes = np.array(
        [
            [
                one.names.index(name)
                for (_, one), name in zip(ours.intervals_, ours(row), strict=True)
            ]
            for row in table
        ]
    )
    assert (codes != theirs.transform(table)).mean() <= 0.01


@pytest.mark.parametrize("seed", [0, 1])
def test_centers_are_as_good_as_those_of_scikit_learn(seed):
    from sklearn.preprocessing import KBinsDiscretizer

    chance = np.random.default_rng(seed)
    numbers = np.concatenate([chance.normal(at, 0.3, 300) for at in (-4, 0, 1.5, 9)])

    def output_counts(codes):
        parts = [numbers[codes == code] for code in np.unique(codes)]
        return sum(((part - part.mean()) ** 2).sum() for part in parts)

    theirs = KBinsDiscretizer(4, encode="ordinal", strategy="kmeans", subsample=None)
    ours = Discretizer("kmeans", 4).fit(numbers)
    codes = np.array([dict(ours.intervals_)[()].names.index(ours(number)) for number in numbers])
    assert output_counts(codes) <= 1.01 * output_counts(
        theirs.fit_transform(numbers.reshape(-1, 1))[:, 0]
    )
    assert ours.fit(chance.permutation(numbers)) == ours
    assert [ours(at) for at in (-4.0, 0.0, 1.5, 9.0)] == list(dict(ours.intervals_)[()].names)
    assert ours(9.0) == "about 9"


def test_options_have_the_names_of_the_constructor():
    halves = Discretizer(bins=2, columns=[0]).fit([[0.5, 1.0], [1.5, 2.0]])
    assert Discretizer(**halves.get_params()).fit([[0.5, 1.0], [1.5, 2.0]]) == halves
    assert halves.edges_ == {"[0]": [1.0]}


def test_a_reading_on_an_edge_lies_above_it():
    heat = Discretizer.at([18, 21.5])
    assert [heat(value) for value in (17.999, 18.0, 18, 21.5)] == [
        "below 18",
        "18…21.5",
        "18…21.5",
        "above 21.5",
    ]


def test_only_floats_are_readings_by_default():
    seen = [(0.5, 3, "on"), (1.5, 4, "off"), (2.5, 5, "on")]
    traces = TraceSet([Trace(seen, [None] * 3, "ab")])
    assert Discretizer(bins=2).fit(traces)((0.1, 9, "off")) == ("below 1.5", 9, "off")
    assert Discretizer(bins=2, ints=True).fit(traces)((0.1, 9, "off")) == (
        "below 1.5",
        "above 4",
        "off",
    )
    assert Discretizer(bins=2, columns=[1]).fit(traces)((0.1, 9, "off")) == (0.1, "above 4", "off")


def test_an_int_among_floats_is_a_reading():
    traces = TraceSet([Trace([(0.5, "a"), (2, "a"), (3.5, "b")], [None] * 3, "ab")])
    assert Discretizer(bins=3).fit(traces).transform(traces).observations[0] == ("1.5…2.5", "a")


def test_counts_may_differ_by_number():
    table = np.arange(40.0).reshape(20, 2)
    assert [len(one) for _, one in Discretizer(bins=[2, 5]).fit(table).intervals_] == [2, 5]


def test_a_number_that_never_changes_has_one_interval():
    preprocessor = Discretizer(bins=4).fit([[0.5, 1.0], [0.5, 2.0]])
    assert preprocessor((0.5, 1.0)) == preprocessor((7.5, 1.0)) == ("any number", "below 1.5")


def test_text_among_readings_stays():
    traces = TraceSet([Trace([(0.5,), ("broken",), (2.5,)], [None] * 3, "ab")])
    transformed = Discretizer(bins=2).fit(traces).transform(traces)
    assert transformed[0].observations == (("below 1.5",), ("broken",), ("above 1.5",))


def test_pictures_beside_readings_stay():
    seen = [as_symbol({"image": [[0.5, level]], "speed": level}) for level in (0.5, 1.5)]
    preprocessor = Discretizer(bins=2).fit(TraceSet([Trace(seen, [None] * 2, "a")]))
    assert preprocessor(seen[0]) == (("image", ((0.5, 0.5),)), ("speed", "below 1"))


def test_arrays_and_mappings_are_discretized():
    preprocessor = Discretizer.at({"heat": [20]})
    assert preprocessor({"heat": np.float32(18.5)}) == (("heat", "below 20"),)
    assert Discretizer.at({0: [1]})(np.array([0.5, 7.0])) == ("below 1", 7.0)


def test_actions_are_discretized_if_they_have_the_numbers():
    traces = TraceSet([Trace([0.5] * 4, [None] * 4, [0.2, 0.9, 0.4])])
    halves = Discretizer(bins=2, of="action").fit(traces)
    transformed = halves.transform(traces)
    assert transformed[0].actions == ("below 0.4", "above 0.4", "above 0.4")
    assert transformed[0].observations == traces[0].observations
    assert halves.transform(transformed) == transformed
    assert Discretizer.from_dict(halves.as_dict()) == halves
    assert halves.edges_ == {"the action": [0.4]}
    assert Discretizer.at([0.4], of="action").transform(traces) == transformed


def test_intervals_come_before_labels():
    traces = TraceSet([Trace([0.2, 0.9], [None] * 2, "a")])
    preprocessor = Preprocessor(LabelingFunction("observation"), Discretizer.at([0.5]))
    assert not preprocessor.is_identity
    transformed = preprocessor.transform(traces)
    assert transformed[0].labels == (frozenset({"below 0.5"}), frozenset({"above 0.5"}))
    assert preprocessor.transform(transformed) == transformed


row = TraceSet([Trace([(0.5, 1.5), (0.7, 2.5)], [None] * 2, "a")])
rooms = TraceSet([Trace(["hall", "attic"], [None] * 2, ["up"])])
picture = TraceSet([Trace([((0.5, 1), (2, 3)), ((1.5, 1), (2, 3))], [None] * 2, "a")])
mixed = TraceSet.from_columns(
    ([0.5, (0.5, 1.0)], [0, 1]),
    ([frozenset()], [0, 0]),
    (["a"], [0]),
    offsets=[0, 1],
    terminated=[False],
    truncated=[False],
)


@pytest.mark.parametrize(
    ("wrong", "kind", "message"),
    [
        (lambda: Discretizer("kmeens"), OptionError, "use one of 'quantile', 'uniform', 'kmeans'"),
        (lambda: Discretizer("given"), OptionError, "Discretizer.at with edges"),
        (lambda: Discretizer(bins=1), OptionError, "bins=1: give a whole number of at least 2"),
        (lambda: Discretizer(bins=2.5), OptionError, "bins=2.5: give a whole number"),
        (lambda: Discretizer(bins=[4, 1]), OptionError, "of at least 2, or a row"),
        (lambda: Discretizer(bins=[]), OptionError, "of at least 2, or a row"),
        (lambda: Discretizer(columns=[]), OptionError, "name each number once, and at least one"),
        (lambda: Discretizer(columns=[0, 0]), OptionError, "name each number once"),
        (lambda: Discretizer(columns=[0.5]), OptionError, "use indices in a row"),
        (lambda: Discretizer(of="reward"), OptionError, "use 'observation' or 'action'"),
        (
            lambda: Discretizer().fit(rooms),
            TraceError,
            r"Discretizer\(of='action'\) if actions have",
        ),
        (lambda: Discretizer(of="action").fit(rooms), TraceError, "actions have no numbers"),
        (lambda: Discretizer(bins=[2, 2, 2]).fit(row), OptionError, r"have 2 \(\[0\], \[1\]\)"),
        (lambda: Discretizer(columns=[2]).fit(row), OptionError, r"\[2\] is no number"),
        (lambda: Discretizer()(0.5), OptionError, "not fitted yet: call fit"),
        (lambda: Discretizer().transform(row), OptionError, "not fitted yet: call fit"),
        (lambda: Discretizer().fit(TraceSet()), TraceError, "there are no traces"),
        (lambda: Discretizer().fit([1, 2]), TraceError, "taken for symbols: pass ints=True"),
        (lambda: Discretizer().fit([0.5, np.nan]), TraceError, "row 1: nan is not finite"),
        (lambda: Discretizer().fit(["a"]), TraceError, "has no readings: give numbers"),
        (lambda: Discretizer().fit([]), TraceError, "has no readings"),
        (lambda: Discretizer().fit([[1.0], [1.0, 2.0]]), TraceError, "differ in length"),
        (lambda: Discretizer().fit(np.zeros((2, 2, 2))), TraceError, r"shape \(2, 2, 2\)"),
        (lambda: Discretizer().fit(picture), TraceError, "array of 2×2 numbers: pictures"),
        (lambda: Discretizer().fit(mixed), TraceError, "must have one shape"),
        (lambda: Discretizer(bins=2).fit(row)((0.5, 1.5, 2.5)), TraceError, "it has 3 parts"),
        (lambda: Discretizer(bins=2).fit(row)(0.5), TraceError, "a tuple of 2 parts should be"),
        (
            lambda: Discretizer(bins=2).fit(row).transform(mixed),
            TraceError,
            "observation 0.5: it is 0.5",
        ),
        (lambda: Discretizer.at([1])(float("inf")), TraceError, "readings must be finite"),
        (lambda: Discretizer.at([1])(True), TraceError, "True is not a number"),
        (lambda: Discretizer.at({"heat": [1]})((("cold", 1.0),)), TraceError, "no part 'heat'"),
        (lambda: Discretizer.at([1, 1]), OptionError, "edges must be strictly increasing"),
        (lambda: Discretizer.at(["a"]), OptionError, "edges must be a row of numbers"),
        (lambda: Discretizer.at([np.inf]), OptionError, "edges must be finite"),
        (lambda: Discretizer.at({}), OptionError, "at least one number"),
        (lambda: Discretizer.at([]), OptionError, r"edges=\[\]: give a row of at least one number"),
        (lambda: Discretizer.at({0: 3}), OptionError, "edges=3: give a row"),
        (lambda: Discretizer.at("12"), OptionError, "edges='12': give a row"),
        (lambda: Discretizer.at({0: [1], (0, 1): [2]}), OptionError, "name each number once"),
        (lambda: Discretizer.at({1: [1], "1": [1], (1, 0): [2]}), OptionError, "each number once"),
        (lambda: Discretizer(ints="no"), OptionError, "ints='no': choose True or False"),
        (lambda: Discretizer.from_dict({"method": "uniform"}), ModelError, "bins"),
    ],
)
def test_errors_have_one_line(wrong, kind, message):
    with pytest.raises(kind, match=message) as caught:
        wrong()
    assert "\n" not in str(caught.value)


def test_without_scikit_learn_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.cluster", None)
    with pytest.raises(MissingExtra, match=r"resolvent\[discretize\]"):
        Discretizer("kmeans", 2).fit([0.5, 1.5, 2.5])


def test_the_package_does_not_import_scikit_learn():
    code = "import sys, resolvent; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_row_of_one_number_is_that_number():
    at = Discretizer.at([18, 22])
    traces = TraceSet([Trace([[17.5], [20.0]], [None] * 2, ["wait"])])
    assert at(np.array([17.5])) == ("below 18",)
    assert at.transform(traces)[0].observations == (("below 18",), ("18…22",))
    assert at.transform(at.transform(traces)) == at.transform(traces)
    with pytest.raises(TraceError, match=r"it has 2 parts where a tuple of 1 part should be"):
        at((17.5, 20.0))


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"sizes": [{"at": [], "parts": "two"}]}, "parts='two'"),
        ({"sizes": [{"at": [], "parts": -1}]}, "parts=-1"),
        ({"intervals": []}, "name each number once, and at least one"),
        ({"intervals": [{"at": [0], "edges": [1]}] * 2}, "name each number once"),
        ({"intervals": [{"at": [[0]], "edges": [1]}]}, "use indices in a row"),
        ({"ints": "no"}, "ints='no'"),
        ({"edges": [1]}, "there is no edges"),
    ],
)
def test_fields_changed_by_hand_are_refused(changed, says):
    transformed = Discretizer(bins=2).fit([[0.5, 7.0], [1.5, 9.0]]).as_dict()
    with pytest.raises(ModelError, match=says):
        Discretizer.from_dict({**transformed, **changed})
