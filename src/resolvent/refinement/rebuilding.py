"""Machines that explain all traces + what these show → machines that know all of it."""

from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from resolvent.machines import (
    Machine,
    MachinePair,
    RewardMachine,
    Support,
    Termination,
    TransitionMachine,
)
from resolvent.refinement.corpus import Alphabets
from resolvent.refinement.sightings import PairSightings, Rows, Sightings, Tables
from resolvent.traces import Vocabulary

M = TypeVar("M", bound=Machine)


def rebuilt(
    pair: MachinePair,
    seen: PairSightings,
    alphabets: Alphabets,
    rewards: Vocabulary[float],
    *,
    constants: bool,
) -> tuple[TransitionMachine, RewardMachine]:
    """Return the machines with the answers and counts of all traces, in common codes.

    `rewards` are what the Reward Machine answers with. With `constants`, answers
    that are the same in every state are kept apart, as reduction does.
    """
    tables = Tables.of(pair, alphabets)
    states = pair.transition.states
    transition = _rebuilt(
        pair.transition,
        seen.transition,
        constants,
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
        labels=alphabets.labels,
        observations=observations,
        actions=alphabets.actions,
        outputs=rewards,
        transitions=tables.reward.reshape(pair.reward.states, -1),
    )
    return transition, reward


def _paired(
    seen: Sightings, alphabets: Alphabets, states: int
) -> tuple[Sightings, Vocabulary[Any]]:
    """Give the pairs of observation and state that occur codes of their own."""
    pair, action = np.divmod(seen.answers["question"], len(alphabets.actions))
    occurring, code = np.unique(pair, return_inverse=True)
    answers = seen.answers.copy()
    answers["question"] = code * len(alphabets.actions) + action
    observed = list(alphabets.observations)
    named = ((observed[o], q) for o, q in (divmod(one, states) for one in occurring.tolist()))
    return Sightings(answers, seen.moves), Vocabulary(named)


def _rebuilt(machine: M, seen: Sightings, constants: bool, **tables: Any) -> M:
    rows = seen.answers
    constant = _constant(rows) if constants else np.zeros(len(rows), bool)
    by_state, always = rows[~constant], rows[constant]
    always = always[np.argsort(always["question"], kind="stable")]
    start = np.flatnonzero(np.append(True, np.diff(always["question"]) != 0))[: len(always)]
    counts = np.add.reduceat(always["count"], start) if len(always) else np.empty(0, np.int64)
    labels: Vocabulary[Any] = tables["labels"]
    trivial = tuple(sorted(labels.code(label) for label in machine.trivial_labels))
    moves = np.zeros(tables["transitions"].shape, np.int64)
    moves[seen.moves["state"], seen.moves["label"]] = seen.moves["count"]
    moves[:, list(trivial)] = 0  # they are no moves
    return replace(
        machine,
        **tables,
        trivial=trivial,
        output_state=_column(by_state, "state"),
        output_question=_column(by_state, "question"),
        output_value=_column(by_state, "output"),
        constant_question=_column(always[start], "question"),
        constant_value=_column(always[start], "output"),
        support=Support(moves, _column(by_state, "count"), counts),
    )


def _constant(rows: Rows) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Whether the question of each row has the same answer in all rows."""
    _, place = np.unique(rows["question"], return_inverse=True)
    size = int(place.max(initial=-1)) + 1
    least, most = np.full(size, np.iinfo(np.int32).max), np.full(size, -1)
    np.minimum.at(least, place, rows["output"])
    np.maximum.at(most, place, rows["output"])
    same: np.ndarray[Any, np.dtype[np.bool_]] = (least == most)[place]
    return same


def _column(rows: Rows, name: str) -> Any:
    return np.ascontiguousarray(rows[name])


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

    always = seen.endings["ended"] == seen.endings["count"]
    return Termination(named(seen.endings[always]), named(seen.endings[~always]))
