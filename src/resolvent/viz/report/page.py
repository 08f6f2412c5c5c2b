"""Write the report: collect its data as JSON values, and put them into one HTML page.

No browser parses the JSON as markup, and the script of the page only sets text. A content policy by
hashes blocks all other scripts and resources.
"""

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from resolvent._util.files import atomic_write
from resolvent._util.parallel import Workers
from resolvent._util.text import amount, short
from resolvent._util.validation import check_arguments
from resolvent.errors import ModelError, OptionError, ResolventError
from resolvent.evaluation.evidence import Evidence
from resolvent.evaluation.holdout import Calibration, Holdout, calibration_of
from resolvent.inference.cross_validation import evidence as gather_evidence
from resolvent.inference.result import InferenceResult, machines_of_result
from resolvent.inference.strategy import STRATEGIES
from resolvent.inference.summary import noise_lines
from resolvent.inference.validation import UNRELIABLE
from resolvent.machines import Machine, Machines, Score
from resolvent.preprocess.timing import LabelTiming
from resolvent.replay.corpus import Corpus
from resolvent.replay.score import score_of
from resolvent.traces import TraceDataset, TraceSet
from resolvent.traces.io.formats import as_traces
from resolvent.viz.report.machine import about_machine
from resolvent.viz.report.traces import grid_map, replays
from resolvent.viz.svg import SCREEN_STYLE, to_svg
from resolvent.viz.text import to_text
from resolvent.viz.thumbnails import DrawOf, Gallery, event_text

if TYPE_CHECKING:
    from resolvent.planning.plan import Plan
    from resolvent.planning.plan_io import PlanFile
    from resolvent.rl.q_table import QTable

_SCRIPTS = (
    *("elements", "links", "summary", "drawings", "player", "playing", "map"),
    *("states", "evidence", "reductions", "timeline", "learning", "start"),
)
_INERT = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
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


def report(
    machines: Machines | InferenceResult,
    traces: TraceSet | TraceDataset | Corpus,
    path: str | Path,
    *,
    evidence: Evidence | None = None,
    policy: "QTable | Plan | PlanFile | None" = None,
    returns: list[float] | None = None,
    draw_of: DrawOf | None = None,
    on: str | Workers = "threads",
) -> None:
    """Write one HTML page about machines and traces, which any browser shows without a network.

    It shows drawings of the machines, some traces step by step, and the evidence, computed unless
    given. `policy` adds a learned policy or a plan, `returns` a learning curve (by default that of
    a learned policy). Of a scanned dataset all traces count, and only those
    shown are read again; `on` names the workers, as for `infer`.

    Observations that are arrays of H×W, H×W×1 or H×W×3 numbers are shown as small pictures.
    `draw_of` draws them instead: it takes an observation as the traces hold it and
    returns an array of H×W×3 numbers from 0 to 255, or None for no picture.

    >>> import tempfile, gymnasium as gym, resolvent as rs
    >>> house = rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
    >>> machines = rs.infer(house[:150]).machines
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report(machines, house[150:], f"{folder}/house.html")
    ...     Path(f"{folder}/house.html").read_text(encoding="utf-8")[:15]
    '<!DOCTYPE html>'

    Raises:
        ModelError: when the evidence is about other machines or traces, or the machines know
            nothing of these traces.
        OptionError: when `draw_of` fails, or returns no picture.
    """
    from resolvent.planning.plan import Plan
    from resolvent.planning.plan_io import PlanFile
    from resolvent.rl.q_table import QTable
    from resolvent.viz.report import learning

    check_arguments(report, locals(), leaving=["machines", "traces", "draw_of"])
    if not isinstance(policy, QTable | Plan | PlanFile | None):
        raise OptionError(
            f"policy is a {type(policy).__name__}: give what rs.plan or rs.q_learning returned"
        )
    gallery = Gallery(draw_of)
    pair = machines_of_result(machines)
    source = traces if isinstance(traces, Corpus) else as_traces(traces)
    if evidence is None:
        evidence = gather_evidence(machines, source, on=on)
    _check_about(evidence, pair, source)
    data = contents(pair, evidence, gallery)
    sentences = data["summary"]["sentences"]
    if isinstance(machines, InferenceResult):
        verdict = data["summary"]["verdict"]
        doubts = [note.text for note in machines.warnings if note.kind in UNRELIABLE]
        if doubts and verdict["kind"] != "wrong":
            verdict |= {"kind": "unseen", "text": f"Every recorded step is predicted. {doubts[0]}"}
        sentences += [f"Noise: {line}." for line in noise_lines(machines)]
        sentences.append(f"Inference took {machines.seconds['total']:.3g} s.")
    if returns is None and isinstance(policy, QTable):
        returns = policy.curve.returns.tolist()
    data["curve"] = learning.curve(returns) if returns else None
    data["policy"] = None if policy is None else learning.policy(policy, gallery)
    data["pictures"] = gallery.pictures()
    sentences += gallery.missing(data["pictures"])
    with atomic_write(path) as file:
        file.write(page("Resolvent report", data, pair.values()).encode())


def _check_about(
    evidence: Evidence, machines: Machines, traces: TraceSet | TraceDataset | Corpus
) -> None:
    if {name: about.machine for name, about in evidence.items()} != dict(machines):
        raise ModelError("the evidence is about other machines: gather it with those of the report")
    if not isinstance(traces, TraceSet):
        return  # counting them would take another pass
    if (evidence.traces, evidence.steps) != (len(traces), traces.steps):
        raise ModelError(
            f"the evidence was gathered from {amount(evidence.traces, 'trace')} of "
            f"{amount(evidence.steps, 'step')} in all, not from those of the report: gather it anew"
        )


# --- Data -----------------------------------------------------------------------------------------


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
    summary = {
        "figures": [
            *(
                [short(f"{name} states", 40), f"{machine.states:,}"]
                for name, machine in machines.items()
            ),
            ["traces", f"{evidence.traces:,}"],
            ["steps", f"{evidence.steps:,}"],
        ],
        "verdict": _verdict(calibration_of(machines, evidence.replay), score, evidence.holdout),
        "sentences": [
            *_origin(machines, evidence),
            "Before a step the machines have read the labels of all observations "
            f"{_TIMING[machines.timing]}.",
            *(sentence for machine in machines.values() for sentence in _reductions(machine)),
            *([_GENERALIZED] if _generalized_text(score) else []),
            f"Hold-out test: {evidence.holdout or 'no traces were held out'}.",
        ],
    }
    return {
        "summary": summary,
        "machines": [
            about_machine(machine_evidence, score[name], number, gallery)
            for number, (name, machine_evidence) in enumerate(evidence.items(), 1)
        ],
        "player": player,
        "map": grid_map(machines, evidence),
        "found": log_notes(machines),
    }


def _verdict(checks: Calibration | None, score: Score, holdout: Holdout | None) -> dict[str, Any]:
    """Return whether noisy machines are wrong more often than noise explains, others at all.

    Exact machines are right only if held-out or new traces are predicted right as well.
    """
    if checks is None:
        verdict = score_summary(score)
        if verdict["kind"] != "right":
            return verdict
        is_right, text = _fresh_summary(holdout)
        return _outcome(
            "right" if is_right else "unseen", f"{text}{_generalized_text(score)}", score
        )
    words = "; ".join(f"{short(name)} machine: {check}" for name, check in checks.items())
    text = f"Outputs vary because of noise. {words[:1].upper()}{words[1:]}."
    is_right = all(check.within_noise for check in checks.values())
    return _outcome("right" if is_right else "wrong", text, score)


def score_summary(score: Score) -> dict[str, Any]:
    """Return whether the machines explain the traces: `kind` is right, unseen or wrong.

    `location` is the trace and step of the first wrong prediction. Generalized outputs are counted
    apart.
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


def _fresh_summary(holdout: Holdout | None) -> tuple[bool, str]:
    """Return whether traces that machines were not inferred from are predicted, and a sentence."""
    recorded = "Every recorded step is predicted"
    if holdout is None:
        return False, f"{recorded}, but no traces could be held out to test others."
    if holdout.is_right and holdout.is_new:
        return True, "Every step of every trace is predicted, and right."
    traces = amount(holdout.traces, "new trace" if holdout.is_new else "held-out trace")
    if holdout.is_right:
        some = "" if holdout.rare is None else f", {holdout.rare:,} of them with a rare outcome"
        return True, f"{recorded}, and so is every step of {traces}{some}."
    if not holdout.failures:
        return False, f"{recorded}, and every step of {traces}, but none has a rare outcome."
    share = f"{holdout.failures:,} of {traces} ({holdout.failures / holdout.traces:.0%})"
    return False, f"{recorded}, but {share} fail{holdout.rare_text}."


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


def _origin(machines: Machines, evidence: Evidence) -> Iterator[str]:
    if (provenance := machines.provenance) is not None:
        others = amount(provenance.traces, "other trace")
        source = "these traces" if evidence.is_training_set else others
        version = short(provenance.version)
        strategy = short(str(provenance.options.get("strategy", "unknown")))
        yield f"Inferred by Resolvent {version} from {source}, strategy {strategy}."


def _reductions(machine: Machine) -> Iterator[str]:
    """Describe the labels and outputs excluded from the search for a machine."""
    name = short(machine.title)
    if machine.trivial:
        names = ", ".join(map(event_text, machine.trivial_labels[:_MOST_TRIVIAL]))
        left_out = len(machine.trivial) - _MOST_TRIVIAL
        more = f" and {left_out} more" if left_out > 0 else ""
        yield f"Labels that change nothing in the {name}: {names}{more}."
    constants, by_state = len(machine.constant_value), len(machine.output_value)
    yield (
        f"Of the {name}'s {amount(constants + by_state, 'output')}, {constants:,} need no memory "
        f"and {by_state:,} depend on its state."
    )
    if machine.supplemented:
        yield f"The {name} reads the Transition Machine's state with each observation."


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


# --- Page -----------------------------------------------------------------------------------------


def page(title: str, data: Mapping[str, Any], machines: Iterable[Machine]) -> str:
    """Return the page of a report, with a drawing of each machine."""
    style = _part("page.css")
    script = "\n".join(_part(f"{name}.js") for name in _SCRIPTS)
    drawings = (
        _filled(
            "figure.html",
            element=about["element"],
            name=escape(about["name"]),
            drawing=drawing(machine),
        )
        for about, machine in zip(data["machines"], machines, strict=True)
    )
    # Only this script, these style sheets, and pictures that the page holds.
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; "
        f"style-src {_hash(style)} {_hash(SCREEN_STYLE)}; "
        f"{'img-src data:; ' * bool(data.get('pictures'))}base-uri 'none'; form-action 'none'"
    )
    return _filled(
        "page.html",
        policy=policy,
        title=escape(title),
        style=style,
        script=script,
        data=inert_json(data),
        drawings="".join(drawings),
    )


def drawing(machine: Machine) -> str:
    """Draw a machine, or write it as text if Graphviz is missing."""
    try:
        return to_svg(machine)
    except ResolventError as error:
        return f"<p class='note'>{escape(str(error))}</p><pre>{escape(to_text(machine))}</pre>"


def inert_json(value: Any) -> str:
    """Write JSON for a script element: no text in it can end the element."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))  # ASCII: no U+2028 in it
    return text.translate(_INERT)


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _filled(template: str, **parts: str) -> str:
    first, *rest = _part(template).split("{{")
    # Each part is put in once, so that no text in a part is taken for the name of another.
    pieces = (piece.split("}}", 1) for piece in rest)
    return first + "".join(parts[name] + text for name, text in pieces)


def _part(name: str) -> str:
    return files(__package__).joinpath("web", name).read_text(encoding="utf-8")
