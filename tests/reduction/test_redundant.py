import numpy as np
import pytest

from resolvent.reduction import ConstantOutputs, remove_redundant
from strategies import sample_set


def test_alphas_with_one_answer_are_taken_out():
    # Alpha 0 always answers 5; alpha 1 answers 5 and 6; alpha 2 never occurs; alpha 3 once.
    samples = sample_set(
        [[(0, 0, 5), (1, 1, 5)], [(-1, 0, 5), (0, 1, 6), (0, 3, 2)]],
        alphas=5,
    )
    reduced, constants = remove_redundant(samples)
    assert reduced.alpha.tolist() == [-1, 1, -1, 1, -1]
    assert constants.alpha.tolist() == [0, 3]
    assert constants.output.tolist() == [5, 2]
    assert constants.count.tolist() == [2, 1]
    assert reduced.alpha.dtype == constants.alpha.dtype == constants.output.dtype == np.int32
    assert constants.count.dtype == np.int64
    for column in ("beta", "output", "offsets"):
        assert np.array_equal(getattr(reduced, column), getattr(samples, column))


def test_the_samples_passed_in_are_left_alone():
    samples = sample_set([[(0, 0, 0), (0, 1, 1), (0, 1, 0)]])
    remove_redundant(samples)
    assert samples.alpha.tolist() == [0, 1, 1]


@pytest.mark.parametrize("outputs", [[0, 1, 0], [1, 1, 0], [0, 1, 1]])
def test_one_different_answer_is_enough_wherever_it_stands(outputs):
    reduced, constants = remove_redundant(sample_set([[(0, 0, output) for output in outputs]]))
    assert reduced.alpha.tolist() == [0, 0, 0]
    assert len(constants.alpha) == 0


def test_no_rows():
    reduced, constants = remove_redundant(sample_set([], alphas=3))
    assert reduced.alpha.tolist() == []
    assert constants.alpha.tolist() == []


def test_the_record_of_nothing():
    nothing = ConstantOutputs.nothing()
    assert (len(nothing.alpha), len(nothing.output), len(nothing.count)) == (0, 0, 0)
