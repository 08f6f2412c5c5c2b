"""Files of every version of every format that was ever written: they load for good.

`data` holds them, written by the Resolvent of that version and never again. A new version
of a format adds a file; none is replaced (docs/versioning.md).
"""

import ast
from pathlib import Path

import pytest

import resolvent as rs
from resolvent.planning import plan_io as plan_files
from resolvent.worlds import RandomWorld

DATA = Path(__file__).parent / "data"
SOURCE = Path(rs.__file__).parent

DIGEST = "4b2e8da6fa4e8dcd05baea822c2f6fbc70a304d1a14c85a567e414e20b3e71cc"


def constants(path):
    """The names that a module gives to plain values, alone or in a row."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.Assign([ast.Name(name)], ast.Constant(value)):
                yield name, value
            case ast.Assign([ast.Tuple(names)], ast.Tuple(values)):
                for name, value in zip(names, values, strict=True):
                    if isinstance(value, ast.Constant):
                        yield ast.unparse(name), value.value


def written():
    """The name and version of each format that the package writes."""
    for path in SOURCE.rglob("*.py"):
        found = dict(constants(path))
        if str(found.get("FORMAT", "")).startswith("resolvent-"):
            yield f"{found['FORMAT']}-v{found['VERSION']}"


def test_every_format_has_its_file():
    kept = {path.name.partition(".")[0] for path in DATA.glob("resolvent-*")}
    assert len(kept) >= 5
    assert set(written()) <= kept, "a new version: add a file that it wrote to tests/formats/data"


@pytest.mark.parametrize(
    "name",
    ["traces.jsonl", "traces.jsonl.gz", "traces.jsonl.zst", "traces-paper.jsonl", "traces.parquet"],
)
def test_traces(name):
    traces = rs.read_traces(DATA / name)
    assert (len(traces), traces.digest) == (3, DIGEST)


def test_machines():
    machines = rs.load(DATA / "resolvent-machines-v2.json")
    has_key = machines.transition.run([{"key"}])
    assert machines.transition.output(0, "corridor", "up") == "corridor"
    assert machines.transition.output(has_key, "corridor", "up") == "cyanroom"
    assert machines.reward.output(1, ("limegreenroom", has_key), "sit") == 1
    assert machines.transition.step(0, {"toilet"}) is rs.UNSEEN


def test_plan():
    plan = plan_files.load(DATA / "resolvent-plan-v1.json")
    first = plan.policy[0]
    assert (plan.gamma, len(plan.policy)) == (0.95, 9)
    assert (first.observation, first.transition_state, first.reward_state) == ("corridor", 0, 0)
    assert (first.action, first.pessimistic) == ("left", pytest.approx(0.95**5))


def test_policy():
    learned = rs.rl.QTable.load(DATA / "resolvent-policy-v1.json")
    assert learned.q.shape == (9, 5)
    assert learned.q[learned.q > 0].tolist() == pytest.approx([0.0095, 0.19])


def test_world():
    machines = RandomWorld(path=DATA / "resolvent-world-v1.json").machines()
    assert (machines.transition.states, machines.reward.states) == (3, 2)


def test_solution():
    solved = rs.Solution.load(DATA / "resolvent-solved-v1")
    assert (solved.steps, solved.optimal) == (474, True)
    assert solved.value == pytest.approx(0.95**5)
    assert solved.machines.transition.states == 2
