"""Senses: raw steps, of traces or live → the observations and labels that machines read."""

from resolvent.senses.live import LiveSenses
from resolvent.senses.senses import Senses

__all__ = ["LiveSenses", "Senses"]
