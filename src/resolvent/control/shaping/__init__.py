"""Shaping: what a model or a plan promises → rewards that say sooner what is worth it."""
