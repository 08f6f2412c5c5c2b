"""The paper: baselines, the reproduction of its experiments, and the demo."""

from resolvent.paper import baselines

__all__ = ["baselines"]
