"""The T-maze, walked by hand."""

import pytest

import resolvent as rs
from resolvent.errors import ContradictoryTraces, OptionError
from resolvent.preprocess.timing import LabelTiming
from resolvent.worlds import TMaze


def walk(maze: TMaze, cue: str, *actions: str) -> list[tuple[object, set[str], float, bool]]:
    """Return (observation, labels, reward, terminated), of the start too."""
    start = maze.observation_names.index(f"cue {cue}")
    seen, info = maze.reset(options={"start": start})
    steps = [(maze.observation_names[seen], set(info["labels"]), 0.0, False)]
    for name in actions:
        seen, reward, terminated, _, info = maze.step(maze.action_names.index(name))
        steps.append((maze.observation_names[seen], set(info["labels"]), reward, terminated))
    return steps


def test_the_cue_shows_at_the_start_only() -> None:
    assert walk(TMaze(2), "up", "right", "right", "left", "left") == [
        ("cue up", {"cue up"}, 0.0, False),
        ("corridor 1", set(), 0.0, False),
        ("junction", set(), 0.0, False),
        ("corridor 1", set(), 0.0, False),
        ("cue up", {"cue up"}, 0.0, False),
    ]


@pytest.mark.parametrize("cue", ["up", "down"])
@pytest.mark.parametrize("turn", ["up", "down"])
def test_turning_the_way_of_the_cue_pays(cue: str, turn: str) -> None:
    walked = walk(TMaze(3), cue, "right", "right", "right", turn)
    assert walked[-1] == (f"{turn} end", set(), float(cue == turn), True)


def test_one_turns_only_at_the_junction_and_goes_no_further() -> None:
    walked = walk(TMaze(2), "down", "up", "left", "right", "down", "right", "right")
    assert [seen for seen, *_ in walked[1:]] == [
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
    with pytest.raises(OptionError, match="length=0: the corridor takes at least one step"):
        TMaze(0)
