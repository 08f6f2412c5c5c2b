"""What baselines share: a clock with a limit, and the result of a method on some traces."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from resolvent.errors import OptionError, TimeLimitReached, TraceError
from resolvent.machines import EdgeRewardMachine, MachinePair
from resolvent.traces.trace_set import TraceSet

Status: TypeAlias = Literal["found", "time limit", "no solution"]

now: Callable[[], float] = time.monotonic
"""The seconds that limits count. A process that runs only one method may use its CPU seconds, which
do not depend on the load of the machine."""


class Clock:
    """Counts the seconds since it was made, against a limit if there is one.

    >>> Clock(None).left is None, 0 < Clock(60).left <= 60
    (True, True)
    """

    def __init__(self, time_limit: float | None) -> None:
        if time_limit is not None and not time_limit > 0:
            raise OptionError(f"time_limit={time_limit}: give the method some seconds, or None")
        self._limit = time_limit
        self._started = now()

    @property
    def seconds(self) -> float:
        """The seconds since the start."""
        return now() - self._started

    @property
    def left(self) -> float | None:
        """The seconds that are left, at least 0; None if there is no limit."""
        return None if self._limit is None else max(0.0, self._limit - self.seconds)

    def check(self) -> None:
        """Raise `TimeLimitReached` after the limit."""
        if self.left == 0:
            raise TimeLimitReached(f"time ran out after {self._limit:g} seconds")


@dataclass(frozen=True)
class Outcome:
    """The result of one method on some traces.

    Methods that learn a task return an `EdgeRewardMachine`, a method that learns both machines a
    `MachinePair`. A run that reached its limit has the status "time limit", and its best machine
    so far if any. `details` are JSON values specific to the method, such as the number of
    variables.
    """

    method: str
    status: Status
    seconds: float
    machine: EdgeRewardMachine | MachinePair | None
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def states(self) -> int | None:
        """The number of nonterminal states; of a pair, those of the Reward Machine."""
        if self.machine is None:
            return None
        if isinstance(self.machine, MachinePair):
            return self.machine.reward.states
        return len(self.machine.states - self.machine.terminal)


def check_not_empty(traces: TraceSet) -> None:
    """Refuse an empty trace set."""
    if not len(traces):
        raise TraceError("there are no traces to learn from: collect or read at least one")
