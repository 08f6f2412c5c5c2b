"""The tables of grid worlds, compared with one step at a time, and their files."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from resolvent.errors import ModelError, OptionError, ResolventError
from resolvent.worlds import RandomWorld
from resolvent.worlds.grid_files import load_grid_world, save_grid_world
from resolvent.worlds.grid_generator import random_grid_world
from resolvent.worlds.grid_world import GridWorld
from worlds import World, random_world

# Three cells a side. Label 0 lies in the middle; it takes the TM back and forth, and
# in its second state the middle is impassable, so that nobody reads it again.
TINY = GridWorld(
    size=2,
    label_at=(None, None, None, None, 0, None, None, None, None),
    tm_transitions=((1,), (0,)),
    blocked=(frozenset(), frozenset({4})),
    rm_transitions=((1,), (2,), (2,)),
    rm_rewards=((0.5,), (2.0,), (0.0,)),
)


@pytest.mark.parametrize(
    "world",
    [random_world(0, size=9, tm_states=3), random_world(4, size=5, labels=3, tm_states=2)],
    ids=["nine", "five"],
)
def test_all_steps_at_once_are_those_taken_one_by_one(world: World) -> None:
    cells, tm_states = len(world.label_at), len(world.tm_transitions)
    following, reward, reached = world.tables
    met, ahead = set(), {(o, 0, 0) for o in world.starts}
    while ahead:
        met |= ahead
        ahead = {
            world.step(o, q, u, a)[:3] for o, q, u in ahead if u != world.terminal for a in range(4)
        } - met
    codes = {(u * tm_states + q) * cells + o for o, q, u in met}
    assert set(np.flatnonzero(reached).tolist()) == codes
    for u, q, o, a in np.ndindex(world.terminal, tm_states, cells, 4):
        next_o, next_q, next_u, paid = world.step(o, q, u, a)
        state = (u * tm_states + q) * cells + o
        assert following[state, a] == (next_u * tm_states + next_q) * cells + next_o
        assert reward[state, a] == paid


def test_an_environment_walks_a_world_step_by_step() -> None:
    world = random_world(0, size=9, tm_states=3)
    env = RandomWorld(0, size=9, tm_states=3)
    rng = np.random.default_rng(0)
    for _ in range(50):
        o, info = env.reset()
        assert info == {"labels": frozenset()}
        assert o in world.starts
        q = u = 0
        while u != world.terminal:
            action = int(rng.integers(4))
            o, q, u, paid = world.step(int(o), q, u, action)
            label = world.label_at[o]
            assert env.step(action) == (
                o,
                paid,
                u == world.terminal,
                False,
                {"labels": frozenset() if label is None else frozenset({str(label)})},
            )


def test_a_tiny_world_by_hand() -> None:
    tables = TINY.mechanics()
    up, right, down, left = range(4)
    start = tables.starts[list(tables.observation_of[tables.starts]).index(0)]
    state = tables.following[start, up]
    assert tables.observation_of[state] == 1
    middle = tables.following[state, right]
    assert tables.observation_of[middle] == 4
    assert (tables.reward[state, right], tables.ends[state, right]) == (0.5, False)
    beside = tables.following[middle, right]
    assert tables.observation_of[beside] == 7
    blocked = tables.following[beside, left]
    assert blocked == beside  # in its second state the TM blocks the middle
    assert tables.observation_of[tables.following[middle, down]] == 3
    assert tables.machines().transition.states == 2


def test_the_same_arguments_draw_the_same_world() -> None:
    assert RandomWorld(3).grid == random_grid_world(3)
    assert RandomWorld(3).grid != RandomWorld(4).grid


def test_a_drawing_shows_what_is_impassable_now() -> None:
    world = RandomWorld(0, size=9, tm_states=3, render_mode="ansi")
    world.reset(options={"start": 0})
    lines = str(world.render()).splitlines()
    assert lines[10].startswith("│ @ ·")  # (0, 0) is at the bottom left
    blocked = {(x, y) for y in range(10) for x in range(10) if lines[10 - y][1 + 2 * x] == "#"}
    assert blocked == {divmod(cell, 10) for cell in world.grid.blocked[0]}
    for cell, label in enumerate(world.grid.label_at):
        if label is not None:
            x, y = divmod(cell, 10)
            assert lines[10 - y][2 + 2 * x] == str(label)
    assert lines[-1] == "TM state 0 (0 to 2), RM state 0 (0 to 2)"


def test_a_saved_world_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "world.json"
    world = RandomWorld(5, size=7, tm_states=3, labels=4)
    world.save(path)
    assert load_grid_world(path) == world.grid
    again = RandomWorld(path=path)
    assert again.grid == world.grid
    assert np.array_equal(again.mechanics.following, world.mechanics.following)


AUTHORS: dict[str, Any] = {
    "environment": {"size": 3},
    "labels": {"count": 2, "mapping": {"(1, 1)": 0, "(1, 3)": 1, "(3, 1)": 1, "(3, 3)": 0}},
    "transition_automaton": {
        "states_count": 2,
        "transitions": {"q_0": {"1": "q_1"}, "q_1": {"0": "q_0"}},
        "impassable_positions": {"q_0": ["(3, 3)"], "q_1": ["(1, 1)", "(1, 3)"]},
    },
    "reward_automaton": {
        "states_count": 3,
        "transitions": {"q'_0": {"0": "q'_2"}, "q'_1": {}, "q'_2": {"1": "q'_1"}},
        "rewards": {"q'_0": {"0": 0.25}, "q'_1": {}, "q'_2": {"1": 1.5}},
        "terminal_state": "q'_1",
    },
}


def test_the_authors_file_is_read_with_missing_transitions_as_loops(tmp_path: Path) -> None:
    path = tmp_path / "authors.json"
    path.write_text(json.dumps(AUTHORS), encoding="utf-8")
    world = load_grid_world(path)
    assert [world.label_at[cell] for cell in (5, 7, 13, 15)] == [0, 1, 1, 0]
    assert sum(label is not None for label in world.label_at) == 4
    assert world.tm_transitions == ((0, 1), (0, 1))
    assert world.blocked == (frozenset({15}), frozenset({5, 7}))
    # The terminal state, the second in the file, becomes the last.
    assert world.rm_transitions == ((1, 0), (1, 2), (2, 2))
    assert world.rm_rewards == ((0.25, 0.0), (0.0, 1.5), (0.0, 0.0))
    save_grid_world(world, tmp_path / "ours.json")
    assert load_grid_world(tmp_path / "ours.json") == world


def ours(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], bytes]:
    def data(folder: Path) -> bytes:
        save_grid_world(TINY, folder / "good.json")
        content = json.loads((folder / "good.json").read_bytes())
        change(content)
        return json.dumps(content).encode()

    return data


def authors(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], bytes]:
    def data(folder: Path) -> bytes:
        content = json.loads(json.dumps(AUTHORS))
        change(content)
        return json.dumps(content).encode()

    return data


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (lambda folder: b"", "not valid JSON, perhaps it was cut short"),
        (lambda folder: b'{"format": "resolv', "not valid JSON, perhaps it was cut short"),
        (lambda folder: b"[" * 100_000, "not valid JSON"),
        (lambda folder: b"\xff\xfe", "not valid JSON"),
        (lambda folder: b"[]", 'not a world: it lacks "format": "resolvent-world"'),
        (ours(lambda c: c.update(version=2)), "format version 2, this Resolvent reads 1"),
        (ours(lambda c: c.pop("size")), "missing required field `size`"),
        (ours(lambda c: c.update(size="big")), "Expected `int`, got `str`"),
        (ours(lambda c: c.update(size=0)), "size 0 and 1 labels: use at least 1"),
        (ours(lambda c: c.update(size=10**9)), "size 1000000000: use at most 1,000"),
        (ours(lambda c: c.update(size=-5)), "size -5 and 1 labels"),
        (ours(lambda c: c.update(labels=2)), "a TM state does not lead to a state with each label"),
        (ours(lambda c: c["labelled"].append([3, 0, 0])), r"label 0 at \(3, 0\): outside"),
        (ours(lambda c: c["labelled"].append([0, 1, 7])), r"label 7 at \(0, 1\): outside"),
        (
            ours(lambda c: c["transition"]["blocked"][0].append([0, 0])),
            r"\(0, 0\) is impassable but has no label",
        ),
        (ours(lambda c: c["transition"]["blocked"].pop()), "different numbers of states"),
        (
            ours(lambda c: c["transition"]["transitions"][0].__setitem__(0, 9)),
            "a TM state does not",
        ),
        (ours(lambda c: c["reward"]["transitions"][0].__setitem__(0, -1)), "an? RM state does not"),
        (ours(lambda c: c["reward"]["rewards"][0].pop()), "does not pay a reward for each label"),
        (
            authors(lambda c: c["labels"]["mapping"].update({"1;1": 0})),
            "'1;1' is not a cell such as",
        ),
        (
            authors(lambda c: c["reward_automaton"].update(terminal_state="end")),
            "'end' is not a state such as q_0",
        ),
        (
            authors(lambda c: c["reward_automaton"].update(terminal_state="q'_7")),
            "the terminal state q'_7 is not one of 3",
        ),
        (
            authors(
                lambda c: c["transition_automaton"]["transitions"].update({"q_5": {"0": "q_0"}})
            ),
            "there is no state 5 with label '0'",
        ),
        (
            authors(lambda c: c["transition_automaton"]["transitions"]["q_0"].update({"8": "q_0"})),
            "there is no state 0 with label '8'",
        ),
        (
            authors(
                lambda c: c["transition_automaton"]["impassable_positions"].update({"q_9": []})
            ),
            "impassable_positions names state q_9 of 2",
        ),
        (
            authors(lambda c: c["labels"].update(count=10**9)),
            "labels: a count of 1000000000, use 1 to 1,000",
        ),
        (
            authors(lambda c: c["transition_automaton"].update(states_count=0)),
            "TM: a count of 0, use 1 to 1,000",
        ),
        (authors(lambda c: c.pop("environment")), "missing required field `environment`"),
    ],
)
def test_bad_files_are_refused_in_one_line(
    tmp_path: Path, data: Callable[[Path], bytes], message: str
) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(data(tmp_path))
    with pytest.raises(ModelError, match=message) as caught:
        RandomWorld(path=path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"nowhere\.json does not exist"):
        RandomWorld(path=tmp_path / "nowhere.json")
    with pytest.raises(ResolventError, match=r"the folder .* does not exist"):
        RandomWorld(0, size=5, tm_states=2).save(tmp_path / "no" / "world.json")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"world_seed": -1}, "seed=-1: use at least 0"),
        ({"size": 0}, "size=0: use at least 1"),
        ({"labels": 0}, "labels=0: use at least 1"),
        ({"tm_states": 0}, "tm_states=0: use at least 1"),
        ({"rm_states": 1}, "rm_states=1: use at least 2"),
        ({"blocked_share": 1.5}, "blocked_share=1.5: use a share from 0 to 1"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        RandomWorld(**options)
