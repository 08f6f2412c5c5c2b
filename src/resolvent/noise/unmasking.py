"""Traces whose labels lie, or whose starts are hidden → traces that tell the most likely truth."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from resolvent.noise.doubt import Doubt
from resolvent.noise.evidence import weigh
from resolvent.noise.hidden import LikelyHidden, most_likely_hidden
from resolvent.progress import Listener
from resolvent.samples import (
    Histories,
    LabelTiming,
    ObservationColumn,
    SampleSet,
    output_samples,
)
from resolvent.traces.column_names import LABEL, OBSERVATION, REWARD
from resolvent.traces.symbols import NO_EVENT, Label, Symbol
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes, Vocabulary


@dataclass(frozen=True)
class Unmasked:
    """Traces as they most likely were, and what it takes to infer states from recorded ones.

    Attributes:
        traces: The traces with the most likely true labels. Where an episode began in another
            way than most, its first label says in which.
        timing: How machines are to read these labels.
        doubt: How often labels lie, and how often episodes begin in each way.
        log_evidence: The logarithm of how likely the answers are, given the labels as recorded,
            less the same given the most likely true ones.
    """

    traces: TraceSet
    timing: LabelTiming
    doubt: Doubt
    log_evidence: float


def start_label(number: int) -> Label:
    """Return the label that stands for the hidden way to begin with this number.

    >>> start_label(0) == NO_EVENT, sorted(start_label(1))
    (True, ['start 1'])
    """
    return frozenset({f"start {number}"}) if number else NO_EVENT


def unmask(
    traces: TraceSet,
    timing: LabelTiming,
    outputs: Sequence[str],
    *,
    labels: bool = True,
    starts: bool = False,
    digits: int | None = None,
    seed: int = 0,
    effort: float = 1.0,
    time_limit: float | None = None,
    listener: Listener | None = None,
) -> Unmasked | None:
    """Infer the true labels and starts of traces from what came after them, output by output.

    The machine for the first output shows which labels must have been others; that for the next
    is asked about what was observed in its states, and shows more. None if nothing is hidden:
    machines that read the labels as recorded are as likely. Hidden starts are looked for only
    with the timing "current", which reads no label at an episode's beginning.

    >>> import resolvent as rs
    >>> def step(side, turn):
    ...     came = "cheese" if side == turn else "wall"
    ...     return rs.Trace(["hall", came, "hall", came], [None] * 4, [turn, "back", turn])
    >>> turns = [(side, turn) for side in ("left", "right") for turn in ("left", "right")]
    >>> traces = rs.TraceSet([step(*one) for one in turns] * 30)
    >>> found = unmask(traces, LabelTiming.CURRENT, ["observation"], labels=False, starts=True)
    >>> print(found.doubt)
    hidden starts: no event 0.5, start 1 0.5
    """
    began = starts and timing is LabelTiming.CURRENT
    if not labels and not began:
        return None
    known = Unmasked(traces, timing, Doubt(), 0.0)
    observed: ObservationColumn | None = None
    for predicts in outputs:
        samples = _samples(known, predicts, observed, digits)
        random_starts = began and not known.doubt.starts
        if not labels and not random_starts:
            break
        found = most_likely_hidden(
            samples,
            labels=labels,
            starts=random_starts,
            seed=seed,
            effort=effort,
            time_limit=time_limit,
            listener=listener,
        )
        if found.states == 1:
            continue
        before = known
        if _differs(found, samples):
            known = _corrected(known, samples, found)
            again = _samples(known, predicts, observed, digits)
            gain = found.log_evidence - weigh(again, _moves(found, samples, again)).log_evidence
            known = replace(known, log_evidence=before.log_evidence + gain)
        if predicts == OBSERVATION:
            observed = _with_states(traces, found)
    return known if known.doubt else None


def _samples(
    known: Unmasked, predicts: str, observed: ObservationColumn | None, digits: int | None
) -> SampleSet:
    return output_samples(
        known.traces,
        Histories.of(known.traces, known.timing),
        predicts,
        observed=observed,
        digits=digits if predicts == REWARD else None,
    )


def _differs(found: LikelyHidden, samples: SampleSet) -> bool:
    several = sum(share > 0 for share in found.starts) > 1
    return several or not np.array_equal(found.true_labels, samples.beta)


def _with_states(traces: TraceSet, found: LikelyHidden) -> ObservationColumn:
    """Return pairs of what was observed and of the state in which it was."""
    seen = traces.at_step(traces.observation_codes)
    pairs: Vocabulary[Symbol] = Vocabulary(
        (one, state) for one in traces.observations for state in range(found.states)
    )
    return pairs, (seen * found.states + found.path).astype(np.int32)


def _corrected(known: Unmasked, samples: SampleSet, found: LikelyHidden) -> Unmasked:
    """Return the traces with the labels that were found, and what was found of noise."""
    traces, doubt, timing = known.traces, known.doubt, known.timing
    count = np.diff(traces.offsets)
    row = np.arange(len(samples.beta)) + np.repeat(np.arange(len(traces)), count) - timing.lag
    read = samples.beta >= 0
    codes = traces.label_codes.copy()
    codes[row[read]] = found.true_labels[read]
    names = list(traces.labels)
    if not np.array_equal(found.true_labels, samples.beta) and doubt.label_noise is None:
        shares = dict(zip(samples.labels, found.label_shares, strict=True))
        doubt = replace(doubt, label_noise=found.label_noise, label_shares=shares)
    if len(found.starts) > 1 and sum(share > 0 for share in found.starts) > 1:
        began = found.path[traces.offsets[:-1]]
        names, codes = _with_starts(names, codes, traces, began)
        shares = {
            start_label(state): share for state, share in enumerate(found.starts) if share > 0
        }
        doubt = replace(doubt, starts=shares)
        timing = LabelTiming.CURRENT_WITH_INITIAL
    columns = {name: (column.values, column.codes) for name, column in traces.all_columns.items()}
    corrected = TraceSet.taking_over(
        {**columns, LABEL: (names, codes)},
        offsets=traces.offsets,
        terminated=traces.terminated,
        truncated=traces.truncated,
    )
    return Unmasked(corrected, timing, doubt, known.log_evidence)


def _with_starts(
    names: list[Label], codes: Codes, traces: TraceSet, began: Codes
) -> tuple[list[Label], Codes]:
    """Put a label at the beginning of each trace that says in which state it began."""
    for state in range(int(began.max()) + 1):
        if start_label(state) not in names:
            names.append(start_label(state))
    numbers = np.array([names.index(start_label(state)) for state in range(int(began.max()) + 1)])
    codes[traces.offsets[:-1] + np.arange(len(traces))] = numbers[began]
    return names, codes


def _moves(found: LikelyHidden, before: SampleSet, after: SampleSet) -> Codes:
    """Return the moves by the labels of the corrected samples; what was never read stays."""
    stays = np.arange(found.states, dtype=np.int32)
    table = np.empty((found.states, len(after.labels)), np.int32)
    for code, label in enumerate(after.labels):
        known = before.labels.get(label)
        column = stays if known is None else found.transitions[:, known]
        table[:, code] = np.where(column < 0, stays, column)
    for state in range(1, found.states):
        if (start := after.labels.get(start_label(state))) is not None:
            table[0, start] = state
    return table
