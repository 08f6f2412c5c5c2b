"""Bounds on returns, and episodes that violate them, worked out by hand."""

import math
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import resolvent as rs
from resolvent.planning.calibration import returns_of
from resolvent.rl.run_plan import BoundViolation, bound_violations, return_bounds
from resolvent.traces import Trace, TraceSet
from resolvent.worlds import House

GAMMA = 0.5


def corridor(*episodes: tuple[str, str, float]) -> TraceSet:
    """Traces of steps through rooms named by letters, "." being the end; the last step has the reward."""
    return TraceSet(
        Trace(
            list(rooms),
            [None] * len(rooms),
            list(actions),
            [0.0] * (len(actions) - 1) + [rewards],
            terminated=rooms[-1] == ".",
        )
        for rooms, actions, rewards in episodes
    )


def planned(traces: TraceSet, **options: Any) -> rs.Plan:
    return rs.plan(rs.infer(traces), traces, **{"gamma": GAMMA, **options})


@pytest.fixture(scope="module")
def way_out() -> rs.Plan:
    """From a to b to the end with reward 1: value ½. Waiting is possible everywhere."""
    return planned(corridor(("ab.", "gg", 1.0), ("aa", "w", 0.0), ("bb", "w", 0.0)))


def number(plan: rs.Plan, room: str) -> int:
    state = plan.model.find(room, 0, 0)
    assert state is not None
    return state


def test_value_bounds_for_a_limited_number_of_steps(way_out: rs.Plan) -> None:
    a = number(way_out, "a")
    assert return_bounds(way_out, a) == (0.5, 0.5)
    assert [return_bounds(way_out, a, steps) for steps in (0, 1, 2, 9)] == [
        (0, 0),
        (0, 0),
        (0.5, 0.5),
        (0.5, 0.5),
    ]


def test_value_bounds_of_a_cycle_and_of_an_unknown_step() -> None:
    circle = planned(TraceSet([Trace(["x", "y", "x"], [None] * 3, "gg", [1.0, 0.0])]))
    x = number(circle, "x")
    assert return_bounds(circle, x) == pytest.approx((4 / 3, 4 / 3))  # 1 + ¼ + 1/16 + …
    assert return_bounds(circle, x, 3) == (1.25, 1.25)
    # Every reward is 1 to 3. From x to y it is 1; in y all steps are unknown.
    unknown = planned(
        TraceSet(
            [
                Trace(["x", "y"], [None] * 2, "g", [1.0]),
                Trace(["z", "z"], [None] * 2, "g", [3.0]),
            ]
        )
    )
    x = number(unknown, "x")
    assert return_bounds(unknown, x) == (1.5, 4.0)  # 1 + ½·1 if it ends there, 1 + ½·(3 + 3/2 + …)
    assert return_bounds(unknown, x, 2) == (1.5, 2.5)  # 1 + ½·1, 1 + ½·3
    assert return_bounds(unknown, x, 3) == (1.5, 3.25)  # 1 + ½·(3 + 3/2)


def violations_of(
    plan: rs.Plan, traces: TraceSet, *rooms: str | None
) -> tuple[BoundViolation, ...]:
    starts = [None if room is None else number(plan, room) for room in rooms]
    return bound_violations(plan, traces, starts)


def test_episodes_that_violate_the_bounds(way_out: rs.Plan) -> None:
    kept = corridor(("ab.", "gg", 1.0), ("b.", "g", 1.0), ("ab", "g", 0.0))
    assert violations_of(way_out, kept, "a", "b", "a") == ()
    outliers = corridor(
        ("a.", "g", 0.0),  # over too early
        ("ab.", "gg", 1.0),
        ("aaa", "gg", 0.0),  # truncated, but the reward was due before
        ("a.", "g", 1.0),  # a higher return
    )
    assert violations_of(way_out, outliers, "a", "a", "a", "a") == (
        BoundViolation(0, 0.5, 0.5, 0.0),
        BoundViolation(2, 0.5, 0.5, 0.0),
        BoundViolation(3, 0.5, 0.5, 1.0),
    )


def test_without_discount_a_truncated_episode_is_compared_over_its_own_length() -> None:
    plan = planned(corridor(("abc.", "ggg", 1.0), ("aa", "w", 0.0)), gamma=1)
    cut = corridor(("abc", "gg", 0.0), ("aaaa", "ggg", 0.0))
    assert violations_of(plan, cut, "a", "a") == (BoundViolation(1, 1.0, 1.0, 0.0),)


def test_rewards_outside_the_assumed_range_violate_the_bounds() -> None:
    plan = planned(
        TraceSet(
            [
                Trace(["x", "y"], [None] * 2, "g", [1.0]),
                Trace(["z", "z"], [None] * 2, "g", [3.0]),
            ]
        )
    )
    traces = corridor(("xy.", "gg", 0.0), ("xy.", "gg", 1.0), ("xy.", "gg", 9.0))
    traces = TraceSet(
        Trace(trace.observations, trace.labels, trace.actions, (1.0, trace.rewards[1]), True)
        for trace in traces
    )
    violations = violations_of(plan, traces, "x", "x", "x")
    assert [str(violation) for violation in violations] == [
        "episode 0 returned 1, but the plan's value is at least 1.5",
        "episode 2 returned 5.5, but the plan's value is at most 4",
    ]


def test_rounded_rewards_are_compared_as_they_were_learned() -> None:
    traces = corridor(("ab.", "gg", 0.33334), ("ab.", "gg", 0.33333))
    plan = rs.plan(
        rs.infer(traces, options=rs.InferenceOptions(reward_digits=4)), traces, gamma=GAMMA
    )
    assert violations_of(plan, traces, "a", "a") == ()


def test_unknown_initial_states_are_compared_by_their_mean_return(way_out: rs.Plan) -> None:
    value = way_out.value
    assert value == pytest.approx((0.5 + 0.5 + 1) / 3)

    def episodes(paid: list[float]) -> tuple[BoundViolation, ...]:
        return violations_of(
            way_out, corridor(*(("?.", "g", one) for one in paid)), *[None] * len(paid)
        )

    (violation,) = episodes([0.0] * 9 + [0.25])
    assert (violation.episode, violation.least, violation.actual) == (None, value, 0.025)
    assert str(violation) == (
        "the episodes returned 0.025 on average, but the plan's value is at least 0.6667"
    )
    # The mean of 0, 0, … 1 is ½ and its standard error √(¼·10/9)/√10 = 1/6: within three of it.
    assert episodes([0.0, 1.0] * 5) == ()
    assert episodes([0.0] * 9) == ()  # too few to judge
    assert episodes([5.0] * 20) == ()  # the value is a lower bound
    cut = corridor(*([("??", "g", 0.0)] * 20))
    assert violations_of(way_out, cut, *[None] * 20) == ()  # ½·(1 + ½ + …) = 1 may be still to come
    longer = corridor(*([("???", "gg", 0.0)] * 20))
    assert len(violations_of(way_out, longer, *[None] * 20)) == 1  # ¼·2 = ½ is too little


def test_an_infinite_upper_bound_is_never_violated() -> None:
    plan = planned(corridor(("ab.", "gg", 1.0)), gamma=1)
    cut = corridor(*([("??", "g", 0.0)] * 20))
    assert violations_of(plan, cut, *[None] * 20) == ()
    assert BoundViolation(0, -math.inf, 1.0, 2.0).as_dict() == {
        "episode": 0,
        "bounds": [None, 1.0],
        "return": 2.0,
    }


def test_episodes_that_contradict_a_plan_correct_it() -> None:
    house = gym.make("resolvent/House-v0")
    result = rs.infer(rs.collect(house, episodes=1, seed=0))
    values, returns = [], []
    for _ in range(5):
        plan = rs.plan(result, result.all_traces())
        runs = plan.run(house, episodes=4, max_steps=50)
        values.append(plan.value)
        returns.append(runs.discounted_returns.mean())
        assert bool(runs.contradicts) == (abs(values[-1] - returns[-1]) > 1e-9)
        if not runs.contradicts:
            break
        assert [violation.episode for violation in runs.contradicts] == [0, 1, 2, 3]
        assert "contradicts the plan: episode 0 returned 0, but" in str(runs)
        assert "and 3 more episodes as well" in str(runs)
        result = result.update(runs.traces)
    assert len(values) > 1
    assert returns[:-1] == [0.0] * (len(returns) - 1)
    assert returns[-1] == pytest.approx(values[-1])
    assert runs.returns.tolist() == [1.0] * 4
    assert "contradicts" not in str(runs)


def test_traces_of_a_run_equal_those_of_collect() -> None:
    house = House()
    traces = rs.collect(house, episodes=200, seed=0)
    result = rs.infer(traces)
    plan = rs.plan(result, traces)
    runs = plan.run(house, episodes=2, max_steps=4)
    way = iter(("left", "right", "up", "down") * 2)
    numbers = house.action_names
    same = rs.collect(
        house, episodes=2, max_steps=4, policy=lambda _: tuple(numbers).index(next(way))
    )
    assert runs.traces == same
    assert runs.traces.truncated.all()
    assert result.update(runs.traces).machines.transition == result.machines.transition
    assert np.array_equal(runs.lengths, [4, 4])


class Priced(gym.Wrapper[Any, Any, Any, Any]):
    """Tells a cost of every step."""

    def step(self, action: Any) -> Any:
        *figures, info = self.env.step(action)
        return *figures, {**info, "cost": 3}


def test_episodes_of_a_run_keep_all_columns() -> None:
    env = Priced(House())
    result = rs.infer(rs.collect(env, episodes=5, seed=0, columns=["cost"]))
    plan = rs.plan(result, result.all_traces())
    runs = plan.run(env, episodes=1, columns=["cost"])
    assert runs.traces[0].columns["cost"] == (3,) * int(runs.lengths[0])
    assert len(result.update(runs.traces).all_traces()) == 6
    with pytest.raises(rs.TraceError, match=r'episode 0: step 0: .* gives no info\["price"\]'):
        plan.run(env, episodes=1, columns=["price"])


def test_returns_are_discounted() -> None:
    assert returns_of(corridor(("abc", "xy", 4.0)), 0.5).tolist() == [2.0]
    traces = TraceSet([Trace("abc", [None] * 3, "xy", [1, 4])])
    assert returns_of(traces, 0.5).tolist() == [3.0]


def test_a_violation_as_text() -> None:
    violation = BoundViolation(3, 0.5, 0.5, 0.0)
    assert str(violation) == "episode 3 returned 0, but the plan's value is 0.5"
