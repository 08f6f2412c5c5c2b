"""Cheap tests of whether noise may explain traces, from the counts of a replay."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.evaluation.diagnosis.inference_warnings import rare_transitions
from resolvent.inference.result import InferenceResult
from resolvent.noise.outputs import QueryNoise, estimate_query_noise
from resolvent.preprocess.samples import Histories, output_samples
from resolvent.replay import ReplayCounts, Rows

CONTRADICTIONS: Final = 10.0
"""Expected number of contradictions by chance from which it is no chance that there is none."""


def lists_accidents(counts: ReplayCounts) -> bool:
    """Return whether the first machine has many rare transitions, as with noise.

    With few traces it has as well: this alone decides nothing.
    """
    first = next(iter(counts.machines))
    return any(finding.figures["machine"] == first for finding in rare_transitions(counts))


def is_chance(counts: ReplayCounts, *, by_state: bool) -> bool:
    """Return whether outputs of the first machine vary everywhere and rarely, as by chance.

    If memory is missing, some queries vary often. With `by_state` outputs are compared in the same
    state, otherwise for the same query.
    """
    return query_noise(counts, by_state).everywhere


def needs_memory(counts: ReplayCounts, rate: float) -> bool:
    """Return whether most outputs of the first machine may depend on the past.

    Then traces cannot be compared without memory: in a log of a protocol those that reach a rare
    state, or avoid a sink, differ from all others. Outliers, at most this share of the traces,
    make outputs vary no more often than that.
    """
    return query_noise(counts, by_state=False).in_most(rate)


def would_contradict(result: InferenceResult) -> bool:
    """Return whether outputs that vary by chance would have contradicted each other.

    Repeated queries after the same labels had the same output, although outputs by query vary so
    often that chance would have made some differ.
    """
    state = result.standing
    machine = next(iter(result.machines.values()))
    traces = state.corpus.fetch(state.chosen)
    histories = Histories.of(traces, result.options.timing)
    samples = output_samples(traces, histories, machine.predicts)
    node = _core.history_columns(histories.tree)[0].astype(np.int64)
    queries = node * len(samples.alpha_keys) + samples.alpha
    repeated = len(queries) - len(np.unique(queries))
    noisy = query_noise(state.shown, by_state=False)
    return repeated * noisy.share * noisy.chance > CONTRADICTIONS


def query_noise(counts: ReplayCounts, by_state: bool, kind: str | None = None) -> QueryNoise:
    """Estimate the share of a machine's queries with varying outputs; by default of the first."""
    machine = counts.machines[kind] if kind else next(iter(counts.machines.values()))
    return estimate_query_noise(*_deviations(machine.known, by_state))


def _deviations(outputs: Rows, by_state: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return for each query the number of outputs that could deviate, and that do.

    The first output of a row, which is a query or one in a state, cannot deviate.
    """
    _, query = np.unique(outputs["question"], return_inverse=True)
    state = outputs["state"].astype(np.int64) if by_state else np.zeros(len(outputs), np.int64)
    width = int(outputs["output"].max(initial=0)) + 1
    queries = int(query.max(initial=0)) + 1
    row = state * queries + query
    cells, place = np.unique(row * width + outputs["output"], return_inverse=True)
    count = np.bincount(place, outputs["count"]).astype(np.int64)
    starts = np.flatnonzero(np.diff(cells // width, prepend=-1))
    total, most = np.add.reduceat(count, starts), np.maximum.reduceat(count, starts)
    of_row = (cells // width)[starts] % queries
    could = np.bincount(of_row, total - 1).astype(np.int64)
    return could, np.bincount(of_row, total - most).astype(np.int64)
