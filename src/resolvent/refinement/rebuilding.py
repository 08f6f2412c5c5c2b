"""Machines that explain all traces + what these show → machines that know all of it."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from resolvent.machines import (
    Machine,
    MachinePair,
    RewardMachine,
    Support,
    Termination,
    TransitionMachine,
)
from resolvent.refinement.corpus import Alphabets
from resolvent.refinement.sightings import (
    PairSightings,
    Rows,
    Sightings,
    Tables,
    answers_vary,
)
from resolvent.traces import Label, Vocabulary
from resolvent.traces.vocabulary import DENSE

M = TypeVar("M", bound=Machine)


def rebuilt(
    pair: MachinePair,
    seen: PairSightings,
    alphabets: Alphabets,
    rewards: Vocabulary[float],
    trivial: Collection[Label] = (),
    *,
    constants: bool,
) -> tuple[TransitionMachine, RewardMachine]:
    """Return the machines with the answers and counts of all traces, in common codes.

    `rewards` are what the Reward Machine answers with; labels named as trivial
    are so for both machines, beside those that a machine has as such. With `constants`, answers
    that are the same in every state are kept apart, as reduction does.
    """
    tables = Tables.of(pair, alphabets, trivial)
    states = pair.transition.states
    transition = _rebuilt(
        pair.transition,
        seen.transition,
        constants,
        trivial,
        labels=alphabets.labels,
        observations=alphabets.observations,
        actions=alphabets.actions,
        outputs=alphabets.observations,
        transitions=tables.transition.reshape(states, -1),
    )
    shown, observations = seen.reward, alphabets.observations
    if pair.reward.supplemented:
        shown, observations = _paired(shown, alphabets, states)
    reward = _rebuilt(
        pair.reward,
        shown,
        constants,
        trivial,
        labels=alphabets.labels,
        observations=observations,
        actions=alphabets.actions,
        outputs=rewards,
        transitions=tables.reward.reshape(pair.reward.states, -1),
    )
    return transition, reward


def _distinct(
    numbers: NDArray[np.int64], bound: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct numbers, rising, and the place of each among them."""
    if bound > DENSE:
        return np.unique(numbers, return_inverse=True)
    occurs = np.zeros(bound, bool)
    occurs[numbers] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[numbers]


def _paired(
    seen: Sightings, alphabets: Alphabets, states: int
) -> tuple[Sightings, Vocabulary[Any]]:
    """Give the pairs of observation and state that occur codes of their own."""
    pair, action = np.divmod(seen.answers["question"], len(alphabets.actions))
    occurring, code = _distinct(pair, len(alphabets.observations) * states)
    answers = seen.answers.copy()
    answers["question"] = code * len(alphabets.actions) + action
    observation, state = np.divmod(occurring, states)
    observed = map(list(alphabets.observations).__getitem__, observation.tolist())
    return Sightings(answers, seen.moves), Vocabulary(zip(observed, state.tolist(), strict=True))


def _rebuilt(
    machine: M, seen: Sightings, constants: bool, named: Collection[Label], **tables: Any
) -> M:
    state, question, output, count = (
        np.ascontiguousarray(seen.answers[name])
        for name in ("state", "question", "output", "count")
    )
    size = len(tables["observations"]) * len(tables["actions"])
    constant = np.zeros(len(output), bool)
    if constants:
        constant = ~answers_vary(question, output, size)
    always, place = _distinct(question[constant], size)
    answer = np.empty(len(always), np.int32)
    answer[place] = output[constant]
    times = np.bincount(place, count[constant], len(always)).astype(np.int64)
    labels: Vocabulary[Any] = tables["labels"]
    trivial = tuple(sorted(map(labels.code, {*machine.trivial_labels, *named})))
    moves = np.zeros(tables["transitions"].shape, np.int64)
    moves[seen.moves["state"], seen.moves["label"]] = seen.moves["count"]
    moves[:, list(trivial)] = 0  # they are no moves
    return replace(
        machine,
        **tables,
        trivial=trivial,
        output_state=state[~constant],
        output_question=question[~constant],
        output_value=output[~constant],
        constant_question=always,
        constant_value=answer,
        support=Support(moves, count[~constant], times),
    )


def observed_termination(
    seen: PairSightings, alphabets: Alphabets, transition_states: int
) -> Termination:
    """Return the situations whose step ended a trace, and those where it sometimes did not."""

    def named(rows: Rows) -> frozenset[tuple[Any, int, int, Any]]:
        pair, action = np.divmod(rows["question"], len(alphabets.actions))
        observation, q = np.divmod(pair, transition_states)
        columns = (observation, q, rows["state"], action)
        return frozenset(
            (alphabets.observations[o], q, u, alphabets.actions[a])
            for o, q, u, a in zip(*(column.tolist() for column in columns), strict=True)
        )

    endings = seen.endings
    always = endings["ended"] == endings["count"]
    return Termination(named(endings[always]), named(endings[~always]))
