"""`resolvent plan`, on the house."""

import json
from pathlib import Path

import gymnasium as gym
import pytest
from cli_outcome import Run

import resolvent as rs
from noisy_worlds import noisy_house
from resolvent.cli import main
from resolvent.planning import plan_io as plan_files

BEST = 0.95**5
"""left, right, up, down, right, sit: paid 1 at the sixth step."""


def test_a_plan_that_is_optimal(run: Run, machines: Path, house: Path) -> None:
    outcome = run("plan", machines, house)
    assert (outcome.code, outcome.err) == (0, "")
    assert "value        0.7738 from the starts, discounted by 0.95" in outcome.out
    assert "optimal: no policy has a higher value" in outcome.out
    assert f"next: resolvent plan {machines} {house} --environment ENV" in outcome.out


def test_json(run: Run, machines: Path, house: Path) -> None:
    outcome = run("plan", machines, house, "--gamma", "0.5", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    figures = outcome.json
    assert figures.pop("value") == pytest.approx(0.5**5)
    assert set(figures.pop("seconds")) == {"read", "plan", "total"}
    assert figures.pop("steps") > 200
    assert figures == {
        "gamma": 0.5,
        "reward_range": [0.0, 1.0],
        "bound": 0.0,
        "largest_gap": 0.0,
        "optimal": True,
        "all_rewards_equal": False,
        "observed_reward_range": [0.0, 1.0],
        "assumes_rewards": False,
        "augmented_states": 9,
        "actions": 5,
        "starts": 1,
        "unknown_steps": 0,
        "sometimes_ending_steps": 0,
        "next_experiment": None,
        "advice": None,
        "traces": 200,
        "run": None,
        "output": None,
    }


def test_acting_in_an_environment(run: Run, machines: Path, house: Path) -> None:
    arguments = ("plan", machines, house, "--environment", "resolvent/House-v0", "-n", "3")
    figures = run(*arguments, "--json").json["run"]
    assert figures.pop("mean_discounted_return") == pytest.approx(BEST)
    paid = figures.pop("paid")
    assert [paid[name] for name in ("mean", "low", "high")] == pytest.approx([BEST] * 3)
    assert figures == {
        "agrees": True,
        "episodes": 3,
        "mean_return": 1.0,
        "mean_length": 6.0,
        "terminated": 3,
        "random_steps": 0,
        "contradictions": 0,
        "first_contradiction": None,
    }
    outcome = run(*arguments)
    assert outcome.code == 0
    assert "in resolvent/House-v0: 3 episodes: mean return 1 (discounted 0.7738)" in outcome.out
    assert "next:" not in outcome.out


def test_the_policy_as_a_file(run: Run, machines: Path, house: Path, tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    outcome = run("plan", machines, house, "-o", path)
    assert outcome.code == 0
    assert f"wrote {path}: 9 augmented states" in outcome.out
    rows = json.loads(path.read_text())["policy"]
    first = next(row for row in rows if row["transition_state"] == 0)
    assert (first["observation"], first["action"]) == ("corridor", "left")
    assert first["pessimistic"] == pytest.approx(BEST)


@pytest.fixture
def few(tmp_path: Path) -> tuple[Path, Path]:
    """Ten traces: the right machines, but not every step was taken."""
    traces, found = tmp_path / "few.jsonl", tmp_path / "few.json"
    assert (
        main(["collect", "resolvent/House-v0", "-n", "10", "--seed", "1", "-o", str(traces)]) == 0
    )
    assert main(["infer", str(traces), "-o", str(found)]) == 0
    return traces, found


def test_what_to_try_next(run: Run, few: tuple[Path, Path]) -> None:
    traces, found = few
    outcome = run("plan", found, traces)
    assert outcome.code == 0
    assert "try next     begin in corridor, do left, right; then in corridor" in outcome.out
    assert "if rewards are within 0 to 1" in outcome.out
    figures = run("plan", found, traces, "--json", "--reward-range", "-1", "3").json
    assert figures["reward_range"] == [-1.0, 3.0]
    assert figures["optimal"] is False
    assert figures["next_experiment"]["actions"] == ["left", "right"]
    trusting = run("plan", found, traces, "--json", "--trust-constants").json
    assert trusting["unknown_steps"] < figures["unknown_steps"]


@pytest.mark.parametrize("gamma", ["0", "1.5", "nan"])
def test_a_discount_that_is_none(run: Run, machines: Path, house: Path, gamma: str) -> None:
    outcome = run("plan", machines, house, "--gamma", gamma)
    assert outcome.code == 2
    assert "use a number above 0, up to 1" in outcome.error


def test_machines_of_another_world(run: Run, machines: Path, tmp_path: Path) -> None:
    path = tmp_path / "unlocked.jsonl"
    path.write_text(
        '{"observations":["corridor","cyanroom"],"labels":[[],["toilet"]],'
        '"actions":["up"],"rewards":[0]}\n'
    )
    outcome = run("plan", machines, path)
    assert outcome.code == 2
    assert "transition machine, trace 0, step 0" in outcome.error
    assert "these are not its machines" in outcome.error


def test_an_environment_that_is_not_there_or_is_another(
    run: Run, machines: Path, house: Path
) -> None:
    outcome = run("plan", machines, house, "--environment", "resolvent/Attic-v0")
    assert outcome.code == 2
    assert "cannot make environment 'resolvent/Attic-v0'" in outcome.error
    outcome = run("plan", machines, house, "--environment", "CartPole-v1")
    assert outcome.code == 2
    assert "the plan does not know (" in outcome.error
    assert "--on-unseen random" in outcome.error
    outcome = run("plan", machines, house, "--on-unseen", "guess")
    assert outcome.code == 2
    assert "'guess' is not one of raise, random" in outcome.error


def test_a_file_that_cannot_be_written_is_refused_first(
    run: Run, machines: Path, house: Path, tmp_path: Path
) -> None:
    outcome = run("plan", machines, house, "-o", tmp_path / "nowhere" / "policy.json")
    assert outcome.code == 2
    assert "does not exist; make it first" in outcome.error


def test_a_plan_for_nothing_and_a_world_that_contradicts_one_are_said(
    run: Run, tmp_path: Path
) -> None:
    env = gym.make("resolvent/House-v0")
    traces = rs.collect(env, episodes=500, seed=0)
    unpaid = traces.take([not any(trace.rewards) for trace in traces])[:2]
    for name, some in (("unpaid", unpaid), ("few", traces[:1])):
        some.save(tmp_path / f"{name}.parquet")
        rs.infer(some).machines.save(tmp_path / f"{name}.json")
    files = tmp_path / "unpaid.json", tmp_path / "unpaid.parquet"
    outcome = run("plan", *files)
    assert (
        "bound        none: all rewards are 0, so all policies have the same value" in outcome.out
    )
    assert "optimal" not in outcome.out
    figures = run("plan", *files, "--json").json
    assert (figures["optimal"], figures["next_experiment"] is None) == (False, False)
    assert figures["all_rewards_equal"] is True

    # One trace promises 1 for the fourth step, and the world pays nothing for it.
    files = tmp_path / "few.json", tmp_path / "few.parquet"
    acting = ("--environment", "resolvent/House-v0", "-n", "4")
    outcome = run("plan", *files, *acting)
    assert (
        "contradicts the plan: episode 0 returned 0, but the plan's value is 0.8574, and 3 "
        in outcome.out
    )
    figures = run("plan", *files, *acting, "--json").json["run"]
    assert figures["contradictions"] == 4
    first = figures["first_contradiction"]
    assert (first["episode"], first["return"]) == (0, 0.0)
    assert first["bounds"] == pytest.approx([0.95**3, 0.95**3])


@pytest.fixture(scope="module")
def disturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Machines and traces of a house in which every twentieth answer is another."""
    folder = tmp_path_factory.mktemp("disturbed")
    machines, traces = noisy_house()
    machines.save(folder / "machines.json")
    traces.save(folder / "traces.jsonl")
    return folder / "machines.json", folder / "traces.jsonl"


def test_noisy_machines(run: Run, disturbed: tuple[Path, Path], tmp_path: Path) -> None:
    target = tmp_path / "plan.json"
    acting = ("--environment", "resolvent/House-v0", "-n", "12")
    outcome = run("plan", *disturbed, *acting, "--confidence", "0.9", "-o", target)
    assert (outcome.code, outcome.err) == (0, "")
    assert " expected from the starts, discounted by 0.95" in outcome.out
    assert "\nbound        not known: it would be as wide as " in outcome.out
    assert "12 episodes: mean return 1 " in outcome.out
    assert plan_files.load(target).confidence == 0.9
    figures = run("plan", *disturbed, *acting, "--json").json
    assert figures["confidence"] == 0.95
    assert [figures[name] for name in ("bound", "at_least", "at_most")] == [None] * 3
    assert (figures["optimal"], figures["run"]["contradictions"]) == (False, 0)
    assert figures["next_experiment"]["taken"] > 0


def test_a_confidence_that_means_nothing(run: Run, disturbed: tuple[Path, Path]) -> None:
    outcome = run("plan", *disturbed, "--confidence", "95")
    assert outcome.code == 2
    assert "confidence=95.0: use a number above 0 and below 1" in outcome.error


def test_a_report_shows_what_is_expected(run: Run, disturbed: tuple[Path, Path], tmp_path) -> None:
    plan = tmp_path / "plan.json"
    assert run("plan", *disturbed, "-o", plan).code == 0
    page = tmp_path / "report.html"
    assert run("report", *disturbed, "--policy", plan, "-o", page).code == 0
    assert " expected" in page.read_text(encoding="utf-8")
