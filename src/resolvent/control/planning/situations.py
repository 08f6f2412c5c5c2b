"""Moved."""

from resolvent.machines.situations import Situation, situation_text, states_text  # noqa: F401
from resolvent.planning.steps import that_matter  # noqa: F401
