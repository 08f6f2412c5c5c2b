"""Inference: samples → prefix tree → state merging → machines, by the paper's algorithm."""
