"""What people meet who come with environments and logs of their own: each once stood at the door.

One test for each thing that somebody tried who had read nothing but the first page.
"""

import json

import gymnasium as gym
import numpy as np
import pandas as pd
import pytest

import resolvent as rs
import vending_machine
from resolvent.cli import main


class Signs(gym.Env):
    """A corridor shown as a picture and a sign; the sign at the start tells the right door."""

    observation_space = gym.spaces.Dict(
        {"picture": gym.spaces.Box(0, 255, (3, 3), np.uint8), "sign": gym.spaces.Text(8)}
    )
    action_space = gym.spaces.Discrete(2)
    door: int
    at: int

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.door, self.at = int(self.np_random.integers(2)), 0
        return self._seen(), {}

    def step(self, action):
        self.at += 1
        paid = float(self.at == 3 and action == self.door)
        return self._seen(), paid, self.at == 3, False, {}

    def _seen(self):
        picture = np.zeros((3, 3), np.uint8)
        picture[:, min(self.at, 2)] = 255
        return {"picture": picture, "sign": ("left", "right")[self.door] if not self.at else ""}


def kinds(findings):
    return {finding.kind for finding in findings}


def test_a_dict_of_a_picture_and_a_text_needs_no_label_function():
    traces = rs.collect(Signs(), episodes=200, seed=0, labels="observation")
    result = rs.infer(traces, labels="observation")
    fresh = rs.collect(Signs(), episodes=50, seed=1, labels="observation")
    assert result.machines.score(fresh).perfect
    runs = rs.plan(result, traces, gamma=1).run(Signs(), episodes=20, seed=2)
    assert runs.returns.mean() == 1  # one half for whoever has forgotten the sign


def test_layouts_of_minigrid_are_distinguished():
    pytest.importorskip("minigrid")
    env = gym.make("MiniGrid-MemoryS7-v0")
    traces = rs.collect(env, episodes=30, seed=0, labels="observation")
    with pytest.raises(rs.ContradictoryTraces):
        rs.infer(traces, labels="observation", noise="none")
    assert {"random-start", "contradictions"} <= kinds(
        rs.diagnose(traces, labels="observation").findings
    )


def test_a_plan_with_a_lower_return_than_its_bounds_reports_it():
    minigrid = pytest.importorskip("minigrid.wrappers")
    env = gym.make("MiniGrid-MemoryS7-v0", agent_view_size=3)
    # These two layouts differ in the cue alone.
    env = minigrid.ReseedWrapper(env, seeds=[34, 23])
    env = gym.wrappers.TransformReward(env, lambda reward: float(reward > 0))
    steps = np.random.default_rng(0)
    traces = rs.collect(
        env, episodes=12, policy=lambda _: steps.choice(3, p=[0.2, 0.2, 0.6]), labels="action"
    )
    # The cue is seen, but labels are made of actions alone, and few traces do not show the flaw.
    plan = rs.plan(
        rs.infer(traces, labels="action", options=rs.InferenceOptions(refine=False)), traces
    )
    runs = plan.run(env, episodes=4, on_unseen="random", max_steps=50)
    assert runs.discounted_returns.mean() < plan.value - 0.05
    assert runs.contradicts
    assert "the environment contradicts the plan" in str(runs)


def test_cards_are_random_but_their_rewards_are_not():
    cards = pytest.importorskip("popgym.envs.repeat_first")
    env = cards.RepeatFirstEasy()
    traces = rs.collect(env, episodes=200, seed=0, labels="observation")
    assert traces.steps <= 10_200
    with pytest.raises(rs.ContradictoryTraces, match="random"):
        rs.infer(traces, labels="observation", noise="none")
    result = rs.infer(traces, labels="observation", outputs=["reward"])
    assert result.machines["reward"].states == 5  # before the first card, and one for each suit
    fresh = rs.collect(env, episodes=50, seed=1, labels="observation")
    assert result.machines.score(fresh)["reward"].right == fresh.steps


@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1"])
def test_readings_that_never_repeat_have_a_warning(name):
    env = gym.make(name)
    # Without velocities, the last of what both show.
    env = gym.wrappers.TransformObservation(env, lambda seen: seen[:-1], None)
    traces = rs.collect(env, episodes=20, seed=0, labels="observation", max_steps=50)
    result = rs.infer(traces, labels="observation")
    assert {"unique-observations", "hardly-repeats"} <= kinds(result.warnings)
    assert {"unique-observations", "hardly-repeats"} <= kinds(
        rs.diagnose(traces, labels="observation").warnings
    )


def test_a_table_of_events_and_responses_is_read_in_two_lines(tmp_path):
    pd.DataFrame(vending_machine.log(400, seed=0)).to_csv(tmp_path / "vend.csv", index=False)
    log = rs.read_log(
        tmp_path / "vend.csv", episode="session", order="time", input="event", output="response"
    )
    machine = rs.infer(log).machines["response"]
    assert machine.states == 15
    assert vending_machine.same_machine(machine, "nothing")


@pytest.mark.parametrize("labels", ["observation", "action+observation"])
@pytest.mark.parametrize(
    ("world", "episodes"),
    [("resolvent/House-v0", 500), ("resolvent/TMaze-v0", 200)],
)
def test_no_labels_at_all(world, episodes, labels):
    env = gym.make(world)
    traces = rs.collect(env, episodes=episodes, seed=0, labels=labels)
    found, truth = rs.infer(traces, labels=labels).machines, env.unwrapped.machines()
    assert found.transition.states == truth.transition.states
    assert found.reward.states == truth.reward.states


def test_an_environment_without_labels_says_how_to_make_them():
    with pytest.raises(rs.TraceError, match='labels="auto"'):
        rs.collect(gym.make("FrozenLake-v1"), episodes=1)


def test_unsuitable_traces_are_refused_with_a_remedy(tmp_path):
    with pytest.raises(rs.TraceError, match="no traces to infer from"):
        rs.infer([])
    with pytest.raises(rs.TraceError, match=r"read it with rs.read_table"):
        rs.infer(pd.DataFrame(vending_machine.log(2, seed=0)))
    house = rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
    house.save(tmp_path / "house.parquet")
    assert rs.infer(str(tmp_path / "house.parquet")).machines == rs.infer(house).machines


def test_without_rewards_no_plan_is_called_optimal():
    lake = gym.wrappers.TransformReward(
        gym.make("FrozenLake-v1", is_slippery=False), lambda reward: 0.0
    )
    traces = rs.collect(lake, episodes=200, seed=0, labels="observation")
    result = rs.infer(traces, labels="observation")
    assert "constant-reward" in kinds(result.warnings)
    plan = rs.plan(result, traces)
    assert not plan.is_optimal
    assert "all rewards are 0, so all policies have the same value" in str(plan)


def test_notebooks_show_small_pages_and_reprs_are_short():
    env = gym.make("resolvent/House-v0")
    traces = rs.collect(env, episodes=200, seed=0)
    result = rs.infer(traces)
    plan = rs.plan(result, traces)
    shown = [traces, result, plan, result.machines.score(traces), result.evidence]
    for one in [*shown, plan.run(env, episodes=2, seed=0), rs.diagnose(traces)]:
        assert len(repr(one)) <= 500
        page = one._repr_html_()
        assert 0 < len(page) < 20_000
        assert "<script" not in page


def test_the_order_of_a_label_is_kept():
    trace = rs.Trace(["hall", "attic"], [(1, 2), (2, 1)], ["up"])
    first, second = trace.labels
    assert first != second


def test_the_command_line_collects_from_foreign_environments(tmp_path, capsys):
    path = tmp_path / "lake.jsonl"
    words = ["collect", "FrozenLake-v1", "--set", "is_slippery=false", "-n", "50", "-o", str(path)]
    assert main(words) == 2
    assert "--labels" in capsys.readouterr().err
    assert main([*words, "--labels", "observation", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["traces"] == 50
    assert len(rs.read_traces(path)) == 50
