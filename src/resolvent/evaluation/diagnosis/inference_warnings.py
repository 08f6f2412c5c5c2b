"""Warnings that accompany inferred machines, from the counts of their replay."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from resolvent._util.text import amount
from resolvent.errors import DamagedFile
from resolvent.evaluation.diagnosis.coverage import (
    UNSEEN_WARNING,
    hardly_repeats,
    in_one_trace,
    one_long_log,
    unique_observations,
)
from resolvent.evaluation.diagnosis.findings import Finding, Severity
from resolvent.evaluation.diagnosis.labels import labels_all_differ
from resolvent.evaluation.diagnosis.rewards import hardly_varying
from resolvent.replay import Corpus, ReplayCounts
from resolvent.replay.coded_shard import CodedShard
from resolvent.replay.counts import Int64s
from resolvent.traces.schema import ACTION, OBSERVATION, REWARD
from resolvent.traces.source import gaps_of, skipped_text
from resolvent.traces.vocabulary import distinct_numbers

SAMPLED_STEPS: Final = 1_000
"""Number of steps that are searched in the other traces: a share of 10% is then known to about
1%, unless all are of a few traces."""

RARE: Final = 2
"""Maximum count of a rare transition, which says little about its target."""

RARE_MOVES_WARNING: Final = 0.05
"""Share of rare transitions from which on a machine is considered larger than the environment:
correct machines have hardly any, wrong ones had 8% to 31% in all environments and logs tried."""

MIN_RARE_MOVES: Final = 5
"""Minimum number of rare transitions to report."""

DAMAGED_FILES: Final = "left-out"
"""The kind of the finding about damaged files."""

_MAX_NAMED: Final = 100
"""Maximum number of shards named in the figures."""


def warnings_of(replay: ReplayCounts, corpus: Corpus, *, merged: bool) -> tuple[Finding, ...]:
    """Return the warnings about machines, given all traces and their replay.

    `merged` is whether the machines were inferred by merging, for which one long log contains
    little evidence.
    """
    findings = [*_repetition(replay, corpus), *_rewards(replay)]
    findings += labels_all_differ(len(replay.alphabets.labels), replay.steps + replay.traces)
    if merged:
        findings += one_long_log(replay.traces, replay.steps)
        findings += rare_transitions(replay)
    return tuple(finding for finding in findings if finding.severity is not Severity.NOTE)


def rare_transitions(replay: ReplayCounts) -> Iterator[Finding]:
    """Report machines with rare transitions, which may be wrong.

    With too little evidence, merging leaves equal states separate, so that each is rarely
    visited, or merges different ones. With enough, all transitions are taken repeatedly.
    """
    for kind, counts in replay.machines.items():
        moves, rare = len(counts.moves), int(np.count_nonzero(counts.moves["count"] <= RARE))
        states = replay.sizes[kind]
        if states > 1 and rare >= max(RARE_MOVES_WARNING * moves, MIN_RARE_MOVES):
            yield Finding(
                "rare-moves",
                Severity.WARNING,
                f"Of {amount(moves, 'move')} between the {states:,} states of the {kind} machine "
                f"{rare:,} were seen once or twice: there are few traces for so many moves, and "
                f"where these lead may be wrong. Collect more traces, label fewer events, or see "
                f"what share of held-out steps is predicted (rs.held_out).",
                {"machine": kind, "states": states, "moves": moves, "rare": rare},
            )


def damaged_files(corpus: Corpus) -> Iterator[Finding]:
    """Report the rows that were skipped since files are damaged.

    Raises:
        DamagedFile: if nothing is left.
    """
    gaps = gaps_of(corpus.shards)
    if not gaps:
        return
    text = skipped_text(gaps)
    if corpus.traces == 0:
        raise DamagedFile(f"there is nothing to infer from: {text}")
    skipped = [gap for gap in gaps.values() if gap.whole]
    yield Finding(
        DAMAGED_FILES,
        Severity.WARNING,
        f"Of {len(corpus.shards):,} pieces of files not all could be read: {text}. Make the files "
        f"again, and infer once more.",
        {
            "pieces": [gap.piece for gap in skipped[:_MAX_NAMED]],
            "left_out": len(skipped),
            "rows": sum(gap.rows or 0 for gap in skipped),
            "of_unknown_length": sum(gap.rows is None for gap in skipped),
            "episodes_beside": sum(gap.episodes for gap in gaps.values()),
        },
    )


def _repetition(replay: ReplayCounts, corpus: Corpus) -> Iterator[Finding]:
    """Estimate the share of some traces that machines inferred from the others would not know."""
    # The first machine reads nothing but observations and actions.
    answers = next(iter(replay.machines.values())).known
    observations, actions = len(replay.alphabets.observations), len(replay.alphabets.actions)
    queries, index = distinct_numbers(answers["question"], observations * actions)
    count = np.bincount(index, answers["count"])
    once = int(np.count_nonzero(count == 1))
    if replay.traces == 1:
        unseen, steps = once, replay.steps
    else:
        query, trace = _sampled_queries(corpus)
        index = np.searchsorted(queries, query)
        in_sample, steps = np.bincount(index, minlength=len(queries)), len(query)
        only_in_sample = in_sample == count
        if int(in_sample[only_in_sample].sum()) < UNSEEN_WARNING * steps:
            return
        is_unseen = only_in_sample & in_one_trace(index, trace, len(queries))
        unseen = int(in_sample[is_unseen].sum())
    for finding in hardly_repeats(unseen, steps, once, len(queries)):
        if finding.severity is Severity.NOTE:
            return
        # The observations at the end of traces have no query.
        positions = np.bincount(queries // actions, count, minlength=observations)
        values_once = int(np.count_nonzero(positions == 1))
        yield from unique_observations(replay.alphabets.observations, values_once, replay.steps)
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


def _rewards(replay: ReplayCounts) -> Iterator[Finding]:
    if REWARD not in replay.machines:
        return
    values = replay.alphabets.outputs(REWARD)
    answers = replay.machines[REWARD].known
    counts = np.bincount(answers["output"], answers["count"], minlength=len(values))
    yield from hardly_varying(values, counts)
