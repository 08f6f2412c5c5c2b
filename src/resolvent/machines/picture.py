"""Moved."""

from resolvent.viz.png import to_png  # noqa: F401
from resolvent.viz.svg import html_of_machines, svg_or_nothing, to_svg  # noqa: F401
