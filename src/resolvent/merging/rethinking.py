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

BUDGET: Final = 6_000_000
"""How much is tried at most: for each try the nodes of the prefix tree, and for each decision
made anew the states that it chose among."""


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
    shortest, budget = best.description(), BUDGET
    apart: frozenset[tuple[int, int]] = frozenset()

    def without(red: int, blue: int, at: int) -> _Attempt:
        other = begin(apart | {(red, blue)})
        other.repeat(best.search.events[:at])
        while not other.search.done and other.states <= best.states and other.order.cost < shortest:
            other.step()
        return other

    try:
        changed = True
        while changed and budget > 0:
            changed, at = False, 0
            while at < len(best.search.events) and budget > 0:
                red, blue, *_ = best.search.events[at]
                if red is not None:
                    other = without(red, blue, at)
                    budget -= len(tree) + (len(other.search.events) - at) * other.states
                    if other.search.done and other.description() < shortest:
                        apart |= {(red, blue)}
                        best, shortest, changed = other, other.description(), True
                        continue  # with what was decided instead
                at += 1
    except TimeLimitReached:
        pass  # the best so far explains all, too
    if most_states is not None and best.states > most_states:
        raise TooManyStates
    return summary(best.search)


def _again(search: Search, event: Event) -> Merge | Promote:
    if event.red is None:
        return Promote(event.blue)
    fold = search.try_fold(event.red, event.blue)
    if isinstance(fold, Conflict):
        raise RuntimeError("a merge that was made before conflicts")  # what came before is the same
    return Merge(event.red, event.blue, fold)
