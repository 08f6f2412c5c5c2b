"""Exact search: the smallest machine that explains samples, with a certificate."""
