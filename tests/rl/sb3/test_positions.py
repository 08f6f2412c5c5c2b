"""Places for states: who was met together stays together, and nobody is lost."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("stable_baselines3")

from resolvent.rl.sb3.positions import assign_positions

counts = st.integers(1, 5).flatmap(
    lambda places: st.integers(1, 7).flatmap(
        lambda states: st.lists(
            st.lists(st.integers(0, 9), min_size=states, max_size=states),
            min_size=places,
            max_size=places,
        )
    )
)


@given(counts)
def test_places_are_shared_only_if_there_are_too_few(rows):
    together = np.array(rows)
    places, states = together.shape
    found = assign_positions(together).of_state.tolist()
    assert all(0 <= place < places for place in found)
    own = found if states <= places else [one for one in found if one != places - 1]
    assert len(set(own)) == len(own)
    if states > places:
        assert len(own) == places - 1


@given(st.permutations(range(6)), st.integers(6, 8))
def test_the_same_states_by_other_numbers_keep_their_places(order, places):
    together = np.zeros((places, 6), int)
    together[np.arange(6), order] = [5, 1, 9, 2, 2, 7]
    found = assign_positions(together)
    assert found.of_state[order].tolist() == list(range(6))
    assert found.moves == {}


def test_a_state_that_splits_off_says_where_it_was():
    """Of two states at place 1, the one met more often stays; the other was there before."""
    found = assign_positions(np.array([[8, 0, 0], [0, 3, 6], [0, 0, 0], [0, 0, 0]]))
    assert found.of_state.tolist() == [0, 2, 1]
    assert found.before.tolist() == [0, 1, 1]
    assert found.moves == {2: 1}


def test_a_state_that_was_never_met_was_nowhere_else():
    found = assign_positions(np.array([[4, 0], [0, 0]]))
    assert found.of_state.tolist() == [0, 1]
    assert found.moves == {}


def test_where_places_are_few_the_last_one_is_shared():
    found = assign_positions(np.array([[5, 9, 3, 0], [0, 0, 0, 4]]))
    assert found.of_state.tolist() == [1, 0, 1, 1]
