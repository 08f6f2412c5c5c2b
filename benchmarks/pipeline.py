"""Reading and inference beside `json.loads`, the ablation table, and the two engines.

Writes 1,000 and 10,000 traces of a 25×25 world of the paper's appendix (5 labels, Transition
Machine 7 states, Reward Machine 3 with the terminal one) in the paper's format. `--low` and
`--high` take files instead. `--part peers` compares AALpy 2.0 (`pip install "resolvent[aalpy]"`).
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

import resolvent as rs

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from worlds import random_world

# The world whose traces come closest in length to the paper's (225.3 on average).
WORLD_SEED = 28

ABLATIONS: dict[str, dict[str, bool]] = {
    "full pipeline": {},
    "no supplement": {"supplement": False},
    "redundant alpha kept": {"remove_redundant": False},
    "trivial beta kept": {"remove_trivial": False},
    "both kept": {"remove_redundant": False, "remove_trivial": False},
}

PEAK_MEMORY = """
import resource, sys
import resolvent as rs
from pathlib import Path

def now(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(name)))

traces = rs.read_traces(sys.argv[1])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
beyond = None
try:
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = now("VmRSS")
    rs.infer(traces)
    beyond = now("VmHWM") - before
except OSError:
    rs.infer(traces)
print(max(peak, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss), beyond)
"""


def main() -> None:
    """Run all parts, or the one asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--low", type=Path, help="traces of the low-data setting")
    parser.add_argument("--high", type=Path, help="traces of the high-data setting")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--part", choices=["speed", "ablation", "engines", "peers"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        low = options.low or generated(Path(folder) / "low.jsonl", 1_000)
        high = options.high or generated(Path(folder) / "high.jsonl", 10_000)
        if options.part in (None, "speed"):
            speed(high, options.repetitions)
        if options.part in (None, "ablation"):
            ablation(low, high)
        if options.part in (None, "engines"):
            engines(low, options.repetitions)
        if options.part == "peers":
            peers(high, options.repetitions)


def generated(path: Path, episodes: int) -> Path:
    """Write traces of the benchmark's world and return their file."""
    random_world(WORLD_SEED).write_paper_format(path, episodes, seed=0)
    return path


def speed(path: Path, repetitions: int) -> None:
    """Compare reading and inference with `json.loads` over the lines of the same file."""
    lines = lines_of(path)
    names = ("json.loads", "read", "diagnose", "infer", "infer, all traces at once")
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(repetitions):
        seconds["json.loads"].append(timed(lambda: parse(lines)))
        seconds["read"].append(timed(lambda: rs.read_traces(path)))
        traces = rs.read_traces(path)  # anew each time, so that nothing is cached on it
        seconds["diagnose"].append(timed(lambda traces=traces: rs.diagnose(traces)))
        traces = rs.read_traces(path)
        seconds["infer"].append(timed(lambda traces=traces: rs.infer(traces)))
        traces = rs.read_traces(path)
        seconds[names[-1]].append(
            timed(lambda traces=traces: rs.infer(traces, options=rs.InferenceOptions(refine=False)))
        )
    result = rs.infer(traces)
    yardstick = statistics.median(seconds["json.loads"])
    print(f"\n{path.name}: {len(traces)} traces, {traces.steps} steps")
    print(f"machines: TM {result.transition.states}, RM {result.reward.states} states")
    print(f"learned from {result.refinement}\n")
    print(f"{'':<26}{'seconds':>9}{'output_counts':>16}{'of json.loads':>16}")
    for name, measured in seconds.items():
        middle = statistics.median(measured)
        output_counts = f"{min(measured):.3f}–{max(measured):.3f}"
        print(f"{name:<26}{middle:>9.3f}{output_counts:>16}{middle / yardstick:>16.3f}")
    peak = subprocess.run(
        [sys.executable, "-c", PEAK_MEMORY, str(path)], check=True, capture_output=True, text=True
    )
    whole, beyond = peak.stdout.split()
    print(f"\npeak memory of reading and inferring: {int(whole) / 1e6:.2f} GB")
    if beyond != "None":
        print(f"of inferring, beyond the columns read: {int(beyond) / 1e3:.0f} MB")


def ablation(low: Path, high: Path) -> None:
    """Run the ten cells of the paper's ablation table, in both orders of merging."""
    for strategy in ("edsm", "rpni"):
        total = 0.0
        print(f"\nablation, {strategy}: states TM / RM, seconds\n")
        print(f"{'':<24}{'low data':>20}{'high data':>20}")
        sets = [rs.read_traces(low), rs.read_traces(high)]
        for name, switches in ABLATIONS.items():
            cells = []
            for traces in sets:
                result = rs.infer(
                    traces, options=rs.InferenceOptions(strategy=strategy, **switches)
                )
                seconds = result.seconds["total"]
                total += seconds
                cells.append(
                    f"{result.transition.states} / {result.reward.states}  {seconds:.2f} s"
                )
            print(f"{name:<24}{cells[0]:>20}{cells[1]:>20}")
        print(f"{'all ten cells':<24}{'':>20}{total:>18.2f} s")


def engines(path: Path, repetitions: int) -> None:
    """Compare the native engine with the Python one on the same traces."""
    traces = rs.read_traces(path)
    print(f"\nengines on {len(traces)} traces, {traces.steps} steps\n")
    print(f"{'':<12}{'python':>10}{'native':>10}{'ratio':>8}")
    for strategy in ("edsm", "rpni"):
        slow, fast = [], []
        for _ in range(max(1, repetitions // 2)):
            slow.append(
                timed(
                    lambda s=strategy: rs.infer(
                        traces, strategy=s, options=rs.InferenceOptions(engine="python", trivial=())
                    )
                )
            )
            fast.extend(
                timed(
                    lambda s=strategy: rs.infer(
                        traces, strategy=s, options=rs.InferenceOptions(engine="native", trivial=())
                    )
                )
                for _ in range(3)
            )
        a, b = statistics.median(slow), statistics.median(fast)
        print(f"{strategy:<12}{a:>9.2f}s{b:>9.3f}s{a / b:>8.0f}")


def peers(path: Path, repetitions: int) -> None:
    """Compare AALpy's state merging on the reduced samples of our own search, and its machines."""
    from resolvent.paper.baselines import aalpy

    lines = lines_of(path)
    seconds: dict[str, list[float]] = {"json.loads": [], "resolvent": []}
    for _ in range(repetitions):
        seconds["json.loads"].append(timed(lambda: parse(lines)))
        traces = rs.read_traces(path)
        seconds["resolvent"].append(timed(lambda traces=traces: rs.infer(traces)))
    machines = rs.infer(traces).machines
    for order in ("first-fit", "edsm"):
        outcome = aalpy(traces, order=order)
        seconds[f"AALpy, {order}"] = [outcome.seconds]
        for name, machine in machines.items():
            other = outcome.machine[name]
            same = "the same machine" if rs.is_isomorphic(machine, other) else "ANOTHER machine"
            print(f"AALpy, {order}: {name} {other.states} states, {same} as ours")
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    print(f"\n{'':<24}{'seconds':>10}{'times ours':>12}{'of json.loads':>15}")
    for name, median in medians.items():
        ratios = median / medians["resolvent"], median / medians["json.loads"]
        print(f"{name:<24}{median:>10.3f}{ratios[0]:>12.1f}{ratios[1]:>15.3f}")


def lines_of(path: Path) -> list[bytes]:
    """Return the lines of a file, decompressed according to its name."""
    with pa.input_stream(str(path)) as stream:
        return [line for line in stream.read().split(b"\n") if line]


def parse(lines: list[bytes]) -> None:
    """Parse lines of JSON one by one: the yardstick."""
    for line in lines:
        json.loads(line)


def timed(work: Callable[[], object]) -> float:
    """Return the seconds that a call takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
