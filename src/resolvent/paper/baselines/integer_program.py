"""Steps with their keys and rewards → the integer program for a machine of a given size.

Hyde and Santos, "Detecting Hidden Triggers: Mapping Non-Markov Reward Functions to
Markov" (2024). All rows come from arrays: one program has millions of variables.
"""

import importlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from resolvent.errors import MissingExtra, OptionError, ResolventError
from resolvent.paper.baselines import clock
from resolvent.traces.vocabulary import Codes

MOST_ENTRIES = 2**31 - 1
"""Limit of the solvers, which count the entries of a program in 32 bits."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Steps:
    """The key and the reward of each step, which a machine must explain.

    Trace m owns steps `offsets[m]:offsets[m + 1]`. Keys are numbered from 0 to `keys`.
    """

    key: Codes
    reward: Codes
    offsets: NDArray[np.int64]
    keys: int

    def __len__(self) -> int:
        return len(self.key)

    def prefixes(self, lengths: dict[int, int]) -> "Steps":
        """Return prefixes of some traces, of the given lengths; keys keep their numbers."""
        starts = self.offsets[list(lengths)].tolist()
        ends = (start + length for start, length in zip(starts, lengths.values(), strict=True))
        chosen = np.concatenate([np.arange(*rows) for rows in zip(starts, ends, strict=True)])
        offsets = np.cumsum([0, *lengths.values()])
        return Steps(self.key[chosen], self.reward[chosen], offsets, self.keys)


@dataclass(frozen=True, eq=False)
class Program:
    """Minimise cost · x over 0 ≤ x ≤ upper and row_lower ≤ A x ≤ row_upper, by rows.

    The variables are O[step, i, j], then I[key, i, j], then those for rewards. Only
    from `first_indicator` on do they need to be integral: once the I are, each trace
    has one path left to go, and the rest follows.
    """

    states: int
    first_indicator: int
    cost: Floats
    upper: Floats
    row_lower: Floats
    row_upper: Floats
    row_start: NDArray[np.int64]
    index: NDArray[np.int32]
    value: Floats

    @property
    def variables(self) -> int:
        """The number of variables."""
        return len(self.cost)

    @property
    def constraints(self) -> int:
        """The number of rows."""
        return len(self.row_lower)


class _Rows:
    """Gathers rows in blocks; all rows of a block have the same coefficients."""

    def __init__(self) -> None:
        self.index: list[NDArray[np.int32]] = []
        self.value: list[Floats] = []
        self.widths: list[NDArray[np.int64]] = []
        self.lower: list[Floats] = []
        self.upper: list[Floats] = []

    def add(
        self, variables: NDArray[np.int64], *, signs: Floats, lower: float, upper: float
    ) -> None:
        """Add a block: one row of variables for each row, one sign for each column."""
        rows, width = variables.shape
        self.index.append(variables.astype(np.int32).ravel())
        self.value.append(np.tile(signs, rows))
        self.widths.append(np.full(rows, width))
        self.lower.append(np.full(rows, lower))
        self.upper.append(np.full(rows, upper))


def build_program(
    steps: Steps, states: int, *, monotone: bool = False, tick: Callable[[], None] = lambda: None
) -> Program:
    """Build the constraints and the cost of a machine with `states` states.

    The published program with tighter links: O ≤ I step by step instead of one
    big-M row for each I, and Σ_r I[κ, r, i, j] ≤ I[κ, i, j] instead of ≤ 1. Keys with a
    constant reward need no reward variables. `tick` is called between blocks and may
    raise, to stop.
    """
    square = states * states
    if 5 * len(steps) * square > MOST_ENTRIES:
        raise OptionError(
            f"a program of {len(steps):,} steps and {states} states is too large for a solver: "
            f"give fewer traces, or take mode 'conflicts'"
        )
    moves = np.arange(square).reshape(states, states)  # [i, j]
    used = len(steps) * square
    step_moves = np.arange(used).reshape(len(steps), states, states)
    key_moves = used + np.arange(steps.keys * square).reshape(steps.keys, states, states)
    paid, paid_of_step, varying = _rewards_of_keys(steps)
    pair_moves = used + key_moves.size + np.arange(len(paid) * square).reshape(-1, square)

    rows = _Rows()
    rows.add(step_moves.reshape(-1, square), signs=np.ones(square), lower=1, upper=1)
    tick()
    goes_on = np.ones(len(steps), bool)
    goes_on[steps.offsets[1:] - 1] = False
    here = np.flatnonzero(goes_on)
    flow = np.concatenate([step_moves[here].swapaxes(1, 2), step_moves[here + 1]], axis=2)
    signs = np.repeat([1.0, -1.0], states)
    rows.add(flow.reshape(-1, 2 * states), signs=signs, lower=0, upper=0)
    tick()
    rows.add(key_moves.reshape(-1, states), signs=np.ones(states), lower=-np.inf, upper=1)
    for key in varying.tolist():
        of_key = np.flatnonzero(paid == key)
        block = np.column_stack([key_moves[key].ravel(), pair_moves[of_key].T])
        rows.add(block, signs=np.array([-1.0, *np.ones(len(of_key))]), lower=-np.inf, upper=0)
    tick()
    allowing = np.where(
        (paid_of_step >= 0)[:, None],
        pair_moves[paid_of_step] if len(paid) else 0,
        key_moves.reshape(-1, square)[steps.key],
    )
    links = np.column_stack([step_moves.ravel(), allowing.ravel()])
    rows.add(links, signs=np.array([1.0, -1.0]), lower=-np.inf, upper=0)
    tick()

    variables = used + (steps.keys + len(paid)) * square
    upper = np.ones(variables)
    upper[step_moves[steps.offsets[:-1], 1:]] = 0
    if monotone:
        upper.reshape(-1, states, states)[:, moves // states > moves % states] = 0
    cost = np.zeros(variables)
    cost[key_moves[:, ~np.eye(states, dtype=bool)]] = 1
    widths = np.concatenate(rows.widths)
    return Program(
        states=states,
        first_indicator=used,
        cost=cost,
        upper=upper,
        row_lower=np.concatenate(rows.lower),
        row_upper=np.concatenate(rows.upper),
        row_start=np.concatenate([[0], np.cumsum(widths)]),
        index=np.concatenate(rows.index),
        value=np.concatenate(rows.value),
    )


def _rewards_of_keys(steps: Steps) -> tuple[Codes, Codes, Codes]:
    """Find the keys that pay different rewards.

    Returns the key of each (key, reward) such a key has, for each step the place of
    its pair among those or −1, and these keys.
    """
    size = int(steps.reward.max()) + 1
    pairs, place = np.unique(steps.key.astype(np.int64) * size + steps.reward, return_inverse=True)
    keys = (pairs // size).astype(np.int32)
    varies = np.bincount(keys, minlength=steps.keys)[keys] > 1
    number = np.where(varies, np.cumsum(varies) - 1, -1).astype(np.int32)
    return keys[varies], number[place], np.unique(keys[varies])


def moves_of(program: Program, values: Floats, keys: int) -> Codes:
    """Read the solution: where each state and key lead, −1 where no step needs to know."""
    indicators = values[program.first_indicator :][: keys * program.states**2]
    chosen = indicators.reshape(keys, program.states, program.states) > 0.5
    targets = np.where(chosen.any(axis=2), chosen.argmax(axis=2), -1)
    return np.ascontiguousarray(targets.T.astype(np.int32))


Verdict: TypeAlias = Literal["optimal", "infeasible", "time limit"]

SECONDS_BETWEEN_LOOKS = 0.05
SECONDS_OF_PATIENCE = 1.0


@dataclass(frozen=True, eq=False)
class Solution:
    """A solver's result: the values if it found any, and a bound on the optimum."""

    verdict: Verdict
    values: Floats | None
    bound: float | None
    nodes: int | None


Solver: TypeAlias = Callable[[Program, float | None, Callable[[], None]], Solution]
"""Takes a program, its time limit in seconds, and a function to call regularly."""


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
    by_status: dict[Any, Verdict] = {
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
    return Solution(_translated(by_status, status), values, _finite(info.mip_dual_bound), nodes)


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
    by_status: dict[Any, Verdict] = {
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
    return Solution(_translated(by_status, status), values, bound, None)


def _translated(by_status: dict[Any, Verdict], status: Any) -> Verdict:
    if status not in by_status:
        raise ResolventError(f"the solver gave up: {status}; try the other one, or fewer traces")
    return by_status[status]


def _finite(bound: float) -> float | None:
    return round(float(bound), 6) if np.isfinite(bound) else None


def _beside(
    solve: Callable[[], object],
    stop: Callable[[], object],
    tick: Callable[[], None],
    seconds: float | None,
) -> bool:
    """Solve in a separate thread; return whether it finished.

    A solver that ignores requests to stop is abandoned after a while: it keeps its
    memory, but does not block the caller.
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
