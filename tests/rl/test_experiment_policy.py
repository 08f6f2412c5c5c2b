"""Experiments that are executed: the query is made after the labels, which settles it."""

from typing import Any

import gymnasium as gym
import pytest

import resolvent as rs
from resolvent.evaluation.experiments import Experiment
from resolvent.rl.experiment_policy import Goal
from resolvent.worlds import House, TMaze
from silent_houses import SilentHouse
from worlds_to_explore import SecondMission

KEY, BELL, NOTHING = frozenset({"key"}), frozenset({"bell"}), frozenset[str]()

WORLDS: dict[str, tuple[Any, int, str]] = {
    "House": (House, 3, "current"),
    "TMaze": (lambda: TMaze(4), 4, "current-with-initial"),
    "PhaseGrid3": (lambda: gym.make("resolvent/PhaseGrid3-v0"), 2, "current"),
    "SecondMission": (SecondMission, 8, "current"),
}


def thin(world: str, seed: int) -> tuple[Any, rs.InferenceResult]:
    make, episodes, timing = WORLDS[world]
    env = make()
    traces = rs.collect(env, episodes=episodes, seed=seed, max_steps=40)
    return env, rs.infer(traces, timing=timing)


def open_queries(result: rs.InferenceResult) -> list[Experiment]:
    return [one for kind in result.machines for one in result.evidence[kind].experiments]


def is_settled(
    experiment: Experiment, before: rs.InferenceResult, after: rs.InferenceResult
) -> bool:
    """Return whether an experiment is no longer open, or its states have changed."""
    old, new = before.machines[experiment.machine], after.machines[experiment.machine]
    same = all(
        old.step(state, label) in (rs.UNSEEN, new.step(state, label))
        for state in range(old.states)
        for label in old.labels
    )
    return not same or experiment not in open_queries(after)


def at_random(result: rs.InferenceResult, env: Any, steps: int, seed: int) -> rs.InferenceResult:
    """Return the result updated with as many random steps instead."""
    more, taken = [], 0
    while taken < steps:
        one = rs.collect(env, episodes=1, seed=seed, max_steps=min(40, steps - taken))
        more.append(one)
        taken, seed = taken + one.steps, seed + 1
    return result.update(sum(more[1:], more[0]))


def turns(world: str, seed: int, most: int) -> tuple[int, int, int]:
    """Execute experiments; return how many were done, settled, and settled by random steps."""
    env, result = thin(world, seed)
    done = answered = by_chance = 0
    tried: set[Experiment] = set()
    for turn in range(most):
        fresh = [one for one in open_queries(result) if one not in tried]
        if not fresh:
            break
        tried.add(fresh[0])
        trial = fresh[0].policy(env, result, result.all_traces(), seed=turn)
        more = rs.collect(env, episodes=2, seed=turn, policy=trial, max_steps=40)
        if trial.done:
            done += 1
            other = at_random(result, env, more.steps, 100 * turn)
            by_chance += is_settled(fresh[0], result, other)
        after = result.update(more)
        if trial.done:
            answered += is_settled(fresh[0], result, after)
        result = after
    return done, answered, by_chance


@pytest.mark.parametrize(
    "worlds", [["House", "PhaseGrid3"], pytest.param([*WORLDS], marks=pytest.mark.slow)]
)
def test_experiments_of_the_evidence_settle_their_queries(worlds):
    seeds = range(1 if len(worlds) == 2 else 4)
    counts = [
        turns(world, seed, 6 if len(worlds) == 2 else 10) for world in worlds for seed in seeds
    ]
    done, answered, by_chance = map(sum, zip(*counts, strict=True))
    assert done >= 3 * len(seeds)
    assert answered == done
    assert by_chance < answered


@pytest.mark.parametrize("world", WORLDS)
def test_experiments_of_a_plan_settle_their_queries(world):
    env, result = thin(world, 1)
    for turn in range(4):
        plan = rs.plan(result, result.all_traces())
        wanted = plan.next_experiment
        if wanted is None:
            break
        trial = wanted.policy(env, result, result.all_traces(), seed=turn)
        more = rs.collect(env, episodes=1, seed=turn, policy=trial, max_steps=40)
        for _ in range(30):  # until an episode begins in the right state
            if not trial.done:
                more += rs.collect(env, episodes=1, policy=trial, max_steps=40)
        assert trial.done
        result = result.update(more)
        assert rs.plan(result, result.all_traces()).next_experiment != wanted
    else:
        return
    assert plan.is_optimal or plan.all_rewards_equal


def test_known_steps_lead_to_the_query_directly():
    env, result = House(), rs.infer(rs.collect(House(), episodes=200, seed=0))
    wanted = Experiment((KEY,), ("cyanroom", "down"), "as a test", "transition")
    trial = wanted.policy(env, result, result.all_traces())
    more = rs.collect(env, episodes=1, policy=trial, max_steps=4)
    assert more[0].actions == ("left", "right", "up", "down")
    assert trial.done


def test_a_users_own_loop_takes_the_same_actions():
    result = rs.infer(rs.collect(House(), episodes=5, seed=0))
    wanted = Experiment((KEY,), ("corridor", "up"), "as a test", "transition")
    collected = wanted.policy(House(), result, result.all_traces(), seed=3)
    trace = rs.collect(House(), episodes=1, policy=collected, max_steps=12)[0]
    env = House()
    trial = wanted.policy(env, result, result.all_traces(), seed=3)
    observation, info = env.reset()
    trial.begin(info["labels"])
    actions = []
    for _ in range(len(trace.actions)):
        actions.append(env.action_names[trial(observation)])
        observation, *_, info = env.step(env.action_names.index(actions[-1]))
        trial.read(info["labels"])
    assert tuple(actions) == trace.actions
    assert trial.done


def test_labels_derived_by_machines_are_derived_here_too():
    env = SilentHouse()
    result = rs.infer(rs.collect(env, episodes=40, seed=0, labels="auto"), labels="observation")
    in_orange = frozenset({"orangeroom"})
    wanted = Experiment((in_orange,), ("corridor", "up"), "as a test", "transition")
    trial = wanted.policy(env, result, result.all_traces())
    more = rs.collect(env, episodes=1, policy=trial, labels="auto", max_steps=10)
    assert more[0].actions[:3] == ("left", "right", "up")
    assert trial.done


def test_without_known_steps_all_actions_are_tried():
    first = rs.Trace(["corridor", "corridor"], [None, None], ["sit"], [0])
    result = rs.infer(rs.TraceSet([first]))
    wanted = Experiment((KEY,), ("corridor", "up"), "as a test", "transition")
    trial = wanted.policy(House(), result, result.all_traces(), seed=0)
    more = rs.collect(House(), episodes=20, seed=0, policy=trial, max_steps=30)
    assert trial.done
    assert any(KEY in one.labels for one in more)


def test_an_impossible_experiment_is_never_done():
    env, result = House(), rs.infer(rs.collect(House(), episodes=200, seed=0))
    toilet = result.evidence.transition.experiments[0]
    assert toilet.why == "toilet was never read in state 0"
    trial = toilet.policy(env, result, result.all_traces())
    rs.collect(env, episodes=10, seed=0, policy=trial, max_steps=40)
    assert not trial.done  # it cannot be reached without the key


def test_a_policy_without_labels_raises():
    env, result = thin("House", 0)
    trial = open_queries(result)[0].policy(env, result, result.all_traces())
    with pytest.raises(rs.OptionError, match=r"call begin\(\) with that of a reset"):
        trial(0)
    trial.read(None)
    with pytest.raises(rs.OptionError, match=r"needs labels"):
        trial(0)
    many = gym.vector.SyncVectorEnv([House] * 2)
    with pytest.raises(rs.OptionError, match="plays one environment"):
        rs.collect(many, episodes=2, policy=trial)
    with pytest.raises(rs.OptionError, match=r"a gymnasium\.Env"):
        open_queries(result)[0].policy(many, result, result.all_traces())


def test_progress_of_goals_by_hand():
    exact = Goal((), (KEY, BELL), True, frozenset({NOTHING}))
    assert exact.after(0, (0,), KEY) == exact.after(1, (0,), NOTHING) == 1
    assert exact.after(1, (0,), BELL) == 2
    assert exact.after(0, (0,), BELL) == exact.after(2, (0,), KEY) == -1
    assert exact.after(-1, (0,), KEY) == -1
    assert exact.is_reached(2, None)
    none = Goal((), (), True, frozenset({NOTHING}))
    assert none.is_reached(none.after(0, (0,), NOTHING), (0,))
    assert not none.is_reached(none.after(0, (0,), KEY), (0,))
    states = Goal(((0, 1),), (BELL,), False, frozenset({NOTHING}))
    assert states.after(0, (0,), BELL) == states.after(1, (1,), KEY) == 0
    assert states.after(0, (1,), BELL) == states.after(1, (1,), BELL) == 1
    assert states.is_reached(1, None)
    being = Goal(((0, 1),), (), False, frozenset())
    assert being.is_reached(0, (1,))
    assert not being.is_reached(0, (0,))
    assert not being.is_reached(0, None)


def test_experiments_of_evidence_and_plan_have_the_same_fields():
    _, result = thin("House", 0)
    asked = open_queries(result)[0].as_dict()
    planned = rs.plan(result, result.all_traces()).next_experiment
    assert planned is not None
    assert asked.keys() == planned.as_dict().keys()
    assert asked["machine"] == "transition"
    assert asked["actions"] is None
    assert planned.query == (planned.augmented_state[0], planned.action)
    machine = result.machines.transition
    assert machine.run(planned.history) == planned.augmented_state[1]
