"""Law 6: a failed fold leaves the tree as it was, byte for byte; so does one taken back."""

import pickle
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from resolvent._core import SteppedFolding
from resolvent.inference.state_merging import Fold, FoldConflict, build_prefix_tree, try_fold
from resolvent.preprocess.samples import ContradictoryRows
from strategies import columns, sample_sets


def tree_of(samples):
    try:
        return build_prefix_tree(samples)
    except ContradictoryRows:
        return None


def picture(tree):
    """Every byte of a Python tree: a pickle keeps the order of dicts too."""
    return pickle.dumps([getattr(tree, name) for name in tree.__slots__])


def blue_states(tree, red):
    """Where each blue state hangs, read off the tree as it is now."""
    return {
        child: (state, label)
        for state in red
        for label, child in tree.children[state].items()
        if child not in red
    }


rich = st.one_of(
    sample_sets(),
    sample_sets(labels=2, alphas=2, outputs=2, traces=12, length=15),
    sample_sets(labels=2, alphas=60, outputs=2, traces=4, length=60),  # more than fits unindexed
)


@settings(deadline=None, max_examples=200)
@given(rich, st.integers(0, 2**32))
def test_the_python_tree_is_restored(samples, seed):
    tree = tree_of(samples)
    if tree is None:
        return
    random, red = Random(seed), [0]
    for _ in range(40):
        blue = blue_states(tree, red)
        if not blue:
            break
        state = random.choice(sorted(blue))
        before = picture(tree)
        result = try_fold(tree, random.choice(red), state, *blue[state])
        if isinstance(result, FoldConflict):
            assert picture(tree) == before
            if random.random() < 0.3:
                red.append(state)
        elif random.random() < 0.5:
            assert picture(tree) != before
            result.undo()
            assert picture(tree) == before


@settings(deadline=None, max_examples=100)
@given(rich, st.integers(1, 6), st.integers(0, 2**32))
def test_a_fold_that_stopped_at_its_horizon_can_be_undone(samples, horizon, seed):
    tree = tree_of(samples)
    if tree is None:
        return
    random, red = Random(seed), [0]
    for _ in range(10):
        blue = blue_states(tree, red)
        if not blue:
            break
        state = random.choice(sorted(blue))
        before, before_answers = picture(tree), [dict(answers) for answers in tree.outputs]
        result = try_fold(tree, random.choice(red), state, *blue[state], horizon)
        if isinstance(result, Fold):
            looked_at = [len(before_answers[away]) for away, _ in result.merged]
            assert sum(looked_at[:-1]) < horizon
            result.undo()
        assert picture(tree) == before
        red.append(state)


@settings(deadline=None, max_examples=200)
@given(rich, st.integers(0, 2**32))
def test_the_native_tree_is_restored_and_equals_the_python_tree(samples, seed):
    tree = tree_of(samples)
    if tree is None:
        return
    native = SteppedFolding(*columns(samples))
    random, red, merged_into = Random(seed), [0], list(range(len(tree)))
    pending = []  # the latest fold counts as made for good when the next step is taken

    def assert_same_tree():
        open_yet = {away for away, _ in pending}
        for node, (into, children, answers) in enumerate(native.snapshot()):
            assert into == merged_into[node] or node in open_yet
            assert children == sorted(tree.children[node].items())
            assert answers == sorted(tree.outputs[node].items())

    assert_same_tree()
    for _ in range(25):
        blue = blue_states(tree, red)
        if not blue:
            break
        state, into = random.choice(sorted(blue)), random.choice(red)
        before = native.snapshot()
        score = native.try_fold(into, state)
        for away, target in pending:
            merged_into[away] = target
        after_keeping = [(merged_into[node], *rest) for node, (_, *rest) in enumerate(before)]
        pending = []
        result = try_fold(tree, into, state, *blue[state])
        if score is None:
            assert isinstance(result, FoldConflict)
            assert native.snapshot() == after_keeping
            if random.random() < 0.3:
                native.promote(state)
                red.append(state)
        else:
            assert isinstance(result, Fold)
            assert result.agreeing == score
            assert native.snapshot() != after_keeping
            if random.random() < 0.5:
                native.undo()
                result.undo()
                assert native.snapshot() == after_keeping
            else:
                pending = result.merged
        assert_same_tree()
