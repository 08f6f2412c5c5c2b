"""Merge orders: the next blue state to decide, and the red state to merge it into.

Input: the state of the search. Output: a `Merge` or a `Promote`. The native engine implements the
same orders; docs/decisions/inference.md gives the reasons for them.

The score of "likelihood" and "backtracking" is an information content in 256ths of a bit, in
integers, so that both engines agree to the last digit.
"""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from typing import Final, NamedTuple

from resolvent.errors import TimeLimitReached
from resolvent.inference.state_merging import (
    Fold,
    FoldConflict,
    Merge,
    PrefixTree,
    Promote,
    RedBlue,
    Watch,
    automaton_of_search,
    build_prefix_tree,
    complete_search,
)
from resolvent.machines.build import RawAutomaton, RawMergeEvent, StateLimitExceeded
from resolvent.preprocess.samples import SampleSet
from resolvent.preprocess.timing import NONE

ONE_BIT: Final = 256
"""One bit in the unit of scores."""

NEAREST: Final = 1 << 16
"""Weight of an output at the merge itself."""

SURE_ENOUGH: Final = 5 * ONE_BIT
"""A lead over the second-best merge of a state beyond which merges count as equally certain."""

BACKTRACKING_BUDGET: Final = 6_000_000
"""Work spent on backtracking at most: for each try the nodes of the prefix tree, and for each
decision that is repeated the number of states."""

_SHARE_DIGITS: Final = 20  # shares are counted in 2^-20


class Transition(NamedTuple):
    """A transition by a label; `last_output` is the output just before it."""

    label: int
    last_output: int
    source: int
    target: int


# ---- orders ------------------------------------------------------------------


class FirstFit:
    """The first blue state in shortlex order, into the first red state that it fits.

    Paper: StateMerging in "DB-RPNI Pseudocode", in its canonical order.
    """

    def decide(self, search: RedBlue) -> Merge | Promote:
        """Decide about the first blue state."""
        blue = search.blue_in_order()[0]
        for red in search.red:
            fold = search.try_fold(red, blue)
            if not isinstance(fold, FoldConflict):
                return Merge(red, blue, fold)
        return Promote(blue)


@dataclass
class BestFirst:
    """The pair with the highest score among all blue and all red states.

    A fold is scored by the first `horizon` outputs, and -inf refuses it. A blue state that fits no
    red state within the horizon is promoted first. Ties go to the earlier blue state, then to the
    earlier red state.
    """

    score: Callable[[Fold], float]
    horizon: int | None

    refuted: set[tuple[int, int]] = field(default_factory=set)
    scores: dict[tuple[int, int], tuple[int, float]] = field(default_factory=dict)

    def decide(self, search: RedBlue) -> Merge | Promote:
        """Promote the first blue state that fits no red state, or merge the best pair."""
        while True:
            scores: dict[tuple[int, int], float] = {}
            for blue in search.blue_in_order():
                of_blue = {(red, blue): self._score(search, red, blue) for red in search.red}
                fitting = {pair: score for pair, score in of_blue.items() if score > -inf}
                if not fitting:
                    return Promote(blue)
                scores |= fitting
            best = self._best(search, scores)
            fold = search.try_fold(*best)
            if not isinstance(fold, FoldConflict):
                return Merge(*best, fold)
            self._refuse(best, fold, search.merges)  # they conflict beyond the horizon

    def _best(self, search: RedBlue, scores: dict[tuple[int, int], float]) -> tuple[int, int]:
        return max(scores, key=scores.__getitem__)  # the first of equals

    def _score(self, search: RedBlue, red: int, blue: int) -> float:
        # A score holds until the next merge.
        if (red, blue) in self.refuted:
            return -inf
        merges, score = self.scores.get((red, blue), (-1, -inf))
        if merges == search.merges:
            return score
        fold = search.try_fold(red, blue, self.horizon)
        if isinstance(fold, FoldConflict):
            self._refuse((red, blue), fold, search.merges)
            return -inf
        score = self.score(fold)
        fold.undo()
        self.scores[red, blue] = (search.merges, score)
        return score

    def _refuse(self, pair: tuple[int, int], conflict: FoldConflict, merges: int) -> None:
        if conflict.alpha is None:
            self.scores[pair] = (merges, -inf)
        else:
            self.refuted.add(pair)


class MostLikely(BestFirst):
    """The pair with the most informative agreement and the most likely transition.

    The score is the information in the outputs that agree. The likelihood of the transition is
    learned from each decision, and so is added only when a pair is chosen. A blue state waits
    while two red states fit it about equally well. Pairs in `apart` are never merged.
    """

    def __init__(
        self,
        information: "OutputInformation",
        horizon: int | None,
        apart: frozenset[tuple[int, int]] = frozenset(),
    ) -> None:
        super().__init__(information.of_fold, horizon, refuted=set(apart))
        self.cost = 0
        self._model = TransitionModel()

    def decide(self, search: RedBlue) -> Merge | Promote:
        """Decide as for any score, and learn from the decision."""
        decision = super().decide(search)
        self.learn(search, decision)
        return decision

    def learn(self, search: RedBlue, decision: Merge | Promote) -> None:
        """Add the description length of a decision to `cost`, and learn from it."""
        target = decision.red if isinstance(decision, Merge) else NONE
        transition = self._transition(search, target, decision.blue)
        states = len(search.red)
        self.cost += states.bit_length() * ONE_BIT - self._model.gain(transition, states)
        if target == NONE:
            transition = transition._replace(target=decision.blue)
        self._model.learn(transition)

    def _best(self, search: RedBlue, scores: dict[tuple[int, int], float]) -> tuple[int, int]:
        fits: dict[int, list[tuple[float, int]]] = {}
        for (red, blue), score in scores.items():
            gain = self._model.gain(self._transition(search, red, blue), len(search.red))
            fits.setdefault(blue, []).append((score + gain, red))

        def rank(blue: int) -> tuple[float, float]:
            best, *worse = sorted((score for score, _ in fits[blue]), reverse=True)
            return min([SURE_ENOUGH, *(best - score for score in worse)]), best

        blue = max(fits, key=rank)  # the first of equals
        _, red = max(fits[blue], key=lambda fit: fit[0])
        return red, blue

    def _transition(self, search: RedBlue, target: int, blue: int) -> Transition:
        source, label = search.blue[blue]
        return Transition(label, search.tree.last_output[blue], source, target)


# ---- evidence ----------------------------------------------------------------


def bits(number: int) -> int:
    """Return the logarithm of a number above 0, in 256ths of a bit, rounded down.

    >>> bits(1), bits(2), bits(3), bits(1024)
    (0, 256, 405, 2560)
    """
    logarithm = number.bit_length() - 1
    # Squaring doubles the logarithm: a carry is its next binary digit.
    rest = number << (31 - logarithm) if logarithm <= 31 else number >> (logarithm - 31)
    for _ in range(8):
        rest = rest * rest >> 31
        carry = rest >> 32
        rest >>= carry
        logarithm = 2 * logarithm + carry
    return logarithm


class OutputInformation:
    """The information content of outputs: the rarer an output for its α-input, the higher.

    Each node of the tree counts once, so that repeated traces change nothing.
    """

    def __init__(self, tree: PrefixTree) -> None:
        nodes_with = Counter(pair for outputs in tree.outputs for pair in outputs.items())
        nodes_of_alpha: Counter[int] = Counter()
        self.distinct_outputs: Counter[int] = Counter()
        for (alpha, _), nodes in nodes_with.items():
            nodes_of_alpha[alpha] += nodes
            self.distinct_outputs[alpha] += 1
        self._bits = {
            (alpha, output): bits(nodes_of_alpha[alpha] + self.distinct_outputs[alpha] + 1)
            - bits(nodes + 1)
            for (alpha, output), nodes in nodes_with.items()
        }

    def of_fold(self, fold: Fold) -> int:
        """Return the information in the outputs that agree in a fold, near ones weighing more.

        Machines forget their past, so an output is two fifths less evidence with each label.
        """
        new = set(fold.new_outputs)
        outputs = fold.tree.outputs
        by_distance: Counter[int] = Counter()
        for (state, into), distance in zip(fold.merged, fold.distance, strict=True):
            for alpha, output in outputs[state].items():
                if (into, alpha) in new:
                    new.remove((into, alpha))
                else:
                    by_distance[distance] += self._bits[alpha, output]
        weight, evidence = NEAREST, 0
        for distance in range(max(by_distance, default=-1) + 1):
            evidence += by_distance[distance] * weight
            weight = weight * 3 // 5
        return evidence // NEAREST


class TransitionModel:
    """The distribution of transitions, learned from the decided ones.

    A label leads back to the same state, or to some states more often than to others. Labels are
    distinguished by the output just before them: a refused request usually changes nothing.
    The target `NONE` is a new state.
    """

    def __init__(self) -> None:
        self._transitions: Counter[tuple[int, ...]] = Counter()
        self._loops: Counter[tuple[int, ...]] = Counter()
        self._reached: Counter[tuple[int, ...]] = Counter()

    def gain(self, transition: Transition, states: int) -> int:
        """Return the log-likelihood ratio of a transition over a uniformly random target."""
        unit = 1 << _SHARE_DIGITS
        label, output = (transition.label,), (transition.label, transition.last_output)
        # The share of loops for label and output; the share for the label alone is its prior.
        loops = (2 * self._loops[label] + 1) << (_SHARE_DIGITS - 1)
        loops //= self._transitions[label] + 1
        loops = ((self._loops[output] << _SHARE_DIGITS) + loops) // (self._transitions[output] + 1)
        loops = min(max(loops, 1), unit - 1)
        width = states.bit_length()
        if transition.target == transition.source:
            return bits(loops) + (width - _SHARE_DIGITS) * ONE_BIT
        reached = 0  # a new state was not reached before
        if transition.target != NONE:
            reached = self._reached[*output, transition.target]
        elsewhere = self._transitions[output] - self._loops[output]
        share = bits((reached << width) + 1) - bits(elsewhere + 1)
        return bits(unit - loops) - _SHARE_DIGITS * ONE_BIT + share

    def learn(self, transition: Transition) -> None:
        """Learn from a transition that was decided."""
        label, output = (transition.label,), (transition.label, transition.last_output)
        self._transitions.update((label, output))
        if transition.target == transition.source:
            self._loops.update((label, output))
        else:
            self._reached[*output, transition.target] += 1


def cost_of_outputs(tree: PrefixTree, states: list[int], information: OutputInformation) -> int:
    """Return the code length of the outputs of states.

    Each output is coded by how often earlier states have it for the same α-input.
    """
    with_alpha: Counter[int] = Counter()
    with_output: Counter[tuple[int, int]] = Counter()
    cost = 0
    for alpha, output in (pair for state in states for pair in tree.outputs[state].items()):
        distinct = information.distinct_outputs[alpha]
        with_alpha[alpha] += 1
        cost += bits(distinct) + bits(with_alpha[alpha])
        cost -= bits(with_output[alpha, output] * distinct + 1)
        with_output[alpha, output] += 1
    return cost


# ---- backtracking ------------------------------------------------------------


@dataclass(slots=True)
class _Attempt:
    search: RedBlue
    order: MostLikely
    information: OutputInformation

    def description_length(self) -> int:
        outputs = cost_of_outputs(self.search.tree, self.search.red, self.information)
        return self.order.cost + outputs

    def run(self, most_states: float = inf, most_bits: float = inf) -> None:
        """Decide about all blue states, unless this becomes larger than the limits."""
        search, order = self.search, self.order
        while not search.done and len(search.red) <= most_states and order.cost < most_bits:
            search.apply(order.decide(search))

    def repeat(self, events: list[RawMergeEvent]) -> None:
        """Make decisions that were made before."""
        for red, blue, *_ in events:
            decision: Merge | Promote = Promote(blue)
            if red is not None:
                fold = self.search.try_fold(red, blue)
                if isinstance(fold, FoldConflict):
                    raise RuntimeError("a repeated merge conflicts")  # decisions are the same
                decision = Merge(red, blue, fold)
            self.order.learn(self.search, decision)
            self.search.apply(decision)


def merge_with_backtracking(
    samples: SampleSet, horizon: int | None, watch: Watch, most_states: int | None = None
) -> RawAutomaton:
    """Merge by likelihood, then undo each merge in turn and keep the shorter description.

    A wrong merge shows late, by conflicts that cause too many states and unlikely transitions.
    Without the merge, all later decisions are made again. Merges are undone in their order, until
    a whole pass changes nothing or the time limit is reached.

    Raises:
        StateLimitExceeded: when more than `most_states` are left.
    """
    information = OutputInformation(build_prefix_tree(samples))

    def start(apart: frozenset[tuple[int, int]]) -> _Attempt:
        search = RedBlue(build_prefix_tree(samples), watch)
        return _Attempt(search, MostLikely(information, horizon, apart), information)

    apart: frozenset[tuple[int, int]] = frozenset()
    best = start(apart)
    try:
        best.run()
    except TimeLimitReached:
        return complete_search(samples, best.search)
    shortest, budget, changed = best.description_length(), BACKTRACKING_BUDGET, True
    with suppress(TimeLimitReached):  # the best attempt so far explains all samples, too
        while changed and budget > 0:
            changed, at = False, 0
            while at < len(best.search.events) and budget > 0:
                red, blue, *_ = best.search.events[at]
                if red is not None:
                    attempt = start(apart | {(red, blue)})
                    attempt.repeat(best.search.events[:at])
                    attempt.run(len(best.search.red), shortest)
                    decided = len(attempt.search.events) - at
                    budget -= len(best.search.tree) + decided * len(attempt.search.red)
                    if attempt.search.done and attempt.description_length() < shortest:
                        apart |= {(red, blue)}
                        best, shortest, changed = attempt, attempt.description_length(), True
                        continue  # with the decision that replaces it
                at += 1
    if most_states is not None and len(best.search.red) > most_states:
        raise StateLimitExceeded
    return automaton_of_search(best.search)
