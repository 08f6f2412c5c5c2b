"""Draw machines as PNG on white: resvg renders the SVG."""

import importlib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from resolvent._util.validation import check_arguments
from resolvent.errors import MissingExtra, OptionError
from resolvent.machines.machine import Machine
from resolvent.viz.picture import MOST_STATES
from resolvent.viz.svg import PAPER_STYLE, draw

_FAMILY = "Open Sans"
_FACES = ("OpenSans-Regular.ttf", "OpenSans-SemiBold.ttf")


def to_png(machine: Machine, *, most_states: int = MOST_STATES, scale: float = 2.0) -> bytes:
    r"""Draw a machine as a PNG image: the picture of `to_svg` in light colours on white.

    A pixel of the SVG becomes `scale` pixels in each direction.

    >>> import gymnasium as gym, resolvent as rs
    >>> traces = rs.collect(gym.make("resolvent/House-v0"), episodes=500, seed=0)
    >>> to_png(rs.infer(traces).machines.transition)[:4]
    b'\x89PNG'

    Raises:
        MissingExtra: when resvg, its font or Graphviz is not installed.
    """
    check_arguments(to_png, locals())
    if not 0.1 <= scale <= 10:
        raise OptionError(f"scale={scale}: use 0.1 to 10")
    resvg, faces = _resvg_and_faces()
    picture: bytes = resvg.svg_to_bytes(
        svg_string=draw(machine, most_states, PAPER_STYLE),
        background="white",
        zoom=scale,
        font_files=faces,
        font_family=_FAMILY,
        sans_serif_family=_FAMILY,
    )
    return picture


def _resvg_and_faces() -> tuple[Any, list[str]]:
    """Import resvg and find the font's files; letters it lacks come from the system's fonts."""
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
    return resvg, [str(folder / face) for face in _FACES]
