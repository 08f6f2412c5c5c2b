"""Moved."""

from resolvent.inference.context import outputs_of  # noqa: F401
from resolvent.inference.refinement import REFINE_ABOVE  # noqa: F401
