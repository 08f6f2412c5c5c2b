"""The orders "likelihood" and "backtracking" by their definition, on the red-blue loop in Python.

The oracle of what the native engine does. Scores are an information content in 256ths of a bit, in
integers, so that they agree to the last digit.
"""

from collections import Counter
from itertools import pairwise
from math import inf
from typing import NamedTuple

from resolvent.inference.engine import merge
from resolvent.inference.merge_order import BestFirst
from resolvent.inference.state_merging import (
    FoldConflict,
    Merge,
    Promote,
    RedBlue,
    Watch,
    automaton_of_search,
    build_prefix_tree,
)
from resolvent.inference.strategy import STRATEGIES
from resolvent.preprocess.timing import NONE

HORIZON = STRATEGIES["likelihood"].horizon

ONE_BIT = 256
"""One bit in the unit of scores."""

NEAREST = 1 << 16
"""Weight of an output at the merge itself."""

SURE_ENOUGH = 5 * ONE_BIT
"""A lead over the second-best merge of a state beyond which merges count as equally certain."""

BACKTRACKING_BUDGET = 6_000_000
"""Work spent on backtracking at most: for each try the nodes of the prefix tree, and for each
decision that is repeated the number of states."""

_SHARE_DIGITS = 20  # shares are counted in 2^-20


class Transition(NamedTuple):
    """A transition by a label; `last_output` is the output just before it."""

    label: int
    last_output: int
    source: int
    target: int


class MostLikely(BestFirst):
    """The pair with the most informative agreement and the most likely transition.

    The score is the information in the outputs that agree. The likelihood of the transition is
    learned from each decision, and so is added only when a pair is chosen. A blue state waits
    while two red states fit it about equally well. Pairs in `apart` are never merged.
    """

    def __init__(self, information, last_output, apart=frozenset()):
        super().__init__(information.of_fold, HORIZON, refuted=set(apart))
        self.cost = 0
        self._last_output = last_output
        self._model = TransitionModel()

    def decide(self, search):
        """Decide as for any score, but about the best pair by `_best`, and learn from it."""
        decision = self._decide(search)
        self.learn(search, decision)
        return decision

    def _decide(self, search):
        while True:
            scores = {}
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
            self._refuse(best, fold, search.merges)

    def learn(self, search, decision):
        """Add the description length of a decision to `cost`, and learn from it."""
        target = decision.red if isinstance(decision, Merge) else NONE
        transition = self._transition(search, target, decision.blue)
        states = len(search.red)
        self.cost += states.bit_length() * ONE_BIT - self._model.gain(transition, states)
        if target == NONE:
            transition = transition._replace(target=decision.blue)
        self._model.learn(transition)

    def _best(self, search, scores):
        fits = {}
        for (red, blue), score in scores.items():
            gain = self._model.gain(self._transition(search, red, blue), len(search.red))
            fits.setdefault(blue, []).append((score + gain, red))

        def rank(blue):
            best, *worse = sorted((score for score, _ in fits[blue]), reverse=True)
            return min([SURE_ENOUGH, *(best - score for score in worse)]), best

        blue = max(fits, key=rank)  # the first of equals
        _, red = max(fits[blue], key=lambda fit: fit[0])
        return red, blue

    def _transition(self, search, target, blue):
        source, label = search.blue[blue]
        return Transition(label, self._last_output[blue], source, target)


# ---- evidence ----------------------------------------------------------------


def bits(number):
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

    def __init__(self, tree):
        nodes_with = Counter(pair for outputs in tree.outputs for pair in outputs.items())
        nodes_of_alpha = Counter()
        self.distinct_outputs = Counter()
        for (alpha, _), nodes in nodes_with.items():
            nodes_of_alpha[alpha] += nodes
            self.distinct_outputs[alpha] += 1
        self._bits = {
            (alpha, output): bits(nodes_of_alpha[alpha] + self.distinct_outputs[alpha] + 1)
            - bits(nodes + 1)
            for (alpha, output), nodes in nodes_with.items()
        }

    def of_fold(self, fold):
        """Return the information in the outputs that agree in a fold, near ones weighing more.

        Machines forget their past, so an output is two fifths less evidence with each label.
        """
        new = set(fold.new_outputs)
        outputs = fold.tree.outputs
        by_distance = Counter()
        distances = distances_in(fold)
        for state, into in fold.merged:
            distance = distances[state]
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


def distances_in(fold):
    """Return the number of labels from the merge itself to each state that a fold merged."""
    blue, _ = fold.merged[0]
    distances = {blue: 0}
    for state, _ in fold.merged:  # the nearest first; their own children are as they were
        for child in fold.tree.children[state].values():
            distances[child] = distances[state] + 1
    return distances


def last_outputs(tree, samples):
    """Return the output of the step before each node; `NONE` if there is none or traces differ."""
    outputs = [set() for _ in range(len(tree))]
    beta, alpha, output = (getattr(samples, name).tolist() for name in ("beta", "alpha", "output"))
    for start, stop in pairwise(samples.offsets.tolist()):
        node, before = 0, NONE
        for row in range(start, stop):
            if beta[row] != NONE:
                node = tree.children[node][beta[row]]
                outputs[node].add(before)
            before = NONE if alpha[row] == NONE else output[row]
    return [next(iter(few)) if len(few) == 1 else NONE for few in outputs]


class TransitionModel:
    """The distribution of transitions, learned from the decided ones.

    A label leads back to the same state, or to some states more often than to others. Labels are
    distinguished by the output just before them: a refused request usually changes nothing.
    The target `NONE` is a new state.
    """

    def __init__(self):
        self._transitions = Counter()
        self._loops = Counter()
        self._reached = Counter()

    def gain(self, transition, states):
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

    def learn(self, transition):
        """Learn from a transition that was decided."""
        label, output = (transition.label,), (transition.label, transition.last_output)
        self._transitions.update((label, output))
        if transition.target == transition.source:
            self._loops.update((label, output))
        else:
            self._reached[*output, transition.target] += 1


def cost_of_outputs(tree, states, information):
    """Return the code length of the outputs of states.

    Each output is coded by how often earlier states have it for the same α-input.
    """
    with_alpha = Counter()
    with_output = Counter()
    cost = 0
    for alpha, output in (pair for state in states for pair in tree.outputs[state].items()):
        distinct = information.distinct_outputs[alpha]
        with_alpha[alpha] += 1
        cost += bits(distinct) + bits(with_alpha[alpha])
        cost -= bits(with_output[alpha, output] * distinct + 1)
        with_output[alpha, output] += 1
    return cost


# ---- searches ----------------------------------------------------------------


def merge_in_python(samples, order):
    """Infer an automaton as `merge` does natively, in any merge order.

    "backtracking" merges by likelihood, then undoes each merge in turn and keeps the shorter
    description. A wrong merge shows late, by conflicts that cause too many states and unlikely
    transitions. Without the merge, all later decisions are made again. Merges are undone in their
    order, until a whole pass changes nothing.
    """
    if order not in ("likelihood", "backtracking"):
        return merge(samples, order, "python")
    best = _Attempt(samples)
    best.run()
    if order == "backtracking":
        best = _without_wrong_merges(samples, best)
    return automaton_of_search(best.search)


class _Attempt:
    """One search by likelihood, in which some pairs are kept apart."""

    def __init__(self, samples, apart=frozenset()):
        tree = build_prefix_tree(samples)
        self._information = OutputInformation(tree)
        self.search = RedBlue(tree, Watch(None, None))
        self._order = MostLikely(self._information, last_outputs(tree, samples), apart)

    def description_length(self):
        outputs = cost_of_outputs(self.search.tree, self.search.red, self._information)
        return self._order.cost + outputs

    def run(self, most_states=inf, most_bits=inf):
        """Decide about all blue states, unless this becomes larger than the limits."""
        search, order = self.search, self._order
        while search.blue and len(search.red) <= most_states and order.cost < most_bits:
            search.apply(order.decide(search))

    def repeat(self, events):
        """Make decisions that were made before."""
        for red, blue, *_ in events:
            decision = Promote(blue)
            if red is not None:
                fold = self.search.try_fold(red, blue)
                assert not isinstance(fold, FoldConflict)  # decisions are the same
                decision = Merge(red, blue, fold)
            self._order.learn(self.search, decision)
            self.search.apply(decision)


def _without_wrong_merges(samples, best):
    apart = frozenset()
    shortest, budget, changed = best.description_length(), BACKTRACKING_BUDGET, True
    while changed and budget > 0:
        changed, at = False, 0
        while at < len(best.search.events) and budget > 0:
            red, blue, *_ = best.search.events[at]
            if red is not None:
                attempt = _Attempt(samples, apart | {(red, blue)})
                attempt.repeat(best.search.events[:at])
                attempt.run(len(best.search.red), shortest)
                decided = len(attempt.search.events) - at
                budget -= len(best.search.tree) + decided * len(attempt.search.red)
                if not attempt.search.blue and attempt.description_length() < shortest:
                    apart |= {(red, blue)}
                    best, shortest, changed = attempt, attempt.description_length(), True
                    continue  # with the decision that replaces it
            at += 1
    return best
