"""Whether answers that vary within a state are chance, or depend on what happened before."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.arithmetic import log
from resolvent.diagnosis.findings import Finding, Severity
from resolvent.diagnosis.labels_at_random import labels_at_random, shuffled_labels
from resolvent.diagnosis.past import Past, pasts
from resolvent.diagnosis.steps import Steps
from resolvent.diagnosis.tallies import tallied
from resolvent.noise import Likely, most_likely
from resolvent.traces import NO_EVENT, TraceSet
from resolvent.traces.column_names import OBSERVATION
from resolvent.wording import amount, listed, odds_text

MOST_STEPS = 50_000
"""Steps, of whole traces from the first on, that machines are looked for in."""

EFFORT = 0.4
"""Two rounds of growing a machine: the states need not be all right to see what they miss."""

MOST_STATES = 12
"""Without a label that matters machines grow and grow, and get no better for it."""

SURE = log(1000)
"""Odds of 1000 to 1, beyond those that so many looks give by chance."""

LEAST_ODD = 3
"""Fewer odd answers of a state to a question say nothing."""

ABOUT_AS_MUCH = 0.85
"""The share of the most that is told from which on a simpler way of putting it is preferred."""

MUCH_MORE = 1.5
"""Labels tell something if memory is worth so many times as much as with labels shuffled. Even
those tell how much time has passed."""

_AT_ONCE = 64
_MOST_TOLD = 3


@dataclass(frozen=True, eq=False)
class Dependence:
    """Answers that depend on something in the past, which no state tells.

    `rows` are the places of states and questions among those that were split; `odd` counts
    their answers that are not the most frequent one, and `explained` those that are, once
    they are told apart.
    """

    past: Past
    rows: NDArray[np.int64]
    log_odds: float
    odd: int
    explained: int
    question: int


@dataclass(frozen=True, eq=False)
class _States:
    """The most likely machine for one output, the state of each step, and which steps are odd.

    `row` is the number of each step's state and question, which for other outputs than the
    observation comes with the state of the Transition Machine.
    """

    likely: Likely
    state: NDArray[np.int32]
    asked: NDArray[np.int32]
    row: NDArray[np.int64]
    odd: NDArray[np.bool_]

    @classmethod
    def of(cls, steps: Steps, output: str, observed: "_States | None" = None) -> "_States":
        samples, width = steps.samples[output], steps.questions
        if observed is not None:
            paired = observed.state * np.int32(width) + samples.alpha
            width *= observed.likely.states
            keys = np.arange(width, dtype=np.int64)
            samples = replace(samples, alpha=paired, alpha_keys=keys)
        likely = most_likely(samples, effort=EFFORT, most_states=MOST_STATES)
        moves = np.ascontiguousarray(np.maximum(likely.transitions, 0))
        state = np.zeros(len(samples.alpha), np.int32)
        if moves.shape[1]:
            state = _core.walk_states(moves.ravel(), moves.shape[1], samples.beta, samples.offsets)
        row = state.astype(np.int64) * width + samples.alpha
        tally = tallied(row, samples.output, len(samples.outputs))
        most_first = np.lexsort((-tally.count, tally.question))
        rows, first = np.unique(tally.question[most_first], return_index=True)
        main = tally.answer[most_first][first]
        odd = main[np.searchsorted(rows, row)] != samples.output
        return cls(likely, state, samples.alpha, row, odd)


def chance(steps: Steps) -> Iterator[Finding]:
    """Say of outputs whose answers contradict each other whether that is noise or memory missed.

    With the states of the most likely machine, an answer that is not the most frequent one of
    its state is odd. If what was seen, done or read before tells when answers are odd, and not
    just how often, a label is missing; if nothing does, it is chance.
    """
    steps = _some(steps)
    labelled = any(label != NO_EVENT for label in steps.traces.labels)
    open_ones = [
        output
        for output in steps.outputs
        if len(steps.tally(output, steps.asked_after(steps.history)).contradicted)
    ]
    if not open_ones:
        return
    observed = _observed(steps)
    found = {
        output: observed
        if output == OBSERVATION and observed is not None
        else _States.of(steps, output, observed)
        for output in open_ones
    }
    misread = _after_odd(steps, observed)
    missing = False
    for output, states in found.items():
        dependences, looks = _dependences(steps, output, states, misread)
        missing |= bool(dependences)
        if dependences:
            yield _missing_label(steps, output, states, dependences)
        elif states.odd.any():
            yield _noise(output, states, looks)
    if labelled:
        yield from _carry_nothing(steps, found, missing)


def _observed(steps: Steps) -> _States | None:
    """Return the states that tell the next observation; nothing where none are needed."""
    return _States.of(steps, OBSERVATION) if _varies(steps, OBSERVATION) else None


def _some(steps: Steps) -> Steps:
    """Return the steps of the first traces, if there are too many to look at all."""
    traces = steps.traces
    if traces.steps <= MOST_STEPS:
        return steps
    number = max(int(np.searchsorted(traces.offsets, MOST_STEPS, side="right")) - 1, 1)
    first: TraceSet = traces[:number]
    return Steps(first, steps.timing, steps.outputs)


def _varies(steps: Steps, output: str) -> bool:
    """Whether a question has different answers, which labels then tell apart."""
    asked = steps.question.astype(np.int64)
    return len(steps.tally(output, asked).contradicted) > 0


def _after_odd(steps: Steps, observed: _States | None) -> NDArray[np.bool_]:
    """Say of each step whether its observation came as a surprise.

    It may be misread. Then what came before tells better where one is: that is noise as well.
    """
    if observed is None:
        return np.zeros(steps.traces.steps, bool)
    surprised = np.roll(observed.odd, 1)
    surprised[steps.number == 0] = False
    return surprised


def _dependences(
    steps: Steps, output: str, states: _States, misread: NDArray[np.bool_]
) -> tuple[list[Dependence], int]:
    """Return what answers depend on, the gravest first, and in how many ways was looked."""
    samples, width = steps.samples[output], int(states.asked.max(initial=0)) + 1
    width = -(-width // steps.questions) * steps.questions
    rows, place = np.unique(states.row, return_inverse=True)
    odd = np.bincount(place, states.odd & ~misread, minlength=len(rows))
    looked_at = np.flatnonzero((odd >= LEAST_ODD)[place] & ~misread)
    open_rows = int(np.count_nonzero(odd >= LEAST_ODD))
    if not open_rows:
        return [], 0
    asked, number = np.unique(states.asked[looked_at], return_inverse=True)
    columns = number.astype(np.int32), samples.output[looked_at], states.state[looked_at]
    ways: list[Past] = []
    split: list[NDArray[np.float64]] = []
    every = pasts(steps, output)
    while some := list(islice(every, _AT_ONCE)):
        values = np.concatenate([value[looked_at] for _, value in some])
        found = _core.split_noisy_rows(
            *columns, values=values, states=states.likely.states, least=-inf
        )
        # As in `_States.row`, where all that is left out is a multiple of the questions.
        where = found["state"] * np.int64(width) + asked[found["question"]]
        way = found["feature"] + len(ways)
        told = (way, where, found["log_odds"], found["odd"], found["odd_apart"])
        split.append(np.array(told, np.float64).reshape(5, -1))
        ways += [past for past, _ in some]
    looks = open_rows * len(ways)
    table = np.concatenate(split, axis=1)
    sure = table[:, table[2] > SURE + log(looks)]
    return list(_gravest(ways, sure if sure.shape[1] else _in_all(ways, table))), looks


def _in_all(ways: list[Past], table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the part of the table that is about what tells a little about many questions.

    It must tell more about some than it costs to look for it in all. Each kind of past is as
    likely in advance as any other, however many ways of putting it there are.
    """
    total = np.bincount(table[0].astype(np.int64), table[2], len(ways))
    kinds = Counter(past.kind for past in ways)
    total = total - log(
        [len(kinds) * kinds[past.kind] for past in ways]
    )  # counts, if there are none
    best = int(np.argmax(total))
    if total[best] <= SURE:
        return table[:, :0]
    return table[:, (table[0] == best) & (table[2] > 0)]


def _gravest(ways: list[Past], table: NDArray[np.float64]) -> Iterator[Dependence]:
    """Take what tells most, leave out the states and questions it is about, and so on."""
    for _ in range(_MOST_TOLD):
        if not table.shape[1]:
            return
        way, where, log_odds, odd, apart = table
        gained = np.bincount(way.astype(np.int64), log_odds)
        # Of what tells about as much, that which is put most simply comes first.
        best = int(np.flatnonzero(gained >= ABOUT_AS_MUCH * gained.max())[0])
        mine = way == best
        # Which states and questions were split, by the one that tells most.
        most = int(where[mine][np.argmax(log_odds[mine])])
        yield Dependence(
            ways[best],
            where[mine].astype(np.int64),
            float(gained[best]),
            int(odd[mine].sum()),
            int((odd - apart)[mine].sum()),
            most,
        )
        table = table[:, ~np.isin(where, where[mine])]


def _missing_label(steps: Steps, output: str, states: _States, found: list[Dependence]) -> Finding:
    first, *others = found
    told = steps.question_text(first.question)
    asked = amount(len(first.rows), "question")
    also = ""
    if others:
        more = listed([f"{steps.question_text(one.question)} on {one.past.text}" for one in others])
        also = f" Others depend on more: {more}."
    return Finding(
        "missing-label",
        Severity.WARNING,
        f"Answers of the {_kind(output)} machine to {told} depend on {first.past.text}, which no "
        f"state tells: {first.explained:,} of {first.odd:,} odd answers to {asked} are explained "
        f"by that ({odds_text(-first.log_odds)} by chance).{also} {_advice(first.past)}",
        {
            "output": output,
            "states": states.likely.states,
            "questions": sum(len(one.rows) for one in found),
            "odd": int(states.odd.sum()),
            "explained": sum(one.explained for one in found),
            "depends_on": [_figures(steps, one) for one in found],
        },
    )


def _figures(steps: Steps, one: Dependence) -> dict[str, Any]:
    return {
        **one.past.as_dict(),
        "question": steps.question_text(one.question),
        "questions": len(one.rows),
        "log_odds": one.log_odds,
        "odd": one.odd,
        "explained": one.explained,
    }


def _advice(past: Past) -> str:
    if past.kind == "read":
        return "The label is there, and yet no machine was found that uses it: collect more traces."
    if past.kind == "last-time":
        return (
            "Something hidden is set within an episode, or drawn at its start: label where it is "
            "set, or show in the first observation what was drawn."
        )
    if past.kind.startswith("previous-"):
        return "The observation does not hold all that matters: put that into it, or label it."
    if past.kind == "time":
        return "The world changes in the course of an episode: label the moment when it does."
    return "Label that event, or have events found: labels='auto' (--labels auto)."


def _noise(output: str, states: _States, looks: int) -> Finding:
    odd, answers = int(states.odd.sum()), len(states.odd)
    verdict = "so far as can be told, that is chance"
    if states.likely.states == MOST_STATES:
        verdict = "it is chance, or there are more states or events than labels tell"
    untold = "they are too few of a kind to tell which"
    if looks:
        untold = f"nothing that came before tells which ({amount(looks, 'look')})"
    return Finding(
        "noise",
        Severity.NOTE,
        f"With {amount(states.likely.states, 'state')} of the {_kind(output)} machine {odd:,} of "
        f"{answers:,} answers ({odd / answers:.1%}) are others than most of their state, and "
        f"{untold}: {verdict}. noise='auto' (--noise auto) finds such machines.",
        {
            "output": output,
            "states": states.likely.states,
            "questions": len(np.unique(states.row[states.odd])),
            "answers": answers,
            "odd": odd,
            "share": odd / answers,
            "looks": looks,
        },
    )


def _carry_nothing(steps: Steps, found: dict[str, _States], missing: bool) -> Iterator[Finding]:
    """Say that labels carry nothing, if one state will do, or labels that are drawn at random."""
    labels = sum(label != NO_EVENT for label in steps.traces.labels)
    others = [one for one in steps.outputs if one not in found and _varies(steps, one)]
    one_state = not others and all(states.likely.states == 1 for states in found.values())
    if not one_state and not (labels_at_random(steps) and _as_good_shuffled(steps, found, others)):
        return
    if one_state:
        why = "one state explains all answers as well as any number does"
    else:
        why = (
            "they have nothing to do with what is seen and done, and others at random tell as much"
        )
    if missing:
        advice = "Yet answers depend on the past: label the events that change what happens later."
    else:
        advice = "Either the world needs no memory, or what it has to remember has no label."
    yield Finding(
        "labels-carry-nothing",
        Severity.WARNING if missing or not one_state else Severity.NOTE,
        f"The {amount(labels, 'label')} carry nothing: {why}. {advice}",
        {"labels": labels, "at_random": not one_state, "depends_on_past": missing},
    )


def _as_good_shuffled(steps: Steps, found: dict[str, _States], others: list[str]) -> bool:
    """Whether machines that read labels in another order gain about as much by memory."""
    shuffled = Steps(shuffled_labels(steps.traces), steps.timing, steps.outputs)
    observed, unlike = _observed(steps), _observed(shuffled)
    found = found | {output: _States.of(steps, output, observed) for output in others}
    for output, states in found.items():
        told = None if output == OBSERVATION else unlike
        likely, other = states.likely, _States.of(shuffled, output, told).likely
        if _gained(likely) > MUCH_MORE * _gained(other) + 2 * likely.price:
            return False
    return True


def _gained(likely: Likely) -> float:
    """Return what all memory is worth, in nats."""
    return likely.log_evidence - likely.sizes[1]


def _kind(output: str) -> str:
    return "transition" if output == OBSERVATION else listed([output])
