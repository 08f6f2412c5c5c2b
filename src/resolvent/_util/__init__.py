"""Helpers that have nothing to do with automata: files, text, validation, parallel work, caches."""
