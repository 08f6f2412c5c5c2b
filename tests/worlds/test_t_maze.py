"""The T-maze, walked by hand."""

import pytest
from walking import walk

import resolvent as rs
from resolvent.errors import ContradictoryTraces, OptionError
from resolvent.preprocess.timing import LabelTiming
from resolvent.worlds import TMaze


def test_the_cue_shows_at_the_start_only() -> None:
    assert walk(TMaze(2), "right", "right", "left", "left", start="cue up") == [
        ("corridor 1", set(), 0.0, False),
        ("junction", set(), 0.0, False),
        ("corridor 1", set(), 0.0, False),
        ("cue up", {"cue up"}, 0.0, False),
    ]


@pytest.mark.parametrize("cue", ["up", "down"])
@pytest.mark.parametrize("turn", ["up", "down"])
def test_turning_in_the_direction_of_the_cue_has_the_reward(cue: str, turn: str) -> None:
    walked = walk(TMaze(3), "right", "right", "right", turn, start=f"cue {cue}")
    assert walked[-1] == (f"{turn} end", set(), float(cue == turn), True)


def test_turns_are_possible_only_at_the_junction() -> None:
    walked = walk(TMaze(2), "up", "left", "right", "down", "right", "right", start="cue down")
    assert [seen for seen, *_ in walked] == [
        "cue down",
        "cue down",
        "corridor 1",
        "corridor 1",
        "junction",
        "junction",
    ]


def test_the_best_policy_walks_straight_down() -> None:
    tables = TMaze(7).mechanics
    assert tables.optimal_values(0.9)[tables.starts] == pytest.approx([0.9**7] * 2)


def test_its_first_label_must_be_read() -> None:
    maze = TMaze(4)
    traces = rs.collect(maze, episodes=100, seed=0, max_steps=500)
    assert TMaze.timing is LabelTiming.CURRENT_WITH_INITIAL
    assert rs.infer(traces, timing="current-with-initial").machines.transition.states == 2
    with pytest.raises(ContradictoryTraces, match="current-with-initial"):
        rs.infer(traces)


def test_an_empty_corridor_is_refused() -> None:
    with pytest.raises(OptionError, match="length=0: use at least 1"):
        TMaze(0)
