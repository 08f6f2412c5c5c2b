"""Moved."""

from resolvent.evaluation.evidence import Evidence, MachineEvidence  # noqa: F401
from resolvent.evaluation.evidence_pass import Examples  # noqa: F401
from resolvent.evaluation.experiments import Experiment  # noqa: F401
from resolvent.evaluation.gathering import are_known, gather  # noqa: F401
from resolvent.evaluation.holdout import Foretold  # noqa: F401
from resolvent.evaluation.separation import Separation, Separations  # noqa: F401
from resolvent.evaluation.weakness import Weakness, weaknesses  # noqa: F401
