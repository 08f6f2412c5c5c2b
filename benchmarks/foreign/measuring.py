"""A row of the table → its machines, their score on fresh traces, and the return of a policy."""

import argparse
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
from optima import GAMMA
from rows import Row
from systems import SYSTEMS

import resolvent as rs
from resolvent.inference.summary import noise_lines

FRESH, FRESH_IN_SHORT = 100, 5

TELLING = ("missing-label", "uninformative-labels")
"""Findings of `rs.diagnose` whose text says more of noise than the result can."""


@dataclass(frozen=True)
class Measured:
    """What came of a row.

    Attributes:
        row: What was tried.
        steps: How many steps it was learned from.
        findings: What `rs.diagnose` says of the traces, errors and warnings alone, by kind.
        noisy: Whether the machines are the most likely ones, whose answers vary.
        warned: What `rs.infer` warned of, by kind.
        states: The states of each machine, by its name.
        shares: Of fresh steps: right and assumed (and right) by the machine that is right least
            often, wrong and unseen by those that are so most often.
        promised: What the plan says it is worth.
        contradicted: Whether the runs of the plan say that the world contradicts it.
        paid: What acting paid, in the mean, discounted.
        optimum: What the best policy would have been paid.
        is_true: Whether the machine of a log is that of its system.
        true_states: How many states that one has.
        words: What the result says of noise, and what `rs.diagnose` says of it.
        seconds: What inferring took, of all processors together.
    """

    row: Row
    steps: int
    findings: tuple[str, ...]
    noisy: bool = False
    warned: tuple[str, ...] = ()
    states: dict[str, int] | None = None
    shares: tuple[float, float, float, float] | None = None
    promised: float | None = None
    contradicted: bool = False
    paid: float | None = None
    optimum: float | None = None
    is_true: bool | None = None
    true_states: int | None = None
    words: tuple[str, ...] = ()
    seconds: float = 0.0


def write_page(
    path: Path,
    page: Callable[[Sequence[Measured]], str],
    rows: Sequence[Row],
    arguments: Sequence[str] | None,
    runs: int = FRESH,
) -> None:
    """Measure rows as a command is asked to, and write their page, or print it if not whole."""
    parser = argparse.ArgumentParser(description=f"Measure environments of others for {path.name}.")
    parser.add_argument("--short", action="store_true", help="less of everything, nothing written")
    parser.add_argument("--only", metavar="TEXT", default="", help="rows whose names have this")
    options = parser.parse_args(arguments)
    measured = []
    for row in rows:
        if options.only in row.name:
            print(f"{row.origin}: {row.name}", file=sys.stderr, flush=True)
            measured.append(measure(row, options.short, runs))
    if options.short or options.only:
        print(page(measured))
    else:
        path.write_text(page(measured), encoding="utf-8")


def measure(row: Row, short: bool = False, runs: int = FRESH) -> Measured:
    """Run the code of a row, and look at what it came to; the plan is tried in so many `runs`."""
    episodes, unknown = (row.short, FRESH_IN_SHORT) if short else (row.episodes, FRESH)
    prepare, assignment, inference = row.code.partition("result = ")
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # environments warn of what they like
        variables = _ran(prepare, row, episodes, 0, Path(folder))
        fresh = _ran(prepare, row, unknown, 1, Path(folder))["traces"]
        steps = variables["traces"].steps
        findings = eval(inference.replace("rs.infer", "rs.diagnose"), variables).warnings  # noqa: S307
        kinds = tuple(dict.fromkeys(finding.kind for finding in findings))
        started = time.process_time()
        exec(assignment + inference, variables)  # noqa: S102
        seconds = time.process_time() - started
        result: rs.InferenceResult = variables["result"]
        return Measured(
            row,
            steps,
            kinds,
            noisy=result.is_noisy,
            warned=tuple(dict.fromkeys(warning.kind for warning in result.warnings)),
            states={name: machine.states for name, machine in result.machines.items()},
            shares=_shares(result.machines.score(fresh)),
            words=_words(result, findings),
            seconds=seconds,
            **_acted(row, variables, unknown if short else runs),
            **_compared(row, result),
        )


def _ran(code: str, row: Row, episodes: int, seed: int, folder: Path) -> dict[str, Any]:
    variables = {"gym": gym, "rs": rs, "episodes": episodes, "seed": seed}
    if row.system is not None:
        log = folder / f"{row.system}-{seed}.csv"
        SYSTEMS[row.system].write_log(log, episodes, seed)
        variables["log"] = log
    exec(code, variables)  # noqa: S102
    return variables


def _words(
    result: rs.InferenceResult, findings: Sequence[rs.evaluation.Finding]
) -> tuple[str, ...]:
    messages = [finding.text for finding in findings if finding.kind in TELLING]
    return (*noise_lines(result), *messages)


def _shares(score: rs.machines.Score) -> tuple[float, float, float, float]:
    """Return the worst that any of the machines does."""
    of_each = [
        (
            counts.right / counts.steps,
            counts.assumed_right / counts.steps,
            counts.all_wrong,
            counts.unseen,
        )
        for counts in score.values()
    ]
    steps = max(counts.steps for counts in score.values())
    right, assumed = min((counts[:2] for counts in of_each), key=sum)
    return (
        right,
        assumed,
        max(counts[2] for counts in of_each) / steps,
        max(counts[3] for counts in of_each) / steps,
    )


def _acted(row: Row, variables: dict[str, Any], episodes: int) -> dict[str, Any]:
    if row.acting is None or row.optimum is None:
        return {}
    env, result = variables["env"], variables["result"]
    if row.acting == "q-learning":
        wrapped = rs.AugmentObservation(env, result.machines)
        learned = rs.q_learning(wrapped, episodes=15 * episodes, seed=0, gamma=GAMMA)
        paid = learned.evaluate(wrapped, episodes=episodes, seed=1).value
        return {"paid": paid, "optimum": row.optimum(env, ())}
    try:
        plan = rs.plan(result, variables["traces"], gamma=GAMMA)
    except rs.errors.ModelError:  # no plan for such machines
        return {}
    runs = plan.run(env, episodes=episodes, seed=1, on_unseen="random", max_steps=200)
    starts = [trace.observations[0] for trace in runs.traces]
    paid = float(runs.discounted_returns.mean())
    return {
        "promised": plan.value,
        "contradicted": bool(runs.contradicts),
        "paid": paid,
        "optimum": row.optimum(env, starts),
    }


def _compared(row: Row, result: rs.InferenceResult) -> dict[str, Any]:
    if row.system is None:
        return {}
    system = SYSTEMS[row.system]
    is_true = system.is_machine(result.machines["response"], "nothing")
    return {"is_true": is_true, "true_states": system.states()}
