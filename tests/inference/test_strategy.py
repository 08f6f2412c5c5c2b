import pickle
from dataclasses import FrozenInstanceError

import pytest

import resolvent as rs
from own_strategies import AtLeast, FirstInOrder, MostAgreeing, Timid, Weighted
from resolvent.errors import OptionError
from resolvent.inference.strategy import STRATEGIES, Strategy, engine_for, strategy_named

OWN = [MostAgreeing(), FirstInOrder(), AtLeast(2), Weighted(3), Timid()]


def test_the_default_comes_first():
    assert list(STRATEGIES) == [
        "auto",
        "edsm",
        "rpni",
        "likelihood",
        "backtracking",
        "search",
        "exact",
    ]


def test_attributes_of_built_in_strategies():
    def those_that(fact):
        return [name for name, one in STRATEGIES.items() if getattr(one, fact)]

    assert those_that("merges") == ["auto", "edsm", "rpni", "likelihood", "backtracking"]
    assert those_that("refines") == [
        "auto",
        "edsm",
        "likelihood",
        "backtracking",
        "search",
        "exact",
    ]
    assert those_that("keeps_labels") == ["search", "exact"]
    assert those_that("searches") == ["auto", "search", "exact"]
    assert those_that("proves") == ["exact"]
    assert those_that("first_fit") == ["rpni"]


def test_a_strategy_is_a_name_or_an_object():
    assert strategy_named("edsm") is STRATEGIES["edsm"]
    assert strategy_named(STRATEGIES["exact"]) is STRATEGIES["exact"]
    own = AtLeast(3)
    assert strategy_named(own) is own


@pytest.mark.parametrize("strategy", [*STRATEGIES.values(), *OWN], ids=str)
def test_strategies_are_values(strategy):
    again = pickle.loads(pickle.dumps(strategy))  # noqa: S301
    assert again == strategy
    assert hash(again) == hash(strategy)
    assert strategy_named(again).name == str(strategy)
    assert sum(strategy == other for other in (*STRATEGIES.values(), *OWN)) == 1


def test_parameters_are_part_of_a_strategy():
    assert AtLeast(2) != AtLeast(3)
    assert Weighted(2) != Weighted(3)
    assert repr(AtLeast(2)) == "AtLeast(answers=2)"
    assert repr(Weighted(2)) == "Weighted(horizon=2)"
    assert MostAgreeing() != "most agreeing"


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=str)
def test_built_in_strategies_are_immutable(strategy):
    with pytest.raises(FrozenInstanceError):
        strategy.refines = None


@pytest.mark.parametrize(
    ("asked", "engine"), [("native", "native"), ("python", "python")], ids=["native", "python"]
)
def test_orders_run_on_either_engine(asked, engine):
    assert [engine_for(STRATEGIES[name], asked) for name in ("edsm", "rpni")] == [engine, engine]


@pytest.mark.parametrize("name", ["likelihood", "backtracking", "search", "exact"])
def test_other_strategies_run_natively_or_not_at_all(name):
    assert engine_for(STRATEGIES[name], "native") == "native"
    message = f"engine 'python' has no strategy '{name}': use engine 'native'"
    with pytest.raises(OptionError, match=message):
        engine_for(STRATEGIES[name], "python")
    with pytest.raises(OptionError, match=message):
        rs.infer(TRACES, strategy=name, options=rs.InferenceOptions(engine="python"))


# ---- strategies that cannot be asked ---------------------------------------

TRACES = rs.TraceSet(
    [rs.Trace([0] * 4, [None, "a", "a", "b"], ["go"] * 3, [0, 1, 0])],
)


def score(self, merge):
    return merge.agreeing


def own(**attributes):
    """An object of a class written by somebody, with these attributes."""
    return type("Own", (Strategy,), attributes)()


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        (
            "bfs",
            "unknown strategy 'bfs': choose one of auto, edsm, rpni, likelihood, backtracking",
        ),
        ("", "unknown strategy '': choose one of"),
        (MostAgreeing, r"strategy MostAgreeing is a class: give MostAgreeing\(...\)"),
        (7, "strategy=7: choose one of auto, .* derived from resolvent.inference.Strategy"),
        (None, "strategy=None: choose one of auto"),
        (own(score=score), "strategy Own has no name: set name = '...' in its class"),
        (own(score=score, name=""), "strategy Own has no name"),
        (own(score=score, name=3), "strategy Own has no name"),
        (own(score=score, name="two\nlines"), "strategy Own has no name"),
        (
            own(score=score, name="edsm"),
            "has the name of a built-in strategy, 'edsm': choose another",
        ),
        (own(name="mine"), r"strategy Own has no method score\(merge\): define one"),
        (own(name="mine", score=1), r"strategy Own has no method score\(merge\)"),
        (own(name="mine", score=score, fits=True), r"has no method fits\(known, new\)"),
        (own(name="mine", score=score, horizon=0), "horizon=0: choose a number above 0"),
        (own(name="mine", score=score, horizon="far"), "horizon='far'"),
        (own(name="mine", score=score, refines="no"), "refines is 'no': choose True or False"),
        (
            own(name="mine", score=score, proves=True),
            "sets proves, which only built-in strategies may",
        ),
    ],
)
def test_invalid_strategies_are_refused_before_any_work(strategy, message):
    with pytest.raises(OptionError, match=message) as caught:
        rs.infer(TRACES, strategy=strategy)
    assert "\n" not in str(caught.value)


def test_a_strategy_in_the_paper_s_order_needs_no_score():
    assert rs.infer(TRACES, strategy=own(name="mine", first_fit=True)).reward.states == 2
