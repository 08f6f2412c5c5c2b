"""Utilities that have nothing to do with automata: files, text, validation, workers, caches."""
