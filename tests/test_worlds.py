"""The fixture worlds keep the promises that tests and benchmarks rely on."""

import json
from pathlib import Path

import numpy as np
import pytest

from resolvent.traces.trace import Trace
from worlds import World, random_world, shortcoming

SEEDS = range(5)


def small(seed: int) -> World:
    return random_world(seed, size=9, tm_states=3)


def replay(world: World, trace: Trace) -> tuple[int, int]:
    """Walk a trace with the tables alone, checking every step; return the last states."""
    q = u = 0
    side = world.size + 1
    for t, action in enumerate(trace.actions):
        here, there = trace.observations[t], trace.observations[t + 1]
        assert isinstance(here, int)
        assert isinstance(there, int)
        x, y = divmod(here, side)
        x, y = [(x, y + 1), (x + 1, y), (x, y - 1), (x - 1, y)][action]  # type: ignore[call-overload]
        free = 0 <= x < side and 0 <= y < side and x * side + y not in world.blocked[q]
        assert there == (x * side + y if free else here)
        label = world.label_at[there]
        assert trace.labels[t + 1] == (frozenset() if label is None else {str(label)})
        assert trace.rewards[t] == (0.0 if label is None else world.rm_rewards[u][label])
        assert u != world.terminal
        if label is not None:
            q, u = world.tm_transitions[q][label], world.rm_transitions[u][label]
    return q, u


@pytest.mark.parametrize("seed", SEEDS)
def test_rollouts_follow_the_tables_until_the_reward_machine_ends(seed: int) -> None:
    world = small(seed)
    for trace in world.rollouts(20, seed):
        first = trace.observations[0]
        assert isinstance(first, int)
        x, y = divmod(first, 10)
        assert (x % 2, y % 2) == (0, 0)
        assert trace.labels[0] == frozenset()
        assert replay(world, trace)[1] == world.terminal
        assert (trace.terminated, trace.truncated) == (True, False)


def test_rollouts_stop_at_max_steps() -> None:
    world = small(0)
    traces = world.rollouts(50, 0, max_steps=20)
    for trace in traces:
        ended = replay(world, trace)[1] == world.terminal
        assert len(trace) == 20 or ended
        assert (trace.terminated, trace.truncated) == (ended, not ended)
    assert traces.truncated.any()


@pytest.mark.parametrize("seed", SEEDS)
def test_steps_are_functions_of_observation_states_and_action(seed: int) -> None:
    """Even where only the traces are looked at, with states read off the labels."""
    world = small(seed)
    answers: dict[tuple[object, ...], tuple[object, ...]] = {}
    for trace in world.rollouts(200, seed):
        q = u = 0
        for t, action in enumerate(trace.actions):
            asked = (trace.observations[t], q, u, action)
            told = (trace.observations[t + 1], trace.rewards[t])
            assert answers.setdefault(asked, told) == told
            for label in map(int, trace.labels[t + 1]):
                q, u = world.tm_transitions[q][label], world.rm_transitions[u][label]


@pytest.mark.parametrize("seed", SEEDS)
def test_labels_lie_on_all_odd_cells_and_only_they_are_blocked(seed: int) -> None:
    world = small(seed)
    odd = {x * 10 + y for x in range(1, 10, 2) for y in range(1, 10, 2)}
    assert {o for o, label in enumerate(world.label_at) if label is not None} == odd
    assert all(blocked <= odd and 5 <= len(blocked) <= 7 for blocked in world.blocked)
    assert not frozenset.intersection(*world.blocked)
    assert len(set(world.blocked)) == 3


def test_the_papers_world_blocks_50_of_169_cells() -> None:
    world = random_world(0)
    assert sum(label is not None for label in world.label_at) == 169
    assert [len(blocked) for blocked in world.blocked] == [50] * 7
    assert np.shape(world.tm_transitions) == (7, 5)
    assert np.shape(world.rm_transitions) == (3, 5)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_transition_machine_is_strongly_connected(seed: int) -> None:
    world = random_world(seed, size=9)
    for source in range(7):
        reached = {source}
        for _ in range(7):
            reached |= {target for state in reached for target in world.tm_transitions[state]}
        assert reached == set(range(7))


@pytest.mark.parametrize("seed", range(20))
def test_cycles_have_negative_and_endings_positive_rewards(seed: int) -> None:
    world = random_world(seed, size=9, rm_states=5)
    # Longest gains by Floyd and Warshall; a cycle shows as a state's gain to itself.
    gain = np.full((5, 5), -np.inf)
    for u, (targets, rewards) in enumerate(
        zip(world.rm_transitions, world.rm_rewards, strict=True)
    ):
        for v, reward in zip(targets, rewards, strict=True):
            assert reward == round(reward, 2)
            if v == u:
                assert reward == 0.0
            else:
                assert (reward > 0) == (v > u)
                gain[u, v] = max(gain[u, v], reward)
    for k in range(5):
        gain = np.maximum(gain, gain[:, k, None] + gain[None, k])
    assert (np.diag(gain) < 0).all()
    assert (gain[:4, 4] > -np.inf).all()
    assert (gain[0, 1:] > -np.inf).all()


def test_the_same_seed_gives_the_same_world_and_walks() -> None:
    assert small(3) == small(3)
    assert small(3) != small(4)
    assert small(3).rollouts(30, 1) == small(3).rollouts(30, 1)
    assert small(3).rollouts(30, 1) != small(3).rollouts(30, 2)


def test_indistinguishable_machines_are_refused() -> None:
    world = small(0)
    alike = World(
        world.size,
        world.label_at,
        world.tm_transitions,
        (world.blocked[0],) * 3,
        world.rm_transitions,
        world.rm_rewards,
    )
    assert shortcoming(world) is None
    assert shortcoming(alike) == "two TM states cannot be distinguished"
    with pytest.raises(ValueError, match="two TM states cannot be distinguished"):
        random_world(0, size=3, tm_states=2, blocked_share=0.0, rm_states=2)


def test_the_paper_format_repeats_the_last_action_and_reward(tmp_path: Path) -> None:
    world = small(0)
    path = tmp_path / "traces.jsonl"
    world.write_paper_format(path, 5, seed=2)
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 5
    for line, trace in zip(lines, world.rollouts(5, seed=2), strict=True):
        steps = json.loads(line)
        assert line == json.dumps(steps)
        assert steps[-1][1:] == steps[-2][1:]
        assert tuple(step[1] for step in steps[:-1]) == trace.actions
        assert tuple(step[2] for step in steps[:-1]) == trace.rewards
        assert tuple(seen for (_, seen), *_ in steps) == trace.observations
        for ((label, _), *_), expected in zip(steps, trace.labels, strict=True):
            assert (set() if label == "None" else {str(label)}) == expected
