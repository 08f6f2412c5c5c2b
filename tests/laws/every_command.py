"""Every command once, in one process, with what it writes in a folder.

Run as `python every_command.py FOLDER THREADS ORDER [all]`: THREADS is how many processors it is
told there are, ORDER the seed by which files are made in another order. Only with `all` are the
commands run that take long.
"""

import contextlib
import json
import os
import random
import sys
from pathlib import Path

ENVIRONMENT = "resolvent/House-v0"


def run(folder: Path, *arguments: str, keep: str | None = None) -> None:
    """Run one command; what it prints is kept in a file if that has a name."""
    from resolvent.cli import main

    sys.argv = ["resolvent", *arguments]
    with (
        (folder / (keep or "out")).open("w", encoding="utf-8") as out,
        contextlib.redirect_stdout(out),
        contextlib.suppress(SystemExit),
    ):
        main()
    if keep is None:
        (folder / "out").unlink()


def commands(folder: Path, order: int, everything: bool) -> None:
    """Run the commands one after another, each on what others wrote."""
    import resolvent as rs

    os.chdir(folder)
    run(folder, "collect", ENVIRONMENT, "-n", "60", "--seed", "0", "-o", "house.jsonl")
    run(folder, "convert", "house.jsonl", "house.parquet")
    run(folder, "convert", "house.jsonl", "house.jsonl.gz")
    traces = rs.read_traces("house.jsonl")
    Path("parts").mkdir()
    starts = list(range(0, 60, 15))
    random.Random(order).shuffle(starts)
    for start in starts:  # the files of a folder, made in another order
        traces[start : start + 15].save(f"parts/{start:02}.parquet")
    run(folder, "infer", "house.jsonl", "-o", "machines.json")
    run(folder, "infer", "parts", "-o", "scanned.json")
    run(folder, "show", "machines.json", keep="shown")
    run(folder, "check", "machines.json", "house.jsonl", keep="checked")
    run(folder, "diagnose", "house.jsonl", keep="diagnosed")
    run(folder, "plan", "machines.json", "house.jsonl", "-o", "plan.json", keep="planned")
    shuffled = list(range(len(traces)))
    random.Random(order).shuffle(shuffled)
    traces.take(shuffled).save("shuffled.jsonl")
    run(folder, "infer", "shuffled.jsonl", "-o", "from_shuffled.json")
    Path("shuffled.jsonl").unlink()
    # Machines say which traces they are of, by a digest that tells orders apart: all else is equal.
    model = json.loads(Path("from_shuffled.json").read_bytes())
    del model["provenance"]
    Path("from_shuffled.json").write_text(json.dumps(model))
    if everything:
        run(folder, "report", "machines.json", "house.jsonl", "-o", "report.html")
        run(folder, "train", ENVIRONMENT, "--episodes", "40", "-o", "policy.json")
        run(folder, "solve", ENVIRONMENT, "--budget", "300", "--seed", "0", "-o", "solved")
        run(folder, "infer", "house.jsonl", "--strategy", "exact", "-o", "exact.json")
        run(folder, "infer", "house.jsonl", "--strategy", "search", "-o", "searched.json")
        run(folder, "infer", "house.jsonl", "--labels", "auto", "-o", "without_labels.json")


if __name__ == "__main__":
    place, threads, files = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    os.sched_getaffinity = lambda process: set(range(threads))
    commands(place, files, everything=sys.argv[4:] == ["all"])
