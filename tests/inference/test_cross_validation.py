"""Held-out steps: chosen by content, counted by hand, and distinguished from repeated ones."""

import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

import resolvent as rs
from resolvent.errors import OptionError, TimeLimitReached, TraceError
from resolvent.inference.held_out import MachineHoldoutScore
from resolvent.machines import MachineScore
from resolvent.traces.digest import trace_hashes
from vending_machine import log


def read(rows):
    return rs.read_log(
        pa.Table.from_pylist(rows),
        episode="session",
        order="time",
        input="event",
        output="response",
    )


def log_of(words, answer):
    """Traces of a log: each word is read letter by letter, and answered by its beginning."""
    return read(
        [
            {"session": number, "time": at, "event": word[at], "response": answer(word[: at + 1])}
            for number, word in enumerate(words)
            for at in range(len(word))
        ]
    )


def parity(word):
    return "odd" if word.count("a") % 2 else "even"


def words(count, length, seed=0):
    chance = random.Random(seed)
    return ["".join(chance.choices("ab", k=length)) for _ in range(count)]


def counted(machine, traces, first=0):
    """Right, wrong and unseen steps, step by step, from step `first` of each trace on."""
    counts = {"right": 0, "wrong": 0, "unseen": 0}
    for trace in traces:
        state = 0
        for step, action in enumerate(trace.actions):
            predicted = machine.output(state, trace.observations[step], action)
            if step >= first:
                actual = trace.columns["response"][step]
                kind = (
                    "unseen"
                    if predicted is rs.UNSEEN
                    else "right"
                    if predicted == actual
                    else "wrong"
                )
                counts[kind] += 1
            state = machine.step(state, trace.labels[step + 1])
    return counts


def held_by_hand(traces, share=5):
    """The numbers of the traces learned from and held out: every fifth distinct one.

    They are in the order of the number of traces with their rarest response, at most a tenth of
    the responses to an event, and of their hashes.
    """
    keys = trace_hashes(traces).tolist()
    distinct = sorted({key: keys.index(key) for key in keys}.items())
    machine = rs.infer(traces, noise="none").machines["response"]
    given = {}
    for state, query, value in zip(
        machine.output_state.tolist(),
        machine.output_query.tolist(),
        machine.output_value.tolist(),
        strict=True,
    ):
        action = machine.actions[query % len(machine.actions)]
        count = machine.support.outputs[
            machine.output_rows(np.array([state]), np.array([query]))[0]
        ]
        given.setdefault(action, Counter())[machine.outputs[value]] += int(count)
    rare = {
        (action, value)
        for action, values in given.items()
        if len(values) > 1
        for value, count in values.items()
        if count <= values.total() / 10
    }
    shown = {
        key: {
            response
            for event, response in zip(
                traces[at].actions, traces[at].columns["response"], strict=True
            )
            if (event, response) in rare
        }
        for key, at in distinct
    }
    times = Counter(value for values in shown.values() for value in values)
    order = sorted(
        shown, key=lambda key: (min((times[v] for v in shown[key]), default=len(keys) + 1), key)
    )
    held = set(order[1::share])
    learned = [number for number, key in enumerate(keys) if key not in held]
    return learned, [keys.index(key) for key in sorted(held, key=keys.index)]


@pytest.mark.parametrize("sessions", [12, 30, 200])
def test_steps_are_counted_as_by_hand(sessions):
    traces = read(log(sessions, seed=sessions))
    scores = rs.holdout_score(rs.infer(traces), traces)
    learned, held = held_by_hand(traces)
    alone = rs.infer(traces.take(learned)).machines["response"]
    score = scores["response"]
    expected = counted(alone, [traces[number] for number in held])
    assert {name: score.as_dict()[name] for name in expected} == expected
    assert (score.states, score.traces, score.score.steps) == (
        alone.states,
        len(held),
        25 * len(held),
    )
    assert score.share == expected["right"] / score.score.steps


def test_neither_order_nor_repeats_make_a_difference():
    traces = read(log(24, seed=1))
    scores = rs.holdout_score(rs.infer(traces), traces)
    order = np.random.default_rng(0).permutation(len(traces))
    shuffled = traces.take(order)
    assert rs.holdout_score(rs.infer(shuffled), shuffled) == scores
    repeated = traces.take(np.concatenate([order, order[:7], order[:3]]))
    assert rs.holdout_score(rs.infer(repeated), repeated).as_dict() == scores.as_dict()


def test_of_one_long_trace_the_end_is_held_out():
    traces = log_of(words(1, 500), parity)
    scores = rs.holdout_score(rs.infer(traces), traces)
    (score,) = scores.values()
    assert not scores.whole_traces
    assert (scores.traces, scores.steps, score.score.steps, score.score.all_right) == (
        1,
        100,
        100,
        100,
    )
    assert score.interval is None
    assert str(scores).startswith("the end of 1 trace (100 steps)")


def test_steps_at_the_end_are_counted_as_by_hand():
    traces = read([row | {"session": "s"} for row in log(8, seed=3)])
    scores = rs.holdout_score(rs.infer(traces, noise="none"), traces, share=0.5)
    whole = traces[0]
    half = rs.Trace(
        whole.observations[:101],
        whole.labels[:101],
        whole.actions[:100],
        columns={"response": whole.columns["response"][:100]},
    )
    alone = rs.infer([half]).machines["response"]
    expected = counted(alone, [whole], first=100)
    assert {name: scores["response"].as_dict()[name] for name in expected} == expected


def test_a_prefix_of_a_training_trace_is_not_new():
    """All are beginnings of one word, so only the whole of it can be new."""
    word = words(1, 40)[0]
    traces = log_of([word[:length] for length in range(1, 41)], parity)
    result = rs.infer(traces)
    learned, _ = held_by_hand(traces)
    if 39 in learned:
        with pytest.raises(TraceError, match="all 8 traces chosen to be held out are the"):
            rs.holdout_score(result, traces)
    else:
        assert (rs.holdout_score(result, traces).traces, rs.holdout_score(result, traces).new) == (
            8,
            1,
        )
    others = log_of([word[:length] for length in range(1, 41)] + words(40, 12, seed=4), parity)
    scores = rs.holdout_score(rs.infer(others), others)
    assert 0 < scores.new < scores.traces == 16
    assert f"16 traces, {scores.new} of them new" in str(scores)


def test_steps_in_sinks_are_counted_separately():
    def answer(word):
        return "bye" if "b" in word[:-1] else parity(word)

    traces = log_of(words(60, 20, seed=2), answer)
    score = rs.holdout_score(rs.infer(traces), traces)["response"]
    _, held = held_by_hand(traces)
    stuck = sum(len(traces[n].actions) - 1 - traces[n].actions.index("b") for n in held)
    assert (score.stuck, score.stuck_right) == (stuck, stuck)
    assert score.share_before_stuck == 1


def test_noisy_machines_are_checked_for_calibration():
    chance = random.Random(7)

    def often_right(word):
        return parity(word) if chance.random() < 0.9 else parity(word + "a")

    traces = log_of(words(100, 30), often_right)
    score = rs.holdout_score(rs.infer(traces), traces)["response"]
    assert score.noisy
    assert 0.85 < score.share < 0.95
    assert "log-loss" in str(score)
    loss = -score.share * np.log(0.9) - (1 - score.share) * np.log(0.1)
    assert score.as_dict()["log_loss"] == pytest.approx(loss, abs=0.03)


@pytest.mark.parametrize(("right", "traces"), [(390, 40), (1, 7), (400, 3)])
def test_the_interval_is_that_of_wilson(right, traces):
    """Its ends are the shares from which the result lies 1.96 standard deviations away."""
    score = MachineHoldoutScore(2, traces, MachineScore(right=right, wrong=400 - right))
    share, output_counts = right / 400, 1.959964**2 / traces
    ends = np.sort(np.roots([1 + output_counts, -(2 * share + output_counts), share**2]).real)
    assert score.interval == pytest.approx(ends, abs=1e-6)


def test_traces_of_one_step_cannot_be_held_out():
    result = rs.infer(log_of(["ab", "ba"], parity))
    with pytest.raises(TraceError, match="one step each"):
        rs.holdout_score(result, log_of(["a", "b"], parity))
    with pytest.raises(OptionError, match="share is 1: it must lie between 0 and 1"):
        rs.holdout_score(result, log_of(["ab", "ba"], parity), share=1)


def test_machines_of_a_truncated_search_are_not_tested():
    traces = log_of(words(60, 20), parity)
    with pytest.raises(TimeLimitReached, match="takes longer than 1e-06 s"):
        rs.holdout_score(rs.infer(traces), traces, time_limit=1e-6)


def test_one_trace_at_least_is_learned_from():
    traces = log_of(words(20, 20), parity)
    assert rs.holdout_score(rs.infer(traces), traces, share=0.999).traces == 19
