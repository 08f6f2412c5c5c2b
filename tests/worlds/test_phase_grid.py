"""The phase grids, walked by hand, and how long random walks on them take."""

import numpy as np
import pytest
from walking import walk

from resolvent.errors import OptionError
from resolvent.worlds import PhaseGrid


def test_coffee_then_stair_has_the_reward() -> None:
    assert walk(PhaseGrid(3), "down", "right", "right", "up", start=(1, 0)) == [
        ((2, 0), {"Coffee"}, 0.0, False),
        ((2, 1), {"TV"}, 0.0, False),
        ((2, 2), {"Grid"}, 0.0, False),
        ((1, 2), {"Stair"}, 1.0, True),
    ]


def test_the_stair_without_coffee_has_no_reward() -> None:
    assert walk(PhaseGrid(3), "up", start=(2, 2))[-1] == ((1, 2), {"Stair"}, 0.0, False)


def test_the_first_label_does_not_count_until_it_is_read_again() -> None:
    to_stair = ("up", "right", "right")
    assert walk(PhaseGrid(3), *to_stair, start=(2, 0))[-1] == ((1, 2), {"Stair"}, 0.0, False)
    assert walk(PhaseGrid(3), "left", *to_stair, start=(2, 0))[-1] == ((1, 2), {"Stair"}, 1.0, True)


def test_edges_hold() -> None:
    grid = PhaseGrid(4)
    for corner, outwards in [((0, 0), ("up", "left")), ((3, 3), ("down", "right"))]:
        assert [cell for cell, *_ in walk(grid, *outwards, start=corner)] == [corner, corner]


def test_the_larger_tasks_need_all_cells_in_order() -> None:
    # Coffee (3, 0) to Sofa (0, 1) to Stair (1, 3).
    to_sofa = ("down", "up", "up", "up", "right")
    to_stair = ("right", "right", "down")
    assert walk(PhaseGrid(4), *to_sofa, *to_stair, start=(2, 0))[-1][2:] == (1.0, True)
    assert walk(PhaseGrid(4), "right", *to_stair, start=(0, 0))[-1][2:] == (0.0, False)
    # Coffee (4, 0), up to the sofa (0, 2), down to the TV (4, 2), along to the stair (2, 4).
    five = [*["left"], *["up"] * 4, *["right"] * 2, *["down"] * 4]
    around = [*["right"] * 2, *["up"] * 2]
    assert walk(PhaseGrid(5), *five, *around, start=(4, 0))[-1] == ((2, 4), {"Stair"}, 1.0, True)
    without_sofa = ["left", "right", "right", *around]
    assert walk(PhaseGrid(5), *without_sofa, start=(4, 0))[-1] == ((2, 4), {"Stair"}, 0.0, False)


def test_labels_are_those_of_the_paper() -> None:
    lines = PhaseGrid(5, render_mode="ansi").picture(0).ansi().splitlines()[1:6]
    rows = [line.strip("│ ").split() for line in lines]
    rows[0][0] = "·"  # the agent
    assert rows == [
        ["·", "·", "S", "·", "·"],
        ["·", "·", "·", "·", "S"],
        ["·", "·", "·", "·", "T"],
        ["·", "·", "·", "G", "G"],
        ["C", "·", "V", "G", "G"],
    ]


@pytest.mark.parametrize(("size", "length"), [(3, 39.0), (4, 120.4), (5, 258.4)])
def test_mean_lengths_of_random_walks(size: int, length: float) -> None:
    """Solved exactly: the expected time to the end is 1 plus that of the next state."""
    tables = PhaseGrid(size).mechanics
    live = tables.live
    chances = np.zeros((live, live))
    for state in range(live):
        for action in range(4):
            if not tables.ends[state, action]:
                chances[state, tables.next_state[state, action]] += 0.25
    expected = np.linalg.solve(np.eye(live) - chances, np.ones(live))
    assert round(expected[tables.starts].mean(), 1) == length


def test_all_cells_are_equally_likely_starts() -> None:
    grid = PhaseGrid(3)
    grid.reset(seed=0)
    drawn = np.bincount(grid.mechanics.observation_of[grid.draw_starts(9_000)])
    assert len(drawn) == 9
    assert abs(drawn - 1_000).max() < 150


def test_other_sizes_are_refused() -> None:
    with pytest.raises(OptionError, match="size=6: use 3, 4 or 5"):
        PhaseGrid(6)
