"""When episodes end, as far as the traces tell.

Termination is not part of the paper's Reward Machine, but planning needs it. It
is kept as a function of (observation, TM state, RM state, action); where the
traces show that it is not one, that is kept too.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from resolvent.machines.machine import RewardMachine, TransitionMachine
from resolvent.machines.score import states_at_steps
from resolvent.samples import Histories
from resolvent.traces.symbols import Symbol
from resolvent.traces.trace_set import TraceSet

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
    transition: TransitionMachine, reward: RewardMachine, traces: TraceSet, histories: Histories
) -> Termination:
    """Find the situations whose step ended an episode, and those where it sometimes did not."""
    last = traces.offsets[1:][traces.terminated] - 1
    ending = np.zeros(traces.steps, bool)
    ending[last] = True
    observed = traces.at_step(traces.observation_codes)
    # Only steps with the observation of some ending one can tell anything.
    suspects = np.zeros(len(traces.observations), bool)
    suspects[observed[last]] = True
    rows = np.flatnonzero(suspects[observed])
    # And of those only the ones with its action too.
    suspects = np.zeros((len(traces.observations), len(traces.actions)), bool)
    suspects[observed[last], traces.action_codes[last]] = True
    rows = rows[suspects[observed[rows], traces.action_codes[rows]]]
    situations = np.stack(
        [
            observed[rows],
            states_at_steps(transition, histories)[rows],
            states_at_steps(reward, histories)[rows],
            traces.action_codes[rows],
        ],
        axis=1,
    )
    ends = {tuple(row) for row in situations[ending[rows]].tolist()}
    sizes = (len(traces.observations), transition.states, reward.states, len(traces.actions))
    keys = np.ravel_multi_index(tuple(situations.T), sizes)
    both = np.intersect1d(keys[ending[rows]], keys[~ending[rows]])
    ambiguous = {tuple(map(int, np.unravel_index(key, sizes))) for key in both}

    def named(rows: set[tuple[int, ...]]) -> frozenset[Any]:
        return frozenset((traces.observations[o], q, u, traces.actions[a]) for o, q, u, a in rows)

    return Termination(named(ends - ambiguous), named(ambiguous))
