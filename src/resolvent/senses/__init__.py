"""Senses: raw steps, of traces or live → the observations and labels that machines read."""

from resolvent.senses.labelling import LABELLINGS, Labelling
from resolvent.senses.senses import Senses

__all__ = ["LABELLINGS", "Labelling", "Senses"]
