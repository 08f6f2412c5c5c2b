"""Machines that explain all traces + what these show → machines that know all of it."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from resolvent.machines import Machine, Machines, Support, Termination
from resolvent.machines.spread import answered
from resolvent.noise import Rivals
from resolvent.replay import Alphabets, Replay, Rows, Sightings, Tables
from resolvent.replay.shown import answers_vary
from resolvent.traces import Codes, Label, Vocabulary
from resolvent.traces.vocabulary import distinct_numbers

M = TypeVar("M", bound=Machine)


def rebuilt(
    machines: Machines, shown: Replay, trivial: Collection[Label] = (), *, constants: bool
) -> list[Machine]:
    """Return the machines with the answers and counts of all traces, in common codes.

    Labels named as trivial are so for all machines, beside those that a machine has as
    such. With `constants`, answers that are the same in every state are kept apart, as
    reduction does. Where a state answers a question in more than one way, the machine
    answers with what came most often, and holds the others in its spread. What was asked
    where the state is not known tells nothing of any state, and is left out.
    """
    tables = Tables.of(machines, shown.alphabets, trivial)
    built = []
    for kind, machine in machines.items():
        seen, observations = shown.machines[kind], shown.alphabets.observations
        if machine.supplemented:
            seen, observations = _paired(seen, shown.alphabets, machines.transition.states)
        moves = tables.transitions(kind)
        built.append(
            _rebuilt(machine, seen, shown.alphabets, observations, moves, trivial, constants)
        )
    return built


def _paired(
    seen: Sightings, alphabets: Alphabets, states: int
) -> tuple[Sightings, Vocabulary[Any]]:
    """Give the pairs of observation and state that occur codes of their own."""
    answers = seen.known.copy()
    pair, action = np.divmod(answers["question"], len(alphabets.actions))
    occurring, code = distinct_numbers(pair, len(alphabets.observations) * states)
    answers["question"] = code * len(alphabets.actions) + action
    observation, state = np.divmod(occurring, states)
    observed = map(list(alphabets.observations).__getitem__, observation.tolist())
    return Sightings(answers, seen.moves), Vocabulary(zip(observed, state.tolist(), strict=True))


def _rebuilt(
    machine: M,
    seen: Sightings,
    alphabets: Alphabets,
    observations: Vocabulary[Any],
    transitions: Codes,
    named: Collection[Label],
    constants: bool,
) -> M:
    state, question, output, count = (
        np.ascontiguousarray(seen.known[name]) for name in ("state", "question", "output", "count")
    )
    size = len(observations) * len(alphabets.actions)
    constant = np.zeros(len(output), bool)
    if constants:
        constant = ~answers_vary(question, output, size)
    always, place = distinct_numbers(question[constant], size)
    answer = np.empty(len(always), np.int32)
    answer[place] = output[constant]
    times = np.bincount(place, count[constant], len(always)).astype(np.int64)
    by_state = answered(*(column[~constant] for column in (state, question, output, count)))
    trivial = tuple(sorted(map(alphabets.labels.code, {*machine.trivial_labels, *named})))
    moves = np.zeros(transitions.shape, np.int64)
    made = seen.moves[seen.moves["output"] >= 0]
    moves[made["state"], made["label"]] = made["count"]
    moves[:, list(trivial)] = 0  # they are no moves
    return replace(
        machine,
        labels=alphabets.labels,
        observations=observations,
        actions=alphabets.actions,
        outputs=alphabets.outputs(machine.predicts),
        transitions=transitions,
        trivial=trivial,
        output_state=by_state.state,
        output_question=by_state.question,
        output_value=by_state.value,
        spread=by_state.spread,
        constant_question=always,
        constant_value=answer,
        asked_state=state[constant],
        asked_question=question[constant],
        support=Support(
            moves,
            by_state.asked,
            times,
            count[constant],
            _in_common_codes(machine, alphabets.labels),
        ),
    )


def _in_common_codes(machine: Machine, labels: Vocabulary[Label]) -> Rivals | None:
    """Return how sure a machine's moves are, by the codes that all traces have for labels."""
    rivals = None if machine.support is None else machine.support.rivals
    if rivals is None:
        return None
    codes = [labels.code(label) for label in machine.labels]
    target = np.full((machine.states, len(labels)), -1, np.int32)
    log_odds = np.zeros(target.shape)
    target[:, codes], log_odds[:, codes] = rivals.target, rivals.log_odds
    return Rivals(target, log_odds)


def observed_termination(shown: Replay) -> Termination:
    """Return the situations whose step ended a trace, and those where it sometimes did not."""
    alphabets = shown.alphabets

    def named(rows: Rows) -> frozenset[tuple[Any, ...]]:
        seen, *states, action = (part.tolist() for part in shown.situation(rows["number"]))
        return frozenset(
            zip(
                map(list(alphabets.observations).__getitem__, seen),
                *states,
                map(list(alphabets.actions).__getitem__, action),
                strict=True,
            )
        )

    endings = shown.endings
    always = endings["ended"] == endings["count"]
    return Termination(named(endings[always]), named(endings[~always]))
