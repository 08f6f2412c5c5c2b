"""Things of the right kind that do not belong together: machines, traces, plans, worlds, tables."""

from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

import gymnasium as gym
import numpy as np

import resolvent as rs
from fuzz.mutations import TEXTS
from fuzz.targets import Call
from fuzz.trace_readers import some_traces
from resolvent.worlds import House, PhaseGrid, TMaze

WORLDS: tuple[Callable[[], gym.Env[Any, Any]], ...] = (
    House,
    lambda: TMaze(3),
    lambda: PhaseGrid(3),
)
SETS = 24
"""How many sets of traces there are to choose from."""


@cache
def traces(number: int) -> rs.TraceSet:
    """Return traces of a built-in world, random ones, noisy ones, or none at all."""
    if number == 0:
        return rs.TraceSet([])
    if number < 7:
        world = WORLDS[number % 3]()
        return rs.collect(world, episodes=(3, 60)[number % 2], seed=number, max_steps=30)
    if number < 10:
        return _noisy(number)
    return some_traces(number, plain=number % 2 == 0)


def _noisy(number: int) -> rs.TraceSet:
    """Return traces in which the same step pays now this and now that."""
    draw = Random(number)
    many = []
    for _ in range(40):
        seen = [draw.choice("ab") for _ in range(9)]
        paid = [float(draw.random() < 0.5) for _ in range(8)]
        if number == 9:
            paid = [draw.gauss(float(one), 0.1) for one in paid]
        many.append(rs.Trace(seen, [None] * 9, [draw.choice("xy") for _ in range(8)], paid))
    return rs.TraceSet(many)


@cache
def result(number: int) -> rs.InferenceResult | None:
    """Return what is inferred from traces, in one of several ways; None where nothing can be."""
    ways: tuple[dict[str, Any], ...] = (
        {}, {"supplement": False}, {"timing": "lagged"}, {"strategy": "edsm", "trivial": ()},
        {"outputs": ["reward"]}, {"labels": "observation"}, {"noise": "none"},
    )  # fmt: skip
    try:
        return rs.infer(
            traces(number), options=rs.InferenceOptions(time_limit=1.0, **ways[number % len(ways)])
        )
    except rs.ResolventError:
        return None


def _some(draw: Random) -> tuple[rs.InferenceResult, int]:
    while True:
        number = draw.randrange(SETS)
        if (found := result(number)) is not None:
            return found, number


def together(draw: Random) -> tuple[Callable[[], object], str]:
    """Draw machines, traces and a world, and something to do with them."""
    found, number = _some(draw)
    other, second = _some(draw)
    third = draw.randrange(SETS)
    seen, world = traces(third), draw.choice(WORLDS)()
    machines = found.machines if draw.random() < 0.8 else found.machines.guessing()
    given = draw.choice((found, machines))
    gamma = draw.choice((0.95, 0.5, 1.0, 1e-9))
    mode = draw.choice(("dict", "flatten", "multidiscrete", "discrete", "belief"))
    unseen = draw.choice(("stay", "raise"))

    def planned() -> rs.Plan:
        return rs.plan(given, seen, gamma=gamma)

    def augmented() -> Any:
        return rs.AugmentObservation(world, given, mode=mode, on_unseen=unseen)

    ways: dict[str, Callable[[], object]] = {
        "update": lambda: found.update(seen).machines.score(seen),
        "score": lambda: str(machines.score(seen)),
        "evidence": lambda: str(rs.evidence(given, seen)),
        "held_out": lambda: str(rs.holdout_score(found, seen)),
        "report": lambda: rs.report(given, seen, "out.html"),
        "plan": lambda: (str(planned()), planned().as_dict()),
        "plan.run": lambda: planned().run(world, episodes=2, max_steps=20, on_unseen="random"),
        "plan.save": lambda: planned().save("plan.json"),
        "policy": lambda: [
            one.policy(world, given, seen) for one in (planned().next_experiment,) if one
        ],
        "difference": lambda: str(machines.difference(other.machines)),
        "isomorphic": lambda: [
            rs.is_isomorphic(mine, theirs)
            for mine in machines.values()
            for theirs in other.machines.values()
        ],
        "EdgeRewardMachine": lambda: rs.machines.EdgeRewardMachine.from_pair(machines, seen),
        "drawn": lambda: [
            getattr(one, write)()
            for one in machines.values()
            for write in ("to_text", "to_dot", "to_mermaid", "to_mealy_dot")
        ],
        "saved": lambda: (machines.save("m.json"), rs.load("m.json")),
        "wrapped": lambda: _steps(augmented(), draw),
        "shaped": lambda: _steps(rs.wrappers.ShapeReward(world, planned()), draw),
        "learned": lambda: rs.q_learning(augmented(), episodes=2, max_steps=20),
        "many": lambda: _many(given, mode),
        "together": lambda: rs.TraceSet.concatenate([traces(number), seen]).digest,
        "told": lambda: (str(found), found.as_dict()),
        "inferred": lambda: rs.infer(seen, outputs=list(machines), time_limit=1.0),
        "diagnosed": lambda: str(rs.diagnose(seen)),
        "tabled": lambda: _tabled(seen),
    }
    name = draw.choice(list(ways))
    about = f"{name} of {number}, {second}, {third} in {type(world).__name__}"
    return ways[name], f"{about}, gamma={gamma}, mode={mode}, {unseen}, {type(given).__name__}"


def _steps(env: gym.Env[Any, Any], draw: Random) -> None:
    env.reset(seed=0)
    for _ in range(6):
        *_, terminated, truncated, _ = env.step(draw.randrange(int(env.action_space.n)))  # type: ignore[attr-defined]
        if terminated or truncated:
            env.reset()


def _many(machines: Any, mode: Any) -> None:
    envs = gym.vector.SyncVectorEnv([House, House])
    wrapped = rs.wrappers.VectorAugmentObservation(envs, machines, mode=mode)
    wrapped.reset(seed=0)
    for _ in range(5):
        wrapped.step(np.zeros(2, np.int64))


def _tabled(seen: rs.TraceSet) -> None:
    table = seen.to_arrow()
    rs.read_table(
        table, episode="episode", observation="observation", action="action", reward="reward"
    )


_USUAL = {
    "episode": 0, "order": 0, "observation": 1, "action": 1, "reward": 3, "label": 1,
    "outputs": 1, "terminated": 4, "truncated": 4, "next_observation": 1, "next_label": 1,
}  # fmt: skip
"""Columns by the role that they are for, with the kind of their cells."""


def tabled(draw: Random) -> tuple[Callable[[], object], str]:
    """Draw a table in memory, with columns of many kinds, and what they are said to be."""
    rows = draw.choice((0, 1, 2, 7, 7, 20, 20))
    columns: dict[str, Any] = {}
    for name, usual in draw.sample(sorted(_USUAL.items()), draw.randint(6, len(_USUAL))):
        kind = usual if draw.random() < 0.93 else draw.randrange(9)
        columns[name] = [_cell(draw, kind) for _ in range(rows)]
    if draw.random() < 0.05 and rows:
        columns["short"] = [1]
    roles = {
        role: role if draw.random() < 0.9 else draw.choice([*columns, "none such", 0])
        for role in _USUAL
        if role in columns and draw.random() < (0.97 if role == "observation" else 0.6)
    }
    if draw.random() < 0.9 and "label" in roles:
        roles.pop("next_label", None)
    if draw.random() < 0.9 and "outputs" in roles:
        columns["cost"] = columns.pop("outputs")
        roles["outputs"] = "cost"
    kind = draw.choice(("frame", "frame", "frame", "arrow", "arrow", "arrow", "dict", "rows"))
    log = draw.random() < 0.3
    chosen = list(columns)

    def read() -> object:
        source = _table(columns, rows, kind)
        if log:
            episode, given, came = chosen[:3]
            return rs.read_log(source, episode=episode, input=given, output={"came": came})
        found = rs.read_table(source, **roles)
        return rs.infer(found, time_limit=1.0) if len(found) and found.steps < 30 else found

    return read, f"{kind} of {columns!r:.1500} as {'a log' if log else roles}"


def _table(columns: dict[str, Any], rows: int, kind: str) -> Any:
    if kind == "frame":
        import pandas as pd

        return pd.DataFrame({name: pd.Series(values) for name, values in columns.items()})
    if kind == "arrow":
        import pyarrow as pa

        try:
            return pa.table(columns)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):  # cells of several kinds
            return columns
    if kind == "rows":
        return [
            {name: values[row] for name, values in columns.items() if row < len(values)}
            for row in range(rows)
        ]
    return columns


def _cell(draw: Random, kind: int) -> Any:
    if draw.random() < 0.04:
        kind = draw.randrange(9)
    return (
        draw.randrange(3),
        draw.choice("ab"),
        draw.choice((None, 1, 2)),
        draw.choice((0.0, 1.0, 1.0, 1.0)) if draw.random() < 0.98 else draw.choice(_FAR),
        draw.random() < 0.2,
        draw.choice(TEXTS),
        draw.choice((["a"], ["a", "b"], [])),
        np.datetime64(draw.randrange(10), "s"),
        draw.choice((b"x", 3 + 0j, 10**30)),
    )[kind]


_FAR = (float("nan"), 1e308, float("inf"), -1e-320)

TARGETS = (Call("strangers", together), Call("tables-in-memory", tabled))
