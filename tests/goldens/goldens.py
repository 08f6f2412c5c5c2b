"""Frozen results: machines, solves and command outputs that a change must not alter by accident.

    python goldens.py freeze FILE     record the present results
    python goldens.py check FILE      compare with them; list what differs

`--quick` leaves out the slow ones. Each entry is a digest or a few numbers, by name.
"""

import argparse
import hashlib
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent.parent
if TESTS.name != "tests":
    TESTS = Path.cwd() / "tests"

SMALL_WORLDS = (
    "House", "HouseInterference", "PhaseGrid3", "TMaze", "OfficeCoffee", "OfficeMail", "Cookie",
)  # fmt: skip
LARGE_WORLDS = ("PhaseGrid4", "OfficeBoth", "OfficePatrol", "TwoKeys", "Symbol", "RandomWorld")


def digest_of(value: object) -> str:
    """Return a short digest of a value's text."""
    return hashlib.sha256(repr(value).encode()).hexdigest()[:16]


def machine_digest(machine: Any) -> str:
    """Return a digest of a machine's alphabets and tables, independent of any file format."""
    names = [
        [repr(x) if not isinstance(x, frozenset) else repr(sorted(x)) for x in alphabet]
        for alphabet in (machine.labels, machine.observations, machine.actions, machine.outputs)
    ]
    tables = [
        machine.transitions.tolist(),
        machine.output_state.tolist(),
        machine.output_query.tolist(),
        machine.output_value.tolist(),
        machine.constant_query.tolist(),
        machine.constant_value.tolist(),
        list(machine.trivial),
    ]
    return f"{machine.states}:{digest_of((names, tables))}"


def machines_summary(machines: Any) -> dict[str, str]:
    """Return the digest of each machine, by what it predicts."""
    return {machine.predicts: machine_digest(machine) for machine in machines.values()}


def collected(world: str, episodes: int, seed: int) -> Any:
    """Return random traces of a built-in world."""
    import gymnasium as gym

    import resolvent as rs

    return rs.collect(gym.make(f"resolvent/{world}-v0"), episodes=episodes, seed=seed)


def infer_world(world: str, episodes: int, seed: int, **options: Any) -> dict[str, Any]:
    """Infer machines from random traces of a built-in world."""
    import resolvent as rs

    if world == "TMaze":
        options["timing"] = rs.LabelTiming.CURRENT_WITH_INITIAL
    return machines_summary(
        rs.infer(collected(world, episodes, seed), options=rs.InferenceOptions(**options)).machines
    )


def plan_world(world: str, episodes: int, seed: int) -> dict[str, Any]:
    """Plan with inferred machines."""
    import resolvent as rs

    traces = collected(world, episodes, seed)
    options = {"timing": rs.LabelTiming.CURRENT_WITH_INITIAL} if world == "TMaze" else {}
    plan = rs.plan(
        rs.infer(traces, options=rs.InferenceOptions(**options)).machines, traces, gamma=0.95
    )
    return {"value": repr(plan.value)}


def q_learning_world(world: str, seed: int) -> dict[str, Any]:
    """Run Q-learning on an augmented environment."""
    import gymnasium as gym

    import resolvent as rs

    env = gym.make(f"resolvent/{world}-v0")
    machines = rs.infer(rs.collect(env, episodes=200, seed=0)).machines
    learned = rs.q_learning(rs.AugmentObservation(env, machines), episodes=60, seed=seed)
    return {"returns": digest_of([float(x) for x in learned.curve.returns])}


def solve_world(world: str, seed: int, budget: int, **options: Any) -> dict[str, Any]:
    """Solve a built-in world."""
    import resolvent as rs

    solution = rs.solve(f"resolvent/{world}-v0", budget=budget, seed=seed, **options)
    return {
        "steps": solution.steps,
        "optimal": bool(solution.optimal),
        "value": repr(round(float(solution.value), 9)),
        "states": dict(solution.states),
    }


def infer_protocol(name: str, steps: int, seed: int, strategy: str) -> dict[str, Any]:
    """Infer a protocol model from random walks."""
    import resolvent as rs

    sys.path[:0] = [str(TESTS), str(TESTS.parent / "benchmarks")]
    bank = importlib.import_module("protocols").BANK
    machine = bank[name].machine
    walks = bank[name].walks(steps, seed)
    result = rs.infer(machine.as_traces(*walks), outputs=["output"], strategy=strategy)
    return machines_summary(result.machines)


def noisy_world(world: str, seed: int, share: float) -> dict[str, Any]:
    """Infer machines from traces in which a share of the rewards is wrong."""
    import random

    import gymnasium as gym

    import resolvent as rs

    traces = rs.collect(gym.make(f"resolvent/{world}-v0"), episodes=300, seed=seed)
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "traces.jsonl"
        traces.save(path)
        lines = []
        for line in path.read_text().splitlines():
            episode = json.loads(line)
            episode["rewards"] = [
                (1 - r if rng.random() < share else r) for r in episode["rewards"]
            ]
            lines.append(json.dumps(episode))
        path.write_text("\n".join(lines) + "\n")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = rs.infer(rs.read_traces(path))
    return machines_summary(result.machines) | {"warnings": len(result.warnings)}


def unlabeled_world(world: str, episodes: int) -> dict[str, Any]:
    """Infer machines and labels from traces whose labels are taken away."""
    return infer_world(world, episodes, 0, labels="auto")


_SECONDS = re.compile(r'"(seconds|version|versions|time)"')


def every_command(everything: bool) -> dict[str, Any]:
    """Run every command once; return the digest of each file that it writes."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [
                sys.executable,
                str(TESTS / "laws" / "every_command.py"),
                folder,
                "2",
                "0",
                *(["all"] if everything else []),
            ],
            env=os.environ | {"PYTHONHASHSEED": "0", "NO_COLOR": "1", "COLUMNS": "100"},
            check=True,
            capture_output=True,
        )
        return {
            str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()[:16]
            for path in sorted(Path(folder).rglob("*"))
            if path.is_file()
        }


def command_json(folder: Path, *arguments: str) -> Any:
    """Run one command with `--json`; return what it prints, without times."""
    done = subprocess.run(
        [sys.executable, "-m", "resolvent", *arguments, "--json"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"NO_COLOR": "1"},
    )
    try:
        printed = json.loads(done.stdout)
    except ValueError:
        return {"exit": done.returncode, "stderr": done.stderr[:300]}
    return without_times(printed)


def without_times(value: Any) -> Any:
    """Return a JSON value without seconds, times and versions."""
    if isinstance(value, dict):
        return {
            k: without_times(v)
            for k, v in value.items()
            if not re.search("second|version|time|path|file", k)
        }
    if isinstance(value, list):
        return [without_times(v) for v in value]
    return value


def commands_json() -> dict[str, Any]:
    """Return what each command prints with `--json`, on one small world."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = lambda *a: command_json(folder, *a)  # noqa: E731
        return {
            "collect": run(
                "collect", "resolvent/House-v0", "-n", "60", "--seed", "0", "-o", "t.jsonl"
            ),
            "infer": run("infer", "t.jsonl", "-o", "m.json"),
            "check": run("check", "m.json", "t.jsonl"),
            "diagnose": run("diagnose", "t.jsonl"),
            "show": digest_of(json.dumps(run("show", "m.json"), sort_keys=True)),
            "plan": run("plan", "m.json", "t.jsonl", "-o", "p.json"),
            "train": run("train", "resolvent/House-v0", "--episodes", "40", "-o", "q.json"),
            "solve": run(
                "solve", "resolvent/House-v0", "--budget", "400", "--seed", "0", "-o", "s"
            ),
        }


def entries(quick: bool) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """Yield the name of each golden result and the function that computes it."""
    for world in SMALL_WORLDS:
        yield f"infer {world}", lambda w=world: infer_world(w, 60, 0)
    for world in ("House", "TMaze", "PhaseGrid3"):
        yield f"plan {world}", lambda w=world: plan_world(w, 200, 1)
        for seed in (0, 1):
            yield f"solve {world} {seed}", lambda w=world, s=seed: solve_world(w, s, 3_000)
    yield "solve House no labels", lambda: solve_world("House", 0, 2_000, labels="observation")
    yield "infer House exact", lambda: infer_world("House", 100, 0, strategy="exact")
    yield "infer House search", lambda: infer_world("House", 100, 0, strategy="search")
    yield "infer House edsm", lambda: infer_world("House", 100, 0, strategy="edsm")
    yield "infer House auto labels", lambda: unlabeled_world("House", 150)
    yield "infer House noisy rewards", lambda: noisy_world("House", 0, 0.01)
    yield "q-learning House", lambda: q_learning_world("House", 0)
    yield "commands json", commands_json
    if quick:
        return
    for world in LARGE_WORLDS:
        yield f"infer {world}", lambda w=world: infer_world(w, 100, 0)
    for world in SMALL_WORLDS + LARGE_WORLDS[:-1]:
        for seed in (0, 1, 2):
            yield f"solve {world} {seed} 2500", lambda w=world, s=seed: solve_world(w, s, 2_500)
    yield "solve RandomWorld 0", lambda: solve_world("RandomWorld", 0, 4_000)
    sys.path[:0] = [str(TESTS), str(TESTS.parent / "benchmarks")]
    for name in sorted(importlib.import_module("protocols").BANK):
        for strategy in ("auto", "edsm", "rpni", "search"):
            yield (
                f"protocol {name} {strategy}",
                lambda n=name, s=strategy: infer_protocol(n, 4_000, 0, s),
            )
    yield "every command", lambda: every_command(everything=True)


def main() -> int:
    """Freeze or check the golden results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("action", choices=["freeze", "check"])
    parser.add_argument("file", type=Path, nargs="?", default=TESTS / "goldens" / "goldens.json")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    frozen = json.loads(chosen.file.read_text()) if chosen.file.exists() else {}
    different = 0
    for name, compute in entries(chosen.quick):
        if chosen.only not in name:
            continue
        start = time.perf_counter()
        try:
            now: Any = json.loads(json.dumps(compute()))
        except Exception as error:
            now = {"error": type(error).__name__}
        seconds = time.perf_counter() - start
        if chosen.action == "freeze":
            frozen[name] = now
            print(f"{seconds:6.1f} s  {name}  {json.dumps(now)[:110]}", flush=True)
        elif frozen.get(name) != now:
            different += 1
            print(
                f"DIFFERENT {name} ({seconds:.1f} s)\n  frozen {json.dumps(frozen.get(name))[:1500]}"
                f"\n  now    {json.dumps(now)[:1500]}",
                flush=True,
            )
    if chosen.action == "freeze":
        chosen.file.parent.mkdir(parents=True, exist_ok=True)
        chosen.file.write_text(json.dumps(frozen, indent=1, sort_keys=True) + "\n")
    else:
        print(f"{different} different")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
