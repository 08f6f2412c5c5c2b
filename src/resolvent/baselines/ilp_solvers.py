"""Integer programs → solutions, by HiGHS or by OR-Tools' CP-SAT, each on one thread.

Both run beside the caller, who tells them to stop: so a time limit and Ctrl-C hold even
where a solver is slow to look up, and whichever seconds count (`clock.now`).
"""

import importlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any, Literal, TypeAlias

import numpy as np

from resolvent.baselines import clock
from resolvent.baselines.ilp_program import Floats, Program
from resolvent.errors import MissingExtra, OptionError, ResolventError

Verdict: TypeAlias = Literal["optimal", "infeasible", "time limit"]

SECONDS_BETWEEN_LOOKS = 0.05
SECONDS_OF_PATIENCE = 1.0


@dataclass(frozen=True, eq=False)
class Solution:
    """What a solver says of a program: values if it has any, and how good they can be."""

    verdict: Verdict
    values: Floats | None
    bound: float | None
    nodes: int | None


Solver: TypeAlias = Callable[[Program, float | None, Callable[[], None]], Solution]
"""Takes a program, the seconds it may take, and what to call now and then meanwhile."""


def solver_called(name: str) -> Solver:
    """Return the solver of this name, and make sure that it is installed."""
    if name not in SOLVERS:
        raise OptionError(f"unknown solver '{name}': choose one of {', '.join(SOLVERS)}")
    solve, modules = SOLVERS[name]
    for module in modules:
        _imported(module)
    return solve


def _imported(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtra(
            f'integer programs need a solver: pip install "resolvent[baselines]" ({error})'
        ) from error


def _solve_by_highs(program: Program, seconds: float | None, tick: Callable[[], None]) -> Solution:
    highspy = _imported("highspy")
    highs = highspy.Highs()
    highs.silent()
    highs.setOptionValue("threads", 1)
    highs.setOptionValue("mip_rel_gap", 0.0)
    integrality = np.zeros(program.variables, np.int32)
    integrality[program.first_indicator :] = int(highspy.HighsVarType.kInteger)
    highs.passModel(
        program.variables,
        program.constraints,
        len(program.index),
        int(highspy.MatrixFormat.kRowwise),
        int(highspy.ObjSense.kMinimize),
        0.0,
        program.cost,
        np.zeros(program.variables),
        program.upper,
        program.row_lower,
        program.row_upper,
        program.row_start[:-1].astype(np.int32),
        program.index,
        program.value,
        integrality,
    )
    highs.HandleUserInterrupt = True
    if not _beside(highs.run, highs.cancelSolve, tick, seconds):
        return Solution("time limit", None, None, None)
    status, info = highs.getModelStatus(), highs.getInfo()
    codes = highspy.HighsModelStatus
    verdicts: dict[Any, Verdict] = {
        codes.kOptimal: "optimal",
        codes.kInfeasible: "infeasible",
        codes.kUnboundedOrInfeasible: "infeasible",  # no cost is below 0
        codes.kTimeLimit: "time limit",
        codes.kInterrupt: "time limit",
        codes.kHighsInterrupt: "time limit",
    }
    solved = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    values = np.array(highs.getSolution().col_value) if solved else None
    nodes = max(0, int(info.mip_node_count))
    return Solution(_verdict(verdicts, status), values, _finite(info.mip_dual_bound), nodes)


def _solve_by_cp_sat(program: Program, seconds: float | None, tick: Callable[[], None]) -> Solution:
    sparse = _imported("scipy.sparse")
    helpers = _imported("ortools.linear_solver.python.model_builder_helper")
    shape = (program.constraints, program.variables)
    matrix = sparse.csr_matrix((program.value, program.index, program.row_start), shape=shape)
    model = helpers.ModelBuilderHelper()
    zeros = np.zeros(program.variables)
    bounds = (program.row_lower, program.row_upper)
    model.fill_model_from_sparse_data(zeros, program.upper, program.cost, *bounds, matrix)
    for variable in range(program.variables):  # CP-SAT knows integers only
        model.set_var_integrality(variable, True)
    solver = helpers.ModelSolverHelper("sat")
    solver.set_solver_specific_parameters("num_workers:1, catch_sigint_signal:false")
    if not _beside(lambda: solver.solve(model), solver.interrupt_solve, tick, seconds):
        return Solution("time limit", None, None, None)
    status = solver.status()
    statuses = helpers.SolveStatus
    verdicts: dict[Any, Verdict] = {
        statuses.OPTIMAL: "optimal",
        statuses.INFEASIBLE: "infeasible",
        statuses.FEASIBLE: "time limit",
        statuses.NOT_SOLVED: "time limit",
        statuses.CANCELLED_BY_USER: "time limit",
        statuses.UNKNOWN_STATUS: "time limit",
    }
    solved = status in (statuses.OPTIMAL, statuses.FEASIBLE)
    values = np.array(solver.variable_values()) if solved else None
    bound = _finite(solver.best_objective_bound()) if solved else None
    return Solution(_verdict(verdicts, status), values, bound, None)


def _verdict(verdicts: dict[Any, Verdict], status: Any) -> Verdict:
    if status not in verdicts:
        raise ResolventError(f"the solver gave up: {status}; try the other one, or fewer traces")
    return verdicts[status]


def _finite(bound: float) -> float | None:
    return round(float(bound), 6) if np.isfinite(bound) else None


def _beside(
    solve: Callable[[], object],
    stop: Callable[[], object],
    tick: Callable[[], None],
    seconds: float | None,
) -> bool:
    """Solve in a thread of its own; return whether it came to an end.

    A solver that does not stop when told to is left behind after a while: it holds
    on to its memory, but not to the caller.
    """
    failed: list[BaseException] = []

    def work() -> None:
        try:
            solve()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work, name="solver", daemon=True)
    ends = inf if seconds is None else clock.now() + seconds
    thread.start()
    try:
        while thread.is_alive() and clock.now() < ends:
            thread.join(SECONDS_BETWEEN_LOOKS)
            tick()
    finally:
        patience = time.monotonic() + SECONDS_OF_PATIENCE
        while thread.is_alive() and time.monotonic() < patience:
            stop()
            thread.join(SECONDS_BETWEEN_LOOKS)
    if failed:
        raise failed[0]
    return not thread.is_alive()


SOLVERS: dict[str, tuple[Solver, tuple[str, ...]]] = {
    "highs": (_solve_by_highs, ("highspy",)),
    "cp-sat": (
        _solve_by_cp_sat,
        ("scipy.sparse", "ortools.linear_solver.python.model_builder_helper"),
    ),
}
"""By name: the function, and the modules it needs."""
