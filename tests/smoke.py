"""An installed Resolvent does what it is for; run as `python smoke.py`, from anywhere.

It needs nothing but the package: no test tools, no checkout.
"""

import sys
import tempfile
from importlib import metadata
from pathlib import Path

import gymnasium as gym

import resolvent as rs
from resolvent.cli import main


def smoke(folder: Path) -> None:
    """Infer the house, save it, load it, plan in it, and run the commands on its files."""
    env = gym.make("resolvent/House-v0")
    traces = rs.collect(env, episodes=300, seed=0)
    result = rs.infer(traces)
    expect(result.machines.transition.states, 2)
    expect(result.machines.reward.states, 2)
    expect(rs.plan(result, traces).is_optimal, True)

    files = {name: folder / name for name in ("t.parquet", "t.jsonl", "t.jsonl.zst", "m.json")}
    for name in ("t.parquet", "t.jsonl", "t.jsonl.zst"):
        traces.save(files[name])
        expect(rs.infer(rs.read_traces(files[name])).machines, result.machines)
    result.machines.save(files["m.json"])
    expect(rs.load(files["m.json"]), result.machines)

    page = folder / "house.html"
    model, log = str(files["m.json"]), str(files["t.parquet"])
    expect(main(["infer", log, "-o", str(folder / "again.json"), "--json"]), 0)
    expect(main(["check", model, log, "--json"]), 0)
    expect(main(["report", model, log, "-o", str(page)]), 0)
    expect(page.stat().st_size > 10_000, True)
    expect(main(["--version"]), 0)

    texts = {Path(str(file)).name for file in metadata.files("resolvent") or ()}
    expect({"LICENSE", "THIRD_PARTY_LICENSES", "py.typed", "__init__.pyi"} - texts, set())


def expect(found: object, wanted: object) -> None:
    """End with an error unless both are equal; unlike assert, python -O does not skip it."""
    if found != wanted:
        sys.exit(f"smoke test: {found!r} instead of {wanted!r}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        smoke(Path(name))
    print(f"smoke test passed: resolvent {rs.__version__} at {Path(rs.__file__).parent}")
