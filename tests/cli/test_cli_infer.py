from pathlib import Path

import pytest
from cli_outcome import Run

import resolvent as rs
from resolvent import load
from resolvent._util.parallel import Progress
from resolvent.cli.commands.infer import _show_stage
from resolvent.inference.strategy import STRATEGIES
from resolvent.viz.terminal import ProgressBar


def test_finds_the_house(run: Run, house: Path, tmp_path: Path) -> None:
    path = tmp_path / "machines.json"
    outcome = run("infer", house, "-o", path)
    assert (outcome.code, outcome.err) == (0, "")
    assert f"wrote {path}" in outcome.out
    assert f"resolvent show {path}" in outcome.out
    pair = load(path)
    assert (pair.transition.states, pair.reward.states) == (2, 2)


def test_json_has_what_the_design_promises(run: Run, house: Path) -> None:
    outcome = run("infer", house, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    figures = outcome.json
    assert (figures["tm_states"], figures["rm_states"], figures["traces"]) == (2, 2, 200)
    assert figures["states"] == {"transition": 2, "reward": 2}
    assert figures["steps"] > 1000
    assert figures["output"] is None
    assert set(figures["prefix_tree_nodes"]) == {"transition", "reward"}
    seconds = figures["seconds"]
    assert set(seconds) == {"read", "transition", "reward", "replay", "held_out", "total"}
    assert seconds["total"] >= seconds["read"] + seconds["transition"] + seconds["reward"]


def test_without_a_target_nothing_is_written(
    run: Run, house: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = run("infer", house)
    assert outcome.code == 0
    assert "-o" in outcome.out
    assert not list(tmp_path.iterdir())


def test_ablation_switches_reach_the_search(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "other.jsonl"
    run("collect", "resolvent/HouseInterference-v0", "-n", "200", "-o", path)
    full = run("infer", path, "--json").json
    bare = run(
        *("infer", path, "--no-supplement", "--keep-redundant", "--keep-trivial"),
        *("--strategy", "rpni", "--engine", "python", "--reward-digits", "2", "--json"),
    ).json
    assert (full["rm_states"], bare["rm_states"]) == (1, 2)
    assert full["constant_outputs"]["transition"] > 0
    assert bare["constant_outputs"]["transition"] == 0
    assert bare["prefix_tree_nodes"]["transition"] > full["prefix_tree_nodes"]["transition"]
    assert bare["options"] == {
        "strategy": "rpni",
        "noise": "auto",
        "timing": "current",
        "trivial": "auto",
        "supplement": False,
        "remove_redundant": False,
        "remove_trivial": False,
        "reward_digits": 2,
        "seed": 0,
        "effort": 1.0,
        "engine": "python",
    }


def test_trivial_labels_shrink_the_tree(run: Run, house: Path) -> None:
    nodes = [
        run("infer", house, *options, "--json").json["prefix_tree_nodes"]["transition"]
        for options in ((), ("--trivial", "sofa"))
    ]
    assert nodes[1] < nodes[0]


def test_says_which_labels_were_taken_as_trivial(run: Run, house: Path) -> None:
    assert "labels              assumed to change no state: no event\n" in run("infer", house).out
    assert "change no state: no event, sofa\n" in run("infer", house, "--trivial", "sofa").out
    assert "change no state" not in run("infer", house, "--keep-trivial").out
    figures = run("infer", house, "--json").json["trivial"]["transition"]
    assert [(one["label"], one["triviality"]) for one in figures[:2]] == [
        ([], "trivial"),
        (["key"], "needed"),
    ]


def test_out_of_time_the_best_machines_so_far_are_written(
    run: Run, house: Path, tmp_path: Path
) -> None:
    path = tmp_path / "machines.json"
    outcome = run("infer", house, "--engine", "python", "--time-limit", "1e-6", "-o", path)
    assert outcome.code == 0
    assert "Time ran out before all states were distinguished" in outcome.out
    assert "that they were learned from wrong" in outcome.out
    assert "(transition)" in outcome.out
    assert rs.load(path).transition.states >= 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--strategy", "guess"], ["--strategy", "guess", "edsm, rpni"]),
        (["--timing", "late"], ["--timing", "late", "current, current-with-initial, lagged"]),
        (["--engine", "steam"], ["--engine", "native, python"]),
        (["--format", "csv"], ["--format", "jsonl, paper, parquet"]),
        (["--time-limit", "0"], ["time_limit", "above 0"]),
        (["--time-limit", "nan"], ["time_limit", "above 0"]),
        (["--reward-digits", "-1"], ["--reward-digits"]),
        (["--trivial", "lamp"], ["lamp", "never occurs", "no event, key, sofa, toilet"]),
        (["--trivial", "sofa", "--keep-trivial"], ["--keep-trivial", "--trivial", "leave out one"]),
        (["-o", "missing/machines.json"], ["missing", "does not exist"]),
        (["-o", "."], ["folder"]),
        (["--no-such-option"], ["--no-such-option", "resolvent infer --help"]),
        (["--format", "parquet"], ["house.jsonl", "Parquet"]),
        (["--set", "effort"], ["--set effort", "NAME=VALUE"]),
        (["--set", "effort=much"], ["effort", "'much'", "a number"]),
        (["--set", "effort=-1"], ["effort", "-1"]),
        (["--set", "speed=2"], ["no option speed", "discretize, effort, refine, held_out"]),
        (["--set", "refine=maybe"], ["refine", "True or False"]),
        (["--set", "discretize=quantile:many"], ["quantile:many", "quantile:6"]),
        (["--set", "discretize=guess"], ["guess", "quantile"]),
        (["--set", "held_out=1.5"], ["held_out=1.5", "share", "below 1"]),
    ],
)
def test_options_that_cannot_be_honoured(
    run: Run, house: Path, options: list[str], words: list[str]
) -> None:
    outcome = run("infer", house, *options)
    assert outcome.code == 2
    assert all(word in outcome.error for word in words), outcome.err


def test_bad_target_is_refused_before_the_work(
    run: Run, house: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resolvent.cli.inputs.read_traces", pytest.fail)
    assert run("infer", house, "-o", tmp_path / "missing" / "machines.json").code == 2


def test_progress_is_reported_before_the_tree_is_known() -> None:
    calls = []

    class Bar(ProgressBar):
        def show(self, text: str, fraction: float, **more: object) -> None:
            calls.append((text, fraction, more["of"], more["steady"]))

    _show_stage(Bar(), STRATEGIES["edsm"], "reward", Progress(0, 0, 0, 0))
    _show_stage(Bar(), STRATEGIES["edsm"], "reward", Progress(1, 3, 5, 20))
    _show_stage(Bar(), STRATEGIES["exact"], "reward", Progress(1, 3, 5, 20))
    _show_stage(Bar(), STRATEGIES["rpni"], "reward", Progress(7000, 1, 10_000, 20_000))
    _show_stage(Bar(), STRATEGIES["edsm"], "replaying", Progress(0, 0, 41, 90, 2, 90_000_000))
    _show_stage(Bar(), STRATEGIES["edsm"], "reading", Progress(0, 0, 3, 4))
    assert calls == [
        ("reward machine, building its prefix tree", 0.0, None, True),
        ("reward machine, 1 state", 0.25, (20, "nodes"), True),
        ("reward machine, 1 state", 0.25, None, False),
        ("7,000 states? try --strategy search", 0.5, (20_000, "nodes"), True),
        ("replaying, round 2: 41 of 90 shards", 41 / 90, (90_000_000, "steps"), True),
        ("reading: 3 of 4 shards", 0.75, None, True),
    ]


def test_noise_is_refused_or_told(run, tmp_path):
    walks = [("hall", "attic")] * 9 + [("hall", "hall")]
    traces = rs.TraceSet(rs.Trace(walk, [None] * 2, ["up"], [0]) for walk in walks)
    traces.save(tmp_path / "t.jsonl")
    refused = run("infer", tmp_path / "t.jsonl", "--noise", "none")
    assert refused.code == 2
    outcome = run("infer", tmp_path / "t.jsonl", "-o", tmp_path / "m.json")
    assert outcome.code == 0
    assert (
        "noise               10.0% of the outputs of the transition machine deviate" in outcome.out
    )
    assert run("check", tmp_path / "m.json", tmp_path / "t.jsonl").code == 0
    worse = rs.TraceSet(rs.Trace(walk, [None] * 2, ["up"], [0]) for walk in walks[8:] * 30)
    worse.save(tmp_path / "worse.jsonl")
    assert run("check", tmp_path / "m.json", tmp_path / "worse.jsonl").code == 1
