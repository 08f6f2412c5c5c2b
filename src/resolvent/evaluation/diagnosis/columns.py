"""Check whether there are enough traces, and whether their columns are of use.

Input: steps, or counts of queries, labels and rewards. Output: findings about few, short or equal
traces, the share of new traces that would be unseen, labels that are absent, constant, always new
or redundant, and rewards that are constant, rare, unique or timed.
"""

from collections.abc import Iterator, Sequence
from math import sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from resolvent._util.text import amount
from resolvent.evaluation.diagnosis.findings import Finding, Severity
from resolvent.evaluation.diagnosis.steps import MAX_SORTED_STEPS, Steps, outcomes_text, shortened
from resolvent.replay.counts import Int64s
from resolvent.traces import NO_EVENT, Codes, Symbol, TraceSet, label_text, symbol_text
from resolvent.traces.digest import trace_hashes
from resolvent.traces.schema import LABEL, OBSERVATION, REWARD
from resolvent.traces.trace_set import with_column
from resolvent.traces.vocabulary import distinct_pairs

# --- Traces and observations ----------------------------------------------------------------------

FEW_TRACES: Final = 20  # with fewer traces most label histories occur once
SHORT: Final = 2  # maximum number of steps in a short trace: the first label is read before step 1
MOSTLY_REPEATED: Final = 0.5  # least share of traces equal to an earlier one that is reported
FEW_DISTINCT: Final = 5  # maximum number of distinct traces of one repeated policy
UNSEEN_WARNING: Final = 0.1
"""Expected share of unseen steps from which on machines are of little use: if one step in ten is
unknown, hardly any longer episode stays in what is known."""

UNSEEN_NOTE: Final = 0.01  # expected share of unseen steps from which on that is reported
MOSTLY: Final = 0.5  # share of values that occur once from which on this is the rule
_EXAMINED_VALUES: Final = 100  # number of values that are searched for fractions


def coverage(steps: Steps) -> Iterator[Finding]:
    """Find traces that are few, one, short, never terminated, or equal to each other."""
    traces = steps.traces
    yield from one_long_log(len(traces), traces.steps)
    if 1 < len(traces) < FEW_TRACES:
        yield _few_traces(steps)
    lengths = np.diff(traces.offsets)
    if np.median(lengths) <= SHORT:
        unread = bool(lengths.max() == 1) and not steps.timing.reads_at_reset
        yield Finding(
            "short-traces",
            Severity.WARNING if unread else Severity.NOTE,
            f"Half of the traces have at most {amount(int(np.median(lengths)), 'step')}, the "
            f"longest has {lengths.max():,}: hardly any label is read before a step, so "
            f"{'no' if unread else 'little'} memory can be found. Record longer episodes.",
            {"median": float(np.median(lengths)), "longest": int(lengths.max())},
        )
    if not traces.terminated.any():
        truncated = int(np.count_nonzero(traces.truncated))
        yield Finding(
            "never-terminated",
            Severity.NOTE,
            f"No trace is terminated ({truncated:,} of {len(traces):,} are truncated): plans "
            f"assume that no episode ends.",
            {"traces": len(traces), "truncated": truncated},
        )
    yield from _repeated_traces(traces)


def one_long_log(traces: int, steps: int) -> Iterator[Finding]:
    """Report that all steps are of one trace."""
    if traces == 1:
        yield Finding(
            "one-long-log",
            Severity.WARNING,
            f"There is one trace of {amount(steps, 'step')}: without resets no label sequence "
            f"repeats, so merging has little evidence. Use strategy='search' (--strategy search), "
            f"or split the log where the system was reset.",
            {"steps": steps},
        )


def _few_traces(steps: Steps) -> Finding:
    """Report the number of traces, and of label sequences that occur in only one of them."""
    pairs = np.unique(steps.sequence * np.int64(len(steps.traces)) + steps.trace)
    trace_counts = np.bincount(pairs // len(steps.traces))
    sequences = int(np.count_nonzero(trace_counts))
    once = int(np.count_nonzero(trace_counts == 1))
    return Finding(
        "few-traces",
        Severity.NOTE,
        f"There are {len(steps.traces)} traces, and {once:,} of {sequences:,} label sequences "
        f"occur in only one of them: expect machines with wrong or missing states. "
        f"strategy='search' (--strategy search) needs fewer traces; hundreds are usual.",
        {"traces": len(steps.traces), "sequences": sequences, "sequences_once": once},
    )


def _repeated_traces(traces: TraceSet) -> Iterator[Finding]:
    """Report that many traces are equal to others."""
    distinct = len(np.unique(trace_hashes(traces)))
    if distinct > (1 - MOSTLY_REPEATED) * len(traces):
        return
    is_monotonous = distinct <= FEW_DISTINCT and len(traces) >= FEW_TRACES
    yield Finding(
        "repeated-traces",
        Severity.WARNING if is_monotonous else Severity.NOTE,
        f"Only {distinct:,} of {len(traces):,} traces are distinct. Use a more varied policy, for "
        f"example a random one.",
        {"traces": len(traces), "different": distinct},
    )


def repetition(steps: Steps) -> Iterator[Finding]:
    """Estimate the share of the traces that machines inferred from the rest would not know.

    Each trace is treated as new in turn: its queries that no other trace has are unseen. Of a
    single trace, these are the queries that occur once.
    """
    traces = steps.traces
    count = np.bincount(steps.query, minlength=steps.queries)
    unseen = once = int(np.count_nonzero(count == 1))
    if len(traces) > 1:
        unseen = int(count[in_one_trace(steps.query, steps.trace, steps.queries)].sum())
    values_once = int(np.count_nonzero(np.bincount(traces.observation_codes) == 1))
    yield from unique_observations(traces.observations, values_once, len(traces.observation_codes))
    yield from hardly_repeats(unseen, traces.steps, once, int(np.count_nonzero(count)))


def in_one_trace(query: NDArray[Any], trace: Int64s, queries: int) -> NDArray[np.bool_]:
    """Return for each query whether at most one trace has it; traces are in ascending order."""
    first, last = np.zeros((2, queries), np.int64)
    # Of repeated assignments to an index, the last one stays.
    last[query] = trace
    first[query[::-1]] = trace[::-1]
    is_same: NDArray[np.bool_] = first == last
    return is_same


def unique_observations(values: Sequence[Symbol], once: int, positions: int) -> Iterator[Finding]:
    """Report that most observations occur once: `once` of the values, at just one position."""
    # By Good and Turing, the values seen once, as a share of all positions, estimate
    # the share of new observations in new traces.
    if once < MOSTLY * len(values) or once < UNSEEN_WARNING * positions:
        return
    fractions = any(map(has_fractions, values[:_EXAMINED_VALUES]))
    advice = "they may contain a clock, a counter or an id. Remove it"
    if fractions:
        advice = (
            "they look like continuous measurements. Round them, or put them into intervals, by "
            "discretize='auto' (--set discretize=auto)"
        )
    yield Finding(
        "unique-observations",
        Severity.WARNING,
        f"{once:,} of {len(values):,} observations occur once, such as "
        f"{shortened(values[len(values) // 2])}: {advice}, so that equal states look equal.",
        {"values": len(values), "once": once, "positions": positions, "fractions": fractions},
    )


def hardly_repeats(unseen: int, steps: int, once: int, queries: int) -> Iterator[Finding]:
    """Report the share of steps, `unseen`, that machines inferred from the rest could not know."""
    share = unseen / steps
    if share < UNSEEN_NOTE:
        return
    text = (
        f"new traces about {share:.0%} of the steps will be unseen ({once:,} of {queries:,} "
        f"pairs of observation and action occur once; machines from the rest would not know "
        f"{unseen:,} of {steps:,} steps)"
    )
    if share < UNSEEN_WARNING:
        severity, text = Severity.NOTE, f"On {text}."
    else:
        severity = Severity.WARNING
        extent = "Hardly any query repeats" if share >= MOSTLY else "Many queries do not repeat"
        text = (
            f"{extent}: on {text}, although machines may explain all of these traces. Make "
            f"observations coarser, or collect more traces."
        )
    figures = {
        "share": share,
        "unseen": unseen,
        "steps": steps,
        "queries": queries,
        "queries_once": once,
    }
    yield Finding("hardly-repeats", severity, text, figures)


def has_fractions(symbol: Symbol) -> bool:
    """Return whether a symbol is or holds a number that is not an integer."""
    if isinstance(symbol, tuple):
        return any(map(has_fractions, symbol))
    return isinstance(symbol, float) and not symbol.is_integer()


# --- Labels --------------------------------------------------------------------------------------

ALL_DIFFERENT: Final = 0.5  # labels per position from which on a label names the moment
ENOUGH: Final = 20  # minimum positions to judge that: in a short trace labels differ anyway
MAX_DEVIATIONS: Final = 5.0  # maximum standard deviations of independent columns' chi-square
_SEED: Final = 0


def label_findings(steps: Steps) -> Iterator[Finding]:
    """Find labels that are absent, constant, always new, or one for each observation."""
    traces = steps.traces
    figures = {"labels": len(traces.labels), "positions": len(traces.label_codes)}
    common = frozenset.intersection(*traces.labels)
    remedy = "Label the events with later effects, or discover them: labels='auto' (--labels auto)."
    if list(traces.labels) == [NO_EVENT]:
        text = (
            f"None of {figures['positions']:,} observations has a label: machines with one state "
            f"can explain only an environment without memory. {remedy}"
        )
        yield Finding("no-labels", Severity.NOTE, text, figures)
    elif len(traces.labels) == 1 or common:
        text = f"Every label holds {label_text(common)}, which adds no information: omit it."
        if len(traces.labels) == 1:
            text = f"Every label is {label_text(common)}: it only counts steps. {remedy}"
        always = {**figures, "always": sorted(common)}
        yield Finding("constant-label", Severity.NOTE, text, always)
    yield from labels_all_differ(**figures, never_repeat=_never_repeat_in_a_trace(traces))
    if (size := len(traces.labels)) == len(traces.observations) > 1:
        pairs, _ = distinct_pairs(traces.observation_codes, traces.label_codes, size, size)
        if len(pairs) == size:
            yield Finding(
                "labels-are-observations",
                Severity.NOTE,
                f"Each of {size:,} observations has a label of its own, so labels add nothing to "
                f"the observation. That works, but needs more traces than labels only for events "
                f"with later effects, which labels='auto' looks for.",
                figures,
            )


def labels_all_differ(
    labels: int, positions: int, *, never_repeat: bool = False
) -> Iterator[Finding]:
    """Report labels that nearly all differ from each other, or within a trace `never_repeat`."""
    if never_repeat or (positions >= ENOUGH and labels >= ALL_DIFFERENT * positions):
        extent = "No label occurs twice within a trace"
        yield Finding(
            "labels-all-differ",
            Severity.WARNING,
            f"{extent if never_repeat else 'Hardly any label occurs twice'}: there are {labels:,} "
            f"for {positions:,} observations. They may contain a clock, an id or a measurement. "
            f"Label events that recur, by the same name each time.",
            {"labels": labels, "positions": positions},
        )


def _never_repeat_in_a_trace(traces: TraceSet) -> bool:
    """Return whether traces of some length never have a label twice, not even "no event"."""
    lengths = np.diff(traces.offsets) + 1
    if lengths.mean() < ENOUGH or len(traces.labels) < lengths.max():
        return False
    trace = np.repeat(np.arange(len(traces), dtype=np.int32), lengths)
    pairs, _ = distinct_pairs(trace, traces.label_codes, len(traces), len(traces.labels))
    return len(pairs) == len(traces.label_codes)


def are_labels_random(steps: Steps) -> bool:
    """Return whether labels depend neither on their observation nor on the step before."""
    traces = steps.traces
    labels = traces.after_step(traces.label_codes)
    columns = (
        traces.after_step(traces.observation_codes),
        traces.at_step(traces.observation_codes),
        traces.action_codes,
        steps.query,
    )
    return all(are_independent(labels, column) for column in columns)


def are_independent(first: Codes, second: Codes) -> bool:
    """Return whether two columns may be independent, by Pearson's chi-square."""
    rows, row = np.unique(first, return_inverse=True)
    columns, column = np.unique(second, return_inverse=True)
    cells, count = np.unique(row * len(columns) + column, return_counts=True)
    in_row, in_column = np.bincount(row), np.bincount(column)
    expected = in_row[cells // len(columns)] * in_column[cells % len(columns)] / len(row)
    chi_square = float((count**2 / expected).sum()) - len(row)
    freedom = (len(rows) - 1) * (len(columns) - 1)
    return chi_square <= freedom + MAX_DEVIATIONS * sqrt(2 * freedom)


def shuffled_labels(traces: TraceSet) -> TraceSet:
    """Return the traces with all their labels, "no event" included, in random order."""
    codes = np.random.default_rng(_SEED).permutation(traces.label_codes)
    return with_column(traces, LABEL, traces.labels, codes)


# --- Rewards -------------------------------------------------------------------------------------

FEW_REWARDED: Final = 5  # with fewer unusual rewards a plan rests on too few examples
RARELY_REWARDED: Final = 0.01  # share of unusual rewards above which steps are just few
ORDERED: Final = 0.95  # least share of changes in one direction by time; by chance it is half
MIN_CHANGES: Final = 10  # minimum number to judge that: ten alike by chance are one in 500
MIN_REWARDS: Final = 3  # minimum rewards of one query: two may be before and after an event
MIN_STEPS: Final = 1_000  # minimum number of steps to judge whether rewards repeat
NEVER_REPEATED: Final = 0.5  # share of unique rewards from which on most new ones are unknown


def reward_findings(steps: Steps) -> Iterator[Finding]:
    """Find rewards that are missing, constant, unique, rare, or determined by the time."""
    traces = steps.traces
    if REWARD not in traces.columns:
        if OBSERVATION in steps.outputs:  # a log has no use for rewards
            text = "The traces have no rewards: there will be no Reward Machine and no plan."
            yield Finding("no-rewards", Severity.NOTE, text, {})
    elif REWARD in steps.outputs:
        counts = np.bincount(traces.reward_codes, minlength=len(traces.rewards))
        yield from hardly_varying(traces.rewards, counts, bool(traces.terminated.any()))
        yield from _by_time(steps, counts)


def hardly_varying(values: Sequence[Any], counts: NDArray[Any], may_end: bool) -> Iterator[Finding]:
    """Report that the reward is constant, rarely different from the usual one, or unique.

    If episodes `may_end`, a constant reward other than 0 rewards their length: that is a note.
    """
    steps, usual = int(counts.sum()), int(np.argmax(counts))
    reward = symbol_text(values[usual])
    unusual = steps - int(counts[usual])
    if unusual == 0:
        text, severity = f"The reward is {reward} at each of {amount(steps, 'step')}: ", "WARNING"
        if may_end and float(values[usual]) != 0:
            text, severity = f"{text}only the length of an episode matters.", "NOTE"
        else:
            text += "all policies look equal, so a plan would be meaningless. "
            text += "Collect traces with other rewards."
        figures = {"reward": values[usual], "steps": steps}
        yield Finding("constant-reward", Severity[severity], text, figures)
    elif unusual < FEW_REWARDED and unusual < RARELY_REWARDED * steps:
        yield Finding(
            "rare-reward",
            Severity.WARNING,
            f"The reward is {reward} at all but {unusual:,} of {amount(steps, 'step')}: the "
            f"Reward Machine and any plan rest on these few. Collect more traces with other "
            f"rewards.",
            {"reward": values[usual], "others": unusual, "steps": steps},
        )
    once = int(np.count_nonzero(counts == 1))
    if steps >= MIN_STEPS and once >= NEVER_REPEATED * steps:
        example = symbol_text(values[int(np.argmax(counts == 1))])
        yield Finding(
            "rewards-all-differ",
            Severity.WARNING,
            f"Hardly any reward occurs twice: {once:,} of {amount(steps, 'step')} have a unique "
            f"reward, such as {example}. No machine can predict such numbers: round them, by "
            f"reward_digits=N (--reward-digits N), or predict only outputs=['observation'] "
            f"(--outputs observation).",
            {"once": once, "rewards": len(values), "steps": steps},
        )


def _by_time(steps: Steps, counts: NDArray[np.int64]) -> Iterator[Finding]:
    """Report that the rewards of the same query fall or rise with the number of the step."""
    if len(counts) < MIN_REWARDS:
        return
    traces, query = steps.traces, steps.query
    usual = int(np.argmax(counts))
    is_mostly_usual = 2 * counts[usual] > traces.steps  # such as 0 wherever no goal is reached
    rows = np.flatnonzero((traces.reward_codes != usual) | ~is_mostly_usual)[:MAX_SORTED_STEPS]
    rows = rows[np.lexsort((traces.reward_codes[rows], steps.number[rows], query[rows]))]
    # Codes of rewards are in the order of the rewards.
    code, query = traces.reward_codes[rows], query[rows]
    change = np.where(query[1:] == query[:-1], np.diff(code), 0)
    changes_of = np.bincount(query[1:][change != 0], minlength=steps.queries)
    change = np.where(changes_of[query[1:]] >= MIN_REWARDS - 1, change, 0)
    changes = int(np.count_nonzero(change))
    change[np.diff(steps.number[rows]) == 0] = 0  # two rewards at the same time have no direction
    ordered, direction = max((int((change < 0).sum()), "fall"), (int((change > 0).sum()), "rise"))
    if changes < MIN_CHANGES or ordered < ORDERED * changes:
        return
    worst = int(np.argmax(changes_of))
    codes, number = np.unique(code[query == worst], return_counts=True)
    outcomes = steps.outcomes(REWARD, list(zip(codes.tolist(), number.tolist(), strict=True)))
    described = steps.query_text(worst)
    yield Finding(
        "reward-by-time",
        Severity.WARNING,
        f"Rewards {direction} with the number of the step, at {ordered:,} of "
        f"{changes:,} changes: {described} has the rewards {outcomes_text(outcomes, len(codes))}. "
        f"A machine would have to count steps. Remove the time from the reward, and discount when "
        f"planning.",
        {
            "direction": direction,
            "changes": changes,
            "in_that_direction": ordered,
            "query": described,
            "rewards": len(codes),
        },
    )
