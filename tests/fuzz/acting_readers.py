"""Plans, policies, learning curves, worlds, and the folders that `solve` leaves."""

import json
import tempfile
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import resolvent as rs
from fuzz.mutations import TEXTS, damaged, damaged_document, damaged_json, json_bytes, tweaked_json
from fuzz.targets import Files, Reader
from resolvent.viz.report.learning import curve, read_policy, read_returns
from resolvent.worlds import House, RandomWorld
from resolvent.worlds.grid_world import random_grid_world
from resolvent.worlds.random_world import load_grid_world, save_grid_world


def _written(save: Any, name: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        save(Path(folder) / name)
        return (Path(folder) / name).read_bytes()


@cache
def plan_value() -> Any:
    """Return the file of a plan as a value."""
    traces = rs.collect(House(), episodes=60, seed=0)
    return json.loads(_written(rs.plan(rs.infer(traces), traces).save, "plan.json"))


@cache
def policy_value() -> Any:
    """Return the file of what was learned as a value."""
    return json.loads(_written(rs.q_learning(House(), episodes=5).save, "policy.json"))


@cache
def solved_files() -> Files:
    """Return the files of a folder that `solve` leaves."""
    with tempfile.TemporaryDirectory() as folder:
        rs.solve(House(), budget=150, seed=0).save(Path(folder) / "solved")
        found = sorted((Path(folder) / "solved").iterdir())
        return {f"solved/{one.name}": one.read_bytes() for one in found}


@cache
def world_value(number: int) -> Any:
    """Return the file of a random world as a value."""
    world = random_grid_world(number)
    return json.loads(_written(lambda path: save_grid_world(world, path), "world.json"))


AUTHORS_WORLD = {
    "environment": {"size": 2},
    "labels": {"count": 2, "mapping": {"(0, 1)": 0, "(2, 2)": 1}},
    "transition_automaton": {
        "states_count": 2,
        "transitions": {"q_0": {"0": "q_1"}, "q_1": {"1": "q_0"}},
        "impassable_positions": {"q_0": ["(2, 2)"], "q_1": []},
    },
    "reward_automaton": {
        "states_count": 2,
        "transitions": {"q_0": {"1": "q_1"}},
        "rewards": {"q_0": {"1": 1.0}},
        "terminal_state": "q_1",
    },
}
"""A world as the paper's authors write it."""


def plan(draw: Random) -> Files:
    """Return a damaged plan."""
    if draw.random() < 0.3:
        return {"policy.json": json_bytes(draw, tweaked_json(draw, plan_value()))}
    return {"policy.json": damaged_document(draw, plan_value())}


def policy(draw: Random) -> Files:
    """Return a damaged policy."""
    if draw.random() < 0.3:
        return {"policy.json": json_bytes(draw, tweaked_json(draw, policy_value()))}
    return {"policy.json": damaged_document(draw, policy_value())}


def returns(draw: Random) -> Files:
    """Return a damaged learning curve, as CSV or JSON."""
    paid = [draw.choice((0, 1.5, -2, 1e300, "x", None, "")) for _ in range(draw.randint(0, 5))]
    columns = {"episode": list(range(len(paid))), "return": paid, "steps": [3] * len(paid)}
    if draw.random() < 0.5:
        return {"curve": damaged_document(draw, columns)}
    lines = ["episode,return,steps", *(f"{at},{one},3" for at, one in enumerate(paid))]
    data = "\n".join(lines).encode()
    if draw.random() < 0.3:
        lines.insert(draw.randint(0, len(lines)), draw.choice(TEXTS))
    return {"curve": damaged(draw, data)}


def world(draw: Random) -> Files:
    """Return a damaged world, in our format or the authors'."""
    value = AUTHORS_WORLD if draw.random() < 0.5 else world_value(draw.randrange(6))
    if draw.random() < 0.4:
        return {"world.json": json_bytes(draw, tweaked_json(draw, value))}
    return {"world.json": damaged_document(draw, value)}


def solved(draw: Random) -> Files:
    """Return a folder of `solve` in which one file is damaged, or missing."""
    files = dict(solved_files())
    name = draw.choice([*files, "solved/solved.json", "solved/solved.json"])
    way = draw.random()
    if way < 0.05:
        del files[name]
    elif way < 0.35 or not name.endswith(".json"):
        files[name] = damaged(draw, files[name])
    else:
        change = draw.choice((damaged_json, tweaked_json))
        files[name] = json_bytes(draw, change(draw, json.loads(files[name])))
    return files


def read_plan(path: Path) -> None:
    """Read a policy of whichever kind, as a report does."""
    read_policy(path / "policy.json")


def read_learned(path: Path) -> None:
    """Read what was learned, and ask it."""
    learned = rs.rl.QTable.load(path / "policy.json")
    assert str(learned)
    for situation in learned.observations[:3]:
        learned.action(situation)


def read_curve(path: Path) -> None:
    """Read a learning curve, and make of it what a report shows."""
    assert curve(read_returns(path / "curve"))["means"]


def read_world(path: Path) -> None:
    """Read a world, and play a little."""
    held = load_grid_world(path / "world.json")
    if held.size > 30 or len(held.tm_transitions) * len(held.rm_transitions) > 50:
        return
    assert rs.collect(RandomWorld(path=path / "world.json"), episodes=2, seed=0, max_steps=5).steps


def read_solved(path: Path) -> None:
    """Read a folder of `solve`."""
    held = rs.Solution.load(path / "solved")
    assert str(held)
    assert held.as_dict()


TARGETS = (
    Reader("plan", plan, read_plan),
    Reader("policy", policy, read_learned),
    Reader("curve", returns, read_curve),
    Reader("world", world, read_world),
    Reader("solved-folder", solved, read_solved),
)
