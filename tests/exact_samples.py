"""Samples for exact searches, easy and hard ones, and what is true of their machines."""

from itertools import pairwise, product

import numpy as np
from oracles import answers_by_history

from resolvent.machines.build import RawAutomaton
from resolvent.preprocess.reduction import remove_redundant, remove_trivial, trivial_codes
from resolvent.preprocess.samples import Histories, find_contradiction, output_samples
from resolvent.preprocess.timing import LabelTiming
from strategies import sample_set, sample_sets
from worlds import random_world

COLUMNS = [
    f"{what}_{name}"
    for what, names in (
        ("transition", ("state", "label", "target", "count")),
        ("output", ("state", "alpha", "value", "count")),
    )
    for name in names
]
honest_samples = sample_sets(labels=2, alphas=2, outputs=2, traces=4, length=8).filter(
    lambda samples: find_contradiction(samples) is None
)


def rows_of(samples):
    rows = list(
        zip(samples.beta.tolist(), samples.alpha.tolist(), samples.output.tolist(), strict=True)
    )
    bounds = samples.offsets.tolist()
    return [rows[start:stop] for start, stop in pairwise(bounds)]


def partitions(samples, states):
    """All ways in which machines of so many states tell apart the histories that matter."""
    told = answers_by_history(rows_of(samples))
    matter = sorted(
        (h for h in told if any(other[: len(h)] == h and told[other] for other in told)), key=len
    )
    labels, found = len(samples.labels), set()
    for flat in product(range(states), repeat=states * labels):
        state, answer, fits = {(): 0}, {}, True
        for history in matter:
            if history:
                state[history] = flat[state[history[:-1]] * labels + history[-1]]
            for alpha, output in told[history].items():
                fits &= answer.setdefault((state[history], alpha), output) == output
        if fits:
            first = {}
            found.add(tuple(first.setdefault(state[history], len(first)) for history in matter))
    return found


def assert_explains(automaton, samples):
    """Step through every sample; count what is met on the way."""
    step = dict(
        zip(
            zip(automaton.transition_state, automaton.transition_label, strict=True),
            automaton.transition_target,
            strict=True,
        )
    )
    answer = dict(
        zip(
            zip(automaton.output_state, automaton.output_alpha, strict=True),
            automaton.output_value,
            strict=True,
        )
    )
    steps, answers = 0, 0
    for trace in rows_of(samples):
        state = 0
        for beta, alpha, output in trace:
            if beta >= 0:
                state = step[state, beta]
                steps += 1
            if alpha >= 0:
                assert answer[state, alpha] == output
                answers += 1
    assert automaton.transition_count.sum() == steps
    assert automaton.output_count.sum() == answers
    assert automaton.transition_count.all()


def same(first: RawAutomaton, second: RawAutomaton) -> bool:
    return all(np.array_equal(getattr(first, name), getattr(second, name)) for name in COLUMNS)


def world_samples(seed, episodes, **shape):
    world = random_world(seed, **shape)
    traces = world.rollouts(episodes, seed)
    trivial = trivial_codes(traces.labels)
    histories = remove_trivial(Histories.of(traces, LabelTiming.CURRENT), trivial)
    return world, remove_redundant(output_samples(traces, histories, "observation"))[0]


def hard_samples():
    """Noise: answers of no machine, one history each."""
    random = np.random.default_rng(0)
    traces = [
        [
            (int(random.integers(3)), int(random.integers(4)), int(random.integers(2)))
            for _ in range(60)
        ]
        for _ in range(25)
    ]
    for trace in traces:
        for at in range(4):
            trace[at] = (trace[at][0], -1, -1)
    return sample_set(traces)
