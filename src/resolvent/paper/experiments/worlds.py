"""The worlds of the experiments, their traces, and the records of results."""

from dataclasses import asdict
from typing import Any

from resolvent.machines import EdgeRewardMachine, MachinePair
from resolvent.paper.baselines.outcome import Outcome, wrong_rewards
from resolvent.paper.correctness import judge_edges, judge_pair
from resolvent.rl.collect import collect
from resolvent.traces.trace_set import TraceSet
from resolvent.worlds import PhaseGrid, RandomWorld
from resolvent.worlds.env import World

FRESH_TRACES = 1_000
_FRESH_SEED = 1_000_000


def world_called(name: str) -> World:
    """Return a world by its short name: "grid-3" to "grid-5", or "random-SEED"."""
    kind, _, number = name.partition("-")
    return PhaseGrid(int(number)) if kind == "grid" else RandomWorld(int(number))


def gathered(world: World, traces: int, seed: int) -> TraceSet:
    """Return the random traces of one repetition: all methods get the same."""
    return collect(world, episodes=traces, seed=seed)


def about(traces: TraceSet) -> dict[str, Any]:
    """Describe the traces of a run; the digest shows that they are the same."""
    # Records that were kept before hold this digest, and are compared with those made now.
    digest = traces.digest_in_sequence
    return {"traces": len(traces), "steps": traces.steps, "traces_sha256": digest}


def judged(outcome: Outcome, world: World, seed: int) -> dict[str, Any]:
    """Describe the result of a method, compared with the truth."""
    record: dict[str, Any] = {"status": outcome.status, "details": outcome.details}
    machine = outcome.machine
    fresh = gathered(world, FRESH_TRACES, _FRESH_SEED + seed)
    if isinstance(machine, MachinePair):
        judgement = judge_pair(machine, world.mechanics)
        score = machine.score(fresh)
        record["tm_states"] = machine.transition.states
        record["fresh"] = {
            "steps": fresh.steps,
            "wrong": score.transition.all_wrong + score.reward.all_wrong,
            "unseen": score.transition.unseen + score.reward.unseen,
        }
    elif isinstance(machine, EdgeRewardMachine):
        judgement = judge_edges(machine, world.mechanics)
        record["fresh"] = {
            "steps": fresh.steps,
            "wrong": wrong_rewards(machine, fresh),
            "unseen": 0,
        }
    else:
        return record
    return record | {
        "states": outcome.states,
        "reachable": asdict(judgement),
        "verdict": judgement.verdict,
    }
