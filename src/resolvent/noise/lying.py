"""Labels that lie now and then → those that what is seen and done stands for.

In most worlds the label is a function of the observation that a step led to, or of that and
the action. Recorded labels are then noisy answers to the question "what was seen?", and the
most likely main answer is the true label. docs/decisions/lying-labels.md says when that holds.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from resolvent.arithmetic import exp, log, product
from resolvent.noise.label_noise import LabelNoise
from resolvent.noise.label_tally import LabelTally
from resolvent.samples import LabelTiming
from resolvent.traces.labelling import Labelling, Reads
from resolvent.traces.symbols import NO_EVENT, Label, Symbol
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Vocabulary, distinct_pairs

Floats = NDArray[np.float64]

_SOURCES: tuple[Reads, ...] = ("observation", "action+observation")
"""What labels may follow from; of equally likely ones the first is taken."""

_MOST_CELLS = 20_000_000
"""A table of sources and labels may have so many cells; with more, labels are left as they are."""

_MOST_LABELS = 1_000
"""With more labels they are left as they are, unless it takes no fit to see that they are true."""

_MOST_ROUNDS = 200

_MOST = 0.49
"""Rates that are fitted stay below this, so that the truth stays possible."""

_UNEVEN, _SURELY = 4.0, 8.0
"""Labels lie evenly unless two of those that differ from the main one have the same source so many
times as often as by chance, and by so many standard deviations more often."""

_FAR = 20.0
"""Nats that are more than what the smoothing of rates can cost."""

_SETTLED = 1e-9
"""Rates that change by less than this share from one round to the next are found."""


@dataclass(frozen=True)
class Corrected:
    """How labels follow from what is seen and done, where those recorded do so but for lies.

    Attributes:
        labelling: Makes the most likely label of each observation, or action and observation.
        noise: How often recorded labels are another one than that; None if they tell nothing.
        log_evidence: The logarithm of how likely the recorded labels are, if this is so.
    """

    labelling: Labelling
    noise: LabelNoise | None
    log_evidence: float


WITHOUT_LABELS = Corrected(Labelling("observation", {}), None, 0.0)
"""What labels come to that have nothing to do with what is seen: no event ever happens."""


def truthful(
    traces: TraceSet | LabelTally,
    *,
    timing: LabelTiming = LabelTiming.CURRENT,
    share: float | None = None,
) -> Corrected | None:
    """Return how labels follow from what is seen and done, if they do but for some that lie.

    None if they follow exactly, so that there is nothing to correct, if what is seen and done
    does not make them likelier than chance, or if they differ in few places and there so often
    that they must depend on what is not seen. `timing` says whether the first label of an
    episode counts; `share` is how many labels lie, where that is known.

    >>> from resolvent.traces import Trace
    >>> told = [None, "key", "key", "key", None]
    >>> traces = TraceSet([Trace(["hall", "attic"] * 20, told * 8, ["walk"] * 39)])
    >>> truthful(traces) is None
    True
    >>> labels = ([None, "key"] * 20)[:37] + [None, None, None]
    >>> found = truthful(TraceSet([Trace(["hall", "attic"] * 20, labels, ["walk"] * 39)]))
    >>> found.labelling.events, found.noise
    ({'attic': 'key'}, LabelNoise(missed=0.1, false=0.0, swapped=0.0))
    """
    tally = traces if isinstance(traces, LabelTally) else LabelTally.of(traces, timing)
    best = _best_fit(tally, share)
    if best is None or best.log_evidence <= _by_chance(best.counts):
        return None
    return None if share is None and best.is_lawful else best.corrected(tally.labels)


def follow_nothing(tally: LabelTally) -> bool:
    """Whether labels have nothing to do with what is seen and done, as far as one can tell.

    >>> from resolvent.traces import Trace
    >>> told = ["key", None, None, "key"] * 10
    >>> traces = TraceSet([Trace(["hall", "attic"] * 20, told, ["walk"] * 39)])
    >>> follow_nothing(LabelTally.of(traces, LabelTiming.CURRENT))
    True
    """
    best = _best_fit(tally, None)
    return best is not None and best.log_evidence <= _by_chance(best.counts)


def _best_fit(tally: LabelTally, share: float | None) -> "_Fit | None":
    """Return how labels follow best from what is seen and done; None if there are no lies."""
    if len(tally.labels) < 2 or (share is None and _surely_exact(tally)):
        return None
    best: _Fit | None = None
    for reads in _SOURCES:
        rows = _Rows.of(tally, reads)
        if len(rows.sources) * len(tally.labels) > _MOST_CELLS or len(tally.labels) > _MOST_LABELS:
            continue
        counts = rows.counts(tally)
        if best is None and _is_exact(counts):
            return None
        found = _fitted(rows, counts, tally.labels.get(NO_EVENT), share)
        if best is None or found.log_evidence > best.log_evidence:
            best = found
    return None if best is None or _is_exact(best.counts) else best


def follow_exactly(traces: TraceSet, timing: LabelTiming) -> bool:
    """Whether every observation of traces has one label, so that none can be seen to lie.

    >>> from resolvent.traces import Trace
    >>> traces = TraceSet([Trace([0, 1, 0], ["start", "x", None], ["go", "go"])])
    >>> follow_exactly(traces, LabelTiming.CURRENT)
    True
    >>> follow_exactly(traces, LabelTiming.CURRENT_WITH_INITIAL)
    False
    """
    seen, labels = traces.observation_codes, traces.label_codes
    if timing.first:
        seen, labels = traces.after_step(seen), traces.after_step(labels)
    kept, _ = distinct_pairs(seen, labels, len(traces.observations), len(traces.labels))
    return len(np.unique(kept // len(traces.labels))) == len(kept)


@dataclass(frozen=True, eq=False)
class _Rows:
    """What labels may follow from, and for each triple of a tally which of these it has."""

    reads: Reads
    sources: list[Symbol]
    of_triple: NDArray[np.intp]

    @classmethod
    def of(cls, tally: LabelTally, reads: Reads) -> "_Rows":
        seen = len(tally.observations)
        if reads == "observation":
            kept, places = np.unique(tally.observation, return_inverse=True)
            return cls(reads, [tally.observations[code] for code in kept.tolist()], places)
        pairs = (tally.action.astype(np.int64) + 1) * seen + tally.observation
        kept, places = np.unique(pairs, return_inverse=True)
        sources: list[Symbol] = []
        for pair in kept.tolist():
            done, code = divmod(pair, seen)
            one = tally.observations[code]
            sources.append((tally.actions[done - 1], one) if done else (one,))
        return cls(reads, sources, places)

    def counts(self, tally: LabelTally) -> Floats:
        """Return how often each source, a row, was recorded with each label."""
        counts = np.zeros((len(self.sources), len(tally.labels)))
        np.add.at(counts, (self.of_triple, tally.label), tally.count)
        return counts


@dataclass(frozen=True, eq=False)
class _Fit:
    """The most likely label of each source, as its code, and how likely all recorded ones are."""

    rows: _Rows
    counts: Floats
    main: NDArray[np.intp]
    none: int | None
    log_evidence: float

    @property
    def noise(self) -> LabelNoise:
        """How often recorded labels are others than the main ones."""
        labels = self.counts.shape[1]
        recorded = np.zeros((labels, labels))
        np.add.at(recorded, self.main, self.counts)
        return _rates(recorded, self.none, 0.0)

    @property
    def is_lawful(self) -> bool:
        """Whether what would be lies keeps to few sources: then there is a reason for it."""
        noise, all_labels = self.noise, self.counts.sum(1)
        others = all_labels - self.counts[np.arange(len(self.main)), self.main]
        lies = np.where(self.main == self.none, noise.false, noise.missed + noise.swapped)
        pairs, by_chance = (others * (others - 1)).sum(), ((lies * all_labels) ** 2).sum()
        far = by_chance + _SURELY * np.sqrt(2 * by_chance + 1)
        return bool(pairs > max(far, _UNEVEN * by_chance))

    def corrected(self, labels: Vocabulary[Label]) -> Corrected | None:
        """Return it as a value of the model; None if the main labels are those recorded."""
        noise = self.noise
        if noise == LabelNoise(0.0, 0.0, 0.0):
            return None
        events = {
            source: labels[int(code)]
            for source, code in zip(self.rows.sources, self.main, strict=True)
            if code != self.none
        }
        return Corrected(Labelling(self.rows.reads, events), noise, self.log_evidence)


def _is_exact(counts: Floats) -> bool:
    """Whether each source has one label throughout."""
    return bool(((counts > 0).sum(1) <= 1).all())


def _surely_exact(tally: LabelTally) -> bool:
    """Whether labels follow exactly from what is done and seen, as the inputs of a log do.

    And that is likelier, by far, than any lies about labels that follow from what is seen alone:
    no rates of lies make labels likelier than their own shares at each observation do.
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
    with_lies = (tally.count * log(each[place] / at_observation)).sum()
    return bool(exactly - with_lies > _FAR)


def _by_chance(counts: Floats) -> float:
    """Return how likely labels are if they have nothing to do with what is seen and done."""
    each = counts.sum(0)
    each = each[each > 0]
    total = each.sum()
    return float((each * log(each / total)).sum()) - _price(len(each) - 1, total)


def _price(parameters: int, total: float) -> float:
    """Return what it costs that parameters are fitted to so many labels."""
    return parameters / 2 * float(log(total))


def _fitted(rows: _Rows, counts: Floats, none: int | None, share: float | None) -> _Fit:
    """Find the rates of lies and the shares of main labels that make all labels most likely."""
    labels = counts.shape[1]
    main = np.eye(labels)[counts.argmax(1)]  # what each source is: a distribution over labels
    before = LabelNoise(0.0, 0.0, 0.0)
    for _ in range(_MOST_ROUNDS):
        noise = _rates(product(main.T, counts), none, 0.5, share)
        shares = (main.sum(0) + 0.5) / (len(main) + 0.5 * labels)
        joint = product(counts, log(_chances(noise, labels, none)).T) + log(shares)
        likeliest = joint.max(1, keepdims=True)
        main = exp(joint - likeliest)
        sums = main.sum(1, keepdims=True)
        main /= sums
        if _close(noise, before):
            break
        before = noise
    log_evidence = float((likeliest + log(sums)).sum())
    log_evidence -= _price(3 + labels - 1, counts.sum())
    return _Fit(rows, counts, joint.argmax(1), none, log_evidence)


def _close(one: LabelNoise, other: LabelNoise) -> bool:
    pairs = zip(one.as_dict().values(), other.as_dict().values(), strict=True)
    return all(abs(rate - before) <= _SETTLED * rate for rate, before in pairs)


def _rates(
    recorded: Floats, none: int | None, smoothing: float, share: float | None = None
) -> LabelNoise:
    """Return the rates of lies, given how often each main label, a row, was recorded as each.

    `smoothing` of a lie more is counted for each way to lie that there is. With a `share`, the
    rates are scaled so that this many labels lie.
    """
    events = np.delete(np.arange(len(recorded)), [] if none is None else [none])
    happened = recorded[events].sum()
    right = recorded[events, events].sum()
    missed = false = quiet = 0.0
    if none is not None:
        missed = recorded[events, none].sum() + smoothing
        quiet = recorded[none].sum()
        false = quiet - recorded[none, none] + smoothing
    swapped = happened - right - (missed - smoothing if none is not None else 0.0)
    swapped = max(swapped, 0.0) + (smoothing if len(events) > 1 else 0.0)
    scale = 1.0
    if share is not None:
        lies = missed + false + swapped
        scale = share * recorded.sum() / lies if lies else 1.0

    def rate(lies: float, of: float) -> float:
        found = float(scale * lies / (of + 2 * smoothing)) if of + smoothing else 0.0
        return min(found, _MOST) if smoothing else found

    return LabelNoise(rate(missed, happened), rate(false, quiet), rate(swapped, happened))


def _chances(noise: LabelNoise, labels: int, none: int | None) -> Floats:
    """Return how likely each label, a column, is recorded where each, a row, is the true one."""
    events = labels - (none is not None)
    chances = np.full((labels, labels), noise.swapped / max(events - 1, 1))
    np.fill_diagonal(chances, 1 - noise.missed - noise.swapped)
    if none is not None:
        chances[:, none] = noise.missed
        chances[none] = noise.false / max(events, 1)
        chances[none, none] = 1 - noise.false
    smallest: Floats = np.maximum(chances, 1e-12)
    return smallest
