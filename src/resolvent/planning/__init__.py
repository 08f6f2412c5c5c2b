"""Planning: machines + traces → a model → a policy with bounds on its value."""

from resolvent.planning.model import Model
from resolvent.planning.plan import Plan, plan

__all__ = ["Model", "Plan", "plan"]
