"""Augmented states: an observation and the states of machines; ends of episodes, uncertainty.

The machines are those that matter for acting: the Transition Machine, the Reward Machine and,
if present, the machine that predicts when episodes end.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Annotated, Any, Final, TypeAlias

from msgspec import Meta

from resolvent._util.text import amount
from resolvent.traces.schema import TERMINATED
from resolvent.traces.symbols import Label, label_text, symbol_text

AugmentedState: TypeAlias = tuple[Any, ...]
"""An observation and the states of the machines that matter, in the order of `ACTING_MACHINES`."""

Share: TypeAlias = Annotated[float, Meta(ge=0)]

ACTING_MACHINES: Final = ("transition", "reward", TERMINATED)
"""Names of the machines that matter for acting; the last one is optional."""


def by_name(augmented_state: AugmentedState) -> dict[str, Any]:
    """Return an augmented state as named values, for files and JSON.

    >>> by_name(("hall", 0, 1))
    {'observation': 'hall', 'transition_state': 0, 'reward_state': 1}
    """
    observation, *states = augmented_state
    names = (f"{name}_state" for name in ACTING_MACHINES)
    return {"observation": observation, **dict(zip(names, states, strict=False))}


def augmented_state_text(augmented_state: AugmentedState) -> str:
    """Return an augmented state as text.

    >>> augmented_state_text(("hall", 0, 1))
    'hall (transition state 0, reward state 1)'
    """
    observation, *states = augmented_state
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
                f"{amount(len(self.ambiguous), 'step')} sometimes {ends} the episode and "
                f"sometimes {does} not: termination does not follow from observation, states "
                f"and action"
            )
        ends = "ends" if len(self.ends) == 1 else "end"
        return f"{amount(len(self.ends), 'step')} {ends} the episode"


@dataclass(frozen=True)
class LabelNoise:
    """Rates of wrong labels, as shares of the steps at which each kind of error is possible.

    Attributes:
        missed: Share of the steps with an event that are recorded without one.
        false: Share of the steps without an event that are recorded with one.
        swapped: Share of the steps with an event that are recorded with another event.

    >>> print(LabelNoise(missed=0.051, false=0.0, swapped=0.002))
    5.1% missed, 0% false, 0.2% swapped
    """

    missed: Share
    false: Share
    swapped: Share

    def shares(self) -> dict[str, float]:
        """Return the rates by the names that `result.noise` has for them.

        >>> LabelNoise(0.05, 0.0, 0.01).shares()
        {'missed labels': 0.05, 'false labels': 0.0, 'swapped labels': 0.01}
        """
        return {f"{name} labels": share for name, share in self.as_dict().items()}

    @classmethod
    def of_shares(cls, shares: Mapping[str, float]) -> "LabelNoise | None":
        """Return the rates among the entries of `result.noise`; None unless all are there."""
        names = {field.name: f"{field.name} labels" for field in fields(cls)}
        if not shares.keys() >= {*names.values()}:
            return None
        return cls(**{name: shares[entry] for name, entry in names.items()})

    def as_dict(self) -> dict[str, float]:
        """Return the rates as JSON values."""
        return asdict(self)

    def __str__(self) -> str:
        return ", ".join(f"{100 * share:.2g}% {name}" for name, share in self.as_dict().items())


@dataclass(frozen=True)
class StateUncertainty:
    """Why labels do not determine the state, and the probabilities needed to infer it.

    Attributes:
        label_noise: Rates at which recorded labels differ from the true ones, which machines
            read; None if labels are exact.
        label_shares: Share of each true label among all, if labels are noisy.
        starts: Probability of each hidden initial state, given as the label that leads the
            machines there from state 0; no trace records it. Empty if all episodes begin in
            state 0.

    >>> starts = {frozenset(): 0.9, frozenset({"key"}): 0.1}
    >>> print(StateUncertainty(LabelNoise(0.05, 0.0, 0.0), starts=starts))
    noisy labels: 5% missed, 0% false, 0% swapped; hidden starts: no event 0.9, key 0.1
    >>> bool(StateUncertainty())
    False
    """

    label_noise: LabelNoise | None = None
    label_shares: Mapping[Label, float] = field(default_factory=dict)
    starts: Mapping[Label, float] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.label_noise is not None or bool(self.starts)

    def __hash__(self) -> int:
        return hash((self.label_noise, tuple(self.starts.items())))

    def __str__(self) -> str:
        reasons = []
        if self.label_noise is not None:
            reasons.append(f"noisy labels: {self.label_noise}")
        if self.starts:
            shares = (f"{label_text(start)} {share:.2g}" for start, share in self.starts.items())
            reasons.append(f"hidden starts: {', '.join(shares)}")
        return "; ".join(reasons) or "none"
