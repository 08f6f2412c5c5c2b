"""Cross-validation: infer machines without some steps, and predict these.

Input: the result of an inference, or its machines, and the traces. Output: the share of held-out
steps predicted right, or the `Evidence`. Traces are held out by content, so that their order and
repetitions make no difference.
"""

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from resolvent._util.parallel import Listener, Workers, get_executor
from resolvent._util.validation import check_arguments, explain_memory_errors
from resolvent.errors import ModelError, OptionError, ResolventError, TimeLimitReached, TraceError
from resolvent.evaluation.evidence import Evidence, are_training_traces, collect_evidence
from resolvent.evaluation.holdout import (
    StepKinds,
    holdout_order,
    is_held_out,
)
from resolvent.evaluation.observed import sample_traces
from resolvent.evaluation.weakness import prefix_keys, sinks
from resolvent.inference.fit import OUT_OF_TIME
from resolvent.inference.held_out import HoldoutScore, MachineHoldoutScore
from resolvent.inference.infer import infer_with
from resolvent.inference.options import InferenceOptions
from resolvent.inference.result import InferenceResult, machines_of_result
from resolvent.inference.strategy import STRATEGIES, Strategy
from resolvent.machines import Machines, MachineScore
from resolvent.preprocess.labeling import AS_RECORDED
from resolvent.replay.corpus import Corpus, scan_corpus
from resolvent.replay.replaying import states_at_steps
from resolvent.replay.score import score
from resolvent.replay.steps import StepQueries, step_queries
from resolvent.traces import Trace, TraceDataset, TraceSet
from resolvent.traces.digest import trace_hashes
from resolvent.traces.io.formats import as_traces
from resolvent.traces.schema import OBSERVED_COLUMNS

SHARE: Final = 0.2
"""Default share of the traces that is held out."""

MIN_TRACES: Final = 5
"""Number of distinct traces below which the last steps of each are held out instead."""

MAX_SECONDS: Final = 20.0
"""Maximum duration of an inference that is repeated without being requested."""

_MIN_TIME_LIMIT: Final = 5.0
"""Minimum time limit of a repeated inference, in seconds."""

_TIME_FACTOR: Final = 2.0
"""Time limit of a repeated inference, as a multiple of the duration of the first."""


def holdout_score(
    result: InferenceResult,
    traces: TraceSet | TraceDataset | Iterable[Trace],
    *,
    share: float = SHARE,
    time_limit: float | None = None,
    on: str | Workers = "threads",
    progress: Listener | None = None,
) -> HoldoutScore:
    """Infer machines from most of the traces, and score them on the held-out ones.

    The options are those of `result`. The split depends on the content of the traces only;
    prefixes of training traces are not tested. Of fewer than five traces, the end is held out. Of
    scanned files with more than a million steps, a sample of about that size is used; nothing is
    read again if the result was inferred from these files.

    Args:
        result: The result of `infer`; it is not changed.
        traces: The traces that were passed to `infer`.
        share: The share to hold out, between 0 and 1.
        time_limit: Seconds for the repeated inference; `TimeLimitReached` after that.
        on: Workers that read scanned traces not read before, as for `infer`.
        progress: Receives the progress, as for `infer`.

    Raises:
        TraceError: if there are too few traces to hold anything out.

    >>> import gymnasium as gym, resolvent as rs
    >>> house = rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
    >>> print(holdout_score(rs.infer(house), house)["reward"])
    100% predicted right (95% confidence: 90.8% or more), 0% wrong
    """
    check_arguments(holdout_score, locals(), leaving=["traces"])
    if not 0 < share < 1:
        raise OptionError(f"share is {share:g}: it must lie between 0 and 1")
    options, part = _options_as_before(result, time_limit), None
    source = as_traces(traces)
    if not isinstance(source, TraceSet):
        # The corpus holds preprocessed traces: only the machines are validated.
        options = replace(options, labels=AS_RECORDED, discretize=None)
        cached = result.inference_state.corpus
        with get_executor(on) as workers:
            corpus = scan_corpus(result.machines, source, workers, known=cached, progress=progress)
            source, part = sample_traces(corpus)
    split = _Split.of(result.machines, source, share)
    machines = _infer(options, split.training, progress)
    scores = _score_steps(split, machines, result.machines)
    steps = int(split.is_held.sum())
    return HoldoutScore(split.held, len(split.tested), steps, split.whole_traces, scores, part)


def _options_as_before(result: InferenceResult, time_limit: float | None) -> InferenceOptions:
    """Return the options of an inference, without noise if it found none in all traces."""
    options = replace(result.options, time_limit=time_limit)
    is_exact = not (
        result.is_noisy
        or result.outliers
        or result.noise_rates
        or result.machines.state_uncertainty
        or result.preprocessor.rewards
    )
    return replace(options, noise="none") if is_exact and options.noise == "auto" else options


@dataclass(frozen=True, eq=False)
class _Split:
    """The traces to learn from, and those with steps to test.

    Of the distinct traces `held` were chosen to be held out. `learned` is the number of steps of
    each tested trace that were learned from.
    """

    training: TraceSet
    tested: TraceSet
    held: int
    learned: NDArray[np.int64]

    @classmethod
    def of(cls, machines: Machines, traces: TraceSet, share: float) -> "_Split":
        """Hold out whole traces, or the last steps of each, at least one of two, if they are few.

        The `machines` of all traces decide which outcomes are rare, and therefore spread evenly.

        Raises:
            TraceError: when no step would be tested.
        """
        keys, first, index = np.unique(trace_hashes(traces), return_index=True, return_inverse=True)
        if len(keys) < MIN_TRACES:
            numbers, lengths = np.sort(first), np.diff(traces.offsets)
            kept = np.maximum(np.ceil((1 - share) * lengths).astype(np.int64), 1)
            kept = np.where(lengths > 1, np.minimum(kept, lengths - 1), lengths)
            if np.array_equal(kept, lengths):
                raise TraceError(
                    "the traces have one step each: to hold out steps, collect longer ones, or more"
                )
            return cls(traces.prefixes(kept), traces.take(numbers), len(numbers), kept[numbers])
        distinct = traces.take(first)
        order = holdout_order(_queries(machines, distinct).values(), distinct)
        is_held = is_held_out(order, share)
        held, is_training = int(is_held.sum()), ~is_held[index]
        candidates = np.sort(first[is_held])
        test = _without_prefixes(traces, is_training, candidates)
        if not len(test):
            raise TraceError(
                f"all {held:,} traces chosen to be held out are the beginning of others: collect "
                f"traces that differ more"
            )
        return cls(traces.take(is_training), traces.take(test), held, np.zeros(len(test), np.int64))

    @property
    def whole_traces(self) -> bool:
        """Whether no step of the tested traces was learned from."""
        return not self.learned.any()

    @property
    def is_held(self) -> NDArray[np.bool_]:
        """Whether each step of the tested traces was held out."""
        offsets = self.tested.offsets
        first_held = np.repeat(offsets[:-1] + self.learned, np.diff(offsets))
        return np.arange(self.tested.steps) >= first_held


def _without_prefixes(
    traces: TraceSet, is_training: NDArray[np.bool_], candidates: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the candidates that are not a prefix of a training trace."""
    columns = (
        traces.after_step(codes) if name in OBSERVED_COLUMNS else codes
        for name, codes in traces.codes.items()
    )
    keys = prefix_keys([traces.at_step(traces.observation_codes), *columns], traces.offsets)
    training_keys = keys[np.repeat(is_training, np.diff(traces.offsets))]
    return candidates[~np.isin(keys[traces.offsets[candidates + 1] - 1], training_keys)]


def _infer(
    options: InferenceOptions, traces: TraceSet, progress: Listener | None = None
) -> Machines:
    """Infer machines within the time limit, or raise: a truncated search is not comparable."""
    result = infer_with(options, traces, progress)
    limit = options.time_limit
    is_truncated = result.unfinished or any(
        attempt.outcome == OUT_OF_TIME for tried in result.tried.values() for attempt in tried
    )
    if limit is not None and (is_truncated or result.seconds["total"] >= limit):
        raise TimeLimitReached(
            f"inferring without the held-out steps takes longer than {limit:g} s: raise the time "
            f"limit"
        )
    return result.machines


def _queries(machines: Machines, traces: TraceSet) -> dict[str, StepQueries]:
    """Return the queries of each machine at the steps of traces; none if states are not certain."""
    if machines.state_uncertainty:
        return {}
    traces = machines.preprocessor.transform(traces)
    return step_queries(machines, traces, states_at_steps(machines, traces))


def _score_steps(
    split: _Split, machines: Machines, known: Machines
) -> dict[str, MachineHoldoutScore]:
    """Return the score of each machine on the held-out steps, with those in sinks.

    Which outcomes are rare is decided by the `known` machines, those of all traces.
    """
    scores: Mapping[str, MachineScore] = score(machines, split.tested)
    if not split.whole_traces:
        learned = score(machines, split.tested.prefixes(split.learned))
        scores = {name: counts.without(learned[name]) for name, counts in scores.items()}
    queries, rare_steps = _queries(machines, split.tested), _queries(known, split.tested)
    by_machine = {}
    for name in (name for name in known if name in scores):
        machine, stuck, right, rare, rare_right = machines[name], 0, 0, None, 0
        if (steps := queries.get(name)) is not None:
            is_right = steps.predicted == steps.outputs
            is_stuck = split.is_held & np.isin(steps.states, sinks(machine))
            stuck, right = int(is_stuck.sum()), int(is_right[is_stuck].sum())
            if name in rare_steps and (kinds := StepKinds.of(rare_steps[name])).may_be_rare:
                is_rare = split.is_held & kinds.rare
                rare, rare_right = int(is_rare.sum()), int(is_right[is_rare].sum())
        by_machine[name] = MachineHoldoutScore(
            machine.states,
            len(split.tested),
            # The location of a mismatch would refer to the held-out traces, unknown to the user.
            replace(scores[name], first_mismatch=None),
            machine.is_noisy,
            split.whole_traces,
            stuck,
            right,
            rare,
            rare_right,
        )
    return by_machine


def holdout_if_fast(
    result: InferenceResult,
    traces: TraceSet | TraceDataset,
    share: float | None,
    took: float,
    progress: Listener | None = None,
) -> HoldoutScore | str:
    """Hold out a share of the traces; if it is None, only if inferring again is fast.

    `took` is the duration of the inference in seconds. Otherwise return the reason as text.
    """
    time_limit = result.options.time_limit
    in_memory = isinstance(traces, TraceSet)  # of files only a sample is used
    if share is None and took > MAX_SECONDS and in_memory:
        return (
            f"since inferring again would take another {took:.0f} seconds: "
            f"--set held_out={SHARE:g} does it nevertheless"
        )
    limit = max(_TIME_FACTOR * took, _MIN_TIME_LIMIT) if share is None else None
    if time_limit is not None:
        remaining = time_limit - took
        if remaining < took and in_memory:
            return "since the time limit leaves too little time for inferring again"
        limit = remaining if limit is None else min(remaining, limit)
    try:
        return holdout_score(
            result, traces, share=share or SHARE, time_limit=limit, progress=progress
        )
    except TimeLimitReached:
        return f"since inferring again took longer: --set held_out={SHARE:g} waits for it"
    except ResolventError as error:
        return f"since {error}"


# ---- evidence ----------------------------------------------------------------


def evidence(
    machines: Machines | InferenceResult,
    traces: TraceSet | TraceDataset | Corpus,
    *,
    delta: float = 0.05,
    on: str | Workers = "threads",
    progress: Listener | None = None,
) -> Evidence:
    """Collect the support of traces for machines, and its gaps.

    If the machines were inferred from these traces, machines are inferred from four fifths of them
    with the same options and tested on the rest; this needs machines that store their options, as
    those in a file do. Traces that are new to the machines test these directly.

    A scanned folder is read twice, or once with the result of its inference, by the workers that
    `on` names, as for `infer`. Label sequences, the certainty of transitions under noise and the
    held-out test are then computed from a sample of about a million steps; the report says so.

    >>> import gymnasium as gym, resolvent as rs
    >>> traces = rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
    >>> gathered = evidence(rs.infer(traces).machines, traces)
    >>> print(gathered["transition"].separations[0])
    states 0 and 1: 1 query observed 355 times, such as (corridor, up): corridor (trace 0, step 0) \
against cyanroom (trace 22, step 3)
    """
    strategy, scanned = None, None
    if isinstance(machines, InferenceResult):
        strategy, scanned = machines.options.strategy, machines.inference_state.corpus
    machines = machines_of_result(machines)
    source = traces if isinstance(traces, Corpus) else as_traces(traces)
    if isinstance(source, TraceSet) and len(source) == 0:
        raise ModelError("there are no traces to collect evidence from")
    with explain_memory_errors("evidence was gathered"), get_executor(on) as workers:
        if isinstance(source, Corpus):
            corpus = copy(source)
            corpus.workers, corpus.cache = workers, None
        else:
            corpus = scan_corpus(machines, source, workers, known=scanned, progress=progress)
        options = None
        if are_training_traces(machines, corpus):
            options = _options_again(machines, strategy)
        again = None if options is None else partial(_infer, options)
        return collect_evidence(machines, corpus, infer=again, delta=delta, progress=progress)


def _options_again(machines: Machines, strategy: Strategy | None) -> InferenceOptions | None:
    """Return the options that machines were inferred with, if they store them.

    The preprocessing of raw steps stays as it is: only the machines are tested.
    """
    provenance = machines.provenance
    if provenance is None:
        return None
    named = provenance.options.get("strategy")
    # Of a strategy that is not built in, a file holds the name alone.
    if strategy is None and isinstance(named, str) and named not in STRATEGIES:
        return None
    stored = {**provenance.options, "labels": "given", "discretize": None}
    if not any(machine.is_noisy for machine in machines.values()):
        stored["noise"] = "none"  # fewer traces must not make exact outputs noisy
    elif machines.preprocessor.rewards is not None:  # the rest of the noise are wrong levels
        stored["noise"] = "auto"
    return InferenceOptions.from_dict(stored, strategy)
