"""The next thing to try: how to get to a step that nobody has taken."""

from dataclasses import dataclass
from typing import Any

from resolvent.control.planning.chance.chances import Chances
from resolvent.control.planning.model import Model
from resolvent.control.planning.situations import Situation, by_name, situation_text
from resolvent.traces.symbols import Symbol, symbol_text
from resolvent.traces.vocabulary import Codes
from resolvent.wording import amount

_ACTIONS_SHOWN = 12


@dataclass(frozen=True)
class NextExperiment:
    """What to try next: where to begin, what to do to get there, and the step to take then.

    Go on for a step or more after that: the label a trace ends with is read by
    no machine.

    Where machines answer with chance, `actions` lead there if the likeliest comes each time,
    and `taken` is how often the step was seen so far.
    """

    start: Situation
    actions: tuple[Symbol, ...]
    situation: Situation
    action: Symbol
    taken: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "start": by_name(self.start),
            "actions": list(self.actions),
            "situation": by_name(self.situation),
            "action": self.action,
            **({} if self.taken is None else {"taken": self.taken}),
        }

    def __str__(self) -> str:
        way = ", ".join(map(symbol_text, self.actions[:_ACTIONS_SHOWN]))
        if len(self.actions) > _ACTIONS_SHOWN:
            way += f", … ({len(self.actions)} actions)"
        way = f", do {way}" if self.actions else ""
        if self.taken is not None:
            way = f"{way} (if the likeliest comes each time)" if way else ""
        if self.taken:
            return (
                f"begin in {symbol_text(self.start[0])}{way}; then in "
                f"{situation_text(self.situation)} do {symbol_text(self.action)}, "
                f"and go on: it was seen {amount(self.taken, 'time')}, the fewest on this way"
            )
        return (
            f"begin in {symbol_text(self.start[0])}{way}; then in "
            f"{situation_text(self.situation)} do {symbol_text(self.action)}, "
            f"and go on: what follows is not known"
        )


def nearest_unknown(model: Model) -> NextExperiment | None:
    """Return the unknown step that the fewest known ones lead to from any start, if there is one.

    A step that is unknown because it ends episodes only sometimes is left out: trying it
    again would not settle it.
    """
    came_from: dict[int, tuple[int, int] | None] = {int(start): None for start in model.starts}
    waiting = list(came_from)
    for here in waiting:  # grows while it is gone through: the nearest come first
        unsettled = ~model.known[here] & ~model.sometimes_ends[here]
        if unsettled.any():
            return _way_to(model, came_from, here, int(unsettled.argmax()))
        for action, following in enumerate(model.following[here].tolist()):
            if following >= 0 and following not in came_from:
                came_from[following] = here, action
                waiting.append(following)
    return None


def least_taken(model: Model, chances: Chances, policy: Codes, start: int) -> NextExperiment | None:
    """Return the step that a policy takes on its likeliest way and that was seen least often.

    If one is not known, that is the first of these.
    """
    here, way, met = start, list[tuple[int, int]](), set[int]()
    while here >= 0 and here not in met:
        met.add(here)
        way.append((here, int(policy[here])))
        if not model.known[way[-1]]:
            break
        here = int(model.following[way[-1]])
    times = [int(chances.seen[at * len(model.actions) + action]) for at, action in way]
    fewest = times.index(min(times))
    there, action = way[fewest]
    actions = tuple(model.actions[taken] for _, taken in way[:fewest])
    return NextExperiment(
        model.named(start), actions, model.named(there), model.actions[action], min(times)
    )


def _way_to(
    model: Model, came_from: dict[int, tuple[int, int] | None], there: int, action: int
) -> NextExperiment:
    actions: list[Symbol] = []
    here = there
    while (before := came_from[here]) is not None:
        here, taken = before
        actions.append(model.actions[taken])
    way = tuple(reversed(actions))
    times = None if model.chances is None else 0
    return NextExperiment(model.named(here), way, model.named(there), model.actions[action], times)
