"""Planning: machines + traces → a model of the world, and the best way to act in it."""
