"""Machines and results as DOT, SVG, PNG, text, curves and HTML reports; progress on a terminal.

Import from the modules: each loads only the libraries that it needs.
"""
