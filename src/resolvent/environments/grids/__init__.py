"""Grids with machines behind them: drawn from a seed, kept in files, turned into tables."""
