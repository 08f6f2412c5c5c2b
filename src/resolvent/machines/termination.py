"""When episodes end, as far as the traces tell.

Termination is not part of the paper's Reward Machine, but planning needs it. It
is kept as a function of a situation: the observation, the states of all machines
in their order, and the action. Where the traces show that it is not one, that is
kept too.
"""

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from resolvent._util.text import amount

Situation: TypeAlias = tuple[Any, ...]
"""Observation, the state of each machine, action.

For a pair: observation, Transition Machine state, Reward Machine state, action.
"""


@dataclass(frozen=True)
class Termination:
    """The situations whose step ended an episode, always or only sometimes."""

    ends: frozenset[Situation] = field(default_factory=frozenset)
    ambiguous: frozenset[Situation] = field(default_factory=frozenset)

    def after(self, *situation: Any) -> bool | None:
        """Whether the step ends the episode; None when it sometimes did and sometimes did not.

        False means that it was never seen to end there.

        >>> Termination(frozenset({("hall", 0, 1, "sit")})).after("hall", 0, 1, "sit")
        True
        """
        if situation in self.ambiguous:
            return None
        return situation in self.ends

    def __str__(self) -> str:
        if self.ambiguous:
            does, ends = ("does", "ends") if len(self.ambiguous) == 1 else ("do", "end")
            return (
                f"{amount(len(self.ambiguous), 'situation')} sometimes {ends} the episode and "
                f"sometimes {does} not: termination does not follow from observation, states "
                f"and action"
            )
        ends = "ends" if len(self.ends) == 1 else "end"
        return f"{amount(len(self.ends), 'situation')} {ends} the episode"
