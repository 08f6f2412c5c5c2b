"""The paper's random grid worlds: the machines behind them are found again."""

import pytest

import resolvent as rs
from worlds import random_world

every_search = [(e, s) for e in ("native", "python") for s in ("edsm", "rpni")]


def labels_read(world, traces):
    """The true (state, label) pairs of both machines that the traces show, walked by hand.

    A trace's last label is not read: the episode is over.
    """
    tm_read, rm_read = set(), set()
    for trace in traces:
        q = u = 0
        for label in trace.labels[1:-1]:
            for code in map(int, label):
                tm_read.add((q, code))
                rm_read.add((u, code))
                q, u = world.tm_transitions[q][code], world.rm_transitions[u][code]
    return tm_read, rm_read


def partners(machine, step, read):
    """Walk the true tables and the machine together; return each true state's partner."""
    partner, queue = {0: 0}, [0]
    for state in queue:
        for label, target in enumerate(step[state]):
            mine = machine.step(partner[state], {str(label)})
            if (state, label) not in read:
                assert mine is rs.UNSEEN
                continue
            if target not in partner:
                partner[target] = mine
                queue.append(target)
            assert partner[target] == mine, (state, label)
    assert sorted(partner.values()) == list(range(machine.states))
    return partner


def assert_found(world, pair, traces):
    """Every transition by an explicit bijection, and every answer by the world's own rules."""
    tm_read, rm_read = labels_read(world, traces)
    tm = partners(pair.transition, world.tm_transitions, tm_read)
    rm = partners(pair.reward, world.rm_transitions, rm_read)
    assert len(tm) == len(world.tm_transitions)
    assert len(rm) == world.terminal
    true_tm = {mine: theirs for theirs, mine in tm.items()}
    true_rm = {mine: theirs for theirs, mine in rm.items()}
    for state, observation, action, output in pair.transition.entries():
        if state is not None:
            assert output == world.move(observation, true_tm[state], action)
        else:  # the same wherever it was asked; not every state was
            assert output in {world.move(observation, q, action) for q in tm}
    for state, (observation, q), action, output in pair.reward.entries():
        states = rm if state is None else [true_rm[state]]
        assert output in {world.step(observation, true_tm[q], u, action)[3] for u in states}


@pytest.mark.parametrize("seed", [0, 2, 3])
@pytest.mark.parametrize(("engine", "strategy"), every_search)
def test_a_small_world_is_found(seed, engine, strategy):
    world = random_world(seed, size=9, labels=3, tm_states=3, rm_states=3)
    traces = world.rollouts(500, seed=seed)
    pair = rs.infer(traces, strategy=strategy, options=rs.InferenceOptions(engine=engine)).machines
    assert (pair.transition.states, pair.reward.states) == (3, 2)
    assert_found(world, pair, traces)
    assert pair.score(traces).perfect


@pytest.mark.parametrize("strategy", ["edsm", "rpni"])
def test_the_papers_world_from_1000_traces(strategy):
    """TM 7 and RM 2: the paper counts the terminal state as a third, which is never entered."""
    world = random_world(0)
    traces = world.rollouts(1000, seed=0)
    result = rs.infer(traces, strategy=strategy)
    assert (result.transition.states, result.reward.states) == (7, 2)
    assert_found(world, result.machines, traces)
    assert result.machines.score(traces).perfect
    assert result.machines.transition.is_minimal()


@pytest.mark.parametrize("seed", [1, 2])
def test_other_worlds_of_the_papers_size(seed):
    world = random_world(seed)
    traces = world.rollouts(1000, seed=seed)
    pair = rs.infer(traces).machines
    assert (pair.transition.states, pair.reward.states) == (7, 2)
    assert_found(world, pair, traces)


@pytest.mark.parametrize(
    "options",
    [
        {"remove_redundant": False},
        {"remove_trivial": False},
        {"remove_redundant": False, "remove_trivial": False},
    ],
    ids=["redundant kept", "trivial kept", "both kept"],
)
def test_reductions_change_nothing_but_the_time(options):
    world = random_world(0)
    traces = world.rollouts(1000, seed=0)
    pair = rs.infer(traces, options=rs.InferenceOptions(**options)).machines
    assert (pair.transition.states, pair.reward.states) == (7, 2)


def test_without_the_supplement_the_reward_machine_grows():
    """Paper: 15 states with enough data, against 3 (one of them terminal)."""
    world = random_world(0)
    traces = world.rollouts(1000, seed=0)
    pair = rs.infer(traces, options=rs.InferenceOptions(supplement=False)).machines
    assert pair.transition.states == 7
    assert pair.reward.states > 2
    assert pair.score(traces).perfect


def reachable_products(world):
    """The pairs of true states that labels lead to before the episode is over."""
    met, queue = {(0, 0)}, [(0, 0)]
    for q, u in queue:
        for to_q, to_u in zip(world.tm_transitions[q], world.rm_transitions[u], strict=True):
            if to_u != world.terminal and (to_q, to_u) not in met:
                met.add((to_q, to_u))
                queue.append((to_q, to_u))
    return met


@pytest.fixture(scope="module")
def much_data():
    return random_world(0).rollouts(10_000, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["edsm", "rpni"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"supplement": False},
        {"remove_redundant": False},
        {"remove_trivial": False},
        {"remove_redundant": False, "remove_trivial": False},
    ],
    ids=["full", "no supplement", "redundant kept", "trivial kept", "both kept"],
)
def test_the_ablation_table_with_much_data(much_data, strategy, options):
    world = random_world(0)
    # Without the supplement the reward machine must remember what the other one does.
    alone = len(reachable_products(world))
    result = rs.infer(much_data, options=rs.InferenceOptions(strategy=strategy, **options))
    assert result.transition.states == 7
    assert result.reward.states == (2 if options.get("supplement", True) else alone)
    assert result.machines.transition.is_minimal()
    if not options:
        assert_found(world, result.machines, much_data)
