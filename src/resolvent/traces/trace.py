"""One trace: what an agent saw, did and was paid in one episode."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from resolvent.errors import TraceError
from resolvent.traces.symbols import Label, Symbol, as_label, as_symbol


@dataclass(frozen=True, slots=True)
class Trace:
    """One episode: T actions and rewards between T+1 observations and labels.

    Fields accept what environments give (NumPy values, lists, sets) and hold
    plain hashable symbols.

    >>> trace = Trace(["hall", "attic"], [None, "key"], ["up"], [1])
    >>> len(trace), trace.labels, trace.rewards
    (1, (frozenset(), frozenset({'key'})), (1.0,))
    """

    observations: tuple[Symbol, ...]
    labels: tuple[Label, ...]
    actions: tuple[Symbol, ...]
    rewards: tuple[float, ...]
    terminated: bool = False
    truncated: bool = False

    def __init__(
        self,
        observations: Iterable[Any],
        labels: Iterable[Any],
        actions: Iterable[Any],
        rewards: Iterable[float],
        terminated: bool = False,
        truncated: bool = False,
    ) -> None:
        put = object.__setattr__
        put(self, "observations", tuple(map(as_symbol, observations)))
        put(self, "labels", tuple(map(as_label, labels)))
        put(self, "actions", tuple(map(as_symbol, actions)))
        put(self, "rewards", tuple(float(reward) + 0.0 for reward in rewards))
        put(self, "terminated", bool(terminated))
        put(self, "truncated", bool(truncated))
        check_lengths(
            len(self.observations), len(self.labels), len(self.actions), len(self.rewards)
        )
        for step, reward in enumerate(self.rewards):
            if not math.isfinite(reward):
                raise TraceError(f"step {step}: the reward is {reward}; rewards must be finite")

    def __len__(self) -> int:
        return len(self.actions)


def check_lengths(observations: int, labels: int, actions: int, rewards: int) -> None:
    """Raise `TraceError` unless the four lengths are T+1, T+1, T, T with T at least 1."""
    if labels != observations:
        raise TraceError(
            f"{observations} observations but {labels} labels: each observation needs its label"
        )
    if rewards != actions:
        raise TraceError(f"{actions} actions but {rewards} rewards: each action needs its reward")
    if observations == 0:
        raise TraceError("the trace is empty: leave it out")
    if actions == 0 and observations == 1:
        raise TraceError("the trace has one observation and no action: leave it out")
    if observations != actions + 1:
        raise TraceError(
            f"{observations} observations for {actions} actions: "
            f"a trace has one more observation than actions (the final one)"
        )
