"""Machines, traces and evidence → all that a report says, as JSON values."""

from typing import Any

from resolvent._util.text import amount, short
from resolvent.display.machine_names import short_name
from resolvent.display.report.decisions import found, timeline
from resolvent.display.report.gallery import Gallery
from resolvent.display.report.grids import grid_map
from resolvent.display.report.proofs import proof
from resolvent.display.report.reductions import reductions, spared
from resolvent.display.report.replays import replays
from resolvent.display.report.states import state_rows
from resolvent.evaluation.evidence import Evidence, MachineEvidence
from resolvent.evaluation.holdout import CalibrationCheck
from resolvent.machines import Machines, MachineScore, Score
from resolvent.machines.drawing import answer_text
from resolvent.preprocess.timing import LabelTiming
from resolvent.replay import score_of

_TIMING = {
    LabelTiming.CURRENT: "Before a step the machines have read the labels of all observations "
    "up to this one, the first left out.",
    LabelTiming.CURRENT_WITH_INITIAL: "Before a step the machines have read the labels of all "
    "observations up to this one, the first included.",
    LabelTiming.LAGGED: "Before a step the machines have read the labels of all observations "
    "before this one.",
}
_ASSUMED = (
    "An answer is assumed where its question had the same answer wherever it was asked, but was "
    "never asked in this state."
)
_HAPPENS = {"transition": "then sees", "reward": "is paid"}


def contents(
    machines: Machines, evidence: Evidence, gallery: Gallery | None = None
) -> dict[str, Any]:
    """Say all that is known of machines on some traces, by the evidence gathered from them.

    The traces are not needed again: the evidence holds what they showed, and some of them. What
    observations look like goes into the gallery, those of the player first.
    """
    gallery = Gallery() if gallery is None else gallery
    score = score_of(machines, evidence.shown)
    player = replays(machines, evidence.examples, score, gallery)
    return {
        "summary": summary(machines, score, evidence),
        "machines": [
            _about(one, score[kind], element, gallery)
            for (kind, one), element in zip(evidence.items(), elements(machines), strict=True)
        ],
        "player": player,
        "map": grid_map(machines, evidence),
        "found": found(machines),
    }


def elements(machines: Machines) -> list[str]:
    """Return for each machine the id that its drawing has in the page.

    A column may have any name, and so may a kind; an id is one that nothing else has.

    >>> from resolvent.worlds import House
    >>> elements(House().machines())
    ['transition', 'reward']
    """
    return [
        kind if kind in _HAPPENS else f"machine-{place}" for place, kind in enumerate(machines, 1)
    ]


def summary(machines: Machines, score: Score, evidence: Evidence) -> dict[str, Any]:
    """Say in words how large the machines are and how well they do."""
    return {
        "figures": [
            *([short(f"{kind} states", 40), f"{one.states:,}"] for kind, one in machines.items()),
            ["traces", f"{evidence.traces:,}"],
            ["steps", f"{evidence.steps:,}"],
        ],
        "verdict": _noisy_verdict(machines, score) or verdict(score),
        "sentences": [
            *_origin(machines, evidence),
            _TIMING[machines.timing],
            *(sentence for one in machines.values() for sentence in reductions(one)),
            *([_ASSUMED] if _assumed(score) else []),
            f"Unseen traces: {evidence.holdout or 'none could be held out'}.",
        ],
    }


def _noisy_verdict(machines: Machines, score: Score) -> dict[str, Any] | None:
    """Say of noisy machines whether they are wrong more often than noise explains."""
    if not any(one.is_noisy for one in machines.values()):
        return None
    told = {kind: CalibrationCheck.of(one) for kind, one in score.items()}
    words = "; ".join(f"{short(kind)} machine: {one}" for kind, one in told.items())
    text = f"Answers vary, as far as noise goes. {words[:1].upper()}{words[1:]}."
    place = score.first_mismatch
    return {
        "kind": "right" if all(one.within_noise for one in told.values()) else "wrong",
        "text": short(text, 600),
        **({} if place is None else {"place": [place.trace, place.step]}),
    }


def verdict(score: Score) -> dict[str, Any]:
    """Say whether the machines explain the traces: `kind` is right, unseen or wrong.

    `place` is the trace and step of the first wrong prediction. Answers that are only
    assumed are counted apart.

    >>> verdict(Score({"reward": MachineScore(right=7, assumed_right=2)}))["text"]
    'Every step of every trace is predicted, and right. Of the answers 2 are assumed, none wrong.'
    """
    first = score.first_mismatch
    if first is not None:
        wrong = sum(one.all_wrong for one in score.values())
        text = f"{amount(wrong, 'wrong prediction')}.{_assumed(score)} First: {first}"
        return {
            "kind": "wrong",
            "text": short(text, 600),
            "place": [first.trace, first.step],
        }
    unseen = max(one.unseen for one in score.values())
    text = (
        f"No prediction is wrong; for {amount(unseen, 'step')} there is none."
        if unseen
        else "Every step of every trace is predicted, and right."
    )
    return {"kind": "unseen" if unseen else "right", "text": f"{text}{_assumed(score)}"}


def _assumed(score: Score) -> str:
    """Say how many of the answers are assumed, where some are."""
    wrong = sum(one.assumed_wrong for one in score.values())
    assumed = sum(one.assumed_right for one in score.values()) + wrong
    if not assumed:
        return ""
    verb = "is" if assumed == 1 else "are"
    return f" Of the answers {assumed:,} {verb} assumed, {f'{wrong:,}' if wrong else 'none'} wrong."


def _origin(machines: Machines, evidence: Evidence) -> list[str]:
    made = machines.provenance
    if made is None:
        return []
    source = "these traces" if evidence.known else f"{amount(made.traces, 'other trace')}"
    strategy = short(str(made.options.get("strategy", "unknown")))
    return [f"Inferred by Resolvent {short(made.version)} from {source}, strategy {strategy}."]


def _about(
    evidence: MachineEvidence, score: MachineScore, element: str, gallery: Gallery
) -> dict[str, Any]:
    machine = evidence.machine
    return {
        "element": element,
        "name": short(machine.title),
        "short": short(short_name(machine.kind)),
        "happens": _HAPPENS.get(machine.kind) or short(machine.kind),
        "answers": short(answer_text(machine)),
        "count": machine.states,
        "score": {
            "right": score.right,
            "wrong": score.wrong,
            "assumed_right": score.assumed_right,
            "assumed_wrong": score.assumed_wrong,
            "unseen": score.unseen,
        },
        "states": state_rows(evidence, gallery),
        "proof": proof(evidence, gallery),
        "spared": spared(machine, gallery),
        "timeline": timeline(machine),
    }
