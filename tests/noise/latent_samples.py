"""Samples and traces with label noise or latent states, drawn from a seed."""

from dataclasses import replace

import numpy as np

import resolvent as rs
from resolvent.preprocess.samples import Histories
from resolvent.traces.trace_set import with_column


def record_labels(codes, labels, *, missed=0.0, false=0.0, swapped=0.0, seed=0):
    """Codes of labels as they would have been recorded; 0 is "no event"."""
    random = np.random.default_rng(seed)
    drawn = random.random(len(codes))
    events, silent = codes > 0, codes == 0
    swapped_label = 1 + (codes - 1 + random.integers(1, max(labels - 1, 2), len(codes))) % (
        labels - 1
    )
    recorded = np.where(events & (drawn < missed), 0, codes)
    recorded = np.where(
        events & (missed <= drawn) & (drawn < missed + swapped), swapped_label, recorded
    )
    any_event = random.integers(1, labels, len(codes))
    return np.where(silent & (drawn < false), any_event, recorded).astype(np.int32)


def noisily_labeled_samples(samples, **shares):
    """The samples with labels as they would have been recorded."""
    recorded = record_labels(samples.beta, len(samples.labels), **shares)
    return replace(samples, histories=Histories(recorded, samples.offsets, samples.labels))


def noisily_labeled(traces, **shares):
    """The traces with labels as they would have been recorded."""
    recorded = record_labels(traces.label_codes, len(traces.labels), **shares)
    return with_column(traces, "label", traces.labels, recorded)


def two_sided(episodes, seed=0, share=0.3, with_switch=False):
    """Traces of a hall with cheese at one of two hidden sides; a switch puts it to the other."""
    random = np.random.default_rng(seed)
    traces = []
    for _ in range(episodes):
        side = "left" if random.random() < share else "right"
        seen, labels, done = ["hall"], [None], []
        for _ in range(int(random.integers(4, 12))):
            if seen[-1] != "hall":
                action = "back"
            else:
                action = str(random.choice(["left", "right", "switch"][: 2 + with_switch]))
            label = None
            if action == "back":
                observed = "hall"
            elif action == "switch":
                observed, label = "hall", "switch"
                side = "left" if side == "right" else "right"
            else:
                observed = "cheese" if action == side else "wall"
            seen.append(observed)
            labels.append(label)
            done.append(action)
        traces.append(rs.Trace(seen, labels, done))
    return rs.TraceSet(traces)


RING = [[0, 1, 2], [1, 2, 0], [2, 0, 0]]  # by state: no event, one, two
RING_OUTPUTS = [[0, 1, 2, 2], [1, 0, 2, 2], [1, 1, 0, 2]]


def ring_traces(episodes, missed, seed=0, slip=0.0):
    """Traces of a ring of three states, changed by events that no observation shows.

    An action queries the state, and the next observation is the output.
    """
    random = np.random.default_rng(seed)
    events = [None, "one", "two"]
    traces = []
    for _ in range(episodes):
        state, seen, labels, done = 0, [0], [None], []
        for _ in range(40):
            action = int(random.integers(4))
            output = RING_OUTPUTS[state][action]
            seen.append(int(random.integers(3)) if random.random() < slip else output)
            event = int(random.choice(3, p=[0.7, 0.2, 0.1]))
            state = RING[state][event]
            labels.append(None if random.random() < missed else events[event])
            done.append(action)
        traces.append(rs.Trace(seen, labels, done))
    return rs.TraceSet(traces)
