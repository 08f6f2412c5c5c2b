"""Both machines from the same samples: Resolvent beside AALpy 2.0's general state merging.

`resolvent.paper.baselines.aalpy` gives AALpy the reduced samples of Resolvent's own search, in the
order of `rpni` (first fit) and, with `--edsm`, by evidence. Its machines are compared with ours.
Needs `pip install "resolvent[aalpy]"`.
"""

import argparse
import json
import statistics
import tempfile
from pathlib import Path

from pipeline import generated, plain_bytes, timed

import resolvent as rs
from resolvent.machines import is_isomorphic
from resolvent.paper.baselines import aalpy


def main() -> None:
    """Measure both on the same traces and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--traces", type=Path, help="traces in the paper's format")
    parser.add_argument("--edsm", action="store_true", help="AALpy by most evidence as well")
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = options.traces or generated(Path(folder) / "high.jsonl", 10_000)
        lines = [line for line in plain_bytes(path).split(b"\n") if line]
        loads, ours = [], []
        for _ in range(options.repetitions):
            loads.append(timed(lambda: [None for line in lines if json.loads(line) is None]))
            traces = rs.read_traces(path)
            ours.append(timed(lambda traces=traces: rs.infer(traces)))
        result = rs.infer(traces)
    print(f"{len(traces)} traces, {traces.steps} steps; {result.refinement}\n")

    rows = {"json.loads": statistics.median(loads), "resolvent": statistics.median(ours)}
    for order in ("first-fit", "edsm") if options.edsm else ("first-fit",):
        outcome = aalpy(traces, order=order)
        name = f"AALpy, {order}"
        rows[name] = outcome.seconds
        for machine in ("transition", "reward"):
            mine, its = getattr(result.machines, machine), getattr(outcome.machine, machine)
            same = "the same machine" if is_isomorphic(mine, its) else "ANOTHER machine"
            print(f"{name}: {machine} {its.states} states, {same} as ours")
    print(f"\n{'':<24}{'seconds':>10}{'times ours':>12}{'of json.loads':>15}")
    for name, seconds in rows.items():
        ratios = seconds / rows["resolvent"], seconds / rows["json.loads"]
        print(f"{name:<24}{seconds:>10.3f}{ratios[0]:>12.1f}{ratios[1]:>15.3f}")


if __name__ == "__main__":
    main()
