"""Traces taken in one at a time lead to what all of them together lead to, at their own cost."""

from collections import Counter

import numpy as np
import pytest

import resolvent as rs
from resolvent.inference import refinement
from resolvent.replay import corpus as corpora
from resolvent.replay import replaying
from resolvent.replay.coded_shard import CodedShard
from worlds import random_world

WORLD = random_world(3, size=9, labels=4, tm_states=4)
TRACES = WORLD.rollouts(400, seed=0)


def one_by_one(result, traces):
    for number in range(len(traces)):
        result = result.update(traces[number : number + 1])
    return result


def assert_one_inference(result, traces):
    """The result is what inferring from all these traces at once gives, counts included."""
    whole = rs.infer(traces)
    assert list(result.machines) == list(whole.machines)
    assert result.machines == whole.machines
    assert result.machines.termination == whole.machines.termination
    assert result.machines.provenance == whole.machines.provenance
    assert result.machines.provenance.traces_sha256 == traces.digest
    assert (result.traces, result.steps) == (len(traces), traces.steps)
    assert result.all_traces() == traces
    for kind, machine in result.machines.items():
        mine, yours = machine.support, whole.machines[kind].support
        for column in ("transitions", "outputs", "constants", "constants_by_state"):
            assert np.array_equal(getattr(mine, column), getattr(yours, column)), column


@pytest.mark.parametrize("seed", range(4))
def test_sixty_updates_of_one_trace_are_one_inference(seed):
    traces = random_world(seed, size=9, labels=4, tm_states=4).rollouts(400, seed=0)
    assert_one_inference(one_by_one(rs.infer(traces[:340]), traces[340:]), traces)


@pytest.mark.parametrize("seed", range(3))
def test_updates_that_contradict_the_machines_repair_them(seed):
    """One trace tells next to nothing, so that those after it contradict what it led to."""
    traces = random_world(seed, size=9, labels=4, tm_states=4).rollouts(400, seed=0)
    result, repairs = rs.infer(traces[:1]), 0
    for number in range(1, 60):
        result = result.update(traces[number : number + 1])
        repairs += result.refinement.rounds > 1
        assert result.machines.score(traces[: number + 1]).perfect
    assert repairs >= 2
    assert_one_inference(result.update(traces[60:]), traces)


@pytest.mark.parametrize("column", ["observation", "label", "action", "reward"])
def test_updates_may_bring_new_values(column):
    """Walks of a few steps miss much; those that have the last value of a column come later."""
    everything = WORLD.rollouts(60, seed=1, max_steps=3) + TRACES
    last = everything.values[column][-1]
    has = np.array([last in everything[n : n + 1].values[column] for n in range(len(everything))])
    before, after = (everything.take(np.flatnonzero(which)) for which in (~has, has))
    assert last not in before.values[column]
    assert len(before) >= 5
    result = one_by_one(rs.infer(before), after[:20])
    assert_one_inference(result.update(after[20:]), before + after)


def test_rounded_rewards_may_come_one_trace_at_a_time():
    """Rewards that only rounding makes equal come one at a time."""
    rng = np.random.default_rng(0)
    traces = WORLD.rollouts(150, seed=2)
    noisy = rs.TraceSet(
        rs.Trace(
            one.observations,
            one.labels,
            one.actions,
            np.array(one.rewards) + rng.uniform(-0.001, 0.001, len(one)),
            one.terminated,
            one.truncated,
        )
        for one in traces
    )
    whole = rs.infer(noisy, options=rs.InferenceOptions(reward_digits=2)).machines
    result = one_by_one(
        rs.infer(noisy[:140], options=rs.InferenceOptions(reward_digits=2)), noisy[140:]
    )
    assert result.machines == whole
    assert result.machines.provenance.traces_sha256 == noisy.digest


# ---- when episodes end -----------------------------------------------------


def bells(*rung, ended=False, look=None):
    """Going on with or without a bell each step; looking at the end may pay."""
    actions = ["go"] * len(rung) + ([] if look is None else ["look"])
    labels = [None, *("bell" if one else None for one in rung), None][: len(actions) + 1]
    rewards = [0.0] * len(rung) + ([] if look is None else [look])
    return rs.Trace([0] * len(labels), labels, actions, rewards, terminated=ended)


# Going on after the second bell ends the episode; nothing else depends on the bells.
SECOND_BELL = [
    bells(1, 1, 0, ended=True),
    bells(1, 0, 1, 0, ended=True),
    bells(0, 1, 0, 0),
    bells(0, 0, 1, 0, 1, 0, ended=True),
    bells(0, 0),
    bells(1, 0, 0, 0),
]
BY_CHANCE = bells(1, 0, 0, ended=True)
PAID_FOR_BOTH = [bells(1, 1, look=1.0), bells(1, look=0.0), bells(look=0.0)]


def test_observed_endings_do_not_depend_on_the_order_of_updates():
    ways = rs.TraceSet(SECOND_BELL)
    result = one_by_one(rs.infer(ways[:1]), ways[1:])
    assert result.machines["terminated"].states == 3
    assert_one_inference(result, ways)
    # Then once the episode ends after a single bell.
    chance = result.update(rs.TraceSet([BY_CHANCE]))
    assert list(chance.machines) == ["transition", "reward"]
    assert len(chance.machines.termination.ambiguous) == 1
    assert_one_inference(chance, rs.TraceSet([*SECOND_BELL, BY_CHANCE]))
    # And that it is chance stays so.
    assert_one_inference(chance.update(ways), rs.TraceSet([*SECOND_BELL, BY_CHANCE, *SECOND_BELL]))


def test_a_machine_for_endings_is_dropped_if_another_has_its_states():
    """Once looking pays after two bells, the Reward Machine counts them, and that tells all."""
    result = rs.infer(rs.TraceSet(SECOND_BELL)).update(rs.TraceSet(PAID_FOR_BOTH))
    assert list(result.machines) == ["transition", "reward"]
    assert result.machines.reward.states == 3
    assert result.machines.termination.ambiguous == frozenset()
    assert_one_inference(result, rs.TraceSet([*SECOND_BELL, *PAID_FOR_BOTH]))


# ---- what an update costs --------------------------------------------------


class Work:
    """Counts the traces that are replayed, hashed and coded, and how often machines are learned."""

    def __init__(self, monkeypatch):
        self.counts = Counter()
        whole = [
            ("replayed", replaying, "replay_shard", lambda tables, shard, **_: len(shard.traces)),
            ("hashed", corpora, "digested", lambda shard: len(shard.traces)),
            ("coded", CodedShard, "among", lambda first, traces, *_: len(traces)),
            ("learned", refinement, "infer_machines", lambda *_: 1),
        ]
        for name, owner, function, amount in whole:
            self._count(monkeypatch, name, owner, function, amount)

    def _count(self, monkeypatch, name, owner, function, amount):
        real = getattr(owner, function)

        def counted(*arguments, **options):
            self.counts[name] += amount(*arguments, **options)
            return real(*arguments, **options)

        monkeypatch.setattr(owner, function, counted)

    def since_last(self):
        counts = {name: self.counts[name] for name in ("replayed", "hashed", "coded", "learned")}
        self.counts.clear()
        return counts


def test_an_update_without_conflict_processes_only_new_traces(monkeypatch):
    first = rs.infer(TRACES[:300])
    work = Work(monkeypatch)
    second = first
    for start, stop in ((300, 301), (301, 302), (302, 340), (340, 400)):
        second = second.update(TRACES[start:stop])
        new = stop - start
        assert work.since_last() == {"replayed": new, "hashed": new, "coded": new, "learned": 0}
    assert second.machines.provenance.traces_sha256 == TRACES.digest
    assert second.refinement.rounds == 1


def test_a_repair_processes_old_traces_again(monkeypatch):
    """What the test above counts is counted."""
    work = Work(monkeypatch)
    few = rs.infer(TRACES[:2])
    assert work.since_last() == {
        "replayed": 4,
        "hashed": 4,
        "coded": 4,
        "learned": 3,
    }  # in two folds too
    few.update(TRACES[2:])
    counted = work.since_last()
    assert counted["replayed"] > len(TRACES)
    assert counted["learned"] > 0
