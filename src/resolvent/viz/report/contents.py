"""Collect the data of a report as JSON values: the summary, and the sections of other modules."""

from typing import Any

from resolvent._util.text import amount, short
from resolvent.evaluation.evidence import Evidence
from resolvent.evaluation.holdout import CalibrationCheck
from resolvent.inference.strategy import STRATEGIES
from resolvent.machines import Machine, Machines, Score
from resolvent.preprocess.timing import LabelTiming
from resolvent.replay import score_of
from resolvent.viz.report.machine import about_machine
from resolvent.viz.report.traces import grid_map, replays
from resolvent.viz.thumbnails import Gallery, event_text

_TIMING = {
    LabelTiming.CURRENT: "up to this one, except the first",
    LabelTiming.CURRENT_WITH_INITIAL: "up to this one",
    LabelTiming.LAGGED: "before this one",
}
_GENERALIZED = (
    "An output is generalized if its query had the same output in every state where it was "
    "observed, but was never observed in this state."
)
_MOST_TRIVIAL = 12


def contents(
    machines: Machines, evidence: Evidence, gallery: Gallery | None = None
) -> dict[str, Any]:
    """Return all sections of a report, from machines and the evidence about them.

    The traces are not read again: the evidence holds their counts, and some of them. The pictures
    of observations go into the gallery, those of the player first.
    """
    gallery = Gallery() if gallery is None else gallery
    score = score_of(machines, evidence.replay)
    player = replays(machines, evidence.examples, score, gallery)
    return {
        "summary": summary(machines, score, evidence),
        "machines": [
            about_machine(machine_evidence, score[name], number, gallery)
            for number, (name, machine_evidence) in enumerate(evidence.items(), 1)
        ],
        "player": player,
        "map": grid_map(machines, evidence),
        "found": log_notes(machines),
    }


def summary(machines: Machines, score: Score, evidence: Evidence) -> dict[str, Any]:
    """Return the sizes of the machines, their score, and sentences on their origin."""
    return {
        "figures": [
            *(
                [short(f"{name} states", 40), f"{machine.states:,}"]
                for name, machine in machines.items()
            ),
            ["traces", f"{evidence.traces:,}"],
            ["steps", f"{evidence.steps:,}"],
        ],
        "verdict": _calibration_summary(machines, score) or score_summary(score),
        "sentences": [
            *_origin(machines, evidence),
            "Before a step the machines have read the labels of all observations "
            f"{_TIMING[machines.timing]}.",
            *(sentence for machine in machines.values() for sentence in _reductions(machine)),
            *([_GENERALIZED] if _generalized_text(score) else []),
            f"Hold-out test: {evidence.holdout or 'no traces were held out'}.",
        ],
    }


def _calibration_summary(machines: Machines, score: Score) -> dict[str, Any] | None:
    """Return whether noisy machines are wrong more often than noise explains."""
    if not any(machine.is_noisy for machine in machines.values()):
        return None
    checks = {name: CalibrationCheck.of(machine_score) for name, machine_score in score.items()}
    words = "; ".join(f"{short(name)} machine: {check}" for name, check in checks.items())
    text = f"Outputs vary because of noise. {words[:1].upper()}{words[1:]}."
    is_right = all(check.within_noise for check in checks.values())
    return _outcome("right" if is_right else "wrong", text, score)


def score_summary(score: Score) -> dict[str, Any]:
    """Return whether the machines explain the traces: `kind` is right, unseen or wrong.

    `location` is the trace and step of the first wrong prediction. Generalized outputs are counted
    apart.

    >>> from resolvent.machines import MachineScore
    >>> score_summary(Score({"reward": MachineScore(right=7, assumed_right=2)}))["text"]
    'Every step of every trace is predicted, and right. 2 outputs are generalized, none wrong.'
    """
    generalized = _generalized_text(score)
    if score.first_mismatch is not None:
        wrong = amount(sum(counts.all_wrong for counts in score.values()), "wrong prediction")
        return _outcome("wrong", f"{wrong}.{generalized} First: {score.first_mismatch}", score)
    unseen = max(counts.unseen for counts in score.values())
    if unseen:
        text = f"No prediction is wrong; for {amount(unseen, 'step')} there is none."
        return _outcome("unseen", f"{text}{generalized}", score)
    text = "Every step of every trace is predicted, and right."
    return _outcome("right", f"{text}{generalized}", score)


def _outcome(kind: str, text: str, score: Score) -> dict[str, Any]:
    first = score.first_mismatch
    location = {} if first is None else {"location": [first.trace, first.step]}
    return {"kind": kind, "text": short(text, 600), **location}


def _generalized_text(score: Score) -> str:
    """Return the number of generalized outputs, if any."""
    wrong = sum(counts.assumed_wrong for counts in score.values())
    generalized = sum(counts.assumed_right for counts in score.values()) + wrong
    if not generalized:
        return ""
    verb = "is" if generalized == 1 else "are"
    how_many = f"{wrong:,}" if wrong else "none"
    return f" {amount(generalized, 'output')} {verb} generalized, {how_many} wrong."


def _origin(machines: Machines, evidence: Evidence) -> list[str]:
    provenance = machines.provenance
    if provenance is None:
        return []
    others = amount(provenance.traces, "other trace")
    source = "these traces" if evidence.is_training_set else others
    version = short(provenance.version)
    strategy = short(str(provenance.options.get("strategy", "unknown")))
    return [f"Inferred by Resolvent {version} from {source}, strategy {strategy}."]


def _reductions(machine: Machine) -> list[str]:
    """Describe the labels and outputs excluded from the search for a machine."""
    name = short(machine.title)
    sentences = []
    if machine.trivial:
        names = [event_text(label) for label in machine.trivial_labels[:_MOST_TRIVIAL]]
        more = len(machine.trivial) - len(names)
        listing = ", ".join(names) + (f" and {more} more" if more else "")
        sentences.append(f"Labels that change nothing in the {name}: {listing}.")
    constants, by_state = len(machine.constant_value), len(machine.output_value)
    sentences.append(
        f"Of the {name}'s {amount(constants + by_state, 'output')}, {constants:,} need no memory "
        f"and {by_state:,} depend on its state."
    )
    if machine.supplemented:
        sentences.append(f"The {name} reads the Transition Machine's state with each observation.")
    return sentences


def log_notes(machines: Machines) -> list[str]:
    """Name the machines without a log of merges, and explain the log of the others."""
    unlogged = [
        f"the {short(machine.title)}" for machine in machines.values() if machine.decisions is None
    ]
    notes = []
    if unlogged:
        names = " and ".join(filter(None, (", ".join(unlogged[:-1]), unlogged[-1])))
        notes.append(f"No merges are recorded for {names}: infer again to see them.")
    name = machines.provenance.options.get("strategy") if machines.provenance else None
    strategy = STRATEGIES.get(name) if isinstance(name, str) else None  # None if user-defined
    if len(unlogged) < len(machines) and strategy is not None and not strategy.merges:
        notes.append(
            f"Strategy {strategy.name} does not merge states: these are the merges that would give "
            f"the machines it found."
        )
    return notes
