"""The paper: baselines, the reproduction of its experiments, and the demo."""
