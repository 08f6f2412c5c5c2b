"""Moved."""

from resolvent.viz.dot import graph_name, to_dot, to_mermaid  # noqa: F401
from resolvent.viz.text import to_text  # noqa: F401
