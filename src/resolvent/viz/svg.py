"""Draw machines as SVG, for light and dark screens, or as PNG on white.

Graphviz only computes positions: its SVG has one font size per state and measures letters outside
Latin too narrow (docs/decisions/viz.md). resvg renders PNG from the SVG.
"""

import importlib
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from importlib.util import find_spec
from math import dist
from pathlib import Path

from resolvent._util.html import panel
from resolvent._util.validation import check_arguments
from resolvent.errors import MissingExtra, OptionError, ResolventError
from resolvent.machines.machine import Machine
from resolvent.viz.dot import START_DOT, Curve, Layout, Point, Size, lay_out
from resolvent.viz.picture import (
    LABEL_SIZE,
    MOST_STATES,
    NAME_SIZE,
    NOTE_SIZE,
    NUMBER_SIZE,
    SUCCESSOR_SIZE,
    Arrow,
    Picture,
    StateBox,
    picture_of,
    width,
)

_LINE = 1.2  # between lines of text, in font sizes
_PADDING, _CORNER, _MARGIN, _NOTE_GAP = 11.0, 9.0, 10.0, 14.0
_LEAST_BOX, _LEAST_WIDTH = 46.0, 340.0
_HEAD_HALF_WIDTH, _LINE_WIDTH = 3.6, 1.3

_FAMILY = "Open Sans"
_FACES = ("OpenSans-Regular.ttf", "OpenSans-SemiBold.ttf")

_COLORS = {  # on light and on dark ground
    "fill": ("#edf4fc", "#18293b"),
    "border": ("#2f6db3", "#6ea8e5"),
    "number": ("#12263f", "#edf4fc"),
    "name": ("#43566b", "#afc0d2"),
    "line": ("#66727f", "#8f9ba8"),
    "label": ("#1b2733", "#e6ecf2"),
    "halo": ("#ffffff", "#0d1117"),
    "note": ("#5a6673", "#9aa6b3"),
    "lit": ("#c2410c", "#fb923c"),
}


def _rules(color: dict[str, str]) -> str:
    # Names begin with `rs-`: a picture in a page shares its style sheet with the whole page.
    return f"""
.resolvent-machine text{{font-family:'Open Sans','Segoe UI',Helvetica,Arial,sans-serif;\
text-anchor:middle}}
.rs-state rect{{fill:{color["fill"]};stroke:{color["border"]};stroke-width:1.6}}
.rs-more rect{{stroke-dasharray:5 3}}
.resolvent-machine .rs-number{{font-size:{NUMBER_SIZE:g}px;font-weight:600;fill:{color["number"]}}}
.resolvent-machine .rs-name{{font-size:{NAME_SIZE:g}px;fill:{color["name"]}}}
.resolvent-machine .rs-move{{font-size:{SUCCESSOR_SIZE:g}px;fill:{color["label"]}}}
.rs-line{{fill:none;stroke:{color["line"]}}}
.rs-head,.rs-dot{{fill:{color["line"]}}}
.resolvent-machine .rs-label{{font-size:{LABEL_SIZE:g}px;fill:{color["label"]};\
stroke:{color["halo"]};stroke-width:3px;stroke-linejoin:round;paint-order:stroke}}
.resolvent-machine .rs-note{{font-size:{NOTE_SIZE:g}px;fill:{color["note"]};text-anchor:start}}
"""


def _variables(ground: int) -> str:
    values = ";".join(f"--rs-{name}:{colors[ground]}" for name, colors in _COLORS.items())
    return f".resolvent-machine{{{values}}}"


SCREEN_STYLE = (
    f"\n{_variables(0)}\n@media (prefers-color-scheme:dark){{{_variables(1)}}}"
    + _rules({name: f"var(--rs-{name})" for name in _COLORS})
    + ".resolvent-machine{color-scheme:light dark}\n"
    + ".rs-arrow:hover .rs-line{stroke:var(--rs-lit);stroke-width:2.2}\n"
    + ".rs-arrow:hover .rs-head{fill:var(--rs-lit)}\n"
)
"""Style sheet that follows the reader's choice of light or dark; a hovered arrow lights up."""

PAPER_STYLE = _rules({name: light for name, (light, _) in _COLORS.items()})
"""Style sheet in plain colors on white, without syntax that only browsers understand."""


def to_svg(machine: Machine, *, most_states: int = MOST_STATES) -> str:
    """Draw a machine as an SVG image; the same machine gives the same text."""
    check_arguments(to_svg, locals())
    return draw(machine, most_states, SCREEN_STYLE)


def svg_or_nothing(machine: Machine) -> str | None:
    """Draw a machine, or return None without Graphviz, so that a notebook shows its text."""
    try:
        return to_svg(machine)
    except ResolventError:
        return None


def html_of_machines(machines: Iterable[Machine]) -> str | None:
    """Draw machines one below the other, each under its name; None without Graphviz."""
    try:
        return "\n".join(panel(machine.title, to_svg(machine)) for machine in machines)
    except ResolventError:
        return None


def to_png(machine: Machine, *, most_states: int = MOST_STATES, scale: float = 2.0) -> bytes:
    """Draw the picture of `to_svg` as PNG, in light colors on white, each pixel `scale` wide."""
    check_arguments(to_png, locals())
    if not 0.1 <= scale <= 10:
        raise OptionError(f"scale={scale}: use 0.1 to 10")
    font = find_spec("ttf_opensans")
    try:
        resvg = importlib.import_module("resvg_py")
    except ImportError:
        resvg = None
    if resvg is None or font is None or font.origin is None:
        raise MissingExtra(
            'a PNG picture needs resvg and a font: pip install "resolvent[drawings]"; '
            "or draw an SVG picture"
        )
    folder = Path(font.origin).parent / "ttf"
    picture: bytes = resvg.svg_to_bytes(
        svg_string=draw(machine, most_states, PAPER_STYLE),
        background="white",
        zoom=scale,
        font_files=[str(folder / face) for face in _FACES],  # others are the system's
        font_family=_FAMILY,
        sans_serif_family=_FAMILY,
    )
    return picture


def draw(machine: Machine, most_states: int, style: str) -> str:
    """Draw a machine as an SVG image with a style sheet, arrows first: texts lie on top."""
    picture = picture_of(machine, most_states)
    sizes = [_box_size(box) for box in picture.boxes]
    links = [(arrow.source, arrow.target, _text_size(arrow)) for arrow in picture.arrows]
    layout = lay_out(sizes, links)
    least_width = max(layout.size.width, _LEAST_WIDTH)
    notes = [line for note in picture.notes for line in _wrapped(note, least_width)]
    across = (least_width if notes else layout.size.width) + 2 * _MARGIN
    down = layout.size.height + 2 * _MARGIN
    if notes:
        down += _NOTE_GAP + len(notes) * NOTE_SIZE * _LINE
    top = layout.size.height + _NOTE_GAP + 0.8 * NOTE_SIZE * _LINE
    size = f'width="{across:.0f}" height="{down:.0f}" viewBox="0 0 {across:.0f} {down:.0f}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="resolvent-machine" {size} '
            f'role="img" aria-label="{escape(picture.title)}">',
            f"<style>{style}</style>",
            f'<g transform="translate({_MARGIN:.0f} {_MARGIN:.0f})">',
            *_arrows(picture, layout),
            *_boxes(picture, layout, sizes),
            *(
                f'<text class="rs-note" x="0" y="{_n(top + number * NOTE_SIZE * _LINE)}">'
                f"{escape(line)}</text>"
                for number, line in enumerate(notes)
            ),
            "</g>",
            "</svg>\n",
        ]
    )


def _arrows(picture: Picture, layout: Layout) -> Iterator[str]:
    x, y = layout.start
    yield '<g class="rs-start"><title>start</title>'
    yield f'<circle class="rs-dot" cx="{_n(x)}" cy="{_n(y)}" r="{_n(START_DOT / 2)}"/>'
    yield from _curve(layout.start_curve)
    yield "</g>"
    for arrow, curve in zip(picture.arrows, layout.curves, strict=True):
        yield _open_arrow("rs-arrow", arrow)
        yield from _curve(curve, arrow.width or _LINE_WIDTH, arrow.is_dashed)
        yield "</g>"
    for arrow, center in zip(picture.arrows, layout.texts, strict=True):
        yield _open_arrow("rs-labels", arrow)
        yield from _lines(arrow.lines, center, LABEL_SIZE, "rs-label")
        yield "</g>"


def _open_arrow(kind: str, arrow: Arrow) -> str:
    return (
        f'<g class="{kind}" data-from="{arrow.source}" data-to="{arrow.target}">'
        f"<title>{escape(arrow.hover)}</title>"
    )


def _boxes(picture: Picture, layout: Layout, sizes: Sequence[Size]) -> Iterator[str]:
    for box, size, center in zip(picture.boxes, sizes, layout.boxes, strict=True):
        x, y = center.x - size.width / 2, center.y - size.height / 2
        more = " rs-more" if box.leads_out else ""
        yield f'<g class="rs-state{more}" data-state="{box.state}">'
        yield f"<title>{escape(box.hover)}</title>"
        yield (
            f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(size.width)}" '
            f'height="{_n(size.height)}" rx="{_CORNER:.0f}"/>'
        )
        texts = _texts(box)
        top = center.y - sum(_height(lines, font) for lines, font, _ in texts) / 2
        for lines, font, kind in texts:
            down = _height(lines, font)
            yield from _lines(lines, Point(center.x, top + down / 2), font, kind)
            top += down
        yield "</g>"


def _wrapped(note: str, most: float) -> Iterator[str]:
    line = ""
    for word in note.split(" "):
        longer = f"{line} {word}" if line else word
        if line and width(longer, NOTE_SIZE) > most:
            yield line
            longer = word
        line = longer
    yield line


def _texts(box: StateBox) -> list[tuple[Sequence[str], float, str]]:
    """Return the texts in a box from top to bottom: lines, font size and class."""
    return [
        ([str(box.state)], NUMBER_SIZE, "rs-number"),
        (box.name, NAME_SIZE, "rs-name"),
        (box.successors, SUCCESSOR_SIZE, "rs-move"),
    ]


def _box_size(box: StateBox) -> Size:
    texts = _texts(box)
    widest = max(width(line, font) for lines, font, _ in texts for line in lines)
    height = sum(_height(lines, font) for lines, font, _ in texts)
    return Size(max(_LEAST_BOX, widest + 2 * _PADDING), height + _PADDING)


def _text_size(arrow: Arrow) -> Size:
    widest = max(width(line, LABEL_SIZE) for line in arrow.lines)
    return Size(round(widest + 8), round(len(arrow.lines) * LABEL_SIZE * _LINE + 4))


def _height(lines: Sequence[str], size: float) -> float:
    return len(lines) * size * _LINE


def _curve(curve: Curve, line_width: float = _LINE_WIDTH, is_dashed: bool = False) -> Iterator[str]:
    # Attributes, not styles: a page that allows its own styles only would not apply a line's.
    dashes = ' stroke-dasharray="6 4"' if is_dashed else ""
    first, *rest, base, tip = curve
    path = " ".join(_at(*point) for point in (*rest, base))
    yield (
        f'<path class="rs-line" stroke-width="{line_width:.1f}"{dashes} d="M{_at(*first)}C{path}"/>'
    )
    length = dist(tip, base) or 1.0
    aside_x = (tip.y - base.y) / length * _HEAD_HALF_WIDTH
    aside_y = (base.x - tip.x) / length * _HEAD_HALF_WIDTH
    left, right = (_at(base.x + side * aside_x, base.y + side * aside_y) for side in (1, -1))
    yield f'<path class="rs-head" d="M{left}L{_at(*tip)}L{right}Z"/>'


def _at(x: float, y: float) -> str:
    return f"{_n(x)} {_n(y)}"


def _lines(lines: Sequence[str], center: Point, size: float, kind: str) -> Iterator[str]:
    """Set lines of text around a center; a baseline lies a third of a font size below a middle."""
    top = center.y - (len(lines) - 1) * size * _LINE / 2
    for number, line in enumerate(lines):
        y = top + number * size * _LINE + size * 0.35
        yield f'<text class="{kind}" x="{_n(center.x)}" y="{_n(y)}">{escape(line)}</text>'


def _n(value: float) -> str:
    """Write a coordinate to a tenth."""
    return f"{round(value, 1) + 0.0:g}"
