"""Moved."""

from resolvent.paper.baselines.aalpy import (Answered, Answers, FirstFit, MostEvidence, PaperOrder, _tree, merged)  # noqa: F401
