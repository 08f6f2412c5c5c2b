"""Machine → an SVG picture, for light and dark screens, or for paper."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from math import sqrt

from resolvent._util.validation import check_arguments
from resolvent.machines.machine import Machine
from resolvent.machines.picture.content import (
    LABEL_SIZE,
    MOST_STATES,
    NAME_SIZE,
    NOTE_SIZE,
    NUMBER_SIZE,
    Arrow,
    Content,
    StateBox,
    content_of,
)
from resolvent.machines.picture.folding import MOVE_SIZE
from resolvent.machines.picture.layout import START_DOT, Curve, Layout, Link, Point, Size, lay_out
from resolvent.machines.picture.style import SCREEN_STYLE
from resolvent.machines.picture.text import width

_LINE = 1.2  # between lines of text, in font sizes
_PADDING, _CORNER, _MARGIN, _NOTE_GAP = 11.0, 9.0, 10.0, 14.0
_LEAST_BOX, _LEAST_WIDTH = 46.0, 340.0
_HEAD_HALF_WIDTH, _LINE_WIDTH = 3.6, 1.3


def to_svg(machine: Machine, *, most_states: int = MOST_STATES) -> str:
    """Draw a machine as an SVG image; the same machine gives the same text.

    States are named by the shortest history of labels that leads to them, and
    what was shortened is shown on hovering. Where there would be more than 60 arrows, only
    those are drawn that first lead to a state, and states say where other labels lead. Of more
    than `most_states` those reached first are drawn, and the picture says so.

    >>> import gymnasium as gym, resolvent as rs
    >>> traces = rs.collect(gym.make("resolvent/House-v0"), episodes=500, seed=0)
    >>> svg = rs.to_svg(rs.infer(traces).machines.transition)
    >>> svg[:4], "after key" in svg
    ('<svg', True)

    Raises:
        MissingExtra: when Graphviz is there neither as a wheel nor as a program.
    """
    check_arguments(to_svg, locals())
    return draw(machine, most_states, SCREEN_STYLE)


def draw(machine: Machine, most_states: int, style: str) -> str:
    """Draw a machine as an SVG image in a style."""
    content = content_of(machine, most_states)
    boxes = [_box_size(box) for box in content.boxes]
    links = [Link(arrow.source, arrow.target, _text_size(arrow)) for arrow in content.arrows]
    return Picture(content, boxes, lay_out(boxes, links), style).text()


@dataclass(frozen=True)
class Picture:
    """What is drawn, how large and where; written as SVG by `text`."""

    content: Content
    sizes: Sequence[Size]
    layout: Layout
    style: str

    def text(self) -> str:
        """Write the picture: arrows first, so that texts and boxes lie on top of them."""
        notes = list(self._note_lines())
        across = max(self.layout.size.width, _LEAST_WIDTH if notes else 0.0) + 2 * _MARGIN
        down = self.layout.size.height + 2 * _MARGIN
        if notes:
            down += _NOTE_GAP + len(notes) * NOTE_SIZE * _LINE
        title = escape(self.content.title)
        size = f'width="{across:.0f}" height="{down:.0f}" viewBox="0 0 {across:.0f} {down:.0f}"'
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" class="resolvent-machine" {size} '
                f'role="img" aria-label="{title}">',
                f"<style>{self.style}</style>",
                f'<g transform="translate({_MARGIN:.0f} {_MARGIN:.0f})">',
                *self._start(),
                *self._arrows(),
                *self._labels(),
                *self._boxes(),
                *self._notes(notes),
                "</g>",
                "</svg>\n",
            ]
        )

    def _start(self) -> Iterator[str]:
        x, y = self.layout.start
        yield '<g class="rs-start"><title>start</title>'
        yield f'<circle class="rs-dot" cx="{_n(x)}" cy="{_n(y)}" r="{_n(START_DOT / 2)}"/>'
        yield from _curve(self.layout.start_curve)
        yield "</g>"

    def _arrows(self) -> Iterator[str]:
        for arrow, curve in zip(self.content.arrows, self.layout.curves, strict=True):
            yield _open_arrow("rs-arrow", arrow)
            yield from _curve(curve, _look(arrow))
            yield "</g>"

    def _labels(self) -> Iterator[str]:
        for arrow, centre in zip(self.content.arrows, self.layout.texts, strict=True):
            yield _open_arrow("rs-labels", arrow)
            yield from _lines(arrow.lines, centre, LABEL_SIZE, "rs-label")
            yield "</g>"

    def _boxes(self) -> Iterator[str]:
        for box, size, centre in zip(
            self.content.boxes, self.sizes, self.layout.boxes, strict=True
        ):
            x, y = centre.x - size.width / 2, centre.y - size.height / 2
            more = " rs-more" if box.leads_out else ""
            yield f'<g class="rs-state{more}" data-state="{box.state}">'
            yield f"<title>{escape(box.hover)}</title>"
            yield (
                f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(size.width)}" '
                f'height="{_n(size.height)}" rx="{_CORNER:.0f}"/>'
            )
            parts = [
                ([str(box.state)], NUMBER_SIZE, "rs-number"),
                (box.name, NAME_SIZE, "rs-name"),
                (box.moves, MOVE_SIZE, "rs-move"),
            ]
            top = centre.y - sum(_high(lines, font) for lines, font, _ in parts) / 2
            for lines, font, kind in parts:
                down = _high(lines, font)
                yield from _lines(lines, Point(centre.x, top + down / 2), font, kind)
                top += down
            yield "</g>"

    def _note_lines(self) -> Iterator[str]:
        most = max(self.layout.size.width, _LEAST_WIDTH)
        for note in self.content.notes:
            line = ""
            for word in note.split(" "):
                longer = f"{line} {word}" if line else word
                if line and width(longer, NOTE_SIZE) > most:
                    yield line
                    longer = word
                line = longer
            yield line

    def _notes(self, lines: Sequence[str]) -> Iterator[str]:
        for number, line in enumerate(lines):
            y = self.layout.size.height + _NOTE_GAP + (number + 0.8) * NOTE_SIZE * _LINE
            yield f'<text class="rs-note" x="0" y="{_n(y)}">{escape(line)}</text>'


def _box_size(box: StateBox) -> Size:
    texts = [width(str(box.state), NUMBER_SIZE), *(width(line, NAME_SIZE) for line in box.name)]
    texts += [width(line, MOVE_SIZE) for line in box.moves]
    high = _high([""], NUMBER_SIZE) + _high(box.name, NAME_SIZE) + _high(box.moves, MOVE_SIZE)
    return Size(max(_LEAST_BOX, max(texts) + 2 * _PADDING), high + _PADDING)


def _high(lines: Sequence[str], size: float) -> float:
    return len(lines) * size * _LINE


def _text_size(arrow: Arrow) -> Size:
    widest = max(width(line, LABEL_SIZE) for line in arrow.lines)
    return Size(round(widest + 8), round(len(arrow.lines) * LABEL_SIZE * _LINE + 4))


def _open_arrow(kind: str, arrow: Arrow) -> str:
    return (
        f'<g class="{kind}" data-from="{arrow.source}" data-to="{arrow.target}">'
        f"<title>{escape(arrow.hover)}</title>"
    )


def _look(arrow: Arrow) -> str:
    """Return how to draw a line: thicker the more often it was taken, dashed if open or rare."""
    # As attributes: pages that allow no style but their own would not apply one of a line.
    strength = arrow.strength
    dashed = arrow.is_rare if strength is None else strength.is_open
    wide = _LINE_WIDTH if strength is None else strength.width
    return f' stroke-width="{wide:.1f}"' + (' stroke-dasharray="6 4"' if dashed else "")


def _curve(curve: Curve, look: str = f' stroke-width="{_LINE_WIDTH}"') -> Iterator[str]:
    first, *others = curve.points
    yield (
        f'<path class="rs-line"{look} d="M{_n(first.x)} {_n(first.y)}C'
        + " ".join(f"{_n(point.x)} {_n(point.y)}" for point in others)
        + '"/>'
    )
    base, tip = curve.points[-1], curve.tip
    length = sqrt((tip.x - base.x) ** 2 + (tip.y - base.y) ** 2) or 1.0
    aside_x = (tip.y - base.y) / length * _HEAD_HALF_WIDTH
    aside_y = (base.x - tip.x) / length * _HEAD_HALF_WIDTH
    yield (
        f'<path class="rs-head" d="M{_n(base.x + aside_x)} {_n(base.y + aside_y)}'
        f"L{_n(tip.x)} {_n(tip.y)}"
        f'L{_n(base.x - aside_x)} {_n(base.y - aside_y)}Z"/>'
    )


def _lines(lines: Sequence[str], centre: Point, size: float, kind: str) -> Iterator[str]:
    """Set lines of text around a centre; a baseline lies a third of a font size below a middle."""
    top = centre.y - (len(lines) - 1) * size * _LINE / 2
    for number, line in enumerate(lines):
        y = top + number * size * _LINE + size * 0.35
        yield f'<text class="{kind}" x="{_n(centre.x)}" y="{_n(y)}">{escape(line)}</text>'


def _n(value: float) -> str:
    """Write a coordinate to a tenth, which no eye can tell from more.

    >>> _n(3.04), _n(-0.01), _n(12.25)
    ('3', '0', '12.2')
    """
    return f"{round(value, 1) + 0.0:g}"
