"""Strategies as users write them; here, where pickles can find them."""

from dataclasses import dataclass
from math import inf

from resolvent.inference.strategy import Strategy


class MostAgreeing(Strategy):
    """What edsm says, said once more, by listing what agrees; it also looks at each pair."""

    name = "most agreeing"

    def fits(self, known, new):
        common = known.keys() & new.keys()
        return all(known[query].output == new[query].output for query in common)

    def score(self, merge):
        return sum(1 for _ in merge.agreements())


class FirstInOrder(Strategy):
    """What rpni says."""

    name = "first in order"
    first_fit = True
    refines = False


@dataclass(frozen=True)
class AtLeast(Strategy):
    """Merge only what at least so many answers speak for."""

    answers: int
    name = "at least"

    def score(self, merge):
        return merge.agreeing if merge.agreeing >= self.answers else -inf


class Weighted(Strategy):
    """Evidence counts as often as it was seen on the side that saw it less."""

    name = "weighted"

    def __init__(self, horizon=None):
        self.horizon = horizon

    def score(self, merge):
        return sum(min(one.known, one.new) for one in merge.agreements())


class Timid(Strategy):
    """Keep apart whatever has no query in common."""

    name = "timid"

    def fits(self, known, new):
        return not known or not new or not known.keys().isdisjoint(new)

    def score(self, merge):
        return merge.agreeing


class KeepingLabels(Strategy):
    """What edsm says, of labels that it would drop as well."""

    name = "keeping labels"
    keeps_labels = True

    def score(self, merge):
        return merge.agreeing
