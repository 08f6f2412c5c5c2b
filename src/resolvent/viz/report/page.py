"""Write the report: one HTML page, whole or not at all.

The page holds data as JSON that no browser parses as markup, and its script only sets text. A
content policy by hashes blocks all other scripts and resources.
"""

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from resolvent._util.files import atomic_write
from resolvent._util.parallel import Workers
from resolvent._util.text import amount
from resolvent._util.validation import check_arguments
from resolvent.errors import ModelError, OptionError, ResolventError
from resolvent.evaluation.evidence import Evidence
from resolvent.inference.evidence import evidence as gather_evidence
from resolvent.inference.result import InferenceResult, machines_of_result
from resolvent.inference.summary import noise_lines
from resolvent.machines import Machine, Machines
from resolvent.replay import Corpus
from resolvent.traces import TraceDataset, TraceSet
from resolvent.traces.io.formats import as_traces
from resolvent.viz.report.contents import contents
from resolvent.viz.svg import SCREEN_STYLE, to_svg
from resolvent.viz.text import to_text
from resolvent.viz.thumbnails import DrawOf, Gallery

if TYPE_CHECKING:
    from resolvent.planning.plan import Plan
    from resolvent.planning.plan_io import PlanFile
    from resolvent.rl.q_table import QTable

_SCRIPTS = (
    *("elements", "links", "summary", "drawings", "player", "playing", "map"),
    *("states", "evidence", "reductions", "timeline", "learning", "start"),
)
_INERT = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


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


def page(title: str, data: Mapping[str, Any], machines: Iterable[Machine]) -> str:
    """Return the page of a report, with a drawing of each machine."""
    style = _part("page.css")
    script = "\n".join(_part(f"{name}.js") for name in _SCRIPTS)
    drawings = (
        _filled(
            "figure.html",
            {
                "element": about["element"],
                "name": escape(about["name"]),
                "drawing": drawing(machine),
            },
        )
        for about, machine in zip(data["machines"], machines, strict=True)
    )
    parts = {
        "policy": _content_policy(script, (style, SCREEN_STYLE), bool(data.get("pictures"))),
        "title": escape(title),
        "style": style,
        "script": script,
        "data": inert_json(data),
        "drawings": "".join(drawings),
    }
    return _filled("page.html", parts)


def drawing(machine: Machine) -> str:
    """Draw a machine, or write it as text if Graphviz is missing."""
    try:
        return to_svg(machine)
    except ResolventError as error:
        return f"<p class='note'>{escape(str(error))}</p><pre>{escape(to_text(machine))}</pre>"


def inert_json(value: Any) -> str:
    r"""Write JSON for a script element: no text in it can end the element.

    >>> inert_json(["</script>", "\u2028"])
    '["\\u003c/script\\u003e","\\u2028"]'
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))  # ASCII: no U+2028 in it
    return text.translate(_INERT)


def _content_policy(script: str, styles: tuple[str, ...], has_pictures: bool) -> str:
    """Allow only this script, these style sheets, and pictures that the page holds."""
    allowed = " ".join(map(_hash, styles))
    return (
        f"default-src 'none'; script-src {_hash(script)}; style-src {allowed}; "
        f"{'img-src data:; ' * has_pictures}base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _filled(template: str, parts: Mapping[str, str]) -> str:
    first, *rest = _part(template).split("{{")
    # Each part is put in once, so that no text in a part is taken for the name of another.
    pieces = (piece.split("}}", 1) for piece in rest)
    return first + "".join(parts[name] + text for name, text in pieces)


def _part(name: str) -> str:
    return files(__package__).joinpath("web", name).read_text(encoding="utf-8")
