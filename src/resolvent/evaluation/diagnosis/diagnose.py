"""Diagnose traces before inference, and warn of inferred machines by the counts of their replay.

Input: traces, or a replay. Output: findings, the most severe first.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import numpy as np

from resolvent._util.text import amount
from resolvent.errors import DamagedFile, TraceError
from resolvent.evaluation.diagnosis import columns
from resolvent.evaluation.diagnosis.contradictions import contradictions
from resolvent.evaluation.diagnosis.findings import Diagnosis, Finding, Severity
from resolvent.evaluation.diagnosis.memory import memory
from resolvent.evaluation.diagnosis.steps import Steps
from resolvent.preprocess.labeling import LabelingFunction, as_labeling_function
from resolvent.preprocess.timing import LabelTiming
from resolvent.replay.coded_shard import CodedShard
from resolvent.replay.corpus import Corpus
from resolvent.replay.counts import Int64s, ReplayCounts
from resolvent.traces import Trace, TraceDataset, TraceSet
from resolvent.traces.io.formats import as_traces
from resolvent.traces.schema import ACTION, DEFAULT_COLUMNS, OBSERVATION, REWARD, default_outputs
from resolvent.traces.source import skipped_text
from resolvent.traces.vocabulary import distinct_numbers

# --- Before inference ----------------------------------------------------------------------------

MAX_STEPS: Final = 5_000_000  # maximum number of steps of files: they are in memory together


def diagnose(
    traces: TraceSet | TraceDataset | Iterable[Trace] | str | Path,
    *,
    outputs: Iterable[str] | None = None,
    labels: str | LabelingFunction = "given",
    timing: LabelTiming | str | None = None,
) -> Diagnosis:
    """Describe traces, and report problems that would prevent or weaken inference.

    Findings are about observations that hardly repeat, outputs that labels do not determine,
    because of noise or a missing label, rewards without information, labels that are no events,
    and traces that are too few or too similar. Each finding has figures and advice.

    Args:
        traces: The traces; or a folder of them (`scan_traces`), of which the first files with
            about 5,000,000 steps are examined; or single traces, or the path of a file of
            traces, which is read as by `read_traces`.
        outputs: The columns that machines should predict, as for `infer`: by default the next
            observation and, if the traces have it, the reward; of a log, all its outputs.
        labels: The labels that machines read, as for `infer`. For "auto", the finest labels that
            could be found are examined: "action+observation".
        timing: Which labels are read before a step is predicted, as for `infer`.

    >>> import gymnasium as gym, resolvent as rs
    >>> house = rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
    >>> diagnose(house).warnings
    ()
    >>> days = [rs.Trace(["hall", end], [None, None], ["up"], [0]) for end in ("attic", "hall")]
    >>> [finding.kind for finding in diagnose(rs.TraceSet(days)).findings][0]
    'random-start'
    """
    # The options of `infer`, a package above, check the arguments.
    from resolvent.inference.options import InferenceOptions

    is_auto = isinstance(labels, str) and labels == "auto"
    finest = "action+observation" if is_auto else labels
    options = InferenceOptions(outputs=outputs, labels=finest, timing=timing)  # type: ignore[arg-type]  # they are checked
    labeling = as_labeling_function(options.labels)
    names = (name for name in options.outputs or () if name not in DEFAULT_COLUMNS)
    source = as_traces(traces, names)
    examined, notes = (source, []) if isinstance(source, TraceSet) else _first_files(source)
    if len(examined) == 0:
        raise TraceError("there are no traces to diagnose: collect or read at least one")
    by_default = default_outputs(examined.columns, observations=len(examined.observations))
    steps = Steps(labeling.transform(examined), options.timing, options.outputs or by_default)
    findings = [
        *notes,
        *contradictions(steps),
        *memory(steps),
        *columns.repetition(steps),
        *columns.reward_findings(steps),
        *(columns.label_findings(steps) if labeling.is_given else ()),
        *columns.coverage(steps),
    ]
    findings.sort(key=lambda finding: [*reversed(Severity)].index(finding.severity))
    return Diagnosis(len(examined), examined.steps, tuple(findings))


def _first_files(folder: TraceDataset) -> tuple[TraceSet, list[Finding]]:
    """Return the traces of a folder's first files, and a note if there are more."""
    sets: list[TraceSet] = []
    for traces in folder:
        sets.append(traces)
        if sum(traces.steps for traces in sets) >= MAX_STEPS:
            break
    text = f"Only the first {len(sets):,} of {len(folder):,} shards were read."
    figures = {"files": len(folder), "examined": len(sets)}
    note = Finding("part-of-folder", Severity.NOTE, text, figures)
    return TraceSet.concatenate(sets), [note] if len(sets) < len(folder) else []


# --- After inference -----------------------------------------------------------------------------

SAMPLED_STEPS: Final = 1_000
"""Number of steps that are searched in the other traces: a share of 10% is then known to about
1%, unless all are of a few traces."""

RARE: Final = 2  # maximum count of a rare transition, which says little about its target
RARE_TRANSITIONS_WARNING: Final = 0.05
"""Share of rare transitions from which on a machine is considered larger than the environment:
correct machines have hardly any, wrong ones had 8% to 31% in all environments and logs tried."""

MIN_RARE_TRANSITIONS: Final = 5  # minimum number of rare transitions to report
DAMAGED_FILES: Final = "skipped"  # the kind of the finding about damaged files
_MAX_NAMED: Final = 100  # maximum number of shards named in the figures


def warnings_of(replay: ReplayCounts, corpus: Corpus, *, merged: bool) -> tuple[Finding, ...]:
    """Return the warnings about machines, `merged` or not, given all traces and their replay."""
    findings = [*_repetition(replay, corpus)]
    if REWARD in replay.machines:
        values, outputs = replay.alphabets.outputs(REWARD), replay.machines[REWARD].known_outputs
        counts = np.bincount(outputs["output"], outputs["count"], minlength=len(values))
        may_end = bool((replay.augmented_states["ended"] > 0).any())
        findings += columns.hardly_varying(values, counts, may_end)
    findings += columns.labels_all_differ(
        len(replay.alphabets.labels), replay.steps + replay.traces
    )
    if merged:
        findings += columns.one_long_log(replay.traces, replay.steps)
        findings += rare_transitions(replay)
    return tuple(finding for finding in findings if finding.severity is not Severity.NOTE)


def rare_transitions(replay: ReplayCounts) -> Iterator[Finding]:
    """Report machines with rare transitions: with enough evidence, all are taken repeatedly."""
    for name, counts in replay.machines.items():
        transitions, states = len(counts.transitions), replay.sizes[name]
        rare = int(np.count_nonzero(counts.transitions["count"] <= RARE))
        least = max(RARE_TRANSITIONS_WARNING * transitions, MIN_RARE_TRANSITIONS)
        if states > 1 and rare >= least:
            yield Finding(
                "rare-transitions",
                Severity.WARNING,
                f"{rare:,} of {amount(transitions, 'transition')} between the {states:,} states of "
                f"the {name} machine were observed only once or twice, so that their targets may "
                f"be wrong. Collect more traces, label fewer events, or test the machine on "
                f"held-out traces (rs.holdout_score).",
                {"machine": name, "states": states, "transitions": transitions, "rare": rare},
            )


def damaged_files(corpus: Corpus) -> Iterator[Finding]:
    """Report rows skipped since files are damaged; `DamagedFile` if nothing is left."""
    skipped = corpus.shards.skipped
    if not skipped:
        return
    text = skipped_text(skipped)
    if corpus.traces == 0:
        raise DamagedFile(f"there is nothing to infer from: {text}")
    shards = [rows for rows in skipped if rows.whole]
    yield Finding(
        DAMAGED_FILES,
        Severity.WARNING,
        f"Some of {len(corpus.shards):,} shards could not be read: {text}. Replace the damaged "
        f"files and infer again.",
        {
            "shards": [rows.shard for rows in shards[:_MAX_NAMED]],
            "skipped": len(shards),
            "rows": sum(rows.rows or 0 for rows in shards),
            "of_unknown_length": sum(rows.rows is None for rows in shards),
            "episodes_beside": sum(rows.episodes for rows in skipped),
        },
    )


def _repetition(replay: ReplayCounts, corpus: Corpus) -> Iterator[Finding]:
    """Estimate the share of some traces that machines inferred from the others would not know."""
    # The first machine reads nothing but observations and actions.
    outputs = next(iter(replay.machines.values())).known_outputs
    observations, actions = len(replay.alphabets.observations), len(replay.alphabets.actions)
    queries, index = distinct_numbers(outputs["query"], observations * actions)
    count = np.bincount(index, outputs["count"])
    once = int(np.count_nonzero(count == 1))
    if replay.traces == 1:
        unseen, steps = once, replay.steps
    else:
        query, trace = _sampled_queries(corpus)
        index = np.searchsorted(queries, query)
        in_sample, steps = np.bincount(index, minlength=len(queries)), len(query)
        only_in_sample = in_sample == count
        if int(in_sample[only_in_sample].sum()) < columns.UNSEEN_WARNING * steps:
            return
        is_unseen = only_in_sample & columns.in_one_trace(index, trace, len(queries))
        unseen = int(in_sample[is_unseen].sum())
    for finding in columns.hardly_repeats(unseen, steps, once, len(queries)):
        if finding.severity is Severity.NOTE:
            return
        # The observations at the end of traces have no query.
        positions = np.bincount(queries // actions, count, minlength=observations)
        values_once = int(np.count_nonzero(positions == 1))
        observed = replay.alphabets.observations
        yield from columns.unique_observations(observed, values_once, replay.steps)
        yield finding


def _sampled_queries(corpus: Corpus) -> tuple[Int64s, Int64s]:
    """Return the queries of some complete traces, in the corpus' codes, and their traces."""
    if corpus.in_memory:
        shard = next(corpus.coded())
    else:
        sample = corpus.fetch(corpus.sample(SAMPLED_STEPS))
        shard = CodedShard.among(0, sample, corpus.alphabets, corpus.rounding)
    offsets = shard.traces.offsets
    number = max(int(np.searchsorted(offsets, SAMPLED_STEPS, side="right")) - 1, 1)
    trace = np.repeat(np.arange(number), np.diff(offsets[: number + 1]))
    # Each trace before has an observation more than it has steps.
    observation = shard.codes[OBSERVATION][np.arange(len(trace)) + trace]
    action = shard.codes[ACTION][: len(trace)]
    return observation * np.int64(len(corpus.alphabets.actions)) + action, trace
