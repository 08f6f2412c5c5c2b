"""Colours and fonts of pictures: style sheets for screens and for paper.

Names begin with `rs-`, since a picture shown inside a page shares its style sheet
with the whole page.
"""

from resolvent.machines.picture.content import LABEL_SIZE, NAME_SIZE, NOTE_SIZE, NUMBER_SIZE
from resolvent.machines.picture.folding import MOVE_SIZE

_LIGHT = {
    "fill": "#edf4fc",
    "border": "#2f6db3",
    "number": "#12263f",
    "name": "#43566b",
    "line": "#66727f",
    "label": "#1b2733",
    "halo": "#ffffff",
    "note": "#5a6673",
    "lit": "#c2410c",
}
_DARK = {
    "fill": "#18293b",
    "border": "#6ea8e5",
    "number": "#edf4fc",
    "name": "#afc0d2",
    "line": "#8f9ba8",
    "label": "#e6ecf2",
    "halo": "#0d1117",
    "note": "#9aa6b3",
    "lit": "#fb923c",
}

FONTS = "'Open Sans','Segoe UI',Helvetica,Arial,sans-serif"

_RULES = f"""
.resolvent-machine text{{font-family:{FONTS};text-anchor:middle}}
.rs-state rect{{fill:{{fill}};stroke:{{border}};stroke-width:1.6}}
.rs-more rect{{stroke-dasharray:5 3}}
.resolvent-machine .rs-number{{font-size:{NUMBER_SIZE:g}px;font-weight:600;fill:{{number}}}}
.resolvent-machine .rs-name{{font-size:{NAME_SIZE:g}px;fill:{{name}}}}
.resolvent-machine .rs-move{{font-size:{MOVE_SIZE:g}px;fill:{{label}}}}
.rs-line{{fill:none;stroke:{{line}}}}
.rs-head,.rs-dot{{fill:{{line}}}}
.resolvent-machine .rs-label{{font-size:{LABEL_SIZE:g}px;fill:{{label}};\
stroke:{{halo}};stroke-width:3px;stroke-linejoin:round;paint-order:stroke}}
.resolvent-machine .rs-note{{font-size:{NOTE_SIZE:g}px;fill:{{note}};text-anchor:start}}
"""


def _rules(colours: dict[str, str]) -> str:
    text = _RULES
    for name, colour in colours.items():
        text = text.replace(f"{{{name}}}", colour)
    return text


def _variables(colours: dict[str, str]) -> str:
    values = ";".join(f"--rs-{name}:{colour}" for name, colour in colours.items())
    return f".resolvent-machine{{{values}}}"


SCREEN_STYLE = (
    f"\n{_variables(_LIGHT)}\n@media (prefers-color-scheme:dark){{{_variables(_DARK)}}}"
    + _rules({name: f"var(--rs-{name})" for name in _LIGHT})
    + ".resolvent-machine{color-scheme:light dark}\n"
    + ".rs-arrow:hover .rs-line{stroke:var(--rs-lit);stroke-width:2.2}\n"
    + ".rs-arrow:hover .rs-head{fill:var(--rs-lit)}\n"
)
"""Follows the reader's choice of light or dark; the arrow under the pointer lights up."""

PAPER_STYLE = _rules(_LIGHT)
"""Plain colours for a white ground, without what only browsers understand."""
