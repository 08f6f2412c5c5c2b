"""What tells one moment of an episode from another: an observation, and the states of machines.

The machines are those that matter for acting: the Transition Machine, the Reward Machine and,
where there is one, the machine that tells when episodes end.
"""

from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from resolvent.traces.schema import TERMINATED
from resolvent.traces.symbols import symbol_text

AugmentedState: TypeAlias = tuple[Any, ...]
"""An observation and the states of the machines that matter, in the order of `KINDS`."""

KINDS: Final = ("transition", "reward", TERMINATED)
"""The machines that matter for acting; the last one need not be there."""


def by_name(situation: AugmentedState) -> dict[str, Any]:
    """Return a situation as named values, as files and JSON have it.

    >>> by_name(("hall", 0, 1))
    {'observation': 'hall', 'transition_state': 0, 'reward_state': 1}
    """
    observation, *states = situation
    names = (f"{kind}_state" for kind in KINDS)
    return {"observation": observation, **dict(zip(names, states, strict=False))}


def augmented_state_text(situation: AugmentedState) -> str:
    """Write a situation for people.

    >>> augmented_state_text(("hall", 0, 1))
    'hall (transition state 0, reward state 1)'
    """
    observation, *states = situation
    return f"{symbol_text(observation)} ({states_text(states)})"


def states_text(states: Iterable[int]) -> str:
    """Write the states of a situation for people."""
    told = zip(KINDS, states, strict=False)
    return ", ".join(f"{kind} state {state}" for kind, state in told)
