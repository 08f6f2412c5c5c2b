"""Values without the luck of the counts, and plans that have no bound."""

import numpy as np
import pytest

import resolvent as rs
from chance_worlds import learned
from resolvent.planning.calibration import ReturnErrors
from resolvent.traces import Trace, TraceSet


def arms(seed: int, number: int = 12, plays: int = 15) -> TraceSet:
    """Return plays of equal arms, which are paid 1 or 0 by a coin."""
    wins = np.random.default_rng(seed).integers(2, size=(number, plays)).astype(float)
    return TraceSet(
        Trace(["x", "y"], [None, None], [f"arm {arm:02}"], [win], terminated=True)
        for arm in range(number)
        for win in wins[arm].tolist()
    )


def test_the_value_of_the_luckiest_arm_is_not_its_mean() -> None:
    plans = [rs.plan(learned(arms(seed)), arms(seed)) for seed in range(12)]
    means = np.mean([plan.model.mean_at_starts(plan.values) for plan in plans])
    values = np.mean([plan.value for plan in plans])
    assert means > 0.65  # the best of 12 means of 15 coins
    assert values < means - 0.08  # equal arms are the worst case: 0.71 of the luck is seen
    assert all(plan.optimism > 0 for plan in plans)


def test_a_clear_choice_has_no_optimism() -> None:
    def plays(action: str, *wins: float) -> list[Trace]:
        return [Trace(["x", "y"], [None] * 2, [action], [win], terminated=True) for win in wins]

    traces = TraceSet(
        plays("good", *[1.0] * 95, *[0.0] * 5) + plays("bad", *[0.0] * 95, *[1.0] * 5)
    )
    plan = rs.plan(learned(traces), traces)
    assert (plan.optimism, plan.value) == (0.0, pytest.approx(0.95))


def chain(episodes: int, length: int, shows_time: bool) -> TraceSet:
    """A cue, noise bits, and a question about the cue, which is answered at random."""
    random, traces = np.random.default_rng(0), []
    for cue in random.integers(2, size=episodes).tolist():
        bits, answer = random.integers(2, size=length - 1).tolist(), int(random.integers(2))
        seen = [f"bit {bit}" + f" at {at}" * shows_time for at, bit in enumerate(bits)]
        observations = [f"cue {cue}", *seen, "question", "end"]
        actions = [*random.integers(2, size=length).tolist(), answer]
        rewards = [0.0] * length + [1.0 if answer == cue else -1.0]
        labels = [frozenset({f"cue {cue}"}), *[frozenset[str]()] * (length + 1)]
        traces.append(Trace(observations, labels, actions, rewards, terminated=True))
    return TraceSet(traces)


def test_time_that_does_not_show_is_found_in_the_returns() -> None:
    traces = chain(400, 20, shows_time=False)
    plan = rs.plan(learned(traces, timing="current-with-initial"), traces)
    best = 0.95**20
    assert plan.model.mean_at_starts(plan.values) > 1.3 * best
    assert plan.value == pytest.approx(best, rel=0.05)
    assert (plan.bound, plan.largest_gap, plan.is_optimal) == (np.inf, np.inf, False)
    assert "bound        not known: the model predicts 0.1" in str(plan)
    assert "more than the traces were paid" in str(plan)
    figures = plan.as_dict()
    assert [figures[name] for name in ("bound", "at_least", "at_most")] == [None] * 3
    assert figures["no_bound"] == plan.no_bound


def test_time_that_shows_is_no_error() -> None:
    traces = chain(400, 6, shows_time=True)
    plan = rs.plan(learned(traces, timing="current-with-initial"), traces)
    assert plan.model_error == 0
    assert plan.value == pytest.approx(0.95**6, rel=0.02)


def test_errors_count_only_beyond_chance() -> None:
    returns = np.array([0.0, 1.0] * 50)
    assert ReturnErrors(returns, np.full(100, 0.2)).correction == pytest.approx(0.2)
    assert ReturnErrors(returns, returns - 0.4).correction == 0  # a mean of 2 standard errors
    assert ReturnErrors(returns[:9], np.full(9, 0.2)).correction == 0  # too few episodes
    partly = np.array([0.2] * 90 + [np.nan] * 10)
    assert ReturnErrors(returns, partly).correction == 0  # steps that are not known
    both = ReturnErrors(returns, returns) + ReturnErrors(returns + 1, returns)
    assert (len(both.errors), both.span) == (200, 2.0)


def test_intervals_of_readings_have_no_bound() -> None:
    random = np.random.default_rng(0)

    def walk() -> Trace:
        reading, readings, actions, rewards = random.random(), [], [], []
        for _ in range(12):
            readings.append(round(reading, 4))
            actions.append(int(random.integers(2)))
            rewards.append(float(reading > 0.5))
            reading = (reading + (0.13 if actions[-1] else -0.11)) % 1
        return Trace([*readings, round(reading, 4)], [None] * 13, actions, rewards)

    traces = TraceSet(walk() for _ in range(150))
    plan = rs.plan(rs.infer(traces, discretize="auto"), traces)
    assert plan.machines.preprocessor.discretize is not None
    assert (plan.bound, plan.is_optimal) == (np.inf, False)
    assert "bound        not known: the states are intervals of readings" in str(plan)
    assert "bound not known" in repr(plan)
