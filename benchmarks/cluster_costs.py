"""The cost of passes over traces: a model of time and of bytes sent, measured and projected.

Measures on two million steps the cost of each stage of a pass per step, and the cost per shard,
file and task; predicts from these the cost of larger folders on threads and on Ray, with machines
of several sizes; prints prediction and measurement; and projects to 10¹⁰ and 10¹² steps on
clusters. CPU time is compared, because wall-clock time depends on other users of the machine.
"""

import argparse
import json
import math
import pickle
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
from cluster_model import Costs, Job, look_bytes, predicted, replay_bytes, work_bytes
from large_logs import LENGTH, MILLION, ROLES, Log
from workers import processor

import resolvent as rs
from resolvent._util.parallel import Threads, Workers
from resolvent._util.ray import Ray
from resolvent.replay import Corpus
from resolvent.replay.coded_shard import CodedShard
from resolvent.replay.corpus import POOL_STEPS
from resolvent.replay.counts import ReplayCounts
from resolvent.replay.replaying import ReplayPass, replay_shard
from resolvent.replay.scan import LEAST_STEPS, Pool, ScanPass, digested


def processor_of(work: Callable[[], Any], times: int = 3) -> float:
    """Return the least seconds of processor that this process takes for some work."""
    seconds = []
    for _ in range(times):
        started = time.process_time()
        work()
        seconds.append(time.process_time() - started)
    return min(seconds)


def measured_costs(under: Path, small: Log, large: Log) -> Costs:
    """Measure on little data what the model is made of."""
    folder = small.folder(under, 2)
    scanned = rs.scan_traces(folder, **ROLES)
    corpus = Corpus(scanned)
    pieces = corpus.pieces

    def first_pass() -> None:
        anew = rs.scan_traces(folder, **ROLES)  # it is not known yet that rows stand in order
        for number in (0, 1):
            digested(CodedShard.alone(anew.read(number)))

    look = processor_of(first_pass)
    read_again = processor_of(lambda: [pieces.read(at).rank for at in (0, 1)])
    replays = {}
    for world in (small, large):
        shown = Corpus(rs.scan_traces(world.folder(under, 2), **ROLES))
        shards = [shown.pieces.read(at) for at in (0, 1)]
        _ = [shard.rank for shard in shards]
        tables = world.tables(shown.alphabets)
        replays[world] = processor_of(
            lambda tables=tables, shards=shards: [replay_shard(tables, one) for one in shards]
        )
        results = [replay_shard(tables, one) for one in shards]
        adding = processor_of(lambda results=results: reduce(ReplayCounts.__add__, results))
    growth = (replays[large] - replays[small]) / math.log2(large.rows / small.rows) / 2 / MILLION
    shard = CodedShard.alone(scanned.read(0))
    _ = shard.key
    some = [LEAST_STEPS, 4 * LEAST_STEPS]
    giving = [
        processor_of(lambda most=most: Pool.of(shard, POOL_STEPS, 0, (0, most))) for most in some
    ]
    tiny = many_files(under, 2_000)
    began = time.perf_counter()
    opening = processor_of(lambda: rs.scan_traces(tiny, **ROLES), 1)
    opened = 2_000 / (time.perf_counter() - began)
    told = rs.scan_traces(tiny, **ROLES)
    half = rs.scan_traces(sorted(tiny.glob("*.parquet"))[:1_000], **ROLES)
    sent = [len(pickle.dumps(one, 5)) for one in (half, told)]
    content = pickle.dumps(told, 5)
    single = processor_of(lambda: [told.read(at) for at in range(200)]) / 200
    return Costs(
        look=look / 2 / MILLION,
        read=read_again / 2 / MILLION,
        replay=replays[small] / 2 / MILLION - growth * math.log2(small.rows),
        replay_growth=growth,
        give=(giving[1] - giving[0]) / (some[1] - some[0]),
        piece=single,
        row=adding / (2 * large.rows),
        file=opening / 2_000,
        footers_a_second=opened,
        load=processor_of(lambda: pickle.loads(content)) / 2_000,  # noqa: S301 -- our own
        piece_bytes=(sent[1] - sent[0]) / 1_000,
        learn=learned(folder),
        stored=sum(one.stat().st_size for one in folder.iterdir()) / 2 / MILLION,
        **costs_of_ray(),
    )


def many_files(under: Path, files: int) -> Path:
    """Write files of a hundred steps."""
    folder = under / "many"
    if not folder.exists():
        folder.mkdir()
        for number in range(files):
            Log(4, 12).write(folder, number, LENGTH)
    return folder


def learned(folder: Path) -> float:
    """Return the seconds of processor of an inference that are neither reading nor replay."""
    corpus = Corpus(rs.scan_traces(folder, **ROLES))
    some = corpus.fetch(corpus.sample(50_000))
    return processor_of(lambda: rs.infer(some, options=rs.InferenceOptions(refine=False)), 1)


def costs_of_ray() -> dict[str, float]:
    """Measure what Ray takes to begin, for a task and to wait for one of many."""
    import ray

    workers, before = Ray(), processor()
    workers.together(len, ["a"], int.__add__, called="starting")
    begun = sum(processor().values()) - sum(before.values())
    sleeping: Any = ray.remote(num_cpus=1, num_returns=2)(_sleeping)
    began = time.process_time()
    waiting = [sleeping.options(name=f"waiting {at}").remote(at)[1] for at in range(1_000)]
    task = (time.process_time() - began) / 1_000
    done = ray.put(1)
    wait = processor_of(lambda: [ray.wait([*waiting, done], num_returns=1) for _ in range(20)]) / 20
    workers.close()  # and the tasks with it
    workers.together(len, ["a", "b"], int.__add__, called="starting")
    used = []
    for work in (_nothing, _array, _nothing, _array):  # the first time there is more to load
        before = processor()
        list(workers.each(work, range(48), called="returning"))
        after = processor()
        used.append(sum(after[kind] - before[kind] for kind in ("here", "working")) / 48)
    workers.close()
    more = {"work_task": max(used[2] - task, 0.0), "moved": max(used[3] - used[2], 0.0) / _ARRAY}
    return {**more, "begin": begun / 2, "ray_process": begun / 2, "task": task, "wait": wait}


_ARRAY = 8_000_000


def _nothing(number: int) -> int:
    return number


def _array(number: int) -> np.ndarray:
    return np.full(_ARRAY // 8, number)


def _sleeping(number: int) -> tuple[int, int]:
    time.sleep(600)
    return number, number


def passed(
    workers: Workers, folder: Path, world: Log
) -> tuple[dict[str, float], Corpus, ReplayCounts]:
    """Go through a folder twice, and return seconds of processor and clock."""
    before, started = processor(), time.perf_counter()
    corpus = Corpus(rs.scan_traces(folder, **ROLES), workers=workers)
    work = ReplayPass(corpus.pieces, world.tables(corpus.alphabets), shortest=True)
    counts: ReplayCounts = workers.together(
        work, range(len(corpus.shards)), ReplayCounts.__add__, called="replaying"
    )
    used = {kind: now - before[kind] for kind, now in processor().items()}
    used["clock"] = time.perf_counter() - started
    if not counts.consistent:
        raise AssertionError("the machine does not explain its own logs")
    return used, corpus, counts


def compare(costs: Costs, under: Path, worlds: Sequence[tuple[Log, int]], turns: int) -> list[Any]:
    """Print what the model says of larger folders beside what they take."""
    figures = []
    title = f"{'':>10}{'steps':>9}{'states':>8}{'inputs':>8}{'predicted':>11}{'measured':>10}"
    print(f"\nseconds of processor, two passes\n{title}{'error':>8}")
    kinds: dict[str, tuple[Workers, int]] = {
        "1 thread": (Threads(1), 1),
        "2 threads": (Threads(2), 2),
        "Ray, 2": (Ray(), 2),
    }
    for name, (workers, slots) in kinds.items():
        for number, (world, files) in enumerate(worlds):
            folder = world.folder(under, files)
            if number == 0:
                passed(workers, folder, world)  # imports, and processes that begin
            turned = [passed(workers, folder, world)[0] for _ in range(turns)]
            used = min(usage["here"] + usage["working"] for usage in turned)
            job = Job(files * 1e6, files, files, world, slots, ray=name.startswith("Ray"))
            prediction = predicted(costs, job)
            wanted = prediction["working"] + prediction["driver"]
            figures.append((name, files, world.states, world.inputs, wanted, used))
            print(
                f"{name:>10}{files:>7} M{world.states:>9}{world.inputs:>8}{wanted:>11.2f}"
                f"{used:>10.2f}{wanted / used - 1:>+8.0%}",
                flush=True,
            )
        workers.close()
    return figures


def compare_bytes(costs: Costs, under: Path, worlds: Sequence[tuple[Log, int]]) -> list[Any]:
    """Print what the model says of bytes beside what is sent and comes back."""
    figures = []
    print(f"\n{'bytes':>34}{'predicted':>12}{'measured':>12}{'error':>8}")

    def told(what: str, wanted: float, real: int) -> None:
        figures.append((what, wanted, real))
        print(f"{what:>34}{wanted:>12,.0f}{real:>12,}{wanted / real - 1:>+8.0%}")

    for world, files in worlds:
        scanned = rs.scan_traces(world.folder(under, files), **ROLES)
        corpus = Corpus(scanned)
        job = Job(files * 1e6, files, files, world, 2)
        work = ReplayPass(corpus.pieces, world.tables(corpus.alphabets), shortest=True)
        looking, of = ScanPass(scanned, POOL_STEPS, scanned.rows), f"{world.states}×{world.inputs}"
        told(f"{of}, {files} M: work", work_bytes(costs, job), size(work))
        told(f"{of}, {files} M: a look", look_bytes(job, 1), size(looking(0)))
        number = min(4, files)
        few = reduce(add, map(looking, range(number)))
        told(f"{of}, {files} M: {number} looks", look_bytes(job, number), size(few))
        told(f"{of}, {files} M: a replay", replay_bytes(job), size(work(0)))
    world = worlds[0][0]
    for millions in (1, 2, 4):
        scanned = rs.scan_traces(world.folder(under, 4, millions * MILLION), **ROLES)
        corpus = Corpus(scanned)
        work = ReplayPass(corpus.pieces, world.tables(corpus.alphabets), shortest=True)
        job = Job(4e6 * millions, 4, 4, world, 2)
        looking = ScanPass(scanned, POOL_STEPS, scanned.rows)
        told(f"piece of {millions} M: a look", look_bytes(job, 1), size(looking(0)))
        told(f"piece of {millions} M: a replay", replay_bytes(job), size(work(0)))
    return figures


def size(value: Any) -> int:
    """Return how many bytes are sent of a value."""
    return len(pickle.dumps(value, 5))


def project(costs: Costs, world: Log, groups: int) -> list[Any]:
    """Print what the model says of clusters; a file has so many pieces."""
    figures = []
    print(f"\n{world.states} states, {world.inputs} inputs, {groups} pieces of a million a file")
    print(
        f"{'steps':>6}{'workers':>9}{'tasks':>8}{'processor':>12}{'clock':>9}{'opening':>9}"
        f"{'driver':>8}{'telling':>9}{'read':>9}{'to a node':>11}{'back':>9}"
    )
    for exponent in (10, 12):
        for slots in (16, 256, 4_096):
            pieces = 10 ** (exponent - 6)
            job = Job(10.0**exponent, pieces, max(pieces // groups, 1), world, slots)
            prediction = predicted(costs, job)
            figures.append((exponent, slots, prediction))
            print(
                f"{f'10^{exponent}':>6}{slots:>9,}{job.tasks:>8,}{prediction['working'] / 3600:>10.2f} h"
                f"{prediction['clock']:>7,.0f} s{prediction['opening']:>7,.0f} s{prediction['driver']:>6,.0f} s"
                f"{prediction['loading']:>7,.1f} s{prediction['read'] / 1e12:>6.2f} TB"
                f"{prediction['to a node'] / 1e6:>8,.1f} MB{prediction['back'] / 1e9:>6,.1f} GB"
            )
    return figures


def main() -> None:
    """Measure, compare and project."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, help="keep the files here, and use those there")
    parser.add_argument("--millions", type=int, default=20, help="steps of the largest folder")
    parser.add_argument("--turns", type=int, default=2, help="how often each is measured")
    parser.add_argument("--json", type=Path, help="where to write what was measured")
    options = parser.parse_args()
    small, middle, large = Log(4, 12), Log(16, 100), Log(64, 300)
    with tempfile.TemporaryDirectory() as temporary:
        under = options.folder or Path(temporary)
        costs = measured_costs(under, small, large)
        print("what was measured, in seconds of processor, or bytes:")
        for name, value in asdict(costs).items():
            print(f"{name:>18} {value:.3g}")
        millions = options.millions
        worlds = [
            (small, millions // 2),
            (small, millions),
            (middle, millions // 4),
            (large, millions // 4),
        ]
        figures = {
            "costs": asdict(costs),
            "processor": compare(costs, under, worlds, options.turns),
            "bytes": compare_bytes(costs, under, worlds[1:]),
            "one piece a file": project(costs, small, 1),
            "a hundred pieces a file": project(costs, small, 100),
            "large machines": project(costs, large, 100),
        }
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
