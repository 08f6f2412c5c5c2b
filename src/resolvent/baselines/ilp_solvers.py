"""Moved."""

from resolvent.paper.baselines.integer_program import (SECONDS_BETWEEN_LOOKS, SECONDS_OF_PATIENCE, SOLVERS, Solution, Solver, Verdict, _beside, _finite, _imported, _solve_by_cp_sat, _solve_by_highs, _verdict, solver_called)  # noqa: F401
