"""Wrapping: machines + a live environment → the same environment, with memory in view."""
