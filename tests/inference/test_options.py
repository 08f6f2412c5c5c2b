import contextlib
import inspect
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

import resolvent as rs
from own_strategies import MostAgreeing
from resolvent._util.text import descriptions
from resolvent.inference.options import InferenceOptions
from resolvent.inference.strategy import STRATEGIES
from resolvent.preprocess.timing import LabelTiming

SHAPING = st.fixed_dictionaries(
    {},
    optional={
        "outputs": st.lists(st.sampled_from(["observation", "reward", "cost"]), min_size=1).map(
            lambda names: list(dict.fromkeys(names))
        ),
        "strategy": st.sampled_from([*STRATEGIES]),
        "timing": st.sampled_from(LabelTiming),
        "trivial": st.one_of(st.just("auto"), st.lists(st.sampled_from(["key", "sofa"]))),
        "supplement": st.booleans(),
        "remove_redundant": st.booleans(),
        "reward_digits": st.one_of(st.none(), st.integers(0, 5)),
        "seed": st.integers(0, 2**63),
        "effort": st.floats(0, 10, exclude_min=True),
    },
)


@given(SHAPING)
def test_options_survive_a_file(given_options):
    options = InferenceOptions(**given_options)
    again = InferenceOptions.from_dict(options.as_dict())
    assert again.as_dict() == options.as_dict()
    assert (again.strategy, again.timing, again.outputs) == (
        options.strategy,
        options.timing,
        options.outputs,
    )


def test_every_option_is_described_once():
    """`infer` takes the common ones as keywords, with the same defaults and descriptions."""
    assert descriptions(InferenceOptions).keys() == {
        field.name for field in fields(InferenceOptions)
    }
    parameters = inspect.signature(rs.infer).parameters
    common = parameters.keys() - {"traces", "options", "progress"}
    assert common < descriptions(InferenceOptions).keys()
    assert len(parameters) == 11
    assert {name: descriptions(rs.infer)[name] for name in common} == {
        name: descriptions(InferenceOptions)[name] for name in common
    }
    for name in common:  # a user's form of a value becomes the one that the option holds
        stated = InferenceOptions(**{name: parameters[name].default})
        assert getattr(stated, name) == getattr(InferenceOptions(), name)


def test_keywords_replace_the_options_that_they_differ_from():
    traces = rs.TraceSet([rs.Trace(["a", "b"], [None, "x"], ["go"], [1])])
    base = InferenceOptions(noise="none", seed=3, effort=2)
    assert rs.infer(traces, options=base).options == base
    result = rs.infer(traces, seed=5, labels="observation", options=base)
    assert result.options == InferenceOptions(noise="none", seed=5, effort=2, labels="observation")
    assert result.options.timing is LabelTiming.CURRENT_WITH_INITIAL
    lagged = rs.infer(traces, labels="observation", options=InferenceOptions(timing="lagged"))
    assert lagged.options.timing is LabelTiming.LAGGED
    with pytest.raises(rs.OptionError, match=r"options=\{'effort': 2\}: give InferenceOptions"):
        rs.infer(traces, options={"effort": 2})


def test_a_file_does_not_store_the_strategy():
    found = InferenceOptions(engine="python", time_limit=5, refine=True)
    assert found.as_dict() == InferenceOptions().as_dict()
    for name in ("engine", "time_limit", "refine"):
        with pytest.raises(rs.errors.ModelError, match=f"no option `{name}`"):
            InferenceOptions.from_dict({name: None})


def test_options_of_another_version_are_refused_by_name():
    with pytest.raises(rs.errors.ModelError, match=r"no option `colour` \(colour\)"):
        InferenceOptions.from_dict({"colour": "red"})
    with pytest.raises(rs.errors.ModelError, match=r"Expected `int`.*\(seed\)"):
        InferenceOptions.from_dict({"seed": "seven"})


def test_an_own_strategy_is_passed_beside_the_file():
    stored = InferenceOptions(strategy=MostAgreeing()).as_dict()
    with pytest.raises(rs.errors.ModelError, match="which is not built in"):
        InferenceOptions.from_dict(stored)
    assert InferenceOptions.from_dict(stored, MostAgreeing()).strategy == MostAgreeing()


@pytest.mark.parametrize("name", [field.name for field in fields(InferenceOptions)])
@pytest.mark.parametrize(
    "odd", [None, -1, 1.5, [], {}, object()], ids=lambda odd: type(odd).__name__
)
def test_any_value_is_accepted_or_refused(name, odd):
    with contextlib.suppress(rs.OptionError):
        InferenceOptions(**{name: odd})
