from math import inf, nan

import numpy as np
import pytest

import resolvent as rs
from own_strategies import MostAgreeing, Timid
from resolvent.errors import OptionError
from resolvent.inference.engine import merge
from resolvent.inference.merge_order import BestFirst, FirstFit, StrategyCalls
from resolvent.inference.state_merging import build_prefix_tree
from resolvent.inference.strategy import STRATEGIES, Strategy
from resolvent.machines.build import RawMergeEvent
from strategies import sample_set

# A light switch: label 0 toggles, alpha 0 tells.
SWITCH = sample_set([[(-1, 0, 0), (0, 0, 1), (0, 0, 0), (0, 0, 1)]])


class Saying(Strategy):
    """Gives what it is told to give."""

    name = "saying"

    def __init__(self, score=0.0, fits=True):
        self.given_score, self.given_fits = score, fits

    def fits(self, known, new):
        return self.given_fits

    def score(self, merge):
        return self.given_score


class Raising(Saying):
    name = "raising"

    def fits(self, known, new):
        return known[99].output == new[99].output

    def score(self, merge):
        raise self.given_score


def calls_of(strategy):
    return StrategyCalls(strategy, SWITCH, build_prefix_tree(SWITCH))


def test_the_order_is_the_strategy_s():
    assert isinstance(calls_of(STRATEGIES["rpni"]).order(), FirstFit)
    order = calls_of(Saying()).order()
    assert isinstance(order, BestFirst)
    assert order.horizon == 1024


def test_only_overridden_fits_is_called():
    assert not calls_of(STRATEGIES["edsm"]).has_own_fits
    assert calls_of(MostAgreeing()).has_own_fits
    assert calls_of(Saying()).has_own_fits


@pytest.mark.parametrize("score", [0, -3.5, np.float32(2), np.int64(7), inf, 10**400])
def test_any_number_will_do_as_a_score(score):
    assert merge(SWITCH, order=Saying(score)).states == 2


def test_all_merges_refused_leave_the_prefix_tree():
    for strategy in (Saying(-inf), Saying(fits=False), Saying(fits=np.False_)):
        found = merge(SWITCH, order=strategy)
        assert found.states == found.tree_nodes == 4
        assert found.events == tuple(RawMergeEvent(None, blue, 0, 0) for blue in (1, 2, 3))


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        (Saying("high"), r"score\(\) gave 'high': return a number, or -inf to refuse the merge"),
        (Saying(None), r"score\(\) gave None: return a number"),
        (Saying(nan), r"score\(\) gave nan: return a number"),
        (Saying(True), r"score\(\) gave True: return a number"),
        (Saying(1j), r"score\(\) gave 1j: return a number"),
        (Saying("x" * 10_000), r"score\(\) gave 'xx+\.\.\.xx+': return a number"),
        (Saying(fits=None), r"fits\(\) gave None: return True or False"),
        (Saying(fits=1), r"fits\(\) gave 1: return True or False"),
    ],
)
def test_invalid_return_values_are_reported_in_one_line(strategy, message):
    with pytest.raises(OptionError, match=f"^strategy 'saying': {message}") as caught:
        merge(SWITCH, order=strategy)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 150


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ZeroDivisionError("division by zero"), "ZeroDivisionError: division by zero"),
        (ValueError(), "ValueError"),
        (RuntimeError("two\nlines"), r"RuntimeError: two\\nlines"),
        (rs.errors.TimeLimitReached("enough"), "TimeLimitReached: enough"),
    ],
)
def test_exceptions_of_a_strategy_are_the_cause(error, said):
    strategy = Raising(error)
    strategy.fits = lambda known, new: True
    message = rf"^strategy 'raising': score\(\) raised {said}; correct it and infer again$"
    with pytest.raises(OptionError, match=message) as caught:
        merge(SWITCH, order=strategy)
    assert caught.value.__cause__ is error


def test_a_failing_fits_is_named():
    with pytest.raises(OptionError, match=r"fits\(\) raised KeyError: 99; correct it"):
        merge(SWITCH, order=Raising())


def test_a_method_with_the_wrong_parameters_is_named():
    class Wrong(Strategy):
        name = "wrong"

        def score(self):
            return 1

    with pytest.raises(
        OptionError, match=r"strategy 'wrong': score\(\) raised TypeError: .*takes 1"
    ):
        merge(SWITCH, order=Wrong())


def test_ctrl_c_is_no_fault_of_the_strategy():
    strategy = Raising(KeyboardInterrupt())
    strategy.fits = lambda known, new: True
    with pytest.raises(KeyboardInterrupt):
        merge(SWITCH, order=strategy)


def test_states_without_a_fit_are_promoted_before_any_merge():
    """Node 2 (label 1) shares no query with the root, and so is kept apart from it.

    Node 1 (label 0) would teach the root that query, but merges come second. Node 3,
    below node 2, shares one with the root.
    """
    samples = sample_set([[(-1, 0, 0), (0, 0, 0), (-1, 1, 5)], [(1, 1, 5), (1, 0, 0)]])
    found = merge(samples, order=Timid())
    assert [event.blue for event in found.events if event.red is None] == [2]
    assert found.access.tolist() == [0, 2]
    assert found.transition_target.tolist() == [0, 1, 0]
