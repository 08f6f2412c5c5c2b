"""Tasks for hidden Markov models, and their likelihoods as sums over all hidden paths."""

from itertools import pairwise, product

import numpy as np
from hypothesis import strategies as st

from resolvent.paper.baselines.hmm_em import FinalRewardTask


def task_of(*walks, n_observations=None):
    """A task of traces that are given as (observations, completed)."""
    count = n_observations or 1 + max(max(walk) for walk, _ in walks)
    lengths = [len(walk) - 1 for walk, _ in walks]
    return FinalRewardTask(
        observations=np.array([seen for walk, _ in walks for seen in walk], np.int32),
        offsets=np.cumsum([0, *lengths]),
        completed=np.array([completed for _, completed in walks]),
        labels=tuple(frozenset({f"label {code}"}) for code in range(count)),
        reward=1.0,
    )


@st.composite
def tasks(draw, longest=12, most_walks=6):
    n_observations = draw(st.integers(1, 4))
    walk = st.lists(st.integers(0, n_observations - 1), min_size=2, max_size=longest)
    walks = draw(st.lists(st.tuples(walk, st.booleans()), min_size=1, max_size=most_walks))
    return task_of(*walks, (draw(walk), True), n_observations=n_observations)


def random_transitions(task, states, seed):
    size = len(task.labels) * states
    return np.random.default_rng(seed).dirichlet(np.ones(size), size)


def over_all_paths(task, states, transitions):
    """The log-likelihood and expected transitions, by listing every hidden path."""
    n_observations, last = len(task.labels), states - 1
    log_likelihood, counts = 0.0, np.zeros_like(transitions)
    for number, completed in enumerate(task.completed):
        first, end = task.offsets[number] + number, task.offsets[number + 1] + number + 1
        walk = task.observations[first:end].tolist()
        fitting = [[0], *([range(last)] * (len(walk) - 2)), [last] if completed else range(last)]
        total, expected = 0.0, np.zeros_like(transitions)
        for layers in product(*fitting):
            path = [q * n_observations + s for q, s in zip(layers, walk, strict=True)]
            probability = np.prod([transitions[step] for step in pairwise(path)])
            total += probability
            for step in pairwise(path):
                expected[step] += probability
        log_likelihood += np.log(total)
        counts += expected / total
    return log_likelihood, counts
