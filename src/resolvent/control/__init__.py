"""Control: two machines and the traces → a model of the world, and how best to act in it."""

from resolvent.control.experiment import NextExperiment
from resolvent.control.model import Model
from resolvent.control.planning import Plan, plan
from resolvent.control.running import Runs

__all__ = ["Model", "NextExperiment", "Plan", "Runs", "plan"]
