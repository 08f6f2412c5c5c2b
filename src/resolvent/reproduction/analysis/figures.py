"""Moved."""

from resolvent.paper.figures import (_COLOURS, _NO_METADATA, _STYLE, _draw_band, _draw_method, _draw_paper, _figure, _handle, draw_baselines, draw_policy)  # noqa: F401
