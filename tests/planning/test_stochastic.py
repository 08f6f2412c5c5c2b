"""Plans for worlds with chance, beside what is truly best there."""

import json
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest

import resolvent as rs
from chance_worlds import Lock, lake_traces, lake_values, learned
from noisy_worlds import Slips, noisy_house
from resolvent.planning import plan_io
from resolvent.planning.model import Model
from resolvent.preprocess.timing import LabelTiming
from resolvent.traces import Trace, TraceSet
from resolvent.worlds import House

GAMMA = 0.9


@pytest.fixture(scope="module")
def lock():
    """Traces of the lock, and the machines found in them."""
    traces = rs.collect(Lock(), episodes=4_000, seed=0, max_steps=30)
    return learned(traces), traces


@pytest.fixture(scope="module")
def way_out(lock):
    return rs.plan(*lock, gamma=GAMMA)


def test_plans_handle_hidden_chance(lock, way_out):
    machines, _ = lock
    assert machines.machines.transition.states == 2
    closed = machines.machines.transition.run([]), machines.machines.reward.run([])
    opened = tuple(
        one.run([{"click"}]) for one in (machines.machines.transition, machines.machines.reward)
    )
    assert way_out.action(0, *closed) == "turn"
    assert way_out.action(0, *opened) == "push"
    assert way_out.value == pytest.approx(Lock.best(GAMMA), rel=0.02)
    runs = way_out.run(Lock(), episodes=3_000, seed=1)
    assert runs.discounted_returns.mean() == pytest.approx(way_out.value, abs=0.01)
    assert (runs.contradicts, runs.random_steps, runs.surprises) == ((), 0, 0)


def test_without_discount(lock):
    plan = rs.plan(*lock, gamma=1)
    assert plan.value == pytest.approx(1.0, abs=1e-9)  # turn until it clicks, push until one is out
    assert np.isinf(plan.bound)
    assert "none: without discount no outcome can be excluded" in str(plan)
    assert plan.as_dict()["bound"] is None


def test_higher_confidence_widens_the_bounds(lock):
    plans = [rs.plan(*lock, gamma=GAMMA, confidence=one) for one in (0.5, 0.95, 0.999)]
    assert plans[0].bound < plans[1].bound < plans[2].bound
    assert [plan.value for plan in plans] == [plans[0].value] * 3
    for wrong in (0, 1, -1, 95):
        with pytest.raises(rs.OptionError, match=f"^confidence={wrong}: use a number above 0"):
            rs.plan(*lock, confidence=wrong)


def test_bounds_narrow_with_more_traces(lock):
    machines, traces = lock
    few, many = (rs.plan(machines, some, gamma=GAMMA) for some in (traces[:400], traces))
    # The machines hold counts of all traces, so fewer of them change nothing that they count.
    assert few.value == pytest.approx(many.value, rel=0.1)
    bare = learned(traces[:400])
    assert rs.plan(bare, traces[:400], gamma=GAMMA).bound > many.bound


def test_a_stochastic_plan_as_text(way_out):
    text = str(way_out)
    assert " expected from the starts, discounted by 0.9" in text
    assert f"within {way_out.bound:.4g} of the best with 95% confidence" in text
    assert "known steps have several outcomes, each observed " in text
    assert "optimal" not in text
    assert "with 0.95 confidence" in repr(way_out)
    figures = way_out.as_dict()
    assert figures["confidence"] == 0.95
    assert figures["at_least"] < figures["value"] < figures["at_most"]
    assert figures["bound"] == pytest.approx(figures["at_most"] - figures["at_least"])
    assert not figures["optimal"]
    assert ">expected</th>" in way_out._repr_html_()


def test_the_experiment_is_the_least_observed_step(way_out):
    experiment = way_out.next_experiment
    model = way_out.model
    step = model.find(*experiment.augmented_state), model.actions.code(experiment.action)
    assert experiment.taken == model.outcomes.count[step[0] * len(model.actions) + step[1]]
    assert f"it was observed {experiment.taken:,} times, the fewest on this path" in str(experiment)
    assert experiment.as_dict()["taken"] == experiment.taken


def test_a_file_holds_the_expected_values(way_out, tmp_path):
    way_out.save(tmp_path / "plan.json")
    stored = plan_io.load(tmp_path / "plan.json")
    assert stored == plan_io.content_of(way_out)
    assert stored.confidence == 0.95
    assert [row.expected for row in stored.policy] == way_out.expected.tolist()
    raw = json.loads((tmp_path / "plan.json").read_text())
    assert raw["version"] == 1


def test_exact_plans_keep_their_file_format(tmp_path):
    traces = rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
    plan = rs.plan(rs.infer(traces), traces)
    plan.save(tmp_path / "plan.json")
    raw = json.loads((tmp_path / "plan.json").read_text())
    assert list(raw) == ["format", "version", "gamma", "timing", "policy"]
    assert list(raw["policy"][0])[-3:] == ["action", "pessimistic", "optimistic"]
    assert "confidence" not in plan.as_dict()
    assert plan == rs.plan(plan.machines, traces, confidence=0.5)


def test_the_plan_for_a_slippery_lake_is_optimal():
    env = gym.make("FrozenLake-v1")
    result = learned(lake_traces(env, 500, 0), labels="observation")
    traces = lake_traces(env, 100_000, 1)
    for gamma in (0.9, 0.99, 1.0):
        plan = rs.plan(result, traces, gamma=gamma)
        policy = np.zeros(16, int)
        for z in range(len(plan.model)):
            policy[plan.model.augmented_state(z)[0]] = plan.model.actions[int(plan.policy[z])]
        best = lake_values(env, gamma)[0]
        assert lake_values(env, gamma, policy)[0] == pytest.approx(best, rel=0.02)
        assert plan.value == pytest.approx(best, rel=0.02)
        (start,) = plan.model.starts
        assert plan.pessimistic[start] <= best <= plan.optimistic[start]


def test_the_plan_for_a_noisy_house_is_optimal():
    machines, traces = noisy_house()
    plan = rs.plan(machines, traces)
    assert plan.model.sometimes_ends.any()
    env = gym.make("resolvent/House-v0")
    runs = plan.run(env, episodes=20, seed=0)  # the house itself is not disturbed
    assert runs.returns.tolist() == [1.0] * 20
    assert runs.contradicts == ()


def test_noisy_rewards_count_by_their_mean():
    random = np.random.default_rng(0)
    traces = TraceSet(
        Trace(["x", "y"], [None, None], [action], [round(reward, 3)], terminated=True)
        for action, mean in (("low", 0.0), ("high", 1.0))
        for reward in random.normal(mean, 0.5, 200)
    )
    result = rs.infer(traces, noise="auto")
    plan = rs.plan(result, traces)
    rewards = [trace.rewards[0] for trace in traces if trace.actions[0] == "high"]
    assert plan.action("x", 0, 0) == "high"
    assert plan.value == pytest.approx(np.mean(rewards))
    assert not plan.model.outcomes.has_rewards


def gamble(*wins, action="gamble"):
    return [
        Trace(["x", "y"], [None, None], [action], [float(win)], terminated=True) for win in wins
    ]


def test_a_single_lucky_outcome_does_not_change_the_policy():
    # 1 of 1 is less than 190 of 200: the one says next to nothing.
    traces = TraceSet(gamble(1) + gamble(*[1] * 190, *[0] * 10, action="trade"))
    plan = rs.plan(learned(traces), traces)
    assert plan.action("x", 0, 0) == "trade"
    assert plan.value == pytest.approx(0.95)


def test_rewards_that_do_not_occur_on_the_path_have_no_influence():
    # Fifteen steps without reward in each of 20 walks lead to a reward of 1 in 18 of them, else −1;
    # staying had no reward 4,000 times. A possible reward of −1 is no reason to stay.
    def walk(paid):
        cells = ["start", *(f"cell {number}" for number in range(15)), "end"]
        rewards = [0.0] * 15 + [paid]
        return Trace(cells, [None] * 17, ["go"] * 16, rewards, terminated=True)

    idle = Trace(["start"] * 4_001, [None] * 4_001, ["stay"] * 4_000, [0.0] * 4_000)
    traces = TraceSet([walk(1.0)] * 18 + [walk(-1.0)] * 2 + [idle])
    plan = rs.plan(learned(traces), traces, gamma=0.95)
    assert not plan.model.outcomes.has_rewards
    assert plan.action("start", 0, 0) == "go"
    assert plan.expected[plan.model.starts[0]] == pytest.approx(0.8 * 0.95**15)


def test_endings_have_probabilities():
    # Each step continues in 3 of 4 cases: value 1 + ¾ + … = 4 without discount.
    def life(steps):
        return Trace(
            ["x"] * (steps + 1),
            [None] * (steps + 1),
            ["live"] * steps,
            [1.0] * steps,
            terminated=True,
        )

    noisy = [Trace(["x", "y"], [None] * 2, ["look"], [0.0], terminated=True)] * 5
    noisy += [Trace(["x", "z"], [None] * 2, ["look"], [0.0], terminated=True)] * 5
    traces = TraceSet([life(4)] * 10 + noisy)
    model = Model.of(learned(traces).machines, traces)
    live = model.actions.code("live")
    assert model.sometimes_ends[:, live].tolist() == [True]
    assert rs.plan(learned(traces), traces, gamma=1).value == pytest.approx(4.0)


def test_endless_rewards_are_refused_without_discount():
    there = Trace(["x", "x", "y"], [None] * 3, ["go", "go"], [1.0, 1.0])
    back = Trace(["y", "x"], [None] * 2, ["go"], [1.0])
    stay = Trace(["y", "y"], [None] * 2, ["go"], [1.0])
    traces = TraceSet([there, back, stay])
    with pytest.raises(rs.OptionError, match=r"^gamma=1: from x .* may never end"):
        rs.plan(learned(traces), traces, gamma=1)
    ends = Trace(["x", "end"], [None] * 2, ["stop"], [0.0], terminated=True)
    also = Trace(["y", "end"], [None] * 2, ["stop"], [0.0], terminated=True)
    traces = TraceSet([there, back, stay, ends, also])
    with pytest.raises(rs.OptionError, match=r"^gamma=1: from x .* may never end"):
        rs.plan(learned(traces), traces, gamma=1)
    assert rs.plan(learned(traces), traces, gamma=0.5).value > 1.5


def test_an_unobserved_outcome_violates_the_plan(lock, way_out):
    class Trapdoor(Lock):
        def step(self, action):
            observation, *rest = super().step(action)
            return (2 if action == 0 else observation), *rest

    runs = way_out.run(Trapdoor(), episodes=5, seed=0, max_steps=4)
    assert runs.surprises > 0
    assert runs.random_steps > 0
    assert "steps with an outcome that no trace has" in str(runs)
    assert runs.as_dict()["surprises"] == runs.surprises
    with pytest.raises(rs.errors.ModelError, match="the plan does not know"):
        way_out.run(Trapdoor(), episodes=5, seed=0, max_steps=4, on_unseen="raise")


def test_episodes_of_another_world_contradict_the_plan(lock, way_out):
    class Stuck(Lock):
        def step(self, action):
            observation, reward, terminated, truncated, info = super().step(action)
            return observation, -reward, terminated, truncated, info

    runs = way_out.run(Stuck(), episodes=200, seed=0)
    (violation,) = runs.contradicts
    assert violation.episode is None
    assert violation.actual < violation.least


def test_a_plan_that_is_not_paid_its_value_says_so(way_out):
    class Cheap(Lock):
        def step(self, action):
            observation, reward, *rest = super().step(action)
            return observation, reward * 0.96, *rest

    assert way_out.run(Cheap(), episodes=2_000, seed=0).contradicts
    runs = replace(way_out, no_bound="anything").run(Cheap(), episodes=2_000, seed=0)
    assert not runs.contradicts  # where there is no bound
    assert not runs.agrees
    assert runs.as_dict()["paid"] == runs.paid.as_dict()
    assert f"the plan's value, {way_out.value:.4g}, is not what was paid" in str(runs)
    runs = way_out.run(Lock(), episodes=1_000, seed=0)
    assert runs.agrees
    assert runs.paid.low < way_out.value < runs.paid.high
    # A lock that turns at the second attempt costs 0.08, and may do so in half of the episodes.
    few = way_out.run(Lock(), episodes=5, seed=3).paid
    assert few.high - few.low > 0.05


def test_counterfactual_steps_are_refused(lock):
    result, traces = lock
    model = Model.of(result.machines, traces)
    env = rs.AugmentObservation(Lock(), result.machines)
    with pytest.raises(
        rs.errors.ModelError, match=r"^outputs of the machines are random, and a learner"
    ):
        rs.q_learning(env, episodes=10, seed=0, model=model, counterfactual=True)


@pytest.mark.parametrize("timing", LabelTiming)
def test_labels_may_be_read_at_any_time(timing):
    traces = rs.collect(Slips(House()), episodes=300, seed=0)
    plan = rs.plan(learned(traces, timing=timing), traces)
    runs = plan.run(Slips(House()), episodes=200, seed=1)
    assert plan.value == pytest.approx(0.746, abs=0.01)
    assert runs.discounted_returns.mean() == pytest.approx(plan.value, abs=0.02)


def test_a_machine_may_predict_when_episodes_end():
    lake = gym.make("FrozenLake-v1")
    traces = lake_traces(lake, 3_000, 0)
    outputs = ["observation", "reward", "terminated"]
    result = learned(traces, labels="observation", outputs=outputs)
    assert result.machines["terminated"].is_noisy
    plan = rs.plan(result, traces, gamma=0.9)
    plain = rs.plan(learned(traces, labels="observation"), traces, gamma=0.9)
    assert list(plan.model.states) == ["transition", "reward", "terminated"]
    assert plan.value == pytest.approx(plain.value)


def test_costs_without_discount():
    plan = rs.plan(*walked(500), gamma=1)
    table = np.eye(6)
    for here in range(6):
        table[here, max(0, here - 1)] -= 0.2
        if here < 5:
            table[here, here + 1] -= 0.8
    truth = np.linalg.solve(table, -np.ones(6))[0]
    assert plan.value == pytest.approx(truth, rel=0.02)
    assert plan.optimistic[plan.model.starts[0]] >= truth
    assert np.isneginf(plan.pessimistic[plan.model.starts[0]])
    assert "with 95% confidence its value is at most" in str(plan)


class Line(gym.Env):
    """Six steps to the end, each of which costs 1 and in one of five cases leads back."""

    observation_space, action_space = gym.spaces.Discrete(7), gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return 0, {"labels": set()}

    def step(self, action):
        ahead = (action == 1) != (self.np_random.random() < 0.2)
        self.at = max(0, self.at + (1 if ahead else -1))
        return self.at, -1.0, self.at == 6, False, {"labels": set()}


def walked(episodes):
    traces = rs.collect(Line(), episodes=episodes, seed=0, max_steps=200)
    return learned(traces), traces


class Blurred(gym.RewardWrapper):
    """Pay that varies a little around what it should be."""

    chance = np.random.default_rng(0)

    def reward(self, reward):
        return float(reward) + round(float(self.chance.normal(0, 0.05)), 4)


def test_rewards_that_vary_around_levels_stay_within_the_bounds():
    traces = rs.collect(Blurred(House()), episodes=200, seed=0)
    plan = rs.plan(learned(traces), traces)
    runs = plan.run(Blurred(House()), episodes=20, seed=1)
    assert runs.contradicts == ()
    assert runs.discounted_returns.mean() == pytest.approx(plan.value, abs=0.1)
