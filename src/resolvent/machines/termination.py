"""When episodes end, as far as the traces tell.

Termination is not part of the paper's Reward Machine, but planning needs it. It
is kept as a function of (observation, TM state, RM state, action); where the
traces show that it is not one, that is kept too.
"""

from dataclasses import dataclass, field

from resolvent.traces.symbols import Symbol

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
