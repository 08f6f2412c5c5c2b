"""Senses: raw steps, of traces or live → the observations and labels that machines read."""

from resolvent.senses.discretise import Discretise
from resolvent.senses.labelling import LABELLINGS, Labelling
from resolvent.senses.senses import Senses

__all__ = ["LABELLINGS", "Discretise", "Labelling", "Senses"]
