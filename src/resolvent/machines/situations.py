"""Augmented states (an observation and the states of machines), and steps that end episodes.

The machines are those that matter for acting: the Transition Machine, the Reward Machine and,
if present, the machine that predicts when episodes end.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from resolvent._util.text import amount
from resolvent.traces.schema import TERMINATED
from resolvent.traces.symbols import symbol_text

AugmentedState: TypeAlias = tuple[Any, ...]
"""An observation and the states of the machines that matter, in the order of `ACTING_MACHINES`."""

ACTING_MACHINES: Final = ("transition", "reward", TERMINATED)
"""Names of the machines that matter for acting; the last one is optional."""


def by_name(situation: AugmentedState) -> dict[str, Any]:
    """Return an augmented state as named values, for files and JSON.

    >>> by_name(("hall", 0, 1))
    {'observation': 'hall', 'transition_state': 0, 'reward_state': 1}
    """
    observation, *states = situation
    names = (f"{name}_state" for name in ACTING_MACHINES)
    return {"observation": observation, **dict(zip(names, states, strict=False))}


def augmented_state_text(situation: AugmentedState) -> str:
    """Return an augmented state as text.

    >>> augmented_state_text(("hall", 0, 1))
    'hall (transition state 0, reward state 1)'
    """
    observation, *states = situation
    return f"{symbol_text(observation)} ({states_text(states)})"


def states_text(states: Iterable[int]) -> str:
    """Return the states of an augmented state as text."""
    return ", ".join(
        f"{name} state {state}" for name, state in zip(ACTING_MACHINES, states, strict=False)
    )


@dataclass(frozen=True)
class Termination:
    """The steps that ended an episode, always (`ends`) or only sometimes (`ambiguous`).

    A step is a tuple of the observation, the state of each machine of the set, and the action.
    Termination is not part of the paper's Reward Machine, but planning needs it.
    """

    ends: frozenset[tuple[Any, ...]] = field(default_factory=frozenset)
    ambiguous: frozenset[tuple[Any, ...]] = field(default_factory=frozenset)

    def after(self, *step: Any) -> bool | None:
        """Return whether a step ends the episode; None if it sometimes did.

        False means that no observed episode ended with it.

        >>> Termination(frozenset({("hall", 0, 1, "sit")})).after("hall", 0, 1, "sit")
        True
        """
        return None if step in self.ambiguous else step in self.ends

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
