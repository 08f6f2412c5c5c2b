"""Second thoughts: merges that were made too early are found by what follows from them.

Wrong merges show late: what really belongs to a state conflicts with it, so that there are
more states and odd moves than need be. Which merge was wrong cannot be seen, but it can be
tried: without it all that follows is decided anew, and what is shorter to describe is kept.
docs/decisions/telling.md says how much that helps.
"""

from dataclasses import dataclass
from typing import Final

from resolvent.errors import TimeLimitReached
from resolvent.merging.automaton import Automaton, Event, TooManyStates
from resolvent.merging.completion import completed
from resolvent.merging.evidence import Worth, cost_of_answers
from resolvent.merging.folding import Conflict
from resolvent.merging.orders import Merge, MostTelling, Promote, Search
from resolvent.merging.prefix_tree import build_prefix_tree
from resolvent.merging.red_blue import RedBlue, summary
from resolvent.merging.watch import Watch
from resolvent.samples import SampleSet

BUDGET: Final = 2_000_000
"""Nodes that are looked at, at most: those of the prefix tree once for each try."""


@dataclass(slots=True)
class _Attempt:
    search: RedBlue
    order: MostTelling
    worth: Worth

    @property
    def states(self) -> int:
        return len(self.search.red)

    def description(self) -> int:
        answers = cost_of_answers(self.search.tree, self.search.red, self.worth)
        return self.order.cost + answers

    def step(self) -> None:
        self.search.settle(self.order.decide(self.search))

    def repeat(self, events: list[Event]) -> None:
        for event in events:
            decision = _again(self.search, event)
            self.order.learn(self.search, decision)
            self.search.settle(decision)


def rethink(
    samples: SampleSet, horizon: int | None, watch: Watch, most_states: int | None = None
) -> Automaton:
    """Merge by what answers tell, then go through the merges and try to do without each.

    They are gone through in the order in which they were made, until a whole pass changes
    nothing. A time limit ends that early.

    Raises:
        TooManyStates: when more than `most_states` are left.
    """
    tree = build_prefix_tree(samples)
    worth = Worth(tree)

    def begin(apart: frozenset[tuple[int, int]]) -> _Attempt:
        search = RedBlue(build_prefix_tree(samples), watch)
        return _Attempt(search, MostTelling(worth, horizon, apart), worth)

    best = begin(frozenset())
    try:
        while not best.search.done:
            best.step()
    except TimeLimitReached:
        cut = best.search
        return completed(samples, cut.red, cut.settled(), cut.events, cut.attempts)
    shortest, tries = best.description(), BUDGET // len(tree)
    apart: frozenset[tuple[int, int]] = frozenset()

    def without(at: int) -> _Attempt | None:
        event = best.search.events[at]
        assert event.red is not None  # noqa: S101
        other = begin(apart | {(event.red, event.blue)})
        other.repeat(best.search.events[:at])
        while not other.search.done:
            if other.states > best.states or other.order.cost >= shortest:
                return None
            other.step()
        return other if other.description() < shortest else None

    try:
        changed = True
        while changed and tries > 0:
            changed, at = False, 0
            while at < len(best.search.events) and tries > 0:
                event = best.search.events[at]
                better = None
                if event.red is not None:
                    tries -= 1
                    better = without(at)
                if better is None or event.red is None:
                    at += 1
                else:
                    apart |= {(event.red, event.blue)}
                    best, shortest, changed = better, better.description(), True
    except TimeLimitReached:
        pass  # the best so far explains all, too
    if most_states is not None and best.states > most_states:
        raise TooManyStates
    return summary(best.search)


def _again(search: Search, event: Event) -> Merge | Promote:
    if event.red is None:
        return Promote(event.blue)
    fold = search.try_fold(event.red, event.blue)
    assert not isinstance(fold, Conflict), "a merge that was made before conflicts"  # noqa: S101
    return Merge(event.red, event.blue, fold)
