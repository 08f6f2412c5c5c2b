"""Edges that are found where they help to tell what comes next."""

import random
import sys

import numpy as np
import pytest

import resolvent as rs
from resolvent.errors import TraceError
from resolvent.preprocess.auto_discretize import auto_discretize
from resolvent.preprocess.discretize import Discretizer
from resolvent.preprocess.labeling import LabelingFunction
from resolvent.preprocess.transform import Preprocessor
from resolvent.traces import Trace, TraceSet

# By its path, the package's function of this name would be found.
module = sys.modules[auto_discretize.__module__]


def thermostat(seed, days=20, minutes=200, drift=0.3):
    """Logs of a heater that is on from below 18 degrees until 22 are reached."""
    chance, logs = random.Random(seed), []
    for _ in range(days):
        heat, on, heats = chance.uniform(17, 23), False, []
        seen = [round(heat, 2)]
        for _ in range(minutes):
            on = seen[-1] < 18 or (on and seen[-1] < 22)
            heats.append("on" if on else "off")
            heat += (0.37 if on else -0.29) + chance.gauss(0, drift)
            seen.append(round(heat, 2))
        logs.append(Trace(seen, [None] * len(seen), ["wait"] * minutes, columns={"heater": heats}))
    return TraceSet(logs)


def edges(discretize):
    return {position: intervals.edges for position, intervals in discretize.intervals_}


@pytest.mark.parametrize("drift", [0.05, 0.3])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_edges_of_a_thermostat_are_found(seed, drift):
    fitted = auto_discretize(thermostat(seed, drift=drift), ["heater"])
    assert edges(fitted) == {(): pytest.approx((18, 22), abs=0.02)}
    preprocessor = Preprocessor(LabelingFunction("observation"), fitted)
    result = rs.infer(
        preprocessor.transform(thermostat(seed, drift=drift)),
        outputs=["heater"],
        timing="current-with-initial",
    )
    assert result.machines["heater"].states == 2
    score = result.machines.score(preprocessor.transform(thermostat(7, drift=drift)))["heater"]
    assert score.unseen == 0
    assert score.wrong <= 4  # of 4,000: within the gap between readings an edge is a guess


def as_log(traces):
    """The same as a log: temperatures are inputs, and the heater is the answer."""
    return TraceSet(
        Trace(
            ["nothing"] * len(one.observations),
            [None] * len(one.observations),
            one.observations[:-1],
            columns=one.columns,
        )
        for one in traces
    )


def test_inputs_of_a_log_are_discretized():
    fitted = auto_discretize(as_log(thermostat(0)), ["heater"])
    assert edges(fitted) == {(): pytest.approx((18, 22), abs=0.02)}
    assert str(fitted) == "the action: below 18, 18…22, above 22"
    preprocessor = Preprocessor(LabelingFunction("action"), fitted)
    machines = rs.infer(preprocessor.transform(as_log(thermostat(0))), outputs=["heater"]).machines
    assert machines["heater"].states == 2
    score = machines.score(preprocessor.transform(as_log(thermostat(7))))["heater"]
    assert (score.right, score.wrong, score.unseen) == (4000, 0, 0)


def test_order_and_number_of_traces_make_no_difference():
    logs = thermostat(0, days=12, minutes=100)
    again = [*logs, *list(logs)[3:7]]
    random.Random(1).shuffle(again)
    for outputs in (["heater"], None):
        assert auto_discretize(TraceSet(again), outputs) == auto_discretize(logs, outputs)


def test_the_sampled_steps_do_not_depend_on_the_order_of_traces(monkeypatch):
    monkeypatch.setattr(module, "MOST_STEPS", 700)
    logs = thermostat(0, days=12, minutes=100)
    mixed = list(logs)
    random.Random(1).shuffle(mixed)
    assert auto_discretize(TraceSet(mixed)) == auto_discretize(logs)


def test_a_useless_number_gets_no_edge():
    chance = np.random.default_rng(0)
    noise, pays = chance.normal(size=(801, 2)), []
    for number, (first, _) in enumerate(noise[:-1]):
        pays.append(float(first > 0.5) if number % 2 else 0.0)
    seen = [(first, other, str(number % 2)) for number, (first, other) in enumerate(noise.tolist())]
    fitted = auto_discretize(TraceSet([Trace(seen, [None] * 801, "a" * 800, pays)]))
    assert edges(fitted) == {(0,): (pytest.approx(0.5, abs=0.02),), (1,): ()}
    assert fitted(seen[0])[1:] == ("any number", "0")


def test_no_number_has_more_intervals_than_allowed(monkeypatch):
    walk = np.random.default_rng(0).normal(size=2001).cumsum().tolist()
    traces = TraceSet([Trace(walk, [None] * 2001, "a" * 2000)])
    assert len(edges(auto_discretize(traces))[()]) > 3
    monkeypatch.setattr(module, "BINS", 3)
    assert len(edges(auto_discretize(traces))[()]) == 2


def test_an_edge_lies_exactly_where_outputs_change():
    chance = random.Random(0)
    seen = [chance.uniform(0, 10) for _ in range(3001)]
    rings = [number >= 3.7 for number in seen[:-1]]
    trace = Trace(seen, [None] * 3001, "a" * 3000, columns={"rings": rings})
    fitted = auto_discretize(TraceSet([trace]), ["rings"])
    ((edge,),) = edges(fitted).values()
    assert max(one for one in seen if one < 3.7) < edge <= min(one for one in seen if one >= 3.7)


def test_the_result_can_be_stored_and_applied_twice():
    fitted = auto_discretize(thermostat(0, days=3), ["heater"])
    assert fitted.method == "auto"
    assert Discretizer.from_dict(fitted.as_dict()) == fitted
    logs = thermostat(0, days=3)
    assert fitted.transform(fitted.transform(logs)) == fitted.transform(logs)
    assert fitted.fit(thermostat(1, days=3)) == fitted


symbols = TraceSet([Trace(["hall", "attic"], [None] * 2, ["up"])])


@pytest.mark.parametrize(
    ("wrong", "kind", "message"),
    [
        (lambda: auto_discretize(thermostat(0, 1), ["heat"]), TraceError, "no column `heat`"),
        (lambda: auto_discretize(symbols), TraceError, "no numbers to put into intervals"),
        (lambda: auto_discretize(TraceSet()), TraceError, "there are no traces"),
    ],
)
def test_errors_have_one_line(wrong, kind, message):
    with pytest.raises(kind, match=message) as caught:
        wrong()
    assert "\n" not in str(caught.value)
