"""What an agreement tells, and what is usual: the score by which "telling" and "rethink" merge.

All of it is counted in 256ths of a bit, in integers, so that both engines agree to the last
digit. docs/decisions/telling.md says why agreements are weighed like this.
"""

from collections import Counter
from typing import Final, NamedTuple

from resolvent.merging.folding import Fold
from resolvent.merging.prefix_tree import PrefixTree
from resolvent.samples import NONE

ONE_BIT: Final = 256
NEAREST: Final = 1 << 16
"""The weight of an answer at the merge itself."""

SURE_ENOUGH: Final = 5 * ONE_BIT
"""A merge that is so much better than the next best of a state is as good as its only one."""

_SHARE_DIGITS: Final = 20  # shares are counted in 2^-20


def bits(number: int) -> int:
    """Return the logarithm of a number above 0, in 256ths of a bit, rounded down.

    >>> bits(1), bits(2), bits(3), bits(1024)
    (0, 256, 405, 2560)
    """
    whole = number.bit_length() - 1
    # Squaring doubles the logarithm: a carry is its next binary digit.
    rest = number << (31 - whole) if whole <= 31 else number >> (whole - 31)
    for _ in range(8):
        rest = rest * rest >> 31
        carry = rest >> 32
        rest >>= carry
        whole = 2 * whole + carry
    return whole


class Worth:
    """How much an answer tells: the rarer among the answers to its question, the more.

    Each node of the tree counts once, however often it was visited, so that repeated traces
    change nothing.
    """

    def __init__(self, tree: PrefixTree) -> None:
        given = Counter(answer for answers in tree.answers for answer in answers.items())
        asked: Counter[int] = Counter()
        self.kinds: Counter[int] = Counter()
        for (alpha, _), nodes in given.items():
            asked[alpha] += nodes
            self.kinds[alpha] += 1
        self._worth = {
            (alpha, output): bits(asked[alpha] + self.kinds[alpha] + 1) - bits(nodes + 1)
            for (alpha, output), nodes in given.items()
        }

    def evidence(self, fold: Fold) -> int:
        """Return what the agreeing answers of a fold tell, near ones more than far ones.

        Machines forget where they began, so that with each label an answer tells less of the
        merge, by two fifths.
        """
        new = set(fold.answered)
        answers = fold.tree.answers
        on_levels: Counter[int] = Counter()
        for (state, into), distance in zip(fold.merged, fold.distance, strict=True):
            for alpha, output in answers[state].items():
                if (into, alpha) in new:
                    new.remove((into, alpha))
                else:
                    on_levels[distance] += self._worth[alpha, output]
        weight, evidence = NEAREST, 0
        for distance in range(max(on_levels, default=-1) + 1):
            evidence += on_levels[distance] * weight
            weight = weight * 3 // 5
        return evidence // NEAREST


class Move(NamedTuple):
    """Where a label leads from a state; `lead` is the answer just before it."""

    label: int
    lead: int
    source: int
    target: int


class Habits:
    """Where labels usually lead, learned from the moves that were decided.

    A label leads back to the same state, or to some other one more often than to others.
    Labels are told apart by the answer just before them: what is refused changes nothing, as
    a rule. `NONE` is a target that is a new state.
    """

    def __init__(self) -> None:
        self._moves: Counter[tuple[int, ...]] = Counter()
        self._loops: Counter[tuple[int, ...]] = Counter()
        self._reached: Counter[tuple[int, int, int]] = Counter()

    def favour(self, move: Move, states: int) -> int:
        """Return how much likelier a move is than to any other of so many states."""
        whole = 1 << _SHARE_DIGITS
        label, answer = (move.label,), (move.label, move.lead)
        # How often it loops: what is known of label and answer, on top of what is of the label.
        loops = ((2 * self._loops[label] + 1) << (_SHARE_DIGITS - 1)) // (self._moves[label] + 1)
        loops = ((self._loops[answer] << _SHARE_DIGITS) + loops) // (self._moves[answer] + 1)
        loops = min(max(loops, 1), whole - 1)
        width = states.bit_length()
        if move.target == move.source:
            return bits(loops) + (width - _SHARE_DIGITS) * ONE_BIT
        reached = 0 if move.target == NONE else self._reached[move.label, move.lead, move.target]
        elsewhere = self._moves[answer] - self._loops[answer]
        return (
            bits(whole - loops)
            - _SHARE_DIGITS * ONE_BIT
            + bits((reached << width) + 1)
            - bits(elsewhere + 1)
        )

    def cost(self, move: Move, states: int) -> int:
        """Return what it takes to tell a move to somebody who knows the habits so far."""
        return states.bit_length() * ONE_BIT - self.favour(move, states)

    def see(self, move: Move) -> None:
        """Learn from a move that was decided."""
        label, answer = (move.label,), (move.label, move.lead)
        self._moves.update((label, answer))
        if move.target == move.source:
            self._loops.update((label, answer))
        else:
            self._reached[move.label, move.lead, move.target] += 1


def cost_of_answers(tree: PrefixTree, states: list[int], worth: Worth) -> int:
    """Return what it takes to tell the answers of states.

    Each answer is told by how often the states before gave it to the same question.
    """
    asked: Counter[int] = Counter()
    given: Counter[tuple[int, int]] = Counter()
    cost = 0
    for state in states:
        for alpha, output in tree.answers[state].items():
            kinds = worth.kinds[alpha]
            asked[alpha] += 1
            cost += bits(kinds) + bits(asked[alpha]) - bits(given[alpha, output] * kinds + 1)
            given[alpha, output] += 1
    return cost
