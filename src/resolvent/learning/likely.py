"""Samples whose answers are noisy → the most likely machine, and how likely others are."""

from dataclasses import dataclass, replace

import numpy as np

from resolvent.learning.lesson import Lesson
from resolvent.machines import Alternative, Machine, build_machine, machine_class
from resolvent.merging import Automaton, moves_alone
from resolvent.noise import most_likely, rivals, settled_moves, weigh
from resolvent.noise.alternatives import alternatives
from resolvent.noise.rewards import assign_reward_levels
from resolvent.reduction import ConstantOutputs
from resolvent.samples import SampleSet
from resolvent.senses import RewardLevels
from resolvent.traces.column_names import REWARD


@dataclass(frozen=True)
class Likely:
    """The most likely machine met; what it answers, a replay tells.

    `log_evidence` says how likely it is and the best of each other size, by their number of
    states: the price of states included. `alternatives` are hardly less likely.
    """

    machine: Machine
    automaton: Automaton
    finished: bool
    log_evidence: dict[int, float]
    alternatives: tuple[Alternative, ...]


def likely_machine(lesson: Lesson, levels: RewardLevels | None) -> Likely:
    """Find the moves of the most likely machine.

    `levels` are those that rewards were taken for, if they vary.
    """
    listen, options = lesson.listener, lesson.options
    samples = _settled(lesson, levels)
    found = most_likely(
        samples,
        seed=options.seed,
        effort=options.effort,
        time_limit=lesson.share(),
        listener=None if listen is None else lambda _, now: listen(now),
    )
    finished = found.finished
    found = settled_moves(samples, found)
    automaton = moves_alone(found.transitions)
    loops = found.transitions == np.arange(found.states, dtype=np.int32)[:, None]
    idle = np.flatnonzero((loops | (found.transitions < 0)).all(0)).tolist()
    machine = build_machine(
        machine_class(lesson.predicts),
        automaton,
        lesson.samples,
        ConstantOutputs.nothing(),
        tuple(idle),
        predicts=lesson.predicts,
        supplemented=lesson.supplemented,
        digits=lesson.digits,
    )
    sure = rivals(samples, machine.transitions)
    others = alternatives(machine, lesson.samples, found, sure)
    machine = replace(machine, support=machine.support and replace(machine.support, rivals=sure))
    return Likely(
        machine,
        automaton,
        finished,
        {states: found.log_evidence + odds for states, odds in found.log_odds.items()},
        others,
    )


def _settled(lesson: Lesson, levels: RewardLevels | None) -> SampleSet:
    """Return samples without the noise that is known to be noise."""
    if levels is None or lesson.predicts != REWARD:
        return lesson.samples
    return assign_reward_levels(lesson.samples, lesson.traces, levels)


def log_evidence(machine: Machine, samples: SampleSet) -> float:
    """Return how likely all answers are if a machine gave them, as noise is weighed: a logarithm.

    The machine has the codes of the samples.
    """
    moves = machine.transitions.copy()
    moves[:, list(machine.trivial)] = np.arange(machine.states, dtype=np.int32)[:, None]
    return weigh(samples, moves).log_evidence
