"""The tables of grid worlds, compared with one step at a time, and their files."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from resolvent.errors import ModelError, OptionError, ResolventError
from resolvent.worlds import RandomWorld
from resolvent.worlds.grid_world import GridWorld, random_grid_world
from resolvent.worlds.random_world import load_grid_world, save_grid_world
from worlds import World, random_world

# Three cells a side. Label 0 lies in the middle; it takes the TM back and forth, and
# in its second state the middle is impassable, so that it is never read again.
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
def test_the_tables_agree_with_single_steps(world: World) -> None:
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
    state = tables.next_state[start, up]
    assert tables.observation_of[state] == 1
    middle = tables.next_state[state, right]
    assert tables.observation_of[middle] == 4
    assert (tables.reward[state, right], tables.ends[state, right]) == (0.5, False)
    beside = tables.next_state[middle, right]
    assert tables.observation_of[beside] == 7
    blocked = tables.next_state[beside, left]
    assert blocked == beside  # in its second state the TM blocks the middle
    assert tables.observation_of[tables.next_state[middle, down]] == 3
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


def test_a_saved_world_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "world.json"
    world = RandomWorld(5, size=7, tm_states=3, labels=4)
    world.save(path)
    assert load_grid_world(path) == world.grid
    again = RandomWorld(path=path)
    assert again.grid == world.grid
    assert np.array_equal(again.mechanics.next_state, world.mechanics.next_state)


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


def changed(change: Callable[[dict[str, Any]], object]) -> bytes:
    content = json.loads(json.dumps(AUTHORS))
    change(content)
    return json.dumps(content).encode()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "Input data was truncated"),
        (b'{"format": "resolv', "Input data was truncated"),
        (b"[" * 100_000, "nested too deep|Expected `object`"),
        (b"\xff\xfe", "malformed|not UTF-8"),
        (b"[]", "Expected `object`, got `array`"),
        (changed(lambda c: c.update(format="x")), "format x, version 1: this Resolvent reads"),
        (changed(lambda c: c.update(version=2)), "version 2: this Resolvent reads resolvent-world"),
        (changed(lambda c: c.pop("environment")), "missing required field `environment`"),
        (changed(lambda c: c["environment"].update(size="big")), "Expected `int`, got `str`"),
        (changed(lambda c: c["environment"].update(size=0)), "size: 0, use 1 to 1,000"),
        (
            changed(lambda c: c["environment"].update(size=10**9)),
            "size: 1000000000, use 1 to 1,000",
        ),
        (changed(lambda c: c["labels"].update(count=10**9)), "labels: 1000000000, use 1 to 1,000"),
        (
            changed(lambda c: c["transition_automaton"].update(states_count=0)),
            "TM states: 0, use 1 to 1,000",
        ),
        (
            changed(lambda c: c["reward_automaton"].update(states_count=1)),
            "RM states: 1, use 2 to 1,000",
        ),
        (
            changed(lambda c: c["labels"]["mapping"].update({"1;1": 0})),
            "'1;1' is not a cell such as",
        ),
        (
            changed(lambda c: c["labels"]["mapping"].update({"(4, 0)": 0})),
            r"cell \(4, 0\) is outside the grid of size 3",
        ),
        (
            changed(lambda c: c["labels"]["mapping"].update({"(0, 1)": 7})),
            r"label 7 at \(0, 1\): there are 2 labels",
        ),
        (
            changed(
                lambda c: c["transition_automaton"]["impassable_positions"]["q_0"].append("(0, 0)")
            ),
            r"\(0, 0\) is impassable but has no label",
        ),
        (
            changed(
                lambda c: c["transition_automaton"]["impassable_positions"].update({"q_9": []})
            ),
            "state q_9: there are 2 states",
        ),
        (
            changed(lambda c: c["reward_automaton"].update(terminal_state="end")),
            "'end' is not a state such as q_0",
        ),
        (
            changed(lambda c: c["reward_automaton"].update(terminal_state="q'_7")),
            "state q'_7: there are 3 states",
        ),
        (
            changed(
                lambda c: c["transition_automaton"]["transitions"].update({"q_5": {"0": "q_0"}})
            ),
            "state q_5: there are 2 states",
        ),
        (
            changed(lambda c: c["transition_automaton"]["transitions"]["q_0"].update({"1": "q_2"})),
            "state q_2: there are 2 states",
        ),
        (
            changed(lambda c: c["transition_automaton"]["transitions"]["q_0"].update({"8": "q_0"})),
            "label '8': there are 2 labels",
        ),
        (
            changed(lambda c: c["reward_automaton"]["rewards"]["q'_0"].update({"-1": 1.0})),
            "label '-1': there are 2 labels",
        ),
    ],
)
def test_bad_files_are_refused_in_one_line(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(data)
    with pytest.raises(ModelError, match=message) as caught:
        RandomWorld(path=path)
    assert str(caught.value).startswith(f"{path}: not a world: ")
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
