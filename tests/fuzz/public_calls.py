"""Public calls with odd arguments: wrong types and shapes, huge and negative numbers, odd texts."""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import resolvent as rs
from fuzz.mutations import NUMBERS, TEXTS, odd_value
from fuzz.targets import Call
from fuzz.trace_readers import some_traces
from resolvent.worlds import House

ODD: tuple[Any, ...] = (
    None, True, False, float("nan"), float("inf"), -float("inf"), 1j, b"bytes", object(), object,
    len, [], (), {}, set(), frozenset({"a"}), [None], [[]], [1, "a"], {"a": 1}, {1: 2}, range(3),
    np.array([]), np.array(3), np.zeros((2, 2)), np.array([1, 2, 3]), np.array(["a"]),
    np.array([np.nan]), np.array([None], object), np.array([True, False]), np.float32(2),
    np.int64(-5), "auto", "none", "given", "threads", ["reward"], ("observation", "x"), ...,
)  # fmt: skip
MOST = 40
"""No larger number is given where it says how much work to do."""


@cache
def house() -> rs.TraceSet:
    """Return a few traces of the house."""
    return rs.collect(House(), episodes=6, seed=0)


@cache
def found() -> rs.InferenceResult:
    """Return what is inferred from traces of the house."""
    return rs.infer(house())


def odd(draw: Random, costly: bool) -> Any:
    """Return an odd argument; one that says how much work to do is small."""
    while True:
        way = draw.randrange(4)
        value = (
            draw.choice(ODD),
            draw.choice(NUMBERS),
            draw.choice(TEXTS),
            odd_value(draw),
        )[way]
        if not costly or not isinstance(value, (int, float)) or not value > MOST:
            return value


def call(
    name: str,
    function: Callable[..., object],
    given: Callable[[], Mapping[str, Any]],
    costly: tuple[str, ...] = (),
    allowed: tuple[type[Exception], ...] = (),
) -> Call:
    """Return a call that is given one or two odd arguments by name, and else valid ones."""

    def prepare(draw: Random) -> tuple[Callable[[], object], str]:
        arguments = dict(given())
        names = draw.sample(sorted(arguments), min(len(arguments), draw.choice((1, 1, 2))))
        for one in names:
            arguments[one] = odd(draw, one in costly)
        return lambda: function(
            **arguments
        ), f"{name}({', '.join(map(_shown, names, map(arguments.get, names)))})"

    return Call(f"call-{name}", prepare, allowed)


def _shown(name: str, value: object) -> str:
    try:
        return f"{name}={value!r:.200}"
    except (RecursionError, ValueError):  # nested too deep, or a number with too many digits
        return f"{name}=a {type(value).__name__}"


def _columns() -> dict[str, Any]:
    return {
        "observations": (["hall", "attic"], [0, 1, 0, 1]),
        "labels": ([frozenset(), frozenset({"key"})], [0, 1, 0, 0]),
        "actions": (["up"], [0, 0]),
        "rewards": ([0.0, 1.0], [0, 1]),
        "columns": {"cost": ([1, 2], [0, 1])},
        "offsets": [0, 1, 2],
        "terminated": [True, False],
        "truncated": [False, True],
    }


def _trace() -> dict[str, Any]:
    return {
        "observations": ["hall", "attic"],
        "labels": [None, "key"],
        "actions": ["up"],
        "rewards": [1],
        "terminated": True,
        "truncated": False,
        "columns": {"cost": [3]},
    }


def _options() -> dict[str, Any]:
    return {
        "outputs": None, "labels": "given", "discretize": None, "noise": "auto",
        "strategy": "auto", "timing": None, "trivial": "auto", "supplement": True,
        "remove_redundant": True, "remove_trivial": True, "refine": None,
        "reward_digits": None, "engine": "native", "seed": 0, "effort": 1.0, "on": "threads",
        "cache_dir": None, "time_limit": None,
    }  # fmt: skip


def _arguments() -> dict[str, Any]:
    return {
        "outputs": None, "labels": "given", "discretize": None, "noise": "auto",
        "strategy": "auto", "timing": None, "seed": 0, "time_limit": None, "options": None,
    }  # fmt: skip


def _short(**more: Any) -> Callable[[], dict[str, Any]]:
    """Return arguments that begin with machines and traces of the house."""
    return lambda: {"machines": found(), "traces": house(), **more}


def _file(name: str) -> str:
    """Write traces to a file of that name here, and return the name."""
    Path(name).write_bytes(_written(name))
    return name


@cache
def _written(name: str) -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        some_traces(1).save(path)
        return path.read_bytes()


def _ask(**given: Any) -> object:
    """Ask a machine, moved by labels, for an answer and what it rests on."""
    machine = found().machines["transition"]
    state = machine.run(given["labels"], given["state"])
    machine.step(state, given["label"])
    machine.basis(state, given["observation"], given["action"])
    machine.distribution(state, given["observation"], given["action"])
    return machine.output(state, given["observation"], given["action"])


def _query() -> dict[str, Any]:
    return {
        "labels": [["key"]], "state": 0, "label": ["key"], "observation": "corridor",
        "action": "up",
    }  # fmt: skip


def _choose(**given: Any) -> object:
    """Take traces by number."""
    return house().take(given["numbers"])


def _write(**given: Any) -> object:
    """Write traces."""
    return some_traces(1).save(given["path"], format=given["format"])


def _drawn(**given: Any) -> object:
    """Compare machines, and write one in every way that it offers."""
    machine = given["machine"]
    is_isomorphic = rs.is_isomorphic(machine, given["other"])
    names = ("to_text", "to_dot", "to_mermaid", "to_mealy_dot", "is_minimal")
    return is_isomorphic, [getattr(machine, name)() for name in names]


def _machine() -> dict[str, Any]:
    machines = found().machines
    return {"machine": machines["transition"], "other": machines["reward"]}


TARGETS = (
    call("Trace", rs.Trace, _trace),
    call("TraceSet", rs.TraceSet, lambda: {"traces": [rs.Trace(**_trace())]}),
    call("from_columns", rs.TraceSet.from_columns, _columns),
    call("take", _choose, lambda: {"numbers": [0, 1]}, allowed=(IndexError,)),
    call("save", _write, lambda: {"path": "out.jsonl", "format": "jsonl"}),
    call("Options", rs.InferenceOptions, _options, ("effort",)),
    call("infer", rs.infer, lambda: {"traces": house(), **_arguments()}),
    call("update", lambda traces: found().update(traces), lambda: {"traces": house()}),
    call("diagnose", rs.diagnose, lambda: {
        "traces": house(), "outputs": None, "labels": "given", "timing": None,
    }),
    call("held_out", rs.holdout_score, lambda: {
        "result": found(), "traces": house(), "share": 0.2, "time_limit": None,
    }),
    call("evidence", rs.evidence, _short(delta=0.05)),
    call("plan", rs.plan, _short(
        gamma=0.95, reward_range=None, trust_constants=False, confidence=0.95,
    )),
    call("read_traces", rs.read_traces, lambda: {
        "path": _file("some.jsonl"), "format": "jsonl", "columns": (), "labeling_fn": None,
    }),
    call("scan_traces", rs.scan_traces, lambda: {
        "location": _file("some.parquet"), "columns": (), "damaged": "skip",
    }),
    call("load", rs.load, lambda: {"path": "none.json"}),
    call("read_reward_machine", rs.machines.read_reward_machine, lambda: {"path": "none.txt"}),
    call("Labeling", rs.LabelingFunction, lambda: {
        "reads": "observation", "events": {"attic": "key"},
    }),
    call("Noise", rs.Noise, lambda: {
        "outcomes": True, "labels": False, "rewards": "gaussian", "starts": False, "outliers": 0.1,
    }),
    call("Discretizer", rs.Discretizer, lambda: {
        "method": "quantile", "bins": 4, "columns": None, "ints": False, "of": "observation",
    }),
    call("machine", _ask, _query),
    call("writing", _drawn, _machine),
    call("collect", rs.collect, lambda: {
        "env": House(), "episodes": 2, "seed": 0, "max_steps": 5, "labels": "given", "columns": (),
        "inner": None,
    }, ("episodes", "max_steps")),
    call("q_learning", rs.q_learning, lambda: {
        "env": House(), "episodes": 2, "seed": 0, "alpha": 0.1, "gamma": 0.95, "epsilon": 0.3,
        "epsilon_decay": 0.9, "epsilon_min": 0.1, "initial_value": 0.0, "max_steps": 20,
        "counterfactual": False, "shaping": False, "engine": "auto", "evaluate_every": None,
    }, ("episodes", "max_steps")),
    call("solve", rs.solve, lambda: {
        "env": House(), "labels": "auto", "timing": None, "budget": 40, "target": 0.0,
        "states": "found", "gamma": 0.95, "reward_range": None, "noise": "auto",
        "confidence": 0.95, "max_steps": 20, "seed": 0,
    }, ("budget", "max_steps")),
)  # fmt: skip
