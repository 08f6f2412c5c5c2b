"""Tasks for hidden Markov models, random ones too, and what all their hidden paths add up to."""

from itertools import pairwise, product

import numpy as np
from hypothesis import strategies as st

from resolvent.paper.baselines.reach_task import ReachTask


def task_of(*walks, places=None):
    """A task of traces that are given as (places, paid)."""
    count = places or 1 + max(place for walk, _ in walks for place in walk)
    lengths = [len(walk) - 1 for walk, _ in walks]
    return ReachTask(
        places=np.array([place for walk, _ in walks for place in walk], np.int32),
        offsets=np.cumsum([0, *lengths]),
        paid=np.array([paid for _, paid in walks]),
        labels=tuple(frozenset({f"label {place}"}) for place in range(count)),
        reward=1.0,
    )


@st.composite
def tasks(draw, longest=12, most_walks=6):
    places = draw(st.integers(1, 4))
    walk = st.lists(st.integers(0, places - 1), min_size=2, max_size=longest)
    walks = draw(st.lists(st.tuples(walk, st.booleans()), min_size=1, max_size=most_walks))
    return task_of(*walks, (draw(walk), True), places=places)


def random_transitions(task, states, seed):
    size = len(task.labels) * states
    return np.random.default_rng(seed).dirichlet(np.ones(size), size)


def over_all_paths(task, states, transitions):
    """The log-likelihood and expected transitions, by listing every hidden path."""
    places, last = len(task.labels), states - 1
    log_likelihood, counts = 0.0, np.zeros_like(transitions)
    for number, paid in enumerate(task.paid):
        first, end = task.offsets[number] + number, task.offsets[number + 1] + number + 1
        walk = task.places[first:end].tolist()
        fitting = [[0], *([range(last)] * (len(walk) - 2)), [last] if paid else range(last)]
        total, expected = 0.0, np.zeros_like(transitions)
        for layers in product(*fitting):
            path = [q * places + s for q, s in zip(layers, walk, strict=True)]
            probability = np.prod([transitions[step] for step in pairwise(path)])
            total += probability
            for step in pairwise(path):
                expected[step] += probability
        log_likelihood += np.log(total)
        counts += expected / total
    return log_likelihood, counts
