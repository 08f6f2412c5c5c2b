"""Distinguish noise from missing labels: check whether varying outputs depend on the past.

Input: steps with contradicting outputs. Output: findings about noise, missing labels, and
labels without effect.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from math import inf
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent._util.math import log
from resolvent._util.text import amount, listed, odds_text, short
from resolvent.evaluation.diagnosis.columns import are_labels_random, shuffled_labels
from resolvent.evaluation.diagnosis.findings import Finding, Severity
from resolvent.evaluation.diagnosis.steps import OutputTally, Steps, shortened
from resolvent.noise import LikelyMachine, SearchLimits, fit_likely_machine
from resolvent.replay.counts import Int64s
from resolvent.traces import NO_EVENT, Codes, label_text
from resolvent.traces.schema import OBSERVATION

MAX_STEPS: Final = 50_000  # maximum number of steps, of the first traces, to infer from
EFFORT: Final = 0.4  # two rounds of growing, since the states need not all be right
MAX_STATES: Final = 12  # without the label that matters machines grow and do not improve
MIN_LOG_ODDS: Final = log(1000)  # of a dependence, beyond those expected by chance
MIN_DEVIATING: Final = 3  # minimum number of deviating outputs of a state to a query to examine it
MIN_SHARE: Final = 0.85  # share of the largest gain from which on a simpler feature is preferred
MIN_GAIN: Final = 1.5  # least gain by labels over shuffled ones, which still show elapsed time
MAX_CODES: Final = 300  # symbols of a kind, at most, to make features of: those in most traces
_BATCH: Final = 64  # number of features that are examined at once
_MAX_DEPENDENCES: Final = 3  # maximum number of dependences that a finding reports
_QUARTILES: Final = (0.25, 0.5, 0.75)


class Feature(NamedTuple):
    """A feature of what happened before a step.

    `kind` stays the same from version to version, `of` names the symbol that it is about, if
    any, and `text` continues a sentence after "depend on".
    """

    kind: str
    of: str | None
    text: str


class Dependence(NamedTuple):
    """Outputs that depend on a feature of the past, which no state represents.

    `rows` are the numbers of the states and queries split by it, `query` is the one with the most
    evidence. `deviating` is the number of their outputs that are not the most frequent one,
    `explained` that of those that are, after the split.
    """

    feature: Feature
    rows: Int64s
    log_odds: float
    deviating: int
    explained: int
    query: int


@dataclass(frozen=True, eq=False)
class _States:
    """The most likely machine for one output, the state of each step, and the deviating steps.

    `row` is the number of each step's state and query, for outputs other than the observation
    together with the state of the Transition Machine.
    """

    likely: LikelyMachine
    state: Codes
    query: Codes
    row: Int64s
    is_deviating: NDArray[np.bool_]

    @classmethod
    def of(cls, steps: Steps, output: str, observed: "_States | None" = None) -> "_States":
        samples, width = steps.samples[output], steps.queries
        if observed is not None:
            paired = observed.state * np.int32(width) + samples.alpha
            width *= observed.likely.states
            keys = np.arange(width, dtype=np.int64)
            samples = replace(samples, alpha=paired, alpha_keys=keys)
        likely = fit_likely_machine(samples, SearchLimits(effort=EFFORT, most_states=MAX_STATES))
        targets = np.ascontiguousarray(np.maximum(likely.transitions, 0))
        state, labels = np.zeros(len(samples.alpha), np.int32), targets.shape[1]
        if labels:
            state = _core.walk_states(targets.ravel(), labels, samples.beta, samples.offsets)
        row = state.astype(np.int64) * width + samples.alpha
        tally = OutputTally.of(row, samples.output)
        usual = tally.value[np.lexsort((-tally.count, tally.row))][tally.offset[:-1]]
        is_deviating = usual[np.searchsorted(tally.key, row)] != samples.output
        return cls(likely, state, samples.alpha, row, is_deviating)

    @property
    def gain(self) -> float:
        """The gain in log evidence over one state, in nats."""
        return self.likely.log_evidence - self.likely.sizes[1]


def memory(steps: Steps) -> Iterator[Finding]:
    """Report for each output with contradictions whether it is noisy or depends on the past.

    An output deviates if it is not the most frequent one in the state of the most likely machine.
    If earlier observations, actions or labels determine when outputs deviate, a label is missing;
    otherwise it is noise.
    """
    if steps.traces.steps > MAX_STEPS:
        number = int(np.searchsorted(steps.traces.offsets, MAX_STEPS, side="right")) - 1
        steps = replace(steps, traces=steps.traces[: max(number, 1)])
    outputs = [output for output in steps.outputs if steps.has_contradictions(output)]
    if not outputs:
        return
    observed = _observation_states(steps)
    states_by_output = {
        output: (observed if output == OBSERVATION else None) or _States.of(steps, output, observed)
        for output in outputs
    }
    misread = np.zeros(steps.traces.steps, bool)
    if observed is not None:  # outputs after a misread observation deviate as well
        misread = np.roll(observed.is_deviating, 1)
        misread[steps.number == 0] = False
    is_missing = False
    for output, states in states_by_output.items():
        dependences, candidates = _dependences(steps, output, states, misread)
        if dependences:
            is_missing = True
            yield _missing_label(steps, output, states, dependences)
        elif states.is_deviating.any():
            yield _noise(output, states, candidates)
    if any(label != NO_EVENT for label in steps.traces.labels):
        yield from _labels_without_effect(steps, states_by_output, is_missing)


def _varies(steps: Steps, output: str) -> bool:
    """Return whether some query has several outputs, so that labels may matter."""
    return len(steps.tally(output, steps.query.astype(np.int64)).contradicted) > 0


def _observation_states(steps: Steps) -> _States | None:
    """Return the states that predict the next observation; None if one state is enough."""
    return _States.of(steps, OBSERVATION) if _varies(steps, OBSERVATION) else None


# --- Dependences on the past ---------------------------------------------------------------------


def _dependences(
    steps: Steps, output: str, states: _States, misread: NDArray[np.bool_]
) -> tuple[list[Dependence], int]:
    """Return the dependences of an output, the strongest first, and the number of candidates."""
    # As in `_States.row`, up to a multiple of the number of queries.
    width = (int(states.query.max(initial=0)) // steps.queries + 1) * steps.queries
    outputs = steps.samples[output].output
    rows, index = np.unique(states.row, return_inverse=True)
    deviating = np.bincount(index, states.is_deviating & ~misread, minlength=len(rows))
    is_open = deviating >= MIN_DEVIATING
    if not is_open.any():
        return [], 0
    examined = np.flatnonzero(is_open[index] & ~misread)
    queries, number = np.unique(states.query[examined], return_inverse=True)
    columns = number.astype(np.int32), outputs[examined], states.state[examined]
    features: list[Feature] = []
    splits: list[NDArray[np.float64]] = []
    remaining = _features(steps, output)
    while batch := list(islice(remaining, _BATCH)):
        values = np.concatenate([value[examined] for _, value in batch])
        split = _core.split_noisy_rows(
            *columns, values=values, states=states.likely.states, least=-inf
        )
        row = split["state"] * np.int64(width) + queries[split["query"]]
        feature = split["feature"] + len(features)
        fields = (feature, row, split["log_odds"], split["deviating"], split["deviating_apart"])
        splits.append(np.array(fields, np.float64).reshape(5, -1))
        features += [feature for feature, _ in batch]
    candidates = int(np.count_nonzero(is_open)) * len(features)
    table = np.concatenate(splits, axis=1)
    certain = table[:, table[2] > MIN_LOG_ODDS + log(candidates)]
    if not certain.shape[1]:
        certain = _over_all_queries(features, table)
    return list(_strongest(features, certain)), candidates


def _over_all_queries(features: list[Feature], table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rows of the one feature that explains a little about many queries, if any.

    Its total gain must exceed the cost of the search over all features. Each kind of feature
    has the same prior probability, however many features it has.
    """
    total = np.bincount(table[0].astype(np.int64), table[2], len(features))
    kinds = Counter(feature.kind for feature in features)
    # `bincount` returns integers if the table is empty, so not in place.
    total = total - log([len(kinds) * kinds[feature.kind] for feature in features])
    best = int(np.argmax(total))
    if total[best] <= MIN_LOG_ODDS:
        return table[:, :0]
    return table[:, (table[0] == best) & (table[2] > 0)]


def _strongest(features: list[Feature], table: NDArray[np.float64]) -> Iterator[Dependence]:
    """Yield the feature with the largest gain, remove its states and queries, and repeat."""
    for _ in range(_MAX_DEPENDENCES):
        if not table.shape[1]:
            return
        feature, row, log_odds, deviating, deviating_after = table
        gain = np.bincount(feature.astype(np.int64), log_odds)
        # Features are in order of simplicity.
        best = int(np.flatnonzero(gain >= MIN_SHARE * gain.max())[0])
        is_best = feature == best
        yield Dependence(
            features[best],
            row[is_best].astype(np.int64),
            float(gain[best]),
            int(deviating[is_best].sum()),
            int((deviating - deviating_after)[is_best].sum()),
            int(row[is_best][np.argmax(log_odds[is_best])]),
        )
        table = table[:, ~np.isin(row, row[is_best])]


# --- Findings ------------------------------------------------------------------------------------


def _missing_label(
    steps: Steps, output: str, states: _States, dependences: list[Dependence]
) -> Finding:
    first, *rest = dependences
    also = ""
    if rest:
        texts = [f"{steps.query_text(more.query)} on {more.feature.text}" for more in rest]
        also = f" Other outputs depend on other features: {listed(texts)}."
    queries = "query" if len(first.rows) == 1 else "queries"
    return Finding(
        "missing-label",
        Severity.WARNING,
        f"Outputs of the {_machine(output)} machine to {steps.query_text(first.query)} depend "
        f"on {first.feature.text}, which no state represents: this explains "
        f"{first.explained:,} of {first.deviating:,} deviating outputs to {len(first.rows):,} "
        f"{queries} ({odds_text(-first.log_odds)} by chance).{also} "
        f"{_ADVICE.get(first.feature.kind, _LABEL_EVENT)}",
        {
            "output": output,
            "states": states.likely.states,
            "queries": sum(len(dependence.rows) for dependence in dependences),
            "deviating": int(states.is_deviating.sum()),
            "explained": sum(dependence.explained for dependence in dependences),
            "depends_on": [
                {
                    "kind": feature.kind,
                    "of": feature.of,
                    "query": steps.query_text(query),
                    "queries": len(rows),
                    "log_odds": log_odds,
                    "deviating": deviating,
                    "explained": explained,
                }
                for feature, rows, log_odds, deviating, explained, query in dependences
            ],
        },
    )


_INCOMPLETE: Final = "The observation is incomplete: extend it, or label what it lacks."
_LABEL_EVENT: Final = "Label that event, or discover events: labels='auto' (--labels auto)."
_ADVICE: Final = {
    "read": "This label exists, but no machine was found that uses it: collect more traces.",
    "last-time": "A hidden variable is set during an episode or drawn at its start: label the step "
    "that sets it, or show it in the first observation.",
    "previous-observation": _INCOMPLETE,
    "previous-action": _INCOMPLETE,
    "time": "The environment changes during an episode: label the change.",
}
"""What to do, by the kind of the feature that outputs depend on."""


def _noise(output: str, states: _States, candidates: int) -> Finding:
    deviating, outputs = int(states.is_deviating.sum()), len(states.is_deviating)
    reason = "too few deviate at one query to look for a cause"
    if candidates:
        reason = f"no earlier event explains them ({amount(candidates, 'candidate')})"
    is_full = states.likely.states == MAX_STATES
    explanation = "this is chance, or labels are missing" if is_full else "this looks like chance"
    return Finding(
        "noise",
        Severity.NOTE,
        f"With {amount(states.likely.states, 'state')} of the {_machine(output)} machine "
        f"{deviating:,} of {outputs:,} outputs ({deviating / outputs:.1%}) deviate from the most "
        f"frequent one of their state, and {reason}: {explanation}. noise='auto' (--noise auto) "
        f"finds such machines.",
        {
            "output": output,
            "states": states.likely.states,
            "queries": len(np.unique(states.row[states.is_deviating])),
            "outputs": outputs,
            "deviating": deviating,
            "share": deviating / outputs,
            "candidates": candidates,
        },
    )


def _labels_without_effect(
    steps: Steps, states_by_output: dict[str, _States], is_missing: bool
) -> Iterator[Finding]:
    """Report labels if one state is enough, or if they are as good as random."""
    labels = sum(label != NO_EVENT for label in steps.traces.labels)
    unexamined = (output for output in steps.outputs if output not in states_by_output)
    consistent = [output for output in unexamined if _varies(steps, output)]
    one_state = not consistent and all(
        states.likely.states == 1 for states in states_by_output.values()
    )
    if one_state:
        why = "one state explains all outputs as well as several"
    elif are_labels_random(steps) and _as_good_shuffled(steps, states_by_output, consistent):
        why = (
            "they are independent of observations and actions, and shuffled labels predict as well"
        )
    else:
        return
    advice = "The environment needs no memory, or the events to remember have no label."
    if is_missing:
        advice = "But outputs depend on the past: label the events with later effects."
    yield Finding(
        "uninformative-labels",
        Severity.WARNING if is_missing or not one_state else Severity.NOTE,
        f"The {amount(labels, 'label')} add no information: {why}. {advice}",
        {"labels": labels, "at_random": not one_state, "depends_on_past": is_missing},
    )


def _as_good_shuffled(
    steps: Steps, states_by_output: dict[str, _States], consistent: list[str]
) -> bool:
    """Return whether machines that read shuffled labels gain about as much by memory."""
    shuffled = replace(steps, traces=shuffled_labels(steps.traces))
    observed, observed_shuffled = _observation_states(steps), _observation_states(shuffled)
    added = {output: _States.of(steps, output, observed) for output in consistent}
    for output, states in (states_by_output | added).items():
        paired = None if output == OBSERVATION else observed_shuffled
        random = _States.of(shuffled, output, paired)
        if states.gain > MIN_GAIN * random.gain + 2 * states.likely.price:
            return False
    return True


def _machine(output: str) -> str:
    return "transition" if output == OBSERVATION else listed([output])


# --- Features of the past ------------------------------------------------------------------------


def _features(steps: Steps, output: str) -> Iterator[tuple[Feature, Codes]]:
    """Yield all features of the past, each with its value at every step, −1 where there is none."""
    traces = steps.traces
    yield from _occurred_features(steps)
    for kind, column in (
        ("previous-observation", traces.at_step(traces.observation_codes)),
        ("previous-action", traces.action_codes),
    ):
        previous = np.where(steps.number == 0, np.int32(-1), np.roll(column, 1))
        yield Feature(kind, None, f"the {kind.replace('-', ' ')}"), previous
    text = "the last output to the same query in the same episode"
    yield Feature("last-time", None, text), _previous_output(steps, output)
    bounds = np.quantile(steps.number, _QUARTILES)
    quarter = np.searchsorted(bounds, steps.number, side="left").astype(np.int32)
    yield Feature("time", None, "the number of steps before"), quarter


def _occurred_features(steps: Steps) -> Iterator[tuple[Feature, Codes]]:
    """Yield for each observation, action, query and label whether it occurred before."""
    traces, samples = steps.traces, steps.samples[OBSERVATION]
    for code, value in _occurred(steps, traces.at_step(traces.observation_codes)):
        name = shortened(traces.observations[code])
        yield Feature("seen", name, f"whether {name} was observed before"), value
    for code, value in _occurred(steps, traces.action_codes):
        name = shortened(traces.actions[code])
        yield Feature("done", name, f"whether {name} was done before"), value
    for code, value in _occurred(steps, steps.query):
        name = steps.query_text(code)
        yield Feature("queried", name, f"whether {name} was tried before"), value
    for code, value in _occurred(steps, samples.beta, inclusive=True):
        if samples.labels[code] != NO_EVENT:
            name = short(label_text(samples.labels[code]))
            yield Feature("read", name, f"whether the label {name} was read before"), value


def _occurred(
    steps: Steps, column: Codes, *, inclusive: bool = False
) -> Iterator[tuple[int, Codes]]:
    """Yield each code of a column, and at every step whether it occurred earlier in the trace.

    A label read at a step is read before it, so it counts for that step: `inclusive`.
    """
    traces = len(steps.traces)
    keys = column.astype(np.int64) * traces + steps.trace
    rows = np.flatnonzero(column >= 0)
    pairs, first_row = np.unique(keys[rows], return_index=True)
    code, trace = np.divmod(pairs, traces)
    number = steps.number[rows[first_row]]
    codes, starts, trace_counts = np.unique(code, return_index=True, return_counts=True)
    for index in np.argsort(-trace_counts, kind="stable")[:MAX_CODES].tolist():
        range_ = slice(starts[index], starts[index] + trace_counts[index])
        first = np.full(traces, steps.traces.steps)  # later than any step
        first[trace[range_]] = number[range_] - int(inclusive)
        yield int(codes[index]), (steps.number > first[steps.trace]).astype(np.int32)


def _previous_output(steps: Steps, output: str) -> Codes:
    """Return the output to the query's last occurrence in the same trace; −1 if there is none."""
    samples = steps.samples[output]
    order = np.lexsort((steps.number, samples.alpha, steps.trace))
    is_repeated = (np.diff(steps.trace[order]) == 0) & (np.diff(samples.alpha[order]) == 0)
    previous = np.full(len(order), -1, np.int32)
    previous[order[1:]] = np.where(is_repeated, samples.output[order[:-1]], -1)
    return previous
