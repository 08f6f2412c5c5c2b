"""Machines, traces and evidence → all that a report says, as JSON values."""

from typing import Any

from resolvent.display.report.decisions import found, timeline
from resolvent.display.report.grids import grid_map
from resolvent.display.report.proofs import proof
from resolvent.display.report.reductions import reductions, spared
from resolvent.display.report.replays import replays
from resolvent.display.report.states import state_rows
from resolvent.display.report.wording import short
from resolvent.machines import MachinePair, MachineScore, Score
from resolvent.samples import LabelTiming
from resolvent.traces import TraceSet
from resolvent.trust import Evidence, MachineEvidence
from resolvent.wording import amount

_TIMING = {
    LabelTiming.CURRENT: "Before a step the machines have read the labels of all observations "
    "up to this one, the first left out.",
    LabelTiming.CURRENT_WITH_INITIAL: "Before a step the machines have read the labels of all "
    "observations up to this one, the first included.",
    LabelTiming.LAGGED: "Before a step the machines have read the labels of all observations "
    "before this one.",
}
_ANSWERS = {"transition": "the next observation", "reward": "the reward"}


def contents(pair: MachinePair, traces: TraceSet, evidence: Evidence) -> dict[str, Any]:
    """Say all that is known of machines on some traces."""
    score = pair.score(traces)
    return {
        "summary": summary(pair, traces, score, evidence),
        "machines": [
            _about(evidence.transition, score.transition),
            _about(evidence.reward, score.reward),
        ],
        "player": replays(pair, traces, score),
        "map": grid_map(pair, traces),
        "found": found(pair),
    }


def summary(
    pair: MachinePair, traces: TraceSet, score: Score, evidence: Evidence
) -> dict[str, Any]:
    """Say in words how large the machines are and how well they do."""
    return {
        "figures": [
            ["transition states", f"{pair.transition.states:,}"],
            ["reward states", f"{pair.reward.states:,}"],
            ["traces", f"{len(traces):,}"],
            ["steps", f"{traces.steps:,}"],
        ],
        "verdict": verdict(score),
        "sentences": [
            *_origin(pair, traces),
            _TIMING[pair.timing],
            *(sentence for one in (pair.transition, pair.reward) for sentence in reductions(one)),
            f"Unseen traces: {evidence.holdout or 'none could be held out'}.",
        ],
    }


def verdict(score: Score) -> dict[str, Any]:
    """Say whether the machines explain the traces: `kind` is right, unseen or wrong.

    `place` is the trace and step of the first wrong prediction.
    """
    first = score.first_mismatch
    if first is not None:
        wrong = score.transition.all_wrong + score.reward.all_wrong
        return {
            "kind": "wrong",
            "text": short(f"{amount(wrong, 'wrong prediction')}. First: {first}", 400),
            "place": [first.trace, first.step],
        }
    unseen = max(score.transition.unseen, score.reward.unseen)
    if unseen:
        return {
            "kind": "unseen",
            "text": f"No prediction is wrong; for {amount(unseen, 'step')} there is none.",
        }
    return {"kind": "right", "text": "Every step of every trace is predicted, and right."}


def _origin(pair: MachinePair, traces: TraceSet) -> list[str]:
    made = pair.provenance
    if made is None:
        return []
    same = made.traces_sha256 == traces.digest
    source = "these traces" if same else f"{amount(made.traces, 'other trace')}"
    strategy = short(str(made.options.get("strategy", "unknown")))
    return [f"Inferred by Resolvent {short(made.version)} from {source}, strategy {strategy}."]


def _about(evidence: MachineEvidence, score: MachineScore) -> dict[str, Any]:
    machine = evidence.machine
    return {
        "kind": machine.kind,
        "name": f"{machine.kind.capitalize()} Machine",
        "answers": _ANSWERS[machine.kind],
        "count": machine.states,
        "score": {"right": score.all_right, "wrong": score.all_wrong, "unseen": score.unseen},
        "states": state_rows(evidence),
        "proof": proof(evidence),
        "spared": spared(machine),
        "timeline": timeline(machine),
    }
