"""Samples of machines whose outputs are noisy, drawn from a seed."""

from dataclasses import replace

import numpy as np

from resolvent.preprocess.samples import Histories, SampleSet
from resolvent.traces.vocabulary import Vocabulary


def sample_set(alpha, output, beta, lengths, labels):
    """Columns as a sample set; the symbols behind the codes are their numbers."""
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    columns = [np.ascontiguousarray(column, np.int32) for column in (alpha, output, beta)]
    names = Vocabulary(frozenset([str(label)]) if label else frozenset() for label in range(labels))
    queries = int(columns[0].max(initial=0)) + 1
    return SampleSet(
        alpha=columns[0],
        output=columns[1],
        histories=Histories(columns[2], offsets, names),
        alpha_keys=np.arange(queries, dtype=np.int64),
        observations=Vocabulary(range(queries)),
        actions=Vocabulary(["go"]),
        outputs=Vocabulary(range(int(columns[1].max(initial=0)) + 1)),
    )


def noisy_samples(table, outputs, *, traces=100, steps=20, noise=0.1, seed=0):
    """Walks through `table` [state, label], `outputs` [state, query] with noise."""
    random = np.random.default_rng(seed)
    table, outputs = np.asarray(table), np.asarray(outputs)
    labels, values = table.shape[1], int(outputs.max()) + 1
    beta = random.integers(0, labels, (traces, steps))
    beta[:, 0] = -1
    alpha = random.integers(0, outputs.shape[1], (traces, steps))
    state = np.zeros(traces, np.int64)
    output = np.zeros((traces, steps), np.int64)
    for step in range(steps):
        if step:
            state = table[state, beta[:, step]]
        replaced = random.random(traces) < noise
        drawn = random.integers(0, values, traces)
        output[:, step] = np.where(replaced, drawn, outputs[state, alpha[:, step]])
    return sample_set(alpha.ravel(), output.ravel(), beta.ravel(), [steps] * traces, labels)


def shuffled(samples, order):
    """The samples with their traces in another order; a trace may be repeated."""
    rows = [np.arange(samples.offsets[trace], samples.offsets[trace + 1]) for trace in order]
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in rows])]).astype(np.int64)
    rows = np.concatenate(rows)
    histories = Histories(samples.beta[rows], offsets, samples.labels)
    return replace(
        samples, alpha=samples.alpha[rows], output=samples.output[rows], histories=histories
    )


def is_renumbered(table, transitions) -> bool:
    """Whether tables are the same but for the numbers of states; all of both is read."""
    partner, queue = {0: 0}, [0]
    for state in queue:
        for label, target in enumerate(table[state]):
            if partner.setdefault(target, mine := int(transitions[partner[state], label])) != mine:
                return False
            if target not in queue:
                queue.append(target)
    return sorted(partner.values()) == list(range(len(transitions)))


SWITCH = [[0, 1, 0], [1, 0, 1]]  # label 1 toggles, the others change nothing
SWITCH_OUTPUTS = [[0, 1, 2, 0, 1], [1, 0, 2, 0, 1]]
RING = [[0, 1, 2], [1, 2, 0], [2, 0, 0]]
RING_OUTPUTS = [[0, 1, 2, 2], [1, 0, 2, 2], [1, 1, 0, 2]]
