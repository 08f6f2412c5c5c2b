"""Rivals on the same worlds: evaluated in the same way; each runs, and finished ones are not run again."""

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks" / "rivals"
LEARNED = ("rs.solve", "machines from random episodes, plan", "LRM", "JIRP")
BOTH = "JIRP's loop, both machines"


@pytest.fixture(scope="module")
def rivals():
    """The modules of the benchmark, which import each other by name."""
    names = [file.stem for file in FOLDER.glob("*.py")]
    shadowed = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    sys.path.insert(0, str(FOLDER))
    yield SimpleNamespace(
        **{name: importlib.import_module(name) for name in ("evaluating", "cells", "loops", "run")}
    )
    sys.path.remove(str(FOLDER))
    for name in names:
        sys.modules.pop(name, None)
    sys.modules.update(shadowed)


def always(*actions):
    """Act in all episodes alike: these actions, and the last one from then on."""

    def begin(count):
        left = list(actions)

        def act(seen, labels, before):
            return np.full(count, left.pop(0) if len(left) > 1 else left[0])

        return act

    return begin


def test_scores_are_shares_of_the_optimum(rivals):
    maze = rivals.evaluating.WORLDS["TMaze"]
    names = list(maze.tables.actions)
    right, up = names.index("right"), names.index("up")
    # Up is right for one of two cues; a step against the wall costs a twentieth.
    assert maze.share(always(*[right] * 10, up)) == pytest.approx(0.5)
    assert maze.share(always(up, *[right] * 10, up)) == pytest.approx(0.95 * 0.5)
    assert maze.share(always(right)) == 0
    assert maze.share(always(*[right] * 5, rivals.evaluating.UNKNOWN)) == 0


@pytest.mark.parametrize(
    ("shares", "at"),
    [
        ([0, 0.94, 0.95, 1, 1], 30),
        ([1, 1, 1, 0, 0], 10),
        ([1, 1, 0, 0, 1], 50),
        ([1, 1, 0, 0, 0], None),
    ],
)
def test_solved_means_three_evaluations_or_all_remaining(rivals, shares, at):
    assert rivals.evaluating.solved_at([10, 20, 30, 40, 50], shares) == at


@pytest.mark.parametrize("method", [*LEARNED, BOTH])
def test_machines_are_learned_and_used_as_policies(rivals, method, monkeypatch):
    monkeypatch.setattr(rivals.loops, "MOST_STATES", 5)
    monkeypatch.setattr(rivals.loops, "MOVES", 20)
    found = rivals.run.run("HouseInterference", method, 0, 4_000)
    assert rivals.evaluating.solved_at(found["steps"], found["shares"]) is not None
    assert found["steps"] == sorted(set(found["steps"]))
    again = rivals.run.run("HouseInterference", method, 0, 4_000)
    assert {**again, "seconds": 0} == {**found, "seconds": 0}


def test_the_house_needs_more_than_a_reward_machine(rivals):
    """What is seen next depends on the key: a machine that tells rewards alone forgets it."""
    alone, both = (
        rivals.loops.loop(kind, rivals.evaluating.WORLDS["House"], 0, 3_000)
        for kind in (rivals.loops.Jirp, rivals.loops.JirpWithBoth)
    )
    assert max(alone[0].shares) < 0.95
    assert both[0].shares[-1] == pytest.approx(1)


def test_traces_may_include_the_step_before_the_first(rivals):
    belief = rivals.loops.Jirp(rivals.evaluating.WORLDS["TMaze"], 0)
    tables = belief.tables
    start = int(tables.starts[1])
    right = list(tables.actions).index("right")
    there = int(tables.next_state[start, right])
    episode = rivals.loops.Episode([start, there], [right])
    plain, (earlier,) = belief.traces([episode] * 2), belief.traces([episode], before=True)
    assert plain[0] == plain[1]
    assert plain[1].actions == ("right",)
    assert earlier.observations[1:] == plain[0].observations
    assert earlier.labels[1:] == plain[0].labels
    assert earlier.actions[1:] == ("right",)
    assert earlier.labels[0] == {rivals.loops.START}


def test_finished_cells_are_not_run_again(rivals, tmp_path, monkeypatch):
    ran = []

    def method(setting, seed, most):
        ran.append(seed)
        if len(ran) == 2:
            raise KeyboardInterrupt
        curve = rivals.evaluating.Curve(setting, most)
        curve.steps, curve.shares = [most], [1.0]
        return curve, {}

    file = tmp_path / "results.json"
    monkeypatch.setattr(rivals.run, "METHODS", {"one": method})
    asked = ["--worlds", "House", "--methods", "one", "--seeds", "3", "--steps", "9", "--no-page"]
    asked += ["--file", str(file)]
    with pytest.raises(KeyboardInterrupt):
        rivals.run.main(asked)
    rivals.run.main(asked)
    assert ran == [0, 1, 1, 2]
    assert list(rivals.cells.Cells.read(file).cells) == [
        f"House | one | {seed}" for seed in range(3)
    ]


def test_cells_are_written_in_one_order(rivals, tmp_path):
    one, other = (tmp_path / name for name in "ab")
    cells = [("cells", "b | m | 0", {"steps": [1]}), ("cells", "a | m | 0", {"steps": [2]})]
    for cell in cells:
        rivals.cells.Cells.keep(*cell, file=one)
    for cell in reversed(cells):
        rivals.cells.Cells.keep(*cell, file=other)
    assert one.read_bytes() == other.read_bytes()


@pytest.fixture(scope="module")
def page(rivals):
    pytest.importorskip("matplotlib")
    return importlib.import_module("page")


def test_the_page_has_what_was_measured(rivals, page):
    kept = rivals.cells.Cells.read()
    assert page.tables(kept) in page.PAGE.read_text(encoding="utf-8"), "make benchmark NAME=rivals"


def test_medians_include_unsolved_runs(page):
    quick = {"steps": [10, 20], "shares": [0.0, 1.0], "most": 50}
    slow = {"steps": [10, 50], "shares": [0.0, 0.4], "most": 50}
    assert page.steps_text([quick] * 5) == "20"
    assert page.steps_text([quick] * 4 + [slow]) == "20 (20 to never; 4 of 5)"
    assert page.steps_text([quick] + [slow] * 4) == "over 50 (20 to never; 1 of 5)"
    assert page.steps_text([slow] * 5) == "never in 50"
    assert page.steps_text([quick]) == "20 (1 seed)"


@pytest.mark.slow
def test_the_same_cells_give_the_same_picture(rivals, page, tmp_path):
    groups = page.grouped(rivals.cells.Cells.read())
    for name in "ab":
        page.draw(groups, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.fixture(scope="module")
def nets(rivals):
    pytest.importorskip("sb3_contrib")
    return importlib.import_module("nets")


def test_whole_sequences_are_predicted_as_single_steps(nets):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    lstm = torch.nn.LSTM(3, 4)
    states = (torch.randn(1, 2, 4), torch.randn(1, 2, 4))
    shown, begins = torch.randn(2 * 5, 3), torch.zeros(2, 5)
    begins[0, 0] = 1
    theirs = nets.MlpLstmPolicy._process_sequence(shown, states, begins.flatten(), lstm)
    ours = nets.WholeSequences._process_sequence(shown, states, begins.flatten(), lstm)
    assert torch.allclose(theirs[0], ours[0], atol=1e-6)
    assert torch.allclose(theirs[1][1], ours[1][1], atol=1e-6)


def test_networks_see_only_the_last_steps_of_the_episode(rivals, nets):
    house = rivals.evaluating.WORLDS["House"]
    view = nets.View(house, stack=3)
    envs = nets.Tables(house, view, 4, seed=0)
    shown, random = envs.reset(), np.random.default_rng(0)
    before = [[row] for row in shown.reshape(4, 3, -1)[:, -1]]
    for _ in range(200):
        shown, _, done, infos = envs.step(random.integers(view.actions, size=4))
        for place, rows in enumerate(shown.reshape(4, 3, -1)):
            if done[place]:
                before[place] = []
                assert len(infos[place]["terminal_observation"]) == shown.shape[1]
            before[place].append(rows[-1])
            past = before[place][-3:]
            assert np.array_equal(rows[3 - len(past) :], past)
            assert not rows[: 3 - len(past)].any()
    assert min(len(rows) for rows in before) < 150


@pytest.mark.slow
@pytest.mark.parametrize(
    "method",
    ["recurrent PPO", "PPO, last 16 steps", "PPO, last 4 steps", "DQN, last 16 steps"],
)
def test_networks_learn_and_are_evaluated(rivals, nets, method):
    found = rivals.run.run("HouseInterference", method, 0, 2_100)
    assert 1_000 <= found["steps"][-1] < 4_096  # it may be solved by then
    assert all(0 <= share <= 1 + 1e-9 for share in found["shares"])
    assert max(found["shares"]) > 0
