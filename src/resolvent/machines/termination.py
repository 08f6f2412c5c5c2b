"""When episodes end, as far as the traces tell.

Termination is not part of the paper's Reward Machine, but planning needs it. It
is kept as a function of (observation, TM state, RM state, action); where the
traces show that it is not one, that is kept too.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.traces.symbols import Symbol
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes, distinct_pairs

Situation = tuple[Symbol, int, int, Symbol]
"""Observation, Transition Machine state, Reward Machine state, action."""


@dataclass(frozen=True)
class Termination:
    """The situations whose step ended an episode, always or only sometimes."""

    ends: frozenset[Situation] = field(default_factory=frozenset)
    ambiguous: frozenset[Situation] = field(default_factory=frozenset)

    def after(
        self, observation: Symbol, transition_state: int, reward_state: int, action: Symbol
    ) -> bool | None:
        """Whether the step ends the episode; None when it sometimes did and sometimes did not.

        False means that it was never seen to end there.
        """
        situation = (observation, transition_state, reward_state, action)
        if situation in self.ambiguous:
            return None
        return situation in self.ends

    def __str__(self) -> str:
        if self.ambiguous:
            return (
                f"{len(self.ambiguous)} situations sometimes end the episode and sometimes do not: "
                f"termination does not follow from observation, states and action"
            )
        return f"{len(self.ends)} situations end the episode"


def observe_termination(
    traces: TraceSet, transition_states: Codes, reward_states: Codes
) -> Termination:
    """Find the situations whose step ended an episode, and those where it sometimes did not.

    The states are those of `states_at_steps`, at every step of the traces.
    """
    last = traces.offsets[1:][traces.terminated] - 1
    ending = np.zeros(traces.steps, bool)
    ending[last] = True
    observed = traces.at_step(traces.observation_codes)
    # Only steps with the observation of some ending one can tell anything.
    suspect = np.zeros(len(traces.observations), np.int32)
    suspect[observed[last]] = 1
    rows = np.flatnonzero(_core.recode(observed, suspect) > 0)
    ending = ending[rows]

    count = len(traces.observations), len(traces.actions)
    questions, question = distinct_pairs(observed[rows], traces.action_codes[rows], *count)
    tm_states, rm_states = transition_states[rows], reward_states[rows]
    most = int(rm_states.max(initial=-1)) + 1
    memories, memory = distinct_pairs(
        tm_states, rm_states, int(tm_states.max(initial=-1)) + 1, most
    )
    situations, place = distinct_pairs(question, memory, len(questions), len(memories))
    ended = _core.used_codes(place[ending], len(situations)) > 0
    went_on = _core.used_codes(place[~ending], len(situations)) > 0

    def named(chosen: NDArray[np.bool_]) -> frozenset[Situation]:
        at_question, at_memory = np.divmod(situations[chosen], max(len(memories), 1))
        seen, done = np.divmod(questions[at_question], len(traces.actions))
        q, u = np.divmod(memories[at_memory], max(most, 1))
        columns = (seen.tolist(), q.tolist(), u.tolist(), done.tolist())
        return frozenset(
            (traces.observations[o], q, u, traces.actions[a])
            for o, q, u, a in zip(*columns, strict=True)
        )

    return Termination(named(ended & ~went_on), named(ended & went_on))
