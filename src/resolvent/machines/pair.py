"""The two machines together: the memory that makes the world Markovian."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from resolvent.machines.machine import UNSEEN, RewardMachine, State, TransitionMachine
from resolvent.machines.score import Score, score
from resolvent.machines.termination import Termination
from resolvent.samples import LabelTiming
from resolvent.traces.symbols import Symbol
from resolvent.traces.trace_set import TraceSet


class Provenance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a pair of machines came from.

    Nothing here depends on the clock, so that the same traces and options give
    the same file.
    """

    version: str
    traces: int
    steps: int
    traces_sha256: str
    options: dict[str, Any]


@dataclass(frozen=True, eq=False)
class MachinePair:
    """A Transition Machine and a Reward Machine that read labels in the same way."""

    transition: TransitionMachine
    reward: RewardMachine
    timing: LabelTiming = LabelTiming.CURRENT
    termination: Termination = field(default_factory=Termination, repr=False)
    provenance: Provenance | None = field(default=None, repr=False)

    def predict(
        self, observation: Symbol, action: Symbol, transition_state: State, reward_state: State
    ) -> tuple[Any, Any]:
        """Return the next observation and the reward, each `UNSEEN` where never shown."""
        seen = observation
        if self.reward.supplemented:
            if transition_state is UNSEEN:
                return self.transition.output(UNSEEN, observation, action), UNSEEN
            seen = (observation, transition_state)
        return (
            self.transition.output(transition_state, observation, action),
            self.reward.output(reward_state, seen, action),
        )

    def score(self, traces: TraceSet) -> Score:
        """Replay traces through both machines: how many steps are right, wrong, unseen."""
        return score(self.transition, self.reward, self.timing, traces)

    def save(self, path: str | Path) -> None:
        """Write both machines to a JSON file, whole or not at all."""
        from resolvent.machines.storage import save

        save(self, path)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MachinePair):
            return NotImplemented
        return (
            self.transition == other.transition
            and self.reward == other.reward
            and self.timing is other.timing
            and self.termination == other.termination
            and self.provenance == other.provenance
        )

    def __hash__(self) -> int:
        return hash((self.transition, self.reward, self.timing))

    def __str__(self) -> str:
        return f"{self.transition}\n{self.reward}"

    def _repr_html_(self) -> str | None:
        """Draw both machines for a notebook, which shows text where this gives None."""
        from resolvent.machines.picture import html_of_pair

        return html_of_pair((self.transition, self.reward))
