"""Machine → a picture of its states and transitions: SVG for screens, PNG for papers.

`content` says what is drawn, `layout` where, `svg` and `png` write it.
"""

from resolvent.machines.picture.notebook import html_of_machines, svg_or_nothing
from resolvent.machines.picture.png import to_png
from resolvent.machines.picture.svg import to_svg

__all__ = ["html_of_machines", "svg_or_nothing", "to_png", "to_svg"]
