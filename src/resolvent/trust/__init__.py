"""Trust: machines + traces → evidence for the machines, and what is missing."""

from resolvent.trust.completeness import Completeness, OpenHistory
from resolvent.trust.evidence import Evidence, MachineEvidence
from resolvent.trust.experiment import Experiment
from resolvent.trust.foretold import Foretold
from resolvent.trust.gathering import are_known, gather
from resolvent.trust.holdout import Holdout, error_bound
from resolvent.trust.notable import Examples
from resolvent.trust.part import Part, part_of
from resolvent.trust.separation import Question, Separation, Separations
from resolvent.trust.weakness import Weakness, WeakState, weaknesses
from resolvent.trust.weighing import OpenMove, WeighedSeparations

__all__ = [
    "Completeness",
    "Evidence",
    "Examples",
    "Experiment",
    "Foretold",
    "Holdout",
    "MachineEvidence",
    "OpenHistory",
    "OpenMove",
    "Part",
    "Question",
    "Separation",
    "Separations",
    "WeakState",
    "Weakness",
    "WeighedSeparations",
    "are_known",
    "error_bound",
    "gather",
    "part_of",
    "weaknesses",
]
