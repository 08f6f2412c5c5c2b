"""Decisions of each order; a stub for the search says which merges fit and how well."""

from dataclasses import dataclass, field
from itertools import pairwise
from math import inf, log2

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import resolvent as rs
from mealy_machine import Mealy
from merge_oracle import (
    NEAREST,
    ONE_BIT,
    OutputInformation,
    Transition,
    TransitionModel,
    bits,
    cost_of_outputs,
    last_outputs,
)
from protocols import BANK
from resolvent.inference.engine import Limits, merge
from resolvent.inference.merge_order import BestFirst, FirstFit
from resolvent.inference.state_merging import (
    FoldConflict,
    Merge,
    Promote,
    build_prefix_tree,
    try_fold,
)
from resolvent.machines.build import StateLimitExceeded
from resolvent.preprocess.samples import Histories, output_samples
from resolvent.preprocess.timing import NONE, LabelTiming
from strategies import sample_set


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


@given(st.integers(1, 2**62))
@example(1)
@example(2**31 - 1)
@example(2**62)
def test_bits_is_a_logarithm(number):
    assert -2 < bits(number) - 256 * log2(number) < 0.01


@given(st.integers(1, 10**9))
def test_bits_never_falls(number):
    assert bits(number) <= bits(number + 1)


def test_rare_outputs_weigh_more_and_visits_do_not_count():
    common = [(0, 0, 0)] * 6
    rare = [*common, (0, 0, 1)]
    information, repeated = (
        OutputInformation(build_prefix_tree(sample_set(traces))) for traces in ([rare], [rare] * 5)
    )
    # Seven nodes answer, six of them alike; two kinds and one more make it ten.
    assert information._bits == {(0, 0): bits(10) - bits(7), (0, 1): bits(10) - bits(2)}
    assert repeated._bits == information._bits


def test_distant_outputs_weigh_less():
    # The root and what follows label 1 answer alike, then read label 0 and answer alike again.
    samples = sample_set([[(-1, 0, 5), (0, 1, 6)], [(1, 0, 5), (0, 1, 6)]])
    tree = build_prefix_tree(samples)
    information = OutputInformation(tree)
    blue = tree.children[0][1]
    fold = try_fold(tree, 0, blue, 0, 1)
    near, far = (information._bits[answer] for answer in ((0, 5), (1, 6)))
    assert fold.agreeing == 2
    assert information.of_fold(fold) == (near * NEAREST + far * (NEAREST * 3 // 5)) // NEAREST


def test_new_outputs_are_no_evidence():
    samples = sample_set([[(-1, 0, 5)], [(1, 1, 6)]])
    tree = build_prefix_tree(samples)
    assert OutputInformation(tree).of_fold(try_fold(tree, 0, tree.children[0][1], 0, 1)) == 0


def test_the_last_output_of_a_node_is_the_one_before_it_where_traces_agree():
    agreed = [(-1, 0, 7), (3, 0, 8), (4, 0, 9)]
    samples = sample_set([agreed, agreed])
    assert last_outputs(build_prefix_tree(samples), samples) == [NONE, 7, 8]
    samples = sample_set([agreed, [(-1, 1, 5), (3, 0, 8), (4, 0, 9)]])
    assert last_outputs(build_prefix_tree(samples), samples) == [NONE, NONE, 8]


def test_the_last_output_of_a_node_does_not_come_from_another_trace():
    traces = [[(-1, 0, 7)], [(3, 0, 8)], [(-1, -1, -1), (4, 0, 9)]]
    for order in (traces, traces[::-1]):
        samples = sample_set(order)
        assert last_outputs(build_prefix_tree(samples), samples) == [NONE] * 3


def test_loops_become_more_likely_with_loops():
    model = TransitionModel()
    loop, away = Transition(0, 5, 1, 1), Transition(0, 5, 1, 2)
    assert model.gain(loop, 3) > model.gain(away, 3)  # half of all moves, at first
    for state in range(4):
        model.learn(Transition(0, 5, state, state))
    favoured = model.gain(loop, 3)
    # Four of four, and half for the label: (4 + 4.5/5) / 5 of all; two digits for three states.
    assert favoured == pytest.approx((log2((4 + 4.5 / 5) / 5) + 2) * ONE_BIT, abs=2)
    assert model.gain(away, 3) < -4 * ONE_BIT


def test_loops_depend_on_the_output_before_the_label():
    model = TransitionModel()
    for state in range(8):
        model.learn(Transition(0, 5, state, state))
    refused, accepted = Transition(0, 5, 9, 9), Transition(0, 6, 9, 9)
    for state in range(4):
        model.learn(Transition(0, 6, state, 1 if state != 1 else 2))
    assert model.gain(refused, 10) > model.gain(accepted, 10) + ONE_BIT
    assert model.gain(accepted._replace(target=1), 10) > model.gain(accepted, 10)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 4), st.integers(0, 4))),
    st.integers(0, 2),
    st.integers(0, 2),
)
def test_transition_costs_are_a_code(seen, label, lead):
    """The costs are those of a code: shares of all that may follow add up to at most one."""
    model = TransitionModel()
    for move in seen:
        model.learn(Transition(*move))
    targets = [*range(5), NONE]
    gains = [model.gain(Transition(label, lead, 0, target), 5) for target in targets]
    costs = [(5).bit_length() * ONE_BIT - gain for gain in gains]
    assert min(costs) >= 0
    assert sum(2 ** (-cost / ONE_BIT) for cost in costs) < 1.03  # logarithms are rounded down


def test_outputs_shared_by_all_states_cost_little():
    def cost(outputs):
        rows = [(0, 0, output) for output in outputs]
        tree = build_prefix_tree(sample_set([rows]))
        return cost_of_outputs(tree, list(range(len(tree))), OutputInformation(tree))

    assert cost([0] * 20) == 0
    assert cost([0] * 19 + [1]) < cost([0, 1] * 10)


def handshake(steps, inputs):
    """One right input in each state, one that ends in a sink, and others that are ignored."""
    sink = steps
    moves = np.tile(np.arange(steps + 1, dtype=np.int32)[:, None], (1, inputs))
    outputs = np.zeros_like(moves)
    for state in range(steps):
        right, wrong = state % inputs, (state + 1) % inputs
        moves[state, right], outputs[state, right] = (state + 1) % steps, 1
        moves[state, wrong], outputs[state, wrong] = sink, 2
    outputs[sink] = 3
    return Mealy(moves, outputs)


def samples_of(traces):
    return output_samples(traces, Histories.of(traces, LabelTiming.CURRENT), "output")


def found(machine, traces, strategy):
    result = rs.infer(
        traces, outputs=["output"], strategy=strategy, options=rs.InferenceOptions(refine=False)
    )
    return machine.is_found(result.machines["output"])


def test_a_sink_misleads_edsm_but_not_likelihood():
    machine = handshake(6, 5)
    logs = [machine.traces(8_000, seed, (10, 30)) for seed in range(3)]
    assert [found(machine, log, "likelihood") for log in logs] == [True] * 3
    assert [found(machine, log, "edsm") for log in logs].count(False) >= 2


def test_traces_repeated_or_shuffled_change_nothing():
    given, told, offsets = (machine := handshake(4, 4)).walks(1_500, 0, (5, 20))
    walks = [(given[begin:end], told[begin:end]) for begin, end in pairwise(offsets)]
    shuffled = [walks[at] for at in np.random.default_rng(0).permutation(len(walks))]

    def log(parts):
        ends = np.cumsum([0, *(len(inputs) for inputs, _ in parts)])
        return machine.as_traces(
            *(np.concatenate(column) for column in zip(*parts, strict=True)), ends
        )

    machines = [
        rs.infer(log(parts), outputs=["output"], strategy=strategy).machines["output"]
        for strategy in ("likelihood", "backtracking")
        for parts in (walks, shuffled, walks + shuffled)
    ]
    assert len({str(machine.transitions.tolist()) for machine in machines[:3]}) == 1
    assert len({str(machine.transitions.tolist()) for machine in machines[3:]}) == 1


def test_backtracking_corrects_a_wrong_merge():
    machine = BANK["tcp"].machine
    samples = samples_of(machine.traces(16_000, 2))
    once, again = (merge(samples, order=order) for order in ("likelihood", "backtracking"))
    assert len(once.access) > machine.states == len(again.access)


def test_backtracking_respects_the_state_limit():
    samples = samples_of(handshake(4, 4).traces(1_500, 0, (5, 20)))
    found = merge(samples, order="backtracking")
    allowed = merge(samples, "backtracking", limits=Limits(most_states=found.states))
    assert allowed.events == found.events
    with pytest.raises(StateLimitExceeded):
        merge(samples, "backtracking", limits=Limits(most_states=found.states - 1))
