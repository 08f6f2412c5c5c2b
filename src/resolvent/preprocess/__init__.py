"""Preprocessing (paper: "Preprocessing"): recorded traces → samples for inference."""
