"""What a user says of noise: which parts of the traces may be wrong, and how often."""

from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import numpy as np

from resolvent.arguments import shown
from resolvent.errors import OptionError


@dataclass(frozen=True, kw_only=True)
class Noise:
    """What is noisy in traces, where one knows it; everything else is taken to be exact.

    Attributes:
        outcomes: The same step comes out now so, now otherwise: actions slip, readings flicker.
        labels: Labels are missed, false or swapped: a share of them from 0 to 1, or True for
            one that is to be found.
        rewards: "gaussian" for rewards that vary around their values, "flipped" for values
            that are now and then mistaken for one another.
        starts: The hidden state that an episode begins in is drawn anew each time.
        broken: At most this share of the traces is of no use, and may be left out.

    >>> Noise(outcomes=True, labels=0.02)
    Noise(outcomes=True, labels=0.02, rewards=False, starts=False, broken=0.0)
    >>> Noise(labels=2)
    Traceback (most recent call last):
    resolvent.errors.OptionError: Noise: labels is 2: choose a share from 0 to 1, or True if it \
is to be found
    """

    outcomes: bool = False
    labels: bool | float = False
    rewards: Literal["gaussian", "flipped"] | bool = False
    starts: bool = False
    broken: float = 0.0

    def __post_init__(self) -> None:
        for name in ("outcomes", "starts"):
            if not isinstance(value := getattr(self, name), bool | np.bool_):
                raise OptionError(f"Noise: {name} is {shown(value)}: choose True or False")
            object.__setattr__(self, name, bool(value))
        if isinstance(self.labels, bool | np.bool_):
            object.__setattr__(self, "labels", bool(self.labels))
        else:
            object.__setattr__(
                self, "labels", _share("labels", self.labels, ", or True if it is to be found")
            )
        object.__setattr__(self, "broken", _share("broken", self.broken))
        named = isinstance(self.rewards, str) and self.rewards in ("gaussian", "flipped")
        if not named and self.rewards is not False:
            raise OptionError(
                f"Noise: rewards is {shown(self.rewards)}: choose 'gaussian', 'flipped' or False"
            )

    def __bool__(self) -> bool:
        return self != Noise()


def _share(name: str, given: Any, otherwise: str = "") -> float:
    wrong = isinstance(given, bool | np.bool_) or not isinstance(given, Real)
    if wrong or not 0 <= given <= 1:
        raise OptionError(f"Noise: {name} is {shown(given)}: choose a share from 0 to 1{otherwise}")
    return float(given)
