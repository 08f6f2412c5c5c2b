"""The next thing to try: how to get to a step that nobody has taken."""

from dataclasses import dataclass
from typing import Any

from resolvent.control.planning.situations import Situation, by_name, situation_text
from resolvent.traces.symbols import Symbol, symbol_text

_ACTIONS_SHOWN = 12


@dataclass(frozen=True)
class NextExperiment:
    """What to try next: where to begin, what to do to get there, and the step to take then.

    Go on for a step or more after that: the label a trace ends with is read by
    no machine.
    """

    start: Situation
    actions: tuple[Symbol, ...]
    situation: Situation
    action: Symbol

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "start": by_name(self.start),
            "actions": list(self.actions),
            "situation": by_name(self.situation),
            "action": self.action,
        }

    def __str__(self) -> str:
        way = ", ".join(map(symbol_text, self.actions[:_ACTIONS_SHOWN]))
        if len(self.actions) > _ACTIONS_SHOWN:
            way += f", … ({len(self.actions)} actions)"
        way = f", do {way}" if self.actions else ""
        return (
            f"begin in {symbol_text(self.start[0])}{way}; then in "
            f"{situation_text(self.situation)} do {symbol_text(self.action)}, "
            f"and go on: what follows is not known"
        )
