"""Plans for tiny worlds, with values worked out by hand."""

import json
import math
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

import resolvent as rs
from outlier_traces import outliers
from resolvent.machines.augmented_state import StateUncertainty
from resolvent.planning import plan_io
from resolvent.traces import Trace, TraceSet
from resolvent.worlds import House

GAMMA = 0.5


def fork(*branches: str, reward: float = 1.0) -> TraceSet:
    """Start in "fork": "left" ends with a reward, "right" leads to "hall" and back without one."""
    episodes = {
        "left": (["fork", "end"], ["left"], [reward], True),
        "right": (["fork", "hall", "fork"], ["right", "right"], [0.0, 0.0], False),
        "hall": (["hall", "fork"], ["right"], [0.0], False),
    }
    return TraceSet(
        Trace(observations, [None] * len(observations), actions, rewards, terminated=terminated)
        for observations, actions, rewards, terminated in map(episodes.__getitem__, branches)
    )


def planned(traces: TraceSet, **options: Any) -> rs.Plan:
    return rs.plan(rs.infer(traces), traces, **{"gamma": GAMMA, **options})


def values(plan: rs.Plan) -> dict[Any, tuple[float, float]]:
    """Pessimistic and optimistic value by observation."""
    return {
        plan.model.augmented_state(z)[0]: (plan.pessimistic[z], plan.optimistic[z])
        for z in range(len(plan.model))
    }


def test_unknown_steps_have_the_lowest_and_the_highest_value() -> None:
    # Left in the hall is unknown. Rewards were 0 to 1: its value is at least 0 and at most 1 + ½ + … = 2.
    plan = planned(fork("left", "right"))
    assert values(plan) == {"fork": (1.0, 1.0), "hall": (0.5, 2.0)}
    assert plan.is_optimal  # from the fork, the hall and 2 are a step away: 0 + ½·2 = 1
    # From the hall it is another matter.
    plan = planned(fork("left", "right", "hall"))
    assert plan.gaps[plan.model.starts].tolist() == [0.0, 1.5]
    assert plan.value == pytest.approx((2 * 1.0 + 0.5) / 3)
    assert plan.bound == pytest.approx(1.5 / 3)
    assert plan.largest_gap == 1.5
    assert not plan.is_optimal


def test_bounds_of_endless_costs_and_of_immediate_endings() -> None:
    # Pay was −1 to 0: unknown is −1 − ½ − ¼ − … = −2 at least, and 0 at most.
    plan = planned(fork("left", "right", reward=-1.0))
    assert values(plan) == {"fork": (0.0, 0.0), "hall": (0.0, 0.0)}
    # Pay was always 3: unknown is 3 at least, if the episode ends there, and 6 at most.
    always = TraceSet(
        [
            Trace(["a", "b"], [None, None], ["go"], [3.0], terminated=True),
            Trace(["b", "b"], [None, None], ["stay"], [3.0], terminated=True),
        ]
    )
    assert values(planned(always)) == {"a": (3.0, 6.0), "b": (3.0, 6.0)}


def test_reward_range_may_be_wider_than_the_rewards_seen() -> None:
    traces = fork("left", "right", "hall")
    wide = planned(traces, reward_range=(-1, 4))
    assert values(wide) == {"fork": (1.0, 4.0), "hall": (0.5, 8.0)}
    assert wide.next_experiment is not None
    with pytest.raises(rs.OptionError, match="observed rewards, 0 to 1"):
        planned(traces, reward_range=(0, 0.5))


UNINFORMATIVE = "all rewards are 0, so all policies have the same value"


def test_no_plan_is_optimal_if_all_rewards_are_zero() -> None:
    plan = planned(fork("left", "right", reward=0.0))
    assert (plan.value, plan.bound, plan.is_optimal, plan.all_rewards_equal) == (0, 0, False, True)
    assert str(plan).splitlines() == [
        "value        0 from the starts, discounted by 0.5",
        f"bound        none: {UNINFORMATIVE}",
        "model        2 augmented states, 2 actions",
        "unknown      1 of 4 steps",
        "try next     begin in fork, do right; then in hall (transition state 0, reward state 0) "
        "do left, and continue: its outcome is unknown; "
        "or pass the possible rewards as reward_range=(low, high)",
    ]
    figures = plan.as_dict()
    assert (figures["optimal"], figures["all_rewards_equal"]) == (False, True)
    assert figures["next_experiment"]["actions"] == ["right"]
    assert figures["advice"] == str(plan).splitlines()[-1][len("try next     ") :]


def test_a_plan_without_rewards_or_unknown_steps_advises_more_traces() -> None:
    for plan in (planned(fork("right", "hall")), planned(fork("right"), reward_range=(-1, 1))):
        assert plan.model.unknown_steps == 0
        assert plan.all_rewards_equal
        assert not plan.is_optimal
        assert plan.next_experiment is None
        assert str(plan).endswith(
            "try next     collect longer traces, or traces of another policy, with other rewards"
        )


def test_the_nearest_unknown_step_takes_the_fewest_steps() -> None:
    # a -go-> b -go-> c, where nobody turned; from the other start a step is unknown at once.
    line = Trace(["a", "b", "c"], [None] * 3, ["go", "go"], [0.0, 0.0])
    turned = [Trace([room, room], [None] * 2, ["turn"], [0.0]) for room in ("a", "b")]
    far = planned(TraceSet([line, *turned])).next_experiment
    assert far is not None
    assert (far.start[0], far.actions, far.augmented_state[0], far.action) == (
        "b",
        ("go",),
        "c",
        "go",
    )
    near = planned(TraceSet([line, turned[0]])).next_experiment
    assert near is not None
    assert (near.start[0], near.actions, near.augmented_state[0], near.action) == (
        "a",
        ("go",),
        "b",
        "turn",
    )


def test_a_constant_reward_distinguishes_policies_only_if_episodes_end() -> None:
    for reward in (-1.0, 2.0):
        loop = Trace(["x", "y", "x"], [None] * 3, ["go", "go"], [reward, reward])
        endless = planned(TraceSet([loop]))
        assert endless.all_rewards_equal
        assert f"none: all rewards are {reward:g} and no step ended an episode, so " in str(endless)
        leaving = Trace(["x", "out"], [None] * 2, ["leave"], [reward], terminated=True)
        assert not planned(TraceSet([loop, leaving])).all_rewards_equal
    # At a cost of 1 a step, leaving at once is best: −1 against −2 for ever.
    loop = Trace(["x", "x"], [None] * 2, ["go"], [-1.0])
    leaving = Trace(["x", "out"], [None] * 2, ["leave"], [-1.0], terminated=True)
    plan = planned(TraceSet([loop, leaving]))
    assert (plan.action("x", 0, 0), plan.value, plan.is_optimal) == ("leave", -1.0, True)


def test_a_bound_that_assumes_unobserved_rewards_says_so() -> None:
    line = "             this assumes rewards that were never observed; observed were 0 to 1"
    plan = planned(fork("left", "right"), reward_range=(0, 4))
    assert plan.assumes_rewards
    assert str(plan).splitlines()[2] == line
    figures = plan.as_dict()
    assert (figures["reward_range"], figures["observed_reward_range"]) == ([0, 4], [0.0, 1.0])
    assert figures["assumes_rewards"] is True
    complete = planned(fork("left", "right"))
    assert not complete.assumes_rewards
    assert "never observed" not in str(complete)
    all_known = TraceSet([*fork("left", "right"), Trace(["hall"] * 2, [None] * 2, ["left"], [0])])
    assert not planned(all_known, reward_range=(0, 4)).assumes_rewards
    # All rewards were 0, but 1 is possible: the unknown step is worth up to ½·(1 + ½ + …) = 1.
    hoped = planned(fork("left", "right", reward=0.0), reward_range=(0, 1))
    assert (hoped.bound, hoped.is_optimal, hoped.all_rewards_equal) == (1.0, False, True)
    lines = str(hoped).splitlines()
    assert lines[1] == "bound        at most 1 below the best, if rewards are within 0 to 1"
    assert lines[2] == "             this assumes rewards that were never observed; observed were 0"
    assert lines[-1].endswith("its outcome is unknown")


def test_the_next_experiment_is_the_nearest() -> None:
    plan = planned(fork("left", "right", "hall"), reward_range=(0, 4))
    experiment = plan.next_experiment
    assert experiment is not None
    assert experiment.as_dict() == {
        "start": {"observation": "hall", "transition_state": 0, "reward_state": 0},
        "actions": [],
        "augmented_state": {"observation": "hall", "transition_state": 0, "reward_state": 0},
        "action": "left",
        "history": [],
        "query": ["hall", "left"],
        "why": "its outcome is unknown",
        "machine": None,
        "exact": False,
    }
    assert str(experiment) == (
        "begin in hall; then in hall (transition state 0, reward state 0) do left, "
        "and continue: its outcome is unknown"
    )
    far = planned(fork("left", "right"), reward_range=(0, 4)).next_experiment
    assert far is not None
    assert (far.start[0], far.actions, far.augmented_state[0], far.action) == (
        "fork",
        ("right",),
        "hall",
        "left",
    )
    assert str(far).startswith("begin in fork, do right; then in hall ")


def test_a_plan_without_a_gap_has_no_next_experiment() -> None:
    plan = planned(fork("left", "right"))
    assert plan.model.unknown_steps == 1
    assert plan.next_experiment is None
    assert "try next" not in str(plan)


def test_a_step_that_ends_only_sometimes_is_reported_and_not_tried_again() -> None:
    step = (["x", "x"], [None, None], ["go"], [1.0])
    traces = TraceSet([Trace(*step, terminated=True), Trace(*step, terminated=False)])
    plan = planned(traces)
    assert values(plan) == {"x": (1.0, 2.0)}
    assert plan.next_experiment is None
    assert "1 of these sometimes end the episode and sometimes do not" in str(plan)


def test_a_plan_as_text() -> None:
    assert str(planned(fork("left", "right", "hall"))).splitlines() == [
        "value        0.8333 from the starts, discounted by 0.5",
        "bound        at most 0.5 below the best on average, 1.5 from any one start, "
        "if rewards are within 0 to 1",
        "model        2 augmented states, 2 actions",
        "unknown      1 of 4 steps",
        "try next     begin in hall; then in hall (transition state 0, reward state 0) do left, "
        "and continue: its outcome is unknown",
    ]


def test_actions_and_unknown_augmented_states() -> None:
    plan = planned(fork("left", "right"))
    assert plan.action("fork", 0, 0) == "left"
    assert plan.action("hall", 0, 0) == "right"
    with pytest.raises(
        rs.errors.ModelError, match=r"attic .transition state 0, reward state 0. cannot be"
    ):
        plan.action("attic", 0, 0)


def test_without_discount() -> None:
    plan = planned(fork("left", "right"), gamma=1)
    assert values(plan)["fork"] == (1.0, math.inf)
    assert values(plan)["hall"] == (1.0, math.inf)
    assert plan.bound == math.inf
    assert plan.as_dict()["bound"] is None
    assert "undiscounted" in str(plan)
    assert plan.next_experiment is not None
    costly = planned(fork("left", "right", reward=-1.0), gamma=1)
    assert values(costly) == {"fork": (0.0, 0.0), "hall": (0.0, 0.0)}  # walk about for ever


def test_without_discount_a_rewarding_cycle_is_named() -> None:
    traces = TraceSet([Trace(["a", "b", "a"], [None] * 3, ["go", "back"], [2, -1])])
    with pytest.raises(
        rs.OptionError,
        match=r"gamma=1: in [ab] .* the actions .* return to the same state with a reward of 1",
    ):
        planned(traces, gamma=1)
    assert planned(traces).value == pytest.approx((2 - 0.5) / (1 - 0.25))


@pytest.mark.parametrize("gamma", [0, -1, 1.01, math.nan])
def test_an_invalid_discount_is_refused(gamma: float) -> None:
    with pytest.raises(rs.OptionError, match="use a number above 0, up to 1"):
        planned(fork("left"), gamma=gamma)


def test_plan_accepts_a_folder_of_traces(tmp_path: Path) -> None:
    traces = fork("left", "right")
    traces.save(tmp_path / "part.parquet")
    result = rs.infer(traces)
    assert rs.plan(result, rs.scan_traces(tmp_path)) == rs.plan(result, traces)


def test_plan_accepts_machines_or_a_result() -> None:
    traces = fork("left", "right")
    result = rs.infer(traces)
    with_result, with_machines = rs.plan(result, traces), rs.plan(result.machines, traces)
    assert with_result.as_dict() == with_machines.as_dict()


def test_a_saved_policy_has_a_row_for_each_augmented_state(tmp_path: Path) -> None:
    plan = planned(fork("left", "right"), gamma=1)
    path = tmp_path / "policy.json"
    plan.save(path)
    saved = json.loads(path.read_text())
    assert (saved["format"], saved["version"]) == ("resolvent-plan", 1)
    assert (saved["gamma"], saved["timing"]) == (1, "current")
    assert [row.action for row in plan_io.load(path).policy] == ["left", "right"]
    assert saved["policy"] == [
        {
            "observation": "fork",
            "transition_state": 0,
            "reward_state": 0,
            "action": "left",
            "pessimistic": 1.0,
            "optimistic": None,
        },
        {
            "observation": "hall",
            "transition_state": 0,
            "reward_state": 0,
            "action": "right",
            "pessimistic": 1.0,
            "optimistic": None,
        },
    ]
    with pytest.raises(rs.ResolventError, match="does not exist"):
        plan.save(tmp_path / "nowhere" / "policy.json")


class Fork(gym.Env[Any, Any]):
    """The fork as an environment that takes its actions as arrays; "hole" is nowhere in traces."""

    ROOMS = ("fork", "hall", "end", "hole")

    def __init__(self, begin: str = "fork") -> None:
        self.observation_space = spaces.Discrete(4)
        self.observation_names = self.ROOMS
        self.action_space = spaces.MultiBinary(1)
        self.begin = begin

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.room = self.begin
        return self.ROOMS.index(self.room), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action)
        left = action[0] == 1
        if self.room == "fork" and left:
            self.room = "end"
        elif self.room == "hole":
            self.room = "fork"
        else:
            self.room = "hall" if self.room == "fork" else "fork"
        terminated = self.room == "end"
        return self.ROOMS.index(self.room), float(terminated), terminated, False, {"labels": []}


def seen_in_fork(gamma: float = GAMMA) -> rs.Plan:
    traces = rs.collect(Fork(), episodes=20, seed=0)
    return rs.plan(rs.infer(traces), traces, gamma=gamma)


def test_running_a_plan_has_the_predicted_return() -> None:
    plan = seen_in_fork()
    runs = plan.run(Fork(), episodes=3)
    assert runs.returns.tolist() == [1.0] * 3
    assert runs.discounted_returns.tolist() == [1.0] * 3
    assert runs.lengths.tolist() == [1] * 3
    assert runs.terminated.all()
    runs = plan.run(Fork("hall"), episodes=1)
    assert runs.discounted_returns.tolist() == [plan.pessimistic[plan.model.find("hall", 0, 0)]]
    assert runs.as_dict()["mean_length"] == 2.0


def test_an_unknown_augmented_state_is_named_or_random() -> None:
    plan = seen_in_fork()
    with pytest.raises(
        rs.errors.ModelError, match="episode 0, step 0: the plan does not know hole in"
    ):
        plan.run(Fork("hole"), episodes=1)
    runs = plan.run(Fork("hole"), episodes=5, on_unseen="random", seed=3)
    assert runs.returns.tolist() == [1.0] * 5
    assert runs.random_steps == 5
    assert "5 random steps in" in str(runs)


def test_a_label_never_read_leads_to_an_unknown_augmented_state() -> None:
    with pytest.raises(rs.errors.ModelError, match="states unknown: a label was read that"):
        seen_in_fork().run(Fork("hall"), episodes=1, labeling_fn=lambda room: "new")


def test_a_cyclic_plan_ends_by_a_default_limit() -> None:
    traces = fork("right", "right", "hall") + fork("left", reward=-1.0)
    plan = planned(traces)
    stay = Fork()
    stay.action_names = ("right", "left")  # type: ignore[attr-defined]
    stay.action_space = spaces.Discrete(2)  # type: ignore[assignment]
    stay.step = lambda action: (0, 0.0, False, False, {"labels": []})  # type: ignore[method-assign]
    runs = plan.run(stay, episodes=1)
    assert plan.gamma ** int(runs.lengths[0]) < 1e-4
    assert f"no limit was given, so episodes end after {runs.lengths[0]} steps" in str(runs)
    assert runs.paid.low > -1e-2  # from then on the plan could be paid −1 in each step
    runs = plan.run(stay, episodes=2, max_steps=7)
    assert runs.lengths.tolist() == [7, 7]
    assert not runs.terminated.any()
    assert str(runs).endswith("0 terminated, 2 truncated")


def test_runs_do_not_use_the_random_numbers_of_the_environment() -> None:
    house = House()
    house.action_space.seed(3)
    traces = rs.collect(House(), episodes=100, seed=0)
    plan = rs.plan(rs.infer(traces), traces)
    shares: list[float] = []
    plan.run(house, episodes=2, seed=0, progress=shares.append)
    assert shares == [0.5, 1.0]
    untouched = House()
    untouched.action_space.seed(3)
    draws = [[env.action_space.sample() for _ in range(20)] for env in (house, untouched)]
    assert np.array_equal(draws[0], draws[1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"episodes": 0}, "episodes=0: use at least 1"),
        ({"seed": -1}, "seed=-1: use at least 0"),
        ({"max_steps": 0}, "max_steps=0"),
        ({"on_unseen": "stay"}, "on_unseen='stay': give 'raise', 'random' or None"),
    ],
)
def test_invalid_options_of_a_run_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(rs.OptionError, match=message):
        seen_in_fork().run(Fork(), **options)
    with pytest.raises(rs.OptionError, match=r"needs a gymnasium\.Env, not a str"):
        seen_in_fork().run("Fork")  # type: ignore[arg-type]


def test_a_plan_is_a_policy_of_a_wrapped_environment() -> None:
    house = House()
    traces = rs.collect(house, episodes=200, seed=0)
    plan = rs.plan(rs.infer(traces), traces)
    for mode in ("dict", "flatten", "multidiscrete", "discrete"):
        wrapped = gym.wrappers.TimeLimit(rs.AugmentObservation(house, plan.machines, mode=mode), 10)
        acted = rs.collect(wrapped, episodes=3, policy=plan.policy_in(wrapped))
        assert [sum(trace.rewards) for trace in acted] == [1.0] * 3
        assert acted == plan.run(house, episodes=3).traces
    with pytest.raises(rs.OptionError, match="wrap it in AugmentObservation"):
        plan.policy_in(house)


@pytest.mark.parametrize(("pays", "gamma"), [(1e308, 0.95), (-1.7e308, 0.5), (1.7e308, 1.0)])
def test_rewards_with_an_infinite_sum_are_refused(pays: float, gamma: float) -> None:
    traces = fork("left", "right", "hall", reward=pays)
    with pytest.raises(rs.OptionError, match=r"overflow when summed: divide all"):
        rs.plan(rs.infer(traces), traces, gamma=gamma)


def test_large_rewards_with_a_finite_sum_are_accepted() -> None:
    traces = fork("left", "right", "hall", reward=1e300)
    assert math.isfinite(rs.plan(rs.infer(traces), traces).value)


@pytest.fixture(scope="module")
def damaged():
    return outliers(rs.collect(House(), episodes=300, seed=0), [7, 91, 200])


def test_plans_exclude_the_outliers_of_the_inference(damaged):
    result = rs.infer(damaged)
    assert result.outliers == (7, 91, 200)
    assert rs.plan(result, damaged).value == pytest.approx(0.95**5)


def test_machines_without_their_result_do_not_exclude_outliers(damaged):
    with pytest.raises(
        rs.errors.ModelError, match=r"trace 7, step 0: .* the trace is an outlier to exclude"
    ):
        rs.plan(rs.infer(damaged).machines, damaged)


def test_the_error_of_a_plan_names_hidden_initial_states():
    traces = rs.collect(House(), episodes=50, seed=0)
    start = {frozenset(): 0.5, frozenset({"key"}): 0.5}
    machines = rs.infer(traces).machines.replacing(state_uncertainty=StateUncertainty(starts=start))
    late = rs.TraceSet(
        rs.Trace(trace.observations[8:], trace.labels[8:], trace.actions[8:], trace.rewards[8:])
        for trace in traces
        if len(trace.actions) > 9
    )
    with pytest.raises(rs.errors.ModelError, match=r"hidden starts: .*mode='belief'"):
        rs.plan(machines, late)
