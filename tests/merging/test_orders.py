"""Orders decide; a stand-in for the search tells them what fits and how well."""

from dataclasses import dataclass, field

import pytest

from resolvent.merging.orders import ORDERS, Edsm, Merge, Promote, Rpni


@dataclass
class FakeFold:
    score: int
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

    def blue_in_order(self):
        return sorted(self.blue)

    def try_fold(self, red, blue, horizon=None):
        self.tried.append((red, blue))
        if (red, blue) not in self.fits or (horizon is None and (red, blue) in self.far):
            return None
        return FakeFold(self.fits[red, blue])


def test_rpni_takes_the_first_blue_state_to_the_first_red_one_it_fits():
    search = FakeSearch([0, 4, 2], [7, 5], {(2, 5): 9, (4, 5): 0, (0, 7): 99})
    decision = Rpni().decide(search)
    assert isinstance(decision, Merge)
    assert (decision.red, decision.blue, decision.fold.score) == (4, 5, 0)
    assert search.tried == [(0, 5), (4, 5)]
    assert decision.fold.undone == 0


def test_rpni_promotes_a_blue_state_that_fits_nothing():
    assert Rpni().decide(FakeSearch([0, 4], [7, 5], {(0, 7): 3})) == Promote(5)


def test_edsm_takes_the_pair_on_which_most_agree():
    search = FakeSearch([0, 4], [5, 7], {(0, 5): 1, (4, 5): 2, (0, 7): 3, (4, 7): 1})
    decision = Edsm().decide(search)
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
def test_edsm_ties_go_to_the_earlier_blue_then_the_earlier_red(fits, pair):
    decision = Edsm().decide(FakeSearch([0, 4], [7, 5], fits))
    assert isinstance(decision, Merge)
    assert (decision.red, decision.blue) == pair


def test_edsm_promotes_first_what_fits_nothing_however_sure_other_pairs_are():
    assert Edsm().decide(FakeSearch([0, 4], [5, 7], {(0, 5): 100})) == Promote(7)


def test_edsm_promotes_the_first_of_those_that_fit_nothing():
    assert Edsm().decide(FakeSearch([0], [5, 7, 9], {(0, 5): 1})) == Promote(7)


def test_edsm_does_not_try_again_what_it_knows():
    order = Edsm()
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


def test_edsm_gives_up_a_pair_that_conflicts_beyond_its_horizon():
    search = FakeSearch([0, 4], [5], {(0, 5): 9, (4, 5): 1}, far={(0, 5)})
    decision = Edsm().decide(search)
    assert isinstance(decision, Merge)
    assert (decision.red, decision.blue) == (4, 5)
    search = FakeSearch([0], [5], {(0, 5): 9}, far={(0, 5)})
    assert Edsm().decide(search) == Promote(5)


def test_the_default_comes_first():
    assert list(ORDERS) == ["edsm", "rpni"]
