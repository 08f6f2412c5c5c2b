"""Questions and answers in the codes of traces → the same in the codes of a machine."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from resolvent.machines import Machine
from resolvent.replay.coded import Alphabets
from resolvent.replay.shown import Rows
from resolvent.traces import Codes
from resolvent.traces.vocabulary import codes_of, distinct_numbers


@dataclass(frozen=True, slots=True, eq=False)
class InMachineCodes:
    """Columns beside rows of answers: `question` is −1 and `output` −1 where a machine has none."""

    question: NDArray[np.int64]
    output: Codes


def in_machine_codes(
    machine: Machine, answers: Rows, alphabets: Alphabets, transition_states: int
) -> InMachineCodes:
    """Say what a machine calls the questions and outputs of some answers.

    To a supplemented machine a question is about a pair of an observation and one of
    `transition_states`.
    """
    seen, done = np.divmod(answers["question"], len(alphabets.actions))
    observed = observation_codes(machine, seen, alphabets, transition_states)
    action = codes_of(alphabets.actions, machine.actions, -1)[done]
    question = observed.astype(np.int64) * len(machine.actions) + action
    question[(observed < 0) | (action < 0)] = -1
    values = alphabets.outputs(machine.predicts)
    return InMachineCodes(question, codes_of(values, machine.outputs, -1)[answers["output"]])


def observation_codes(
    machine: Machine, seen: NDArray[np.int64], alphabets: Alphabets, transition_states: int
) -> Codes:
    """Return what a machine calls observations, or pairs of them and states; −1 for unknown."""
    if not machine.supplemented:
        return codes_of(alphabets.observations, machine.observations, -1)[seen]
    occurring, place = distinct_numbers(seen, len(alphabets.observations) * transition_states)
    observation, state = np.divmod(occurring, transition_states)
    named = map(list(alphabets.observations).__getitem__, observation.tolist())
    pairs = zip(named, state.tolist(), strict=True)
    return codes_of(pairs, machine.observations, -1)[place]
