"""Machines + traces → all that speaks for the machines, and what is missing."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from resolvent.errors import ModelError
from resolvent.machines import Machine, Machines
from resolvent.progress import Listener
from resolvent.replay import (
    Corpus,
    Replay,
    StepsAsked,
    Tables,
    score_of,
    states_at_steps,
    steps_asked,
    through,
    whole,
)
from resolvent.traces import Label, TraceSet
from resolvent.trust.completeness import check_completeness, weigh_completeness
from resolvent.trust.counting import AnswersSeen, MovesSeen
from resolvent.trust.evidence import Evidence, MachineEvidence
from resolvent.trust.experiments import NextExperiments
from resolvent.trust.foretold import foretold
from resolvent.trust.holdout import hold_out, split
from resolvent.trust.notable import Examples
from resolvent.trust.part import Part, part_of
from resolvent.trust.passing import Passed, Passing
from resolvent.trust.seen_after import SeenAfter
from resolvent.trust.separation import Separations, VaryingAnswers
from resolvent.trust.telling import Teller
from resolvent.trust.weakness import weakness_of
from resolvent.trust.weighing import Weighed, WeighedSeparations
from resolvent.wording import short
from resolvent.workers import Threads


def gather(
    machines: Machines,
    traces: TraceSet | Corpus,
    *,
    infer: Callable[[TraceSet], Machines] | None = None,
    delta: float = 0.05,
    progress: Listener | None = None,
) -> Evidence:
    """Gather what traces say about machines, and what they leave open.

    Traces that the machines were not inferred from are themselves the hold-out.
    Otherwise `infer`, which must infer machines as these were, is called with a
    share of them, and the rest is held out; without it nothing is. `progress` is
    told now and then what is being done and how much of that is done.

    Traces in files are gone through once. What has to look at single traces, which are label
    histories, moves under noise and what is held out, is then about some of them.
    """
    if isinstance(traces, TraceSet):
        if len(traces) == 0:
            raise ModelError("there are no traces to gather evidence from")
        traces = whole(machines, traces, Threads())
    teller = Teller(progress)
    looked = _looked(machines, traces, teller)
    passed = looked.passed
    about = {
        kind: _about(one, looked, machines, teller.of(f"{short(kind)} machine"))
        for kind, one in looked.asked.items()
    }
    known = are_known(machines, traces)
    holdout = None
    teller.begin("testing on held-out traces")
    if not known:
        holdout = hold_out(passed.trials, delta)
        if any(one.is_noisy for one in machines.values()):
            holdout = replace(holdout, foretold=foretold(machines, passed.shown))
    elif infer is not None:
        holdout = split(machines, looked.traces, infer, delta)
        if holdout is not None:
            holdout = replace(holdout, part=looked.part)
    examples = _examples(machines, passed, traces)
    return Evidence(traces.traces, traces.steps, about, holdout, passed, examples, known)


@dataclass(frozen=True, eq=False)
class _Looked:
    """What all traces show, and what machines are asked in those that are looked at one by one."""

    passed: Passed
    traces: TraceSet
    asked: dict[str, StepsAsked]
    part: Part | None


def _looked(machines: Machines, corpus: Corpus, teller: Teller) -> _Looked:
    """Go through all traces once, and look at some of those in files once more."""
    teller.begin("replaying the traces")
    passing = Passing(machines, Tables.of(machines, corpus.alphabets))
    if corpus.in_memory:
        (shard,) = corpus.coded()
        shown, asked = passing.asked(shard)
        looked = _Looked(Passed.of(shard, shown, asked), shard.traces, asked, None)
    else:
        passed = through(corpus, passing, teller.listener)
        passed = replace(passed, shown=replace(passed.shown, alphabets=corpus.alphabets))
        some, part = part_of(corpus)
        asked = steps_asked(machines, some, states_at_steps(machines, some))
        looked = _Looked(passed, some, asked, part)
    if not looked.passed.known:
        raise ModelError(
            "the machines know no step of these traces: they were inferred from another world"
        )
    return looked


def are_known(machines: Machines, corpus: Corpus) -> bool:
    """Whether machines were inferred from these very traces."""
    made = machines.provenance
    if made is None:
        return False
    if (made.traces, made.steps) != (corpus.traces, corpus.steps):
        return False  # and nothing has to be read to know it
    return made.traces_sha256 == corpus.digest or made.traces_sha256 == corpus.digest_in_sequence


def _examples(machines: Machines, passed: Passed, corpus: Corpus) -> Examples:
    """Take the traces worth looking at, and say why each is."""
    reasons: dict[int, list[str]] = {}
    first = score_of(machines, passed.shown).first_mismatch
    if first is not None:
        reasons.setdefault(first.trace, []).append("has the first mismatch")
    others = passed.notable.reasons() if corpus.traces > 1 else [(0, "the only one")]
    for number, why in others:
        reasons.setdefault(number, []).append(why)
    traces = corpus.fetch(np.array(sorted(reasons)))
    return Examples({number: ", ".join(why) for number, why in reasons.items()}, traces)


def _about(
    asked: StepsAsked, looked: _Looked, machines: Machines, teller: Teller
) -> MachineEvidence:
    teller.begin("counting answers")
    machine, shown, offsets = asked.machine, looked.passed.shown, looked.traces.offsets
    answers, moves = AnswersSeen.of(machine, shown), MovesSeen.of(machine, shown)
    table = VaryingAnswers(machine, answers)
    going = teller.begin("telling states apart")
    unknown = _unknown_labels(machine, shown)
    separations: Separations
    rivals = None
    if machine.is_noisy:
        weighed = Weighed.of(asked, offsets)
        separations = WeighedSeparations(weighed, answers)
        teller.begin("weighing moves")
        rivals = weighed.rivals()
        completeness = weigh_completeness(machine, moves, rivals, unknown)
    else:
        separations = Separations(table, going)
        going = teller.begin("checking label histories")
        completeness = check_completeness(asked, offsets, moves, table, unknown, going)
    completeness = replace(completeness, part=looked.part)
    transition = machines.transition if "transition" in machines else None
    return MachineEvidence(
        machine,
        answers,
        moves,
        separations,
        completeness,
        NextExperiments(completeness, table, separations, transition, SeenAfter(asked, offsets)),
        rivals,
        weakness_of(machine, looked.passed.reached[machine.kind]),
    )


def _unknown_labels(machine: Machine, shown: Replay) -> list[tuple[int, Label]]:
    """Return where the traces read labels that are not among the machine's."""
    missing, labels = shown.machines[machine.kind].missing, shown.alphabets.labels
    rows = zip(missing["state"].tolist(), missing["label"].tolist(), strict=True)
    return [(state, labels[code]) for state, code in rows if labels[code] not in machine.labels]
