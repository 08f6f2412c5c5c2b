"""Denoise labels that are a function of observations and actions, except for random errors.

In most worlds the label is a function of the observation that a step led to, or of that and the
action. The label that is most frequent there, given the rates of errors, is then the true one.

Input: traces, or counts of their labels. Output: the labeling function and the rates of errors.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from resolvent._util.math import exp, log, product
from resolvent.machines.augmented_state import LabelNoise
from resolvent.preprocess.labeling import (
    LabelingFunction,
    LabelOrigin,
    pair_sources,
    preceding_actions,
)
from resolvent.preprocess.timing import LabelTiming
from resolvent.replay.coded_shard import Alphabets
from resolvent.replay.corpus import Corpus
from resolvent.replay.counts import CountTable
from resolvent.traces.schema import ACTION, LABEL, OBSERVATION
from resolvent.traces.symbols import NO_EVENT, Symbol
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes

Floats = NDArray[np.float64]

_SOURCES: tuple[LabelOrigin, ...] = ("observation", "action+observation")
"""Inputs that labels may be a function of; of equally likely ones the first is taken."""

_MAX_CELLS = 20_000_000
"""Maximum size of a table of sources and labels that rates are fitted to."""

_MAX_LABELS = 1_000
"""Maximum number of labels for which rates are fitted."""

_MAX_ROUNDS = 200
"""Maximum number of rounds of a fit."""

_MAX_RATE = 0.49
"""Maximum of fitted rates, so that recorded labels are right more often than not."""

_UNEVEN, _STANDARD_DEVIATIONS = 4.0, 8.0
"""Errors are random unless pairs of them share a source by this factor more often than by chance,
and by this number of standard deviations more often."""

_MIN_NATS = 20.0
"""Log odds that exceed any cost of smoothing the rates."""

_TOLERANCE = 1e-9
"""Relative change of all rates in a round below which a fit ends."""


@dataclass(frozen=True, eq=False)
class LabelCounts:
    """Counts of triples of action, observation and label; no action, −1, precedes the first."""

    alphabets: Alphabets
    table: CountTable

    @classmethod
    def of(cls, traces: TraceSet | Corpus, timing: LabelTiming) -> "LabelCounts":
        """Count the labels that are read under a timing."""
        if isinstance(traces, TraceSet):
            return cls(Alphabets.of(traces.values), _count_labels(traces, traces.codes, timing))
        tables = (_count_labels(shard.traces, shard.codes, timing) for shard in traces.coded())
        return cls(traces.alphabets, reduce(add, tables))

    def sources(self, reads: LabelOrigin) -> tuple[list[Symbol], NDArray[np.int64]]:
        """Return the distinct inputs of a labeling function, and the index of that of each row."""
        observations, actions = self.alphabets.observations, self.alphabets.actions
        observation = self.table["observation"].astype(np.int64)
        if reads == "observation":
            distinct, index = np.unique(observation, return_inverse=True)
            return [observations[code] for code in distinct.tolist()], index
        pairs = (self.table["action"].astype(np.int64) + 1) * len(observations) + observation
        distinct, index = np.unique(pairs, return_inverse=True)
        return pair_sources(distinct, actions, observations), index


def _count_labels(traces: TraceSet, codes: Mapping[str, Codes], timing: LabelTiming) -> CountTable:
    action = preceding_actions(traces.offsets, codes[ACTION])
    rows = action >= 0 if timing.first else slice(None)
    columns = {"action": action, "observation": codes[OBSERVATION], "label": codes[LABEL]}
    return CountTable.of({name: column[rows] for name, column in columns.items()})


@dataclass(frozen=True)
class DenoisedLabels:
    """The labeling function that recorded labels follow, except for random errors.

    `noise` has the rates of errors; None if the labels are uninformative. `log_evidence` is the log
    likelihood of the recorded labels.
    """

    labeling: LabelingFunction
    noise: LabelNoise | None
    log_evidence: float = 0.0


WITHOUT_LABELS = DenoisedLabels(LabelingFunction("observation", {}), None)
"""Denoised labels that are independent of all observations: no event ever happens."""


class LabelDependence(StrEnum):
    """Why labels need no denoising, or cannot be denoised."""

    EXACT = "labels follow exactly from observations and actions"
    INDEPENDENT = "labels are independent of observations and actions"
    LATENT = "labels depend on something unobserved"
    UNKNOWN = "there are too many different labels"


def denoise_labels(
    traces: TraceSet | LabelCounts,
    *,
    timing: LabelTiming = LabelTiming.CURRENT,
    share: float | None = None,
) -> DenoisedLabels | LabelDependence:
    """Return the labeling function that recorded labels follow, except for random errors.

    If there is none, return the reason. Labels are latent if errors concentrate on few sources.
    `timing` says whether the first label of an episode counts; `share` is the share of wrong
    labels, if known.
    """
    counts = traces if isinstance(traces, LabelCounts) else LabelCounts.of(traces, timing)
    fit = _best_fit(counts, share)
    if isinstance(fit, LabelDependence):
        return fit
    each = fit.counts.sum(0)
    each = each[each > 0]
    by_chance = float((each * log(each / each.sum())).sum()) - _price(len(each) - 1, each.sum())
    if fit.log_evidence <= by_chance:
        return LabelDependence.INDEPENDENT
    if share is None and fit.is_systematic:
        return LabelDependence.LATENT
    if fit.noise == LabelNoise(0.0, 0.0, 0.0):
        return LabelDependence.EXACT
    labels, main = counts.alphabets.labels, zip(fit.sources, fit.main.tolist(), strict=True)
    events = {source: labels[code] for source, code in main if code != fit.silence}
    return DenoisedLabels(LabelingFunction(fit.reads, events), fit.noise, fit.log_evidence)


def _best_fit(counts: LabelCounts, share: float | None) -> "_Fit | LabelDependence":
    """Return the best fit of labels to observations, or to actions and observations."""
    alphabet, table = counts.alphabets.labels, counts.table
    labels = len(alphabet)
    if labels < 2 or (share is None and _surely_exact(table, labels)):
        return LabelDependence.EXACT
    best: _Fit | None = None
    for reads in _SOURCES if labels <= _MAX_LABELS else ():
        sources, index = counts.sources(reads)
        if len(sources) * labels > _MAX_CELLS:
            continue
        is_exact = len(np.unique(index * labels + table["label"])) == len(sources)
        if best is None and is_exact:
            return LabelDependence.EXACT
        by_source = np.zeros((len(sources), labels))
        np.add.at(by_source, (index, table["label"]), table.count)
        fit = _Fit.of(by_source, alphabet.get(NO_EVENT), share, reads, sources)
        if best is None or fit.log_evidence > best.log_evidence:
            best, best_is_exact = fit, is_exact
    if best is None:
        return LabelDependence.UNKNOWN
    return LabelDependence.EXACT if best_is_exact else best


@dataclass(frozen=True, eq=False)
class _Fit:
    """The most likely label `main` of each source, a row of counts by label, and their likelihood.

    `silence` is the code of "no event".
    """

    reads: LabelOrigin
    sources: list[Symbol]
    counts: Floats
    main: NDArray[np.intp]
    silence: int | None
    log_evidence: float

    @classmethod
    def of(
        cls,
        counts: Floats,
        silence: int | None,
        share: float | None,
        reads: LabelOrigin,
        sources: list[Symbol],
    ) -> "_Fit":
        """Find the rates of errors and shares of main labels that make all labels most likely."""
        labels = counts.shape[1]
        main = np.eye(labels)[counts.argmax(1)]  # a distribution over labels for each source
        before = LabelNoise(0.0, 0.0, 0.0)
        for _ in range(_MAX_ROUNDS):
            noise = _rates(product(main.T, counts), silence, 0.5, share)
            shares = (main.sum(0) + 0.5) / (len(main) + 0.5 * labels)
            joint = product(counts, log(_chances(noise, labels, silence)).T) + log(shares)
            likeliest = joint.max(1, keepdims=True)
            main = exp(joint - likeliest)
            sums = main.sum(1, keepdims=True)
            main /= sums
            rates = zip(noise.as_dict().values(), before.as_dict().values(), strict=True)
            if all(abs(rate - previous) <= _TOLERANCE * rate for rate, previous in rates):
                break
            before = noise
        log_evidence = float((likeliest + log(sums)).sum())
        log_evidence -= _price(3 + labels - 1, counts.sum())
        return cls(reads, sources, counts, joint.argmax(1), silence, log_evidence)

    @cached_property
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


def _surely_exact(table: CountTable, labels: int) -> bool:
    """Return whether labels follow exactly from action and observation, as the inputs of a log do.

    This has to be far likelier than errors in labels that follow from the observation alone.
    """
    observation, label = table["observation"].astype(np.int64), table["label"]
    pairs = table["action"].astype(np.int64) * (int(observation.max()) + 1) + observation
    if len(np.unique(pairs)) < len(pairs):
        return False
    main = np.bincount(label, minlength=labels)
    shares = (main + 0.5) / (len(pairs) + 0.5 * len(main))
    exactly = log(shares[label]).sum()
    _, cell = np.unique(observation * labels + label, return_inverse=True)
    cell_count = np.bincount(cell, table.count)[cell]
    observation_count = np.bincount(observation, table.count)[observation]
    with_errors = (table.count * log(cell_count / observation_count)).sum()
    return bool(exactly - with_errors > _MIN_NATS)


def _price(parameters: int, total: float) -> float:
    """Return the cost of parameters that are fitted to this number of labels."""
    return parameters / 2 * float(log(total))


def _rates(
    recorded: Floats, silence: int | None, smoothing: float, share: float | None = None
) -> LabelNoise:
    """Return the rates of errors, given how often each main label, a row, was recorded as each.

    `smoothing` is added to the count of each kind of error; a `share` of wrong labels scales them.
    """
    events = np.delete(np.arange(len(recorded)), [] if silence is None else [silence])
    happened = recorded[events].sum()
    right = recorded[events, events].sum()
    missed = false = quiet = 0.0
    swapped = happened - right
    if silence is not None:
        missed = recorded[events, silence].sum() + smoothing
        quiet = recorded[silence].sum()
        false = quiet - recorded[silence, silence] + smoothing
        swapped -= missed - smoothing
    swapped = max(swapped, 0.0) + (smoothing if len(events) > 1 else 0.0)
    errors = missed + false + swapped
    scale = share * recorded.sum() / errors if share is not None and errors else 1.0

    def rate(errors: float, total: float) -> float:
        value = float(scale * errors / (total + 2 * smoothing)) if total + smoothing else 0.0
        return min(value, _MAX_RATE) if smoothing else value

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
