"""Files that Resolvent writes hold to the schemas; what a schema refuses, Resolvent refuses."""

import copy
import json

import gymnasium as gym
import pyarrow.parquet as pq
import pytest
from jsonschema import Draft202012Validator

import resolvent as rs
from noisy_worlds import loaded_die
from pages import DOCS
from resolvent.planning import plan_io as plan_files
from resolvent.worlds import RandomWorld

SCHEMAS = {
    path.name.removesuffix(".schema.json"): json.loads(path.read_text(encoding="utf-8"))
    for path in (DOCS / "formats").glob("*.schema.json")
}


def valid(name, content):
    return Draft202012Validator(SCHEMAS[name]).is_valid(content)


@pytest.fixture(scope="module")
def house():
    return rs.collect(gym.make("resolvent/House-v0"), episodes=100, seed=0)


@pytest.fixture(scope="module")
def pair(house):
    return rs.infer(house).machines


def saved(thing, path):
    thing.save(path)
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def contents(house, pair, tmp_path_factory):
    """For each schema, what a file that was written holds."""
    folder = tmp_path_factory.mktemp("files")
    house[:5].save(folder / "episodes.jsonl")
    house[:5].save(folder / "paper.jsonl", format="paper")
    house[:5].save(folder / "rows.parquet")
    wrapped = rs.AugmentObservation(gym.make("resolvent/House-v0"), pair)
    learned = rs.q_learning(wrapped, episodes=4, evaluate_every=2)
    return {
        "machines": saved(pair, folder / "machines.json"),
        "plan": saved(rs.plan(pair, house), folder / "plan.json"),
        "policy": saved(learned, folder / "policy.json"),
        "world": saved(RandomWorld(size=5, tm_states=3), folder / "world.json"),
        "episode": json.loads((folder / "episodes.jsonl").read_text().splitlines()[0]),
        "paper-episode": json.loads((folder / "paper.jsonl").read_text().splitlines()[0]),
        "parquet-row": pq.read_table(folder / "rows.parquet").to_pylist()[0],
    }


READERS = {
    "machines": rs.load,
    "plan": plan_files.load,
    "policy": rs.rl.QTable.load,
    "world": lambda path: RandomWorld(path=path),
    "episode": rs.read_traces,
    "paper-episode": rs.read_traces,
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_are_valid_and_have_a_title(name):
    Draft202012Validator.check_schema(SCHEMAS[name])
    assert SCHEMAS[name]["title"]


@pytest.mark.parametrize("name", SCHEMAS)
def test_files_match_their_schema(name, contents):
    assert valid(name, contents[name])


@pytest.mark.parametrize("timing", rs.LabelTiming)
@pytest.mark.parametrize("options", [{"supplement": False}, {"reward_digits": 2}, {"trivial": []}])
def test_machines_of_any_options_match_the_schema(timing, options, tmp_path):
    traces = rs.TraceSet([rs.Trace(["a", "b"], ["key", None], ["go"], [0.125])])
    machines = rs.infer(traces, options=rs.InferenceOptions(timing=timing, **options)).machines
    assert valid("machines", saved(machines, tmp_path / "m.json"))


def test_machines_with_noise_match_the_schema(tmp_path):
    content = saved(loaded_die(1.0, 6.0, 6.0), tmp_path / "die.json")
    assert valid("machines", content)
    (machine,) = content["machines"]
    for output_counts in (
        [],
        [[0, 0, 1]],
        [[0, 0, 0], [0, 1, 3]],
        [[0, 0], [0, 1]],
        [[-1, 0, 1]] * 2,
    ):
        spoiled = {**content, "machines": [{**machine, "output_counts": output_counts}]}
        assert not valid("machines", spoiled)
        (tmp_path / "spoiled.json").write_text(json.dumps(spoiled))
        with pytest.raises(rs.errors.ModelError):
            rs.load(tmp_path / "spoiled.json")


@pytest.mark.parametrize(
    "seen", [[True, False], [1, 2], [1.5, 2.0], ["x", "y"], [(1, ("y", 2.0)), (2, ("z", 0.5))]]
)
def test_symbols_of_all_types_match_the_schema(seen, tmp_path):
    traces = rs.TraceSet([rs.Trace(seen, [{"a", "b"}, None], seen[:1], [0.5], terminated=True)])
    traces.save(tmp_path / "t.jsonl")
    assert valid("episode", json.loads((tmp_path / "t.jsonl").read_text()))
    assert valid("machines", saved(rs.infer(traces).machines, tmp_path / "m.json"))
    assert valid("plan", saved(rs.plan(rs.infer(traces), traces), tmp_path / "p.json"))


def test_every_row_of_a_parquet_file_matches_the_schema(house, tmp_path):
    house[:20].save(tmp_path / "house.parquet")
    rows = pq.read_table(tmp_path / "house.parquet").to_pylist()
    assert all(valid("parquet-row", row) for row in rows)
    final = next(row for row in rows if row["action"] is None)
    assert not valid("parquet-row", {**final, "reward": 1.0})
    assert not valid("parquet-row", {**rows[0], "reward": None})


def test_traces_without_rewards_or_with_further_columns_match_the_schema(tmp_path):
    columns = {"cost": [3, 4], "at": [(0, 1), (1, 1)], "fault": [False, True]}
    traces = rs.TraceSet([rs.Trace([0, 1, 0], [None] * 3, "ab", columns=columns)])
    traces.save(tmp_path / "t.jsonl")
    line = json.loads((tmp_path / "t.jsonl").read_text())
    assert "rewards" not in line
    assert valid("episode", line)
    traces.save(tmp_path / "t.parquet")
    assert all(
        valid("parquet-row", row) for row in pq.read_table(tmp_path / "t.parquet").to_pylist()
    )
    for further in ({"": [1, 2]}, {"step": [1, 2]}, {"cost": 3}, {"cost": []}, {"cost": [1, None]}):
        (tmp_path / "t.jsonl").write_text(json.dumps({**line, "columns": further}) + "\n")
        assert not valid("episode", {**line, "columns": further})
        with pytest.raises(rs.TraceError):
            rs.read_traces(tmp_path / "t.jsonl")


def outliers(name, content):
    """Ways to spoil a file, each of which its schema must notice."""
    if isinstance(content, list):
        yield "empty", []
        for place in (0, 1, 2):
            yield (
                f"a step without part {place}",
                [[part for at, part in enumerate(step) if at != place] for step in content],
            )
        yield "a reward in words", [[*content[0][:2], "much"], *content[1:]]
        return
    for key in SCHEMAS[name]["required"]:
        yield f"no {key}", {other: value for other, value in content.items() if other != key}
        yield f"{key} is an object of no kind", {**content, key: {"no": ["such", "thing"]}}
    if SCHEMAS[name].get("additionalProperties") is False:
        yield "an unknown field", {**content, "unknown": 1}
    if name == "machines":
        for table in ("transitions", "by_state", "constant"):
            spoiled = copy.deepcopy(content)
            spoiled["machines"][0]["tables"][table][0][0] = -1
            yield f"a negative number in {table}", spoiled
        spoiled = copy.deepcopy(content)
        spoiled["machines"][0]["tables"]["states"] = 0
        yield "no states", spoiled
        for column in ("transitions", "agreeing", "folded"):
            spoiled = copy.deepcopy(content)
            spoiled["machines"][0]["decisions"][column][0] = -1
            yield f"a negative number in the decisions' {column}", spoiled
        for column in ("transitions", "by_state", "constant"):
            spoiled = copy.deepcopy(content)
            spoiled["machines"][0]["support"][column][0] = -1
            yield f"a negative count of {column}", spoiled
        yield "another version", {**content, "version": 3}
    if name == "machines":
        yield "no machines", {**content, "machines": []}
        first = content["machines"][0]
        observed = first["observed_constants"]
        sets, rows = observed["sets"], observed["rows"]
        for what, changed in (
            ("a machine without a name", {"predicts": ""}),
            ("a machine with an unknown field", {"colour": "red"}),
            ("decisions of nothing", {"decisions": {"fault": {}}}),
            ("a negative state", {"observed_constants": {"sets": [[-1], *sets[1:]], "rows": rows}}),
            ("a negative row", {"observed_constants": {"sets": sets, "rows": [-1, *rows[1:]]}}),
        ):
            yield what, {**content, "machines": [{**first, **changed}, *content["machines"][1:]]}
        yield (
            "a negative number in the termination",
            {**content, "termination": {"ends": [[-1, 0, 0, 0]], "ambiguous": []}},
        )
    if name == "plan":
        row = content["policy"][0]
        for key, value in (("transition_state", -1), ("observation", None), ("optimistic", "x")):
            yield f"{key} {value}", {**content, "policy": [{**row, key: value}]}
        yield "no discount", {**content, "gamma": 0}
    if name == "world":
        yield "another format", {**content, "format": "resolvent-machines"}


@pytest.mark.parametrize("name", SCHEMAS)
def test_files_that_a_schema_refuses_are_refused(name, contents, tmp_path):
    spoiled = list(outliers(name, contents[name]))
    assert len(spoiled) >= 5
    for what, content in spoiled:
        assert not valid(name, content), what
        if name in READERS:
            path = tmp_path / "spoiled.json"
            path.write_text(json.dumps(content) + "\n")
            with pytest.raises(rs.ResolventError):
                READERS[name](path)
