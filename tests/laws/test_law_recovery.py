"""Law 2: a structure-complete sample of a random machine gives back that machine.

Paper: "Formal Definition of Structure Completeness".
"""

from itertools import product
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracles import (
    answers_by_history,
    bijection,
    differ_at_once,
    is_minimal_target,
    is_structure_complete,
    reachable,
    smallest_machine,
)

import resolvent as rs
from resolvent.inference.engine import merge
from resolvent.machines import Machine
from resolvent.machines.build import build_machine
from resolvent.preprocess.reduction import ConstantOutputs
from resolvent.preprocess.timing import LabelTiming
from strategies import Target, sample_set, sample_sets, targets

SEARCHES = [(order, engine) for order in ("edsm", "rpni") for engine in ("native", "python")]


def machine_from(samples, order, engine):
    found = merge(samples, order=order, engine=engine)
    return build_machine(Machine, found, samples, ConstantOutputs.nothing(), ())


def label(code):
    return {f"{code:05}"}


def query(alpha):
    return alpha, "ask"


def asked_along(target, word, asks):
    """A trace that reads a word and, after each label, asks what `asks` says of the history."""
    trace = []
    for length in range(len(word) + 1):
        history = word[:length]
        state = target.run(history)
        beta = history[-1] if history else -1
        for alpha in asks(history) or [-1]:
            trace.append((beta, alpha, target.answer[state][alpha] if alpha >= 0 else -1))
            beta = -1
    return trace


def covering_words(target, random):
    """Words through every transition, each with a random rest, in random order."""
    access = {0: ()}
    queue = [0]
    for state in queue:
        for code in random.sample(target.labels, len(target.labels)):
            if target.step[state][code] not in access:
                access[target.step[state][code]] = (*access[state], code)
                queue.append(target.step[state][code])
    words = [
        (*access[state], code, *random.choices(target.labels, k=random.randrange(4)))
        for state, code in product(access, target.labels)
    ]
    return random.sample(words, len(words))


@st.composite
def complete_samples(draw):
    """A minimal target, and traces of it that the independent checker finds structure complete."""
    target = draw(targets())
    assume(len(reachable(target)) == len(target.step) and differ_at_once(target))
    random = Random(draw(st.integers(0, 2**32)))
    words = covering_words(target, random)
    share = draw(st.floats(0.5, 1))
    asks = {}

    def sparse(history):
        chosen = [alpha for alpha in target.alphas if random.random() < share]
        return asks.setdefault(history, chosen)

    traces = [asked_along(target, word, sparse) for word in words]
    if not is_structure_complete(target, traces):
        traces = [asked_along(target, word, lambda _: target.alphas) for word in words]
    assert is_structure_complete(target, traces)
    return target, traces


@settings(deadline=None, max_examples=400)
@given(complete_samples())
def test_a_structure_complete_sample_gives_the_machine(drawn):
    target, traces = drawn
    assert is_minimal_target(target)
    samples = sample_set(traces)
    known = {(target.run(h), a) for h, told in answers_by_history(traces).items() for a in told}
    for order, engine in SEARCHES:
        machine = machine_from(samples, order, engine)
        partner = bijection(target, machine, label, query, lambda x: x, known)
        assert isinstance(partner, dict), partner


def all_words(target, depth):
    return list(product(target.labels, repeat=depth))


@settings(deadline=None, max_examples=150)
@given(targets(states=4, labels=2, alphas=2, outputs=2))
def test_states_that_differ_only_later_are_distinguished(target):
    """All words up to 2n−1 labels: any red and blue state still have n−1 labels below them."""
    assume(is_minimal_target(target))
    words = all_words(target, 2 * len(target.step) - 1)
    samples = sample_set([asked_along(target, word, lambda _: target.alphas) for word in words])
    for order, engine in SEARCHES:
        machine = machine_from(samples, order, engine)
        assert isinstance(bijection(target, machine, label, query, lambda x: x), dict)
        assert machine.is_minimal()


def test_a_hidden_counter_is_inferred():
    """By hand: three ticks in a ring that only the query after the third tells apart."""
    ring = Target(step=((1, 0), (2, 1), (0, 2)), answer=((0,), (0,), (1,)))
    assert is_minimal_target(ring)
    assert not differ_at_once(ring)
    words = all_words(ring, 5)
    samples = sample_set([asked_along(ring, word, lambda _: ring.alphas) for word in words])
    for order, engine in SEARCHES:
        machine = machine_from(samples, order, engine)
        assert machine.transitions.tolist() == [[1, 0], [2, 1], [0, 2]]
        assert machine.output_value.tolist() == [0, 0, 1]


# ---- through traces --------------------------------------------------------

ACTIONS = range(4)
OBSERVATIONS = range(2)


def reward_traces(target, words, timing):
    """Traces whose rewards are the target's answers; the observation is the last action's parity.

    So the transition machine has one state. Below each label all eight pairs of
    observation and action are tried, with "no event" between them.
    """
    traces = []
    for word in words:
        read, asked = [], []
        for label_read in [None, *word]:
            for seen, action in product(OBSERVATIONS, ACTIONS):
                read += [label_read, None]
                asked += [seen, action]  # the first action brings about the observation
                label_read = None
        observations = [0, *(action % 2 for action in asked)]
        rewards, state = [], 0
        for t, action in enumerate(asked):
            if read[t] is not None:
                state = target.step[state][read[t]]
            rewards.append(target.answer[state][observations[t] * len(ACTIONS) + action] / 4)
        names = [None if code is None else f"{code:05}" for code in [*read, None]]
        if timing is LabelTiming.LAGGED:
            names = [*names[1:], None]
        traces.append(rs.Trace(observations, names, asked, rewards))
    return rs.TraceSet(traces)


@pytest.mark.parametrize("timing", LabelTiming)
@settings(deadline=None, max_examples=40)
@given(target=targets(states=5, labels=3, alphas=1), seed=st.integers(0, 2**32))
def test_rewards_of_a_random_machine_give_that_machine(timing, target, seed):
    random = Random(seed)
    answer = tuple(tuple(random.choices(range(3), k=8)) for _ in target.step)
    target = Target(target.step, answer)
    assume(len(reachable(target)) == len(target.step) and differ_at_once(target))
    traces = reward_traces(target, covering_words(target, random), timing)
    for order, engine in SEARCHES:
        pair = rs.infer(
            traces, strategy=order, timing=timing, options=rs.InferenceOptions(engine=engine)
        ).machines
        assert pair.transition.states == 1
        partner = bijection(
            target,
            pair.reward,
            label,
            lambda alpha: ((alpha // len(ACTIONS), 0), alpha % len(ACTIONS)),
            lambda output: output / 4,
        )
        assert isinstance(partner, dict), partner
        assert pair.reward.is_minimal()


# ---- against all machines --------------------------------------------------


@settings(deadline=None, max_examples=40)
@given(targets(states=3, labels=2, alphas=2, outputs=2))
def test_on_complete_samples_no_machine_is_smaller(target):
    assume(is_minimal_target(target))
    words = all_words(target, 2 * len(target.step) - 1)
    traces = [asked_along(target, word, lambda _: target.alphas) for word in words]
    smallest = smallest_machine(traces, len(target.labels), at_most=3)
    for order, engine in SEARCHES:
        assert machine_from(sample_set(traces), order, engine).states == smallest


@settings(deadline=None, max_examples=150)
@given(sample_sets(labels=2, alphas=2, outputs=2, traces=4, length=6))
def test_no_inferred_machine_is_smaller_than_the_smallest_one(samples):
    traces = [
        list(zip(*(column[start:stop].tolist() for column in rows), strict=True))
        for rows in [(samples.beta, samples.alpha, samples.output)]
        for start, stop in zip(samples.offsets, samples.offsets[1:], strict=False)
    ]
    try:
        told = answers_by_history(traces)
    except AssertionError:
        assume(False)
    for order in ("edsm", "rpni"):
        machine = machine_from(samples, order, "native")
        if machine.states <= 3:
            smallest = smallest_machine(traces, len(samples.labels), at_most=3)
            assert smallest is not None
            assert smallest <= machine.states
        for history, answers in told.items():
            state = machine.run(label(code) for code in history)
            for alpha, output in answers.items():
                assert machine.output(state, *query(alpha)) == output
