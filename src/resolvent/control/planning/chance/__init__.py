"""Planning under chance: how often what came of each step → expected values, and their bounds."""
