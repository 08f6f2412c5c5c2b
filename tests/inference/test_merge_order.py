"""Decisions of each order; a stub for the search says which merges fit and how well."""

from dataclasses import dataclass, field
from math import inf

import pytest

from resolvent.inference.merge_order import BestFirst, FirstFit
from resolvent.inference.state_merging import FoldConflict, Merge, Promote


@dataclass
class FakeFold:
    agreeing: int
    undone: int = 0

    def undo(self):
        self.undone += 1


@dataclass
class FakeSearch:
    """`fits[red, blue]` is the score of a pair; any other pair conflicts."""

    red: list
    blue: list
    fits: dict
    merges: int = 0
    tried: list = field(default_factory=list)
    far: set = field(default_factory=set)  # pairs that conflict only beyond any horizon
    alpha: int | None = 0  # what pairs answer differently; None if a strategy keeps them apart

    def blue_in_order(self):
        return sorted(self.blue)

    def try_fold(self, red, blue, horizon=None):
        self.tried.append((red, blue))
        if (red, blue) not in self.fits or (horizon is None and (red, blue) in self.far):
            return FoldConflict(red, blue, self.alpha)
        return FakeFold(self.fits[red, blue])


def best_first():
    return BestFirst(lambda fold: fold.agreeing, horizon=10)


def test_first_fit_takes_the_first_blue_state_to_the_first_red_one_it_fits():
    search = FakeSearch([0, 4, 2], [7, 5], {(2, 5): 9, (4, 5): 0, (0, 7): 99})
    decision = FirstFit().decide(search)
    assert isinstance(decision, Merge)
    assert (decision.red, decision.blue, decision.fold.agreeing) == (4, 5, 0)
    assert search.tried == [(0, 5), (4, 5)]
    assert decision.fold.undone == 0


def test_first_fit_promotes_a_blue_state_that_fits_nothing():
    assert FirstFit().decide(FakeSearch([0, 4], [7, 5], {(0, 7): 3})) == Promote(5)


def test_best_first_takes_the_pair_on_which_most_agree():
    search = FakeSearch([0, 4], [5, 7], {(0, 5): 1, (4, 5): 2, (0, 7): 3, (4, 7): 1})
    decision = best_first().decide(search)
    assert isinstance(decision, Merge)
    assert (decision.red, decision.blue) == (0, 7)
    assert decision.fold.undone == 0


@pytest.mark.parametrize(
    ("fits", "pair"),
    [
        ({(0, 5): 2, (4, 5): 2, (0, 7): 2}, (0, 5)),
        ({(4, 5): 2, (0, 7): 2}, (4, 5)),
        ({(0, 5): 0, (0, 7): 0}, (0, 5)),
        ({(0, 5): 1, (0, 7): 2, (4, 7): 2}, (0, 7)),
    ],
)
def test_best_first_ties_go_to_the_earlier_blue_then_the_earlier_red(fits, pair):
    decision = best_first().decide(FakeSearch([0, 4], [7, 5], fits))
    assert isinstance(decision, Merge)
    assert (decision.red, decision.blue) == pair


def test_best_first_promotes_before_it_merges():
    assert best_first().decide(FakeSearch([0, 4], [5, 7], {(0, 5): 100})) == Promote(7)


def test_best_first_promotes_the_first_of_those_that_fit_nothing():
    assert best_first().decide(FakeSearch([0], [5, 7, 9], {(0, 5): 1})) == Promote(7)


def test_best_first_reuses_scores_until_the_next_merge():
    order = best_first()
    search = FakeSearch([0, 4], [5, 7], {(0, 5): 1, (0, 7): 0})
    order.decide(search)
    assert sorted(search.tried) == [(0, 5), (0, 5), (0, 7), (4, 5), (4, 7)]  # the best one twice
    search.tried.clear()
    order.decide(search)  # nothing merged since: all scores hold
    assert search.tried == [(0, 5)]
    search.merges += 1
    search.tried.clear()
    order.decide(search)  # scores have to be counted again, conflicts stay
    assert sorted(search.tried) == [(0, 5), (0, 5), (0, 7)]


def test_best_first_gives_up_a_pair_that_conflicts_beyond_its_horizon():
    search = FakeSearch([0, 4], [5], {(0, 5): 9, (4, 5): 1}, far={(0, 5)})
    decision = best_first().decide(search)
    assert isinstance(decision, Merge)
    assert (decision.red, decision.blue) == (4, 5)
    search = FakeSearch([0], [5], {(0, 5): 9}, far={(0, 5)})
    assert best_first().decide(search) == Promote(5)


def test_refused_pairs_are_tried_again_after_a_merge():
    order = best_first()
    search = FakeSearch([0, 4], [5], {(0, 5): 1}, alpha=None)
    order.decide(search)
    search.tried.clear()
    order.decide(search)  # nothing merged since
    assert search.tried == [(0, 5)]
    search.merges += 1
    search.tried.clear()
    order.decide(search)
    assert sorted(search.tried) == [(0, 5), (0, 5), (4, 5)]


def test_pairs_refused_beyond_the_horizon_are_not_tried_again():
    search = FakeSearch([0], [5], {(0, 5): 9}, far={(0, 5)}, alpha=None)
    assert best_first().decide(search) == Promote(5)


def test_a_score_of_minus_infinity_refuses():
    fits = {(0, 5): -inf, (4, 5): -1e300, (0, 7): -inf}
    decision = best_first().decide(FakeSearch([0, 4], [5], fits))
    assert isinstance(decision, Merge)
    assert (decision.red, decision.blue) == (4, 5)
    assert best_first().decide(FakeSearch([0, 4], [5, 7], fits)) == Promote(7)
