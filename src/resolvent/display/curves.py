"""Moved."""

from resolvent.viz.curves import check_picture_name, draw_curves, import_matplotlib  # noqa: F401
