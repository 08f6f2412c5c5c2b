import gymnasium as gym
import numpy as np
import pytest
from fake_methods import forgetful, gives_up

import resolvent as rs
from resolvent.errors import ModelError
from resolvent.machines import EdgeRewardMachine, Guard
from resolvent.machines.io.edge_rewards import Edge
from resolvent.paper.correctness import compare_edges, compare_pair
from resolvent.paper.experiments import evaluate, make_world
from resolvent.preprocess.timing import LabelTiming
from resolvent.worlds import PhaseGrid, RandomWorld, TMaze


def task_3(*, coffee="Coffee", reward=1.0):
    """The task of the 3×3 grid as a machine with rewards on its edges."""
    edges = (
        Edge(0, 1, Guard.parse(coffee), 0.0),
        Edge(0, 0, Guard.parse(f"!{coffee}"), 0.0),
        Edge(1, 2, Guard.parse("Stair"), reward),
        Edge(1, 1, Guard.parse("!Stair"), 0.0),
    )
    return EdgeRewardMachine(0, frozenset({2}), edges)


@pytest.mark.parametrize("world", [PhaseGrid(3), PhaseGrid(5), TMaze(4)], ids=str)
def test_the_truth_is_exact(world):
    correctness = compare_pair(world.machines(), world.mechanics)
    assert str(correctness) == "exact"
    assert (correctness.wrong, correctness.unseen) == (0, 0)


def test_the_queries_are_those_that_can_be_asked():
    # 9 cells before the coffee less its own, as it is fetched at once but on the start,
    # 9 after; less the stairs after, where the episode is over: 9 + 8 situations, 4 moves.
    assert compare_edges(task_3(), PhaseGrid(3).mechanics).queries == 17 * 4


def test_a_hand_made_machine_of_the_task_is_exact():
    assert str(compare_edges(task_3(), PhaseGrid(3).mechanics)) == "exact"


@pytest.mark.parametrize("machine", [task_3(coffee="TV"), task_3(reward=0.5)])
def test_another_task_or_another_reward_is_wrong(machine):
    assert str(compare_edges(machine, PhaseGrid(3).mechanics)) == "wrong"


def test_states_that_are_told_apart_for_nothing_are_right_but_not_the_true_ones():
    # Reading TV before the coffee leads to a twin of the first state.
    twin = (
        Edge(0, 3, Guard.parse("TV & !Coffee"), 0.0),
        Edge(0, 0, Guard.parse("!TV & !Coffee"), 0.0),
        Edge(0, 1, Guard.parse("Coffee"), 0.0),
        Edge(3, 1, Guard.parse("Coffee"), 0.0),
        Edge(3, 3, Guard.parse("!Coffee"), 0.0),
    )
    machine = EdgeRewardMachine(0, frozenset({2}), (*twin, *task_3().edges[2:]))
    assert str(compare_edges(machine, PhaseGrid(3).mechanics)) == "right, other states"


def test_a_machine_that_has_ended_before_anything_was_read_is_wrong():
    machine = EdgeRewardMachine(0, frozenset({0}), ())
    assert str(compare_edges(machine, PhaseGrid(3).mechanics)) == "wrong"


def test_what_few_traces_leave_open_is_unseen_and_the_states_are_still_true():
    world = RandomWorld(28)
    pair = rs.infer(rs.collect(world, episodes=1_000, seed=0)).machines
    correctness = compare_pair(pair, world.mechanics)
    assert str(correctness) == "true states"
    assert correctness.unseen > 0


def test_walking_together_agrees_with_playing():
    """The share of wrong answers, weighed by how often random play asks, is that of traces."""
    world = PhaseGrid(3)
    few = rs.infer(rs.collect(world, episodes=3, seed=1), strategy="rpni").machines
    correctness = compare_pair(few, world.mechanics)
    score = few.score(rs.collect(world, episodes=500, seed=2))
    wrong = score.transition.wrong + score.reward.wrong
    unseen = score.transition.unseen + score.reward.unseen
    assert (correctness.wrong > 0) == (wrong > 0)
    assert (correctness.unseen > 0) == (unseen > 0)


def test_every_situation_is_met_that_stepping_the_environment_meets():
    world = PhaseGrid(4)
    truth, met = world.machines(), set()
    env = gym.make("resolvent/PhaseGrid4-v0")
    rng = np.random.default_rng(0)
    for _ in range(300):
        env.reset(seed=int(rng.integers(1 << 30)))
        over = False
        while not over:
            met.add(env.unwrapped.state)
            over = env.step(int(rng.integers(4)))[2]
    assert compare_pair(truth, world.mechanics).queries == 4 * len(met)


def test_machines_that_read_late_are_refused():
    late = PhaseGrid(3).machines().replacing(timing=LabelTiming.LAGGED)
    with pytest.raises(ModelError, match="a step late"):
        compare_pair(late, PhaseGrid(3).mechanics)


def test_a_wrong_machine_is_marked_so_on_all_counts():
    outcome = forgetful(None, seed=0, time_limit=1)
    record = evaluate(outcome, make_world("grid-3"), seed=0)
    assert (record["status"], record["correctness"], record["states"]) == ("found", "wrong", 1)
    assert record["reachable"]["wrong"] > 0
    assert record["fresh"]["wrong"] > 0


def test_without_a_machine_nothing_is_evaluated():
    outcome = gives_up(None, seed=0, time_limit=1)
    assert evaluate(outcome, make_world("grid-3"), 0) == {"status": "no solution", "details": {}}
