"""What a replay has counted already → the warnings that go with machines.

`infer` has no time for a diagnosis of its own: these findings cost a glance at tallies and at
a few traces.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from resolvent.diagnosis.coverage import one_long_log
from resolvent.diagnosis.findings import Finding, Severity
from resolvent.diagnosis.labels import labels_all_differ
from resolvent.diagnosis.repetition import (
    UNSEEN_WARNING,
    hardly_repeats,
    in_one_trace,
    unique_observations,
)
from resolvent.diagnosis.rewards import hardly_varying
from resolvent.replay import Corpus, Replay
from resolvent.replay.coded import CodedShard
from resolvent.traces.column_names import ACTION, OBSERVATION, REWARD
from resolvent.traces.vocabulary import distinct_numbers
from resolvent.wording import amount

SAMPLED_STEPS = 1_000
"""Steps of traces that are asked how much of them the others know: a share of 10% is then
known to about 1%, if not all are of a few traces."""

RARE = 2
"""How often a move is made at most that says little about where it leads."""

RARE_MOVES_WARNING = 0.05
"""Share of rare moves from which on a machine is taken to be larger than the world: machines
that are right have hardly any, those that are wrong had 8% to 31% in all worlds and logs tried."""

LEAST_RARE_MOVES = 5
"""How many rare moves are no accident."""


def warnings_of(shown: Replay, corpus: Corpus, *, merged: bool) -> tuple[Finding, ...]:
    """Return what speaks against machines, given all traces and what these show of them.

    `merged` says that the machines were found by merging, which one long log gives little
    to go by.
    """
    found = [*_repetition(shown, corpus), *_rewards(shown)]
    found += labels_all_differ(len(shown.alphabets.labels), shown.steps + shown.traces)
    if merged:
        found += one_long_log(shown.traces, shown.steps)
        found += rare_moves(shown)
    return tuple(one for one in found if one.severity is not Severity.NOTE)


def rare_moves(shown: Replay) -> Iterator[Finding]:
    """Say which machines move by what was hardly ever seen, and so may lead elsewhere.

    Merging that had too little to go by leaves states apart which are one, and traces are few
    in each of them; or it takes for one what differs. Where it had enough, all moves are made
    again and again.
    """
    for kind, one in shown.machines.items():
        moves, rare = len(one.moves), int(np.count_nonzero(one.moves["count"] <= RARE))
        states = shown.sizes[kind]
        if states > 1 and rare >= max(RARE_MOVES_WARNING * moves, LEAST_RARE_MOVES):
            yield Finding(
                "rare-moves",
                Severity.WARNING,
                f"Of {amount(moves, 'move')} between the {states:,} states of the {kind} machine "
                f"{rare:,} were seen once or twice: there are few traces for so many moves, and "
                f"where these lead may be wrong. Collect more traces, label fewer events, or see "
                f"what share of held-out steps is predicted (rs.held_out).",
                {"machine": kind, "states": states, "moves": moves, "rare": rare},
            )


def _repetition(shown: Replay, corpus: Corpus) -> Iterator[Finding]:
    """Find out how much of some traces would be unknown to machines inferred from the others."""
    # The first machine is told nothing but observations and actions.
    answers = next(iter(shown.machines.values())).known
    observations, actions = len(shown.alphabets.observations), len(shown.alphabets.actions)
    questions, place = distinct_numbers(answers["question"], observations * actions)
    asked = np.bincount(place, answers["count"])
    once = int(np.count_nonzero(asked == 1))
    if shown.traces == 1:
        unseen, steps = once, shown.steps
    else:
        question, trace = _some_questions(corpus)
        place = np.searchsorted(questions, question)
        here, steps = np.bincount(place, minlength=len(questions)), len(question)
        nowhere_else = here == asked
        if int(here[nowhere_else].sum()) < UNSEEN_WARNING * steps:
            return
        unseen = int(here[nowhere_else & in_one_trace(place, trace, len(questions))].sum())
    for finding in hardly_repeats(unseen, steps, once, len(questions)):
        if finding.severity is Severity.NOTE:
            return
        # Nobody asked anything of the observations that traces ended with.
        seen = np.bincount(questions // actions, asked, minlength=observations)
        values_once = int(np.count_nonzero(seen == 1))
        yield from unique_observations(shown.alphabets.observations, values_once, shown.steps)
        yield finding


def _some_questions(corpus: Corpus) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the questions of some whole traces, in the codes of all, and their traces."""
    if corpus.in_memory:
        shard = next(corpus.coded())
    else:
        some = corpus.fetch(corpus.sample(SAMPLED_STEPS))
        shard = CodedShard.among(0, some, corpus.alphabets, corpus.rounding)
    offsets = shard.traces.offsets
    number = max(int(np.searchsorted(offsets, SAMPLED_STEPS, side="right")) - 1, 1)
    trace = np.repeat(np.arange(number), np.diff(offsets[: number + 1]))
    # Each trace before has an observation more than it has steps.
    observed = shard.codes[OBSERVATION][np.arange(len(trace)) + trace]
    acted = shard.codes[ACTION][: len(trace)]
    return observed * np.int64(len(corpus.alphabets.actions)) + acted, trace


def _rewards(shown: Replay) -> Iterator[Finding]:
    if REWARD not in shown.machines:
        return
    values = shown.alphabets.outputs(REWARD)
    answers = shown.machines[REWARD].known
    counts = np.bincount(answers["output"], answers["count"], minlength=len(values))
    yield from hardly_varying(values, counts)
