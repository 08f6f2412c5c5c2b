"""Random workers are killed while machines are inferred: the result is the same bytes.

A Ray of three nodes, each with one processor and processes of its own, runs on this machine. Each
trial kills a node or a worker at a random moment; then the driver itself is killed and run again
with its cache. Every result is compared with that of undisturbed threads.
"""

import argparse
import contextlib
import functools
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import psutil
from large_logs import ROLES, Log

import resolvent as rs

LOG, FILES, NODES = Log(inputs=6), 30, 3

DRIVER = """
import sys, json
import resolvent as rs
from resolvent.replay.scan import ScanPass
from resolvent.replay.replaying import ReplayPass
done = {"ScanPass": 0, "ReplayPass": 0}
def counting(kind):
    inner = kind.__call__
    def called(self, piece):
        done[kind.__name__] += 1
        return inner(self, piece)
    kind.__call__ = called
counting(ScanPass), counting(ReplayPass)
folder, kept, output = sys.argv[1:]
roles = json.loads(sys.stdin.read())
print("begun", flush=True)
result = rs.infer(rs.scan_traces(folder, **roles), options=rs.InferenceOptions(cache_dir=kept))
result.machines.save(output)
print(json.dumps(done))
"""


def digest(result: rs.InferenceResult, folder: Path) -> str:
    """Return a digest of the machines' file, byte by byte."""
    path = folder / "machines.json"
    result.machines.save(path)
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Nodes:
    """A Ray of several nodes on this machine, of which some are killed and others take over."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        limits = {"object_store_memory": 128 << 20, "include_dashboard": False}
        self.cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **limits})
        self.nodes = [self._begun() for _ in range(NODES)]

    def _begun(self) -> Any:
        return self.cluster.add_node(num_cpus=1, object_store_memory=128 << 20)

    def kill_node(self, draw: random.Random) -> str:
        """Kill a node with all its processes, as if its machine had lost power."""
        node = self.nodes.pop(draw.randrange(len(self.nodes)))
        self.cluster.remove_node(node, allow_graceful=False)
        return "node"

    def kill_worker(self, draw: random.Random) -> str:
        """Kill a process that works, or the next one that does."""
        until = time.perf_counter() + 5
        while not (busy := [process for node in self.nodes for process in _workers(node)]):
            if time.perf_counter() > until:
                return "nobody"
            time.sleep(0.02)
        with contextlib.suppress(psutil.NoSuchProcess):
            draw.choice(busy).kill()
        return "worker"

    def complete(self) -> None:
        """Have as many nodes as at the beginning."""
        while len(self.nodes) < NODES:
            self.nodes.append(self._begun())

    def close(self) -> None:
        """End all of it."""
        self.cluster.shutdown()


def _workers(node: Any) -> list[psutil.Process]:
    raylet = next(
        infos[0].process.pid for kind, infos in node.all_processes.items() if kind == "raylet"
    )
    with contextlib.suppress(psutil.NoSuchProcess):
        below = psutil.Process(raylet).children(recursive=True)
        return [
            process
            for process in below
            if _title(process).startswith("ray::") and _is_ours(process)
        ]
    return []


def _title(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def _is_ours(process: psutil.Process) -> bool:
    return "resolvent" in _title(process) or "fold" in _title(process)


def killed_on_ray(folder: Path, expected: str, trials: int, seed: int) -> int:
    """Kill a node or a worker in each trial; return how many results are as expected."""
    import ray

    say = functools.partial(print, file=sys.stdout, flush=True)
    with (
        Path(os.devnull).open("w") as nowhere,
        contextlib.redirect_stdout(nowhere),
    ):  # Ray says much
        return _killed_on_ray(ray, say, folder, expected, trials, seed)


def _killed_on_ray(ray: Any, say: Any, folder: Path, expected: str, trials: int, seed: int) -> int:
    nodes, draw, same = Nodes(), random.Random(seed), 0
    ray.init(address=nodes.cluster.address, log_to_driver=False, logging_level="CRITICAL")
    try:
        scanned = rs.scan_traces(folder, **ROLES)
        before = time.perf_counter()
        rs.infer(scanned, options=rs.InferenceOptions(on="ray"))  # the first one begins the workers
        first, before = time.perf_counter() - before, time.perf_counter()
        rs.infer(scanned, options=rs.InferenceOptions(on="ray"))
        usual = time.perf_counter() - before
        say(f"undisturbed: {first:.1f} s at first, then {usual:.1f} s")
        for trial in range(trials):
            nodes.complete()
            kill = (nodes.kill_node, nodes.kill_worker)[trial % 2]
            after, what = draw.uniform(0, usual), ["nobody"]
            timer = threading.Timer(after, lambda: what.append(kill(draw)))  # noqa: B023
            before = time.perf_counter()
            timer.start()
            result = digest(rs.infer(scanned, options=rs.InferenceOptions(on="ray")), folder.parent)
            took = time.perf_counter() - before
            timer.join()
            same += result == expected
            verdict = "the same bytes" if result == expected else "ANOTHER RESULT"
            say(
                f"{trial + 1:2}: {what[-1]:6} killed after {after:4.1f} of {took:4.1f} s: {verdict}"
            )
    finally:
        ray.shutdown()
        nodes.close()
    return same


def killed_driver(folder: Path, expected: str, trials: int, seed: int) -> int:
    """Kill the driver when some pieces are kept, run it again, and count what it made again."""
    draw, same, whole = random.Random(seed), 0, 0
    output = folder.parent / "again.json"
    with tempfile.TemporaryDirectory() as cache:
        done = _finished(_driver(folder, cache, output))
        whole = sum(done.values())
        print(f"undisturbed: {done['ScanPass']} scans and {done['ReplayPass']} replays of shards")
    for trial in range(trials):
        with tempfile.TemporaryDirectory() as cache:
            enough = draw.randrange(whole)
            process = _driver(folder, cache, output)
            while _count(cache) < enough and process.poll() is None:
                time.sleep(0.002)
            process.send_signal(signal.SIGKILL)
            process.wait()
            killed = _count(cache)
            done = _finished(_driver(folder, cache, output))
        result = hashlib.sha256(output.read_bytes()).hexdigest()
        same += result == expected and sum(done.values()) == whole - killed
        verdict = "the same bytes" if result == expected else "ANOTHER RESULT"
        print(
            f"{trial + 1:2}: driver killed with {killed:2} of {whole} pieces kept; then "
            f"{sum(done.values()):2} made: {verdict}",
            flush=True,
        )
    return same


def _count(cache: str) -> int:
    return sum(1 for _ in Path(cache).rglob("*.cache"))


def _finished(process: subprocess.Popen[str]) -> dict[str, int]:
    """Wait for the driver, and return how often it looked at a piece and replayed one."""
    assert process.stdout is not None
    printed = process.stdout.read()
    if process.wait():
        raise SystemExit("the driver failed")
    done: dict[str, int] = json.loads(printed.splitlines()[-1])
    return done


def _driver(folder: Path, cache: str, output: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(folder), cache, str(output)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(ROLES))
    process.stdin.close()
    process.stdout.readline()  # it has begun
    return process


def main() -> None:
    """Say of every trial what was killed when, and at the end how many results were the same."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--rows", type=int, default=200_000, help="rows of each of 30 files")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    with tempfile.TemporaryDirectory() as place:
        folder = LOG.folder(Path(place), FILES, options.rows)
        expected = digest(rs.infer(rs.scan_traces(folder, **ROLES)), folder.parent)
        on_ray = killed_on_ray(folder, expected, options.trials, options.seed)
        driver = killed_driver(folder, expected, options.trials, options.seed)
    print(f"nodes and workers killed: {on_ray} of {options.trials} results identical")
    print(f"driver killed: {driver} of {options.trials} results identical, nothing made twice")
    if (on_ray, driver) != (options.trials, options.trials):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
