"""Samples of machines whose answers are noisy, drawn from a seed."""

import numpy as np

from resolvent.preprocess.samples import Histories, SampleSet
from resolvent.traces.vocabulary import Vocabulary


def sample_set(alpha, output, beta, lengths, labels):
    """Columns as a sample set; the symbols behind the codes are their numbers."""
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    columns = [np.ascontiguousarray(column, np.int32) for column in (alpha, output, beta)]
    names = Vocabulary(frozenset([str(label)]) if label else frozenset() for label in range(labels))
    questions = int(columns[0].max(initial=0)) + 1
    return SampleSet(
        alpha=columns[0],
        output=columns[1],
        histories=Histories(columns[2], offsets, names),
        alpha_keys=np.arange(questions, dtype=np.int64),
        observations=Vocabulary(range(questions)),
        actions=Vocabulary(["go"]),
        outputs=Vocabulary(range(int(columns[1].max(initial=0)) + 1)),
    )


def noisy_samples(table, answers, *, traces=100, steps=20, noise=0.1, seed=0):
    """Walks through `table` [state, label], `answers` [state, question] given with noise."""
    random = np.random.default_rng(seed)
    table, answers = np.asarray(table), np.asarray(answers)
    labels, outputs = table.shape[1], int(answers.max()) + 1
    beta = random.integers(0, labels, (traces, steps))
    beta[:, 0] = -1
    alpha = random.integers(0, answers.shape[1], (traces, steps))
    state = np.zeros(traces, np.int64)
    output = np.zeros((traces, steps), np.int64)
    for step in range(steps):
        if step:
            state = table[state, beta[:, step]]
        replaced = random.random(traces) < noise
        drawn = random.integers(0, outputs, traces)
        output[:, step] = np.where(replaced, drawn, answers[state, alpha[:, step]])
    return sample_set(alpha.ravel(), output.ravel(), beta.ravel(), [steps] * traces, labels)
