"""Denoise labels that are a function of observations and actions, except for random errors.

In most worlds the label is a function of the observation that a step led to, or of that and the
action. Recorded labels are then noisy outputs for the query "what was observed?", and the most
likely main output is the true label. docs/decisions/noise.md states the conditions.

Input: traces, or counts of their labels. Output: the labeling function and the rates of errors.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from resolvent._util.math import exp, log, product
from resolvent.machines.uncertainty import LabelNoise
from resolvent.preprocess.labeling import LabelingFunction, LabelOrigin
from resolvent.preprocess.timing import LabelTiming
from resolvent.traces.symbols import NO_EVENT, Label, Symbol, label_order, symbol_order
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes, Vocabulary, codes_of, distinct_pairs

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
V = TypeVar("V", bound=Hashable)

_SOURCES: tuple[LabelOrigin, ...] = ("observation", "action+observation")
"""Inputs that labels may be a function of; of equally likely ones the first is taken."""

_MOST_CELLS = 20_000_000
"""Maximum size of a table of sources and labels; with more, labels are left as they are."""

_MOST_LABELS = 1_000
"""Maximum number of labels for which rates are fitted; with more, labels are left as they are."""

_MOST_ROUNDS = 200
"""Maximum number of rounds of a fit."""

_MOST_RATE = 0.49
"""Upper bound of fitted rates, so that the truth stays possible."""

_UNEVEN, _STANDARD_DEVIATIONS = 4.0, 8.0
"""Errors are random unless pairs of them share a source by this factor more often than by chance,
and by this number of standard deviations more often."""

_FAR = 20.0
"""Nats that exceed any cost of smoothing the rates."""

_CONVERGED = 1e-9
"""Largest relative change of a rate in a round after which a fit ends."""


@dataclass(frozen=True, eq=False)
class LabelTally:
    """Counts of the labels recorded at each observation, by the action that led to it.

    Each row is a triple that occurs; `action` is −1 at the beginning of an episode. Tallies of
    shards add up.

    >>> from resolvent.traces import Trace
    >>> traces = TraceSet([Trace([0, 1, 1], [None, "x", "x"], ["go", "go"])] * 2)
    >>> tally = LabelTally.of(traces, LabelTiming.CURRENT)
    >>> tally.action.tolist(), tally.observation.tolist(), tally.count.tolist()
    ([0], [1], [4])
    """

    observations: Vocabulary[Symbol]
    actions: Vocabulary[Symbol]
    labels: Vocabulary[Label]
    action: Codes
    observation: Codes
    label: Codes
    count: Counts

    @classmethod
    def of(cls, traces: TraceSet, timing: LabelTiming) -> "LabelTally":
        """Count the labels of traces that are read under a timing."""
        action = np.full(len(traces.observation_codes), -1, np.int32)
        after_step = np.ones(len(action), bool)
        after_step[traces.offsets[:-1] + np.arange(len(traces))] = False
        action[after_step] = traces.action_codes
        rows = after_step if timing.first else slice(None)
        columns = action[rows], traces.observation_codes[rows], traces.label_codes[rows]
        values = traces.observations, traces.actions, traces.labels
        return cls._of_distinct(columns, values, np.ones(len(columns[0]), np.int64))

    @classmethod
    def joined(cls, tallies: Sequence["LabelTally"]) -> "LabelTally":
        """Add up tallies with vocabularies of their own."""
        if len(tallies) == 1:
            return tallies[0]
        observations = _union([tally.observations for tally in tallies], symbol_order)
        actions = _union([tally.actions for tally in tallies], symbol_order)
        labels = _union([tally.labels for tally in tallies], label_order)
        columns = (
            np.concatenate(
                [
                    np.append(codes_of(tally.actions, actions, -1), -1)[tally.action]
                    for tally in tallies
                ]
            ),
            np.concatenate(
                [
                    codes_of(tally.observations, observations, -1)[tally.observation]
                    for tally in tallies
                ]
            ),
            np.concatenate([codes_of(tally.labels, labels, -1)[tally.label] for tally in tallies]),
        )
        values = observations, actions, labels
        return cls._of_distinct(columns, values, np.concatenate([tally.count for tally in tallies]))

    @classmethod
    def _of_distinct(
        cls,
        columns: tuple[Codes, Codes, Codes],
        values: tuple[Vocabulary[Symbol], Vocabulary[Symbol], Vocabulary[Label]],
        count: Counts,
    ) -> "LabelTally":
        """Return each triple of action, observation and label once, with its counts added up."""
        action, observation, label = columns
        observations, labels = len(values[0]), len(values[2])
        key = ((action.astype(np.int64) + 1) * observations + observation) * labels + label
        distinct, places = np.unique(key, return_inverse=True)
        pairs, label_codes = np.divmod(distinct, labels)
        action_codes, observation_codes = np.divmod(pairs, observations)
        return cls(
            *values,
            (action_codes - 1).astype(np.int32),
            observation_codes.astype(np.int32),
            label_codes.astype(np.int32),
            np.bincount(places, count, len(distinct)).astype(np.int64),
        )


def _union(vocabularies: Sequence[Vocabulary[V]], order: Callable[[V], Any]) -> Vocabulary[V]:
    return Vocabulary(sorted(set().union(*vocabularies), key=order))


@dataclass(frozen=True)
class DenoisedLabels:
    """The labeling function that recorded labels follow, except for random errors.

    Attributes:
        labelling: Returns the most likely label of each observation, or action and observation.
        noise: Rates at which recorded labels differ from that; None if they are uninformative.
        log_evidence: Log likelihood of the recorded labels.
    """

    labelling: LabelingFunction
    noise: LabelNoise | None
    log_evidence: float


WITHOUT_LABELS = DenoisedLabels(LabelingFunction("observation", {}), None, 0.0)
"""Denoised labels that are independent of all observations: no event ever happens."""


def denoise_labels(
    traces: TraceSet | LabelTally,
    *,
    timing: LabelTiming = LabelTiming.CURRENT,
    share: float | None = None,
) -> DenoisedLabels | None:
    """Return the labeling function that recorded labels follow, except for random errors.

    Return None if labels follow it exactly, if observations and actions do not make labels
    likelier than chance, or if labels differ in few places and often there, so that they must
    depend on something unobserved. `timing` says whether the first label of an episode counts;
    `share` is the share of wrong labels, if known.

    >>> from resolvent.traces import Trace
    >>> labels = [None, "key", "key", "key", None]
    >>> traces = TraceSet([Trace(["hall", "attic"] * 20, labels * 8, ["walk"] * 39)])
    >>> denoise_labels(traces) is None
    True
    >>> labels = ([None, "key"] * 20)[:37] + [None, None, None]
    >>> traces = TraceSet([Trace(["hall", "attic"] * 20, labels, ["walk"] * 39)])
    >>> denoised = denoise_labels(traces)
    >>> denoised.labelling.events, denoised.noise
    ({'attic': 'key'}, LabelNoise(missed=0.1, false=0.0, swapped=0.0))
    """
    tally = traces if isinstance(traces, LabelTally) else LabelTally.of(traces, timing)
    best = _best_fit(tally, share)
    if best is None or best.log_evidence <= _by_chance(best.counts):
        return None
    return None if share is None and best.is_systematic else best.denoised(tally.labels)


def labels_are_independent(tally: LabelTally) -> bool:
    """Return whether labels appear independent of observations and actions.

    >>> from resolvent.traces import Trace
    >>> labels = ["key", None, None, "key"] * 10
    >>> traces = TraceSet([Trace(["hall", "attic"] * 20, labels, ["walk"] * 39)])
    >>> labels_are_independent(LabelTally.of(traces, LabelTiming.CURRENT))
    True
    """
    best = _best_fit(tally, None)
    return best is not None and best.log_evidence <= _by_chance(best.counts)


def labels_follow_exactly(traces: TraceSet, timing: LabelTiming) -> bool:
    """Return whether every observation has one label, so that no error is detectable.

    >>> from resolvent.traces import Trace
    >>> traces = TraceSet([Trace([0, 1, 0], ["start", "x", None], ["go", "go"])])
    >>> labels_follow_exactly(traces, LabelTiming.CURRENT)
    True
    >>> labels_follow_exactly(traces, LabelTiming.CURRENT_WITH_INITIAL)
    False
    """
    observations, labels = traces.observation_codes, traces.label_codes
    if timing.first:
        observations, labels = traces.after_step(observations), traces.after_step(labels)
    pairs, _ = distinct_pairs(observations, labels, len(traces.observations), len(traces.labels))
    return len(np.unique(pairs // len(traces.labels))) == len(pairs)


def _best_fit(tally: LabelTally, share: float | None) -> "_Fit | None":
    """Return the best fit of labels to observations and actions; None if no label is wrong."""
    if len(tally.labels) < 2 or (share is None and _surely_exact(tally)):
        return None
    best: _Fit | None = None
    for reads in _SOURCES:
        sources = _Sources.of(tally, reads)
        cells = len(sources.values) * len(tally.labels)
        if cells > _MOST_CELLS or len(tally.labels) > _MOST_LABELS:
            continue
        counts = sources.counts(tally)
        if best is None and _is_exact(counts):
            return None
        fit = _fit(sources, counts, tally.labels.get(NO_EVENT), share)
        if best is None or fit.log_evidence > best.log_evidence:
            best = fit
    return None if best is None or _is_exact(best.counts) else best


@dataclass(frozen=True, eq=False)
class _Sources:
    """The distinct inputs of a labeling function, and the input of each triple of a tally."""

    reads: LabelOrigin
    values: list[Symbol]
    of_triple: NDArray[np.intp]

    @classmethod
    def of(cls, tally: LabelTally, reads: LabelOrigin) -> "_Sources":
        if reads == "observation":
            codes, places = np.unique(tally.observation, return_inverse=True)
            return cls(reads, [tally.observations[code] for code in codes.tolist()], places)
        observations = len(tally.observations)
        pairs = (tally.action.astype(np.int64) + 1) * observations + tally.observation
        distinct, places = np.unique(pairs, return_inverse=True)
        values: list[Symbol] = []
        for pair in distinct.tolist():
            action, code = divmod(pair, observations)
            observation = tally.observations[code]
            values.append((tally.actions[action - 1], observation) if action else (observation,))
        return cls(reads, values, places)

    def counts(self, tally: LabelTally) -> Floats:
        """Return how often each source, a row, was recorded with each label."""
        counts = np.zeros((len(self.values), len(tally.labels)))
        np.add.at(counts, (self.of_triple, tally.label), tally.count)
        return counts


@dataclass(frozen=True, eq=False)
class _Fit:
    """The code of the most likely label of each source, and the likelihood of all labels."""

    sources: _Sources
    counts: Floats
    main: NDArray[np.intp]
    silence: int | None
    log_evidence: float

    @property
    def noise(self) -> LabelNoise:
        """Rates at which recorded labels differ from the main ones."""
        labels = self.counts.shape[1]
        recorded = np.zeros((labels, labels))
        np.add.at(recorded, self.main, self.counts)
        return _rates(recorded, self.silence, 0.0)

    @property
    def is_systematic(self) -> bool:
        """Whether errors concentrate on few sources, so that they are not random."""
        noise, totals = self.noise, self.counts.sum(1)
        errors = totals - self.counts[np.arange(len(self.main)), self.main]
        rates = np.where(self.main == self.silence, noise.false, noise.missed + noise.swapped)
        pairs, by_chance = (errors * (errors - 1)).sum(), ((rates * totals) ** 2).sum()
        far = by_chance + _STANDARD_DEVIATIONS * np.sqrt(2 * by_chance + 1)
        return bool(pairs > max(far, _UNEVEN * by_chance))

    def denoised(self, labels: Vocabulary[Label]) -> DenoisedLabels | None:
        """Return the labeling function; None if the main labels are those recorded."""
        noise = self.noise
        if noise == LabelNoise(0.0, 0.0, 0.0):
            return None
        events = {
            source: labels[int(code)]
            for source, code in zip(self.sources.values, self.main, strict=True)
            if code != self.silence
        }
        return DenoisedLabels(
            LabelingFunction(self.sources.reads, events), noise, self.log_evidence
        )


def _is_exact(counts: Floats) -> bool:
    """Return whether each source has one label throughout."""
    return bool(((counts > 0).sum(1) <= 1).all())


def _surely_exact(tally: LabelTally) -> bool:
    """Return whether labels follow exactly from action and observation, as the inputs of a log do.

    This has to be far likelier than errors in labels that follow from the observation alone.
    """
    pairs = tally.action.astype(np.int64) * len(tally.observations) + tally.observation
    if len(np.unique(pairs)) < len(pairs):
        return False
    main = np.bincount(tally.label, minlength=len(tally.labels))
    shares = (main + 0.5) / (len(pairs) + 0.5 * len(main))
    exactly = log(shares[tally.label]).sum()
    keys = tally.observation.astype(np.int64) * len(tally.labels) + tally.label
    _, place = np.unique(keys, return_inverse=True)
    each = np.bincount(place, tally.count)
    at_observation = np.bincount(tally.observation, tally.count)[tally.observation]
    with_errors = (tally.count * log(each[place] / at_observation)).sum()
    return bool(exactly - with_errors > _FAR)


def _by_chance(counts: Floats) -> float:
    """Return the log likelihood of labels that are independent of their sources."""
    each = counts.sum(0)
    each = each[each > 0]
    total = each.sum()
    return float((each * log(each / total)).sum()) - _price(len(each) - 1, total)


def _price(parameters: int, total: float) -> float:
    """Return the cost of parameters that are fitted to this number of labels."""
    return parameters / 2 * float(log(total))


def _fit(sources: _Sources, counts: Floats, silence: int | None, share: float | None) -> _Fit:
    """Find the rates of errors and shares of main labels that make all labels most likely."""
    labels = counts.shape[1]
    main = np.eye(labels)[counts.argmax(1)]  # a distribution over labels for each source
    before = LabelNoise(0.0, 0.0, 0.0)
    for _ in range(_MOST_ROUNDS):
        noise = _rates(product(main.T, counts), silence, 0.5, share)
        shares = (main.sum(0) + 0.5) / (len(main) + 0.5 * labels)
        joint = product(counts, log(_chances(noise, labels, silence)).T) + log(shares)
        likeliest = joint.max(1, keepdims=True)
        main = exp(joint - likeliest)
        sums = main.sum(1, keepdims=True)
        main /= sums
        if _has_converged(noise, before):
            break
        before = noise
    log_evidence = float((likeliest + log(sums)).sum())
    log_evidence -= _price(3 + labels - 1, counts.sum())
    return _Fit(sources, counts, joint.argmax(1), silence, log_evidence)


def _has_converged(noise: LabelNoise, before: LabelNoise) -> bool:
    pairs = zip(noise.as_dict().values(), before.as_dict().values(), strict=True)
    return all(abs(rate - previous) <= _CONVERGED * rate for rate, previous in pairs)


def _rates(
    recorded: Floats, silence: int | None, smoothing: float, share: float | None = None
) -> LabelNoise:
    """Return the rates of errors, given how often each main label, a row, was recorded as each.

    `smoothing` is added to the count of each possible kind of error. With a `share`, the rates
    are scaled so that this share of the labels is wrong.
    """
    events = np.delete(np.arange(len(recorded)), [] if silence is None else [silence])
    happened = recorded[events].sum()
    right = recorded[events, events].sum()
    missed = false = quiet = 0.0
    if silence is not None:
        missed = recorded[events, silence].sum() + smoothing
        quiet = recorded[silence].sum()
        false = quiet - recorded[silence, silence] + smoothing
    swapped = happened - right - (missed - smoothing if silence is not None else 0.0)
    swapped = max(swapped, 0.0) + (smoothing if len(events) > 1 else 0.0)
    scale = 1.0
    if share is not None:
        errors = missed + false + swapped
        scale = share * recorded.sum() / errors if errors else 1.0

    def rate(errors: float, total: float) -> float:
        value = float(scale * errors / (total + 2 * smoothing)) if total + smoothing else 0.0
        return min(value, _MOST_RATE) if smoothing else value

    return LabelNoise(rate(missed, happened), rate(false, quiet), rate(swapped, happened))


def _chances(noise: LabelNoise, labels: int, silence: int | None) -> Floats:
    """Return the probability that each true label, a row, is recorded as each label, a column."""
    events = labels - (silence is not None)
    chances = np.full((labels, labels), noise.swapped / max(events - 1, 1))
    np.fill_diagonal(chances, 1 - noise.missed - noise.swapped)
    if silence is not None:
        chances[:, silence] = noise.missed
        chances[silence] = noise.false / max(events, 1)
        chances[silence, silence] = 1 - noise.false
    smallest: Floats = np.maximum(chances, 1e-12)
    return smallest
