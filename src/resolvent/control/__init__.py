"""Control: two machines and the traces → a model of the world, and how best to act in it."""

from resolvent.control.model import Model

__all__ = ["Model"]
