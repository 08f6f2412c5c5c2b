"""Integer programming: traces → the machine with fewest states, and of those fewest edges.

Hyde and Santos, "Detecting Hidden Triggers: Mapping Non-Markov Reward Functions to
Markov" (2024). Programs are made of arrays, since one has millions of variables.
"""

import importlib
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent._util.validation import check_arguments, check_at_least
from resolvent.errors import MissingExtra, OptionError, ResolventError, TimeLimitReached
from resolvent.machines import EdgeRewardMachine
from resolvent.paper.baselines.outcome import (
    Clock,
    Outcome,
    Status,
    check_not_empty,
    machine_of_table,
    states_before,
)
from resolvent.preprocess.timing import NONE
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes

_MAX_ENTRIES = 2**31 - 1  # limit of the solver, which counts the entries of a program in 32 bits
_SECONDS_BETWEEN_CHECKS = 0.05
_SECONDS_TO_STOP = 1.0  # seconds that the solver may take to end after a request
Floats = NDArray[np.float64]


def ilp(
    traces: TraceSet,
    *,
    mode: Literal["all", "conflicts"] = "all",
    most_states: int = 10,
    time_limit: float | None = None,
) -> Outcome:
    """Find a smallest machine that explains all rewards, by integer programming.

    States are added until the program has a solution; its optimum changes state on
    as few (state, label) pairs as possible. A machine reads labels from the first step on:
    l_1, l_2 and so on. The solver is HiGHS, on one thread.

    Args:
        traces: The traces.
        mode: "all" puts all traces into one program. "conflicts", as published,
            starts from none, adds the two shortest that the last machine cannot
            distinguish although their rewards differ, and solves again until it explains
            all. Both modes minimize the states and the changes of state: a program of
            some traces can only be easier, and the final machine fits all.
        most_states: The maximal number of states.
        time_limit: Seconds for everything. After them the status is "time limit", and
            the machine the best one that explains all traces, if any.

    Returns:
        An outcome whose details list the programs tried, with states, traces, steps, size
        (variables, constraints), status, cost, bound on the cost, solver nodes and seconds.

    Raises:
        MissingExtra: when the solver is not installed.

    >>> import gymnasium as gym, resolvent as rs
    >>> traces = rs.collect(gym.make("resolvent/PhaseGrid3-v0"), episodes=20, seed=0)
    >>> outcome = ilp(traces, mode="conflicts")
    >>> outcome.status, outcome.states, outcome.details["tried"][-1]["cost"]
    ('found', 2, 1.0)
    >>> outcome.machine.step(0, {"Coffee"}), outcome.machine.step(0, {"Stair"})
    ((1, 0.0), (0, 0.0))
    """
    check_arguments(ilp, locals())
    check_at_least(1, most_states=most_states)
    check_not_empty(traces)
    import_solver()
    search = _Search(traces, most_states, Clock(time_limit))
    status: Status = "time limit"
    with suppress(TimeLimitReached):
        status = search.run(mode)
    machine = search.machine()
    details = {"mode": mode, "tried": search.tried}
    return Outcome("ilp", status, search.clock.seconds, machine, details)


class _Search:
    """The search for a table that explains all traces; `table` is the best so far."""

    def __init__(self, traces: TraceSet, most_states: int, clock: Clock) -> None:
        self.traces, self.most_states, self.clock = traces, most_states, clock
        labels = traces.after_step(traces.label_codes)
        self.steps = Steps(labels, traces.reward_codes, traces.offsets, len(traces.labels))
        self.table: Codes | None = None
        self.states = 1
        self.tried: list[dict[str, Any]] = []

    def run(self, mode: str) -> Status:
        """Add states, and in conflict mode traces, until a machine explains all traces."""
        tree = _core.build_history_tree(self.steps.label, self.steps.offsets)
        same_query = np.zeros(len(self.steps), np.int32)
        if _core.find_conflict(tree, same_query, self.steps.reward) is not None:
            return "no solution"  # the same labels were followed by different rewards
        if mode == "all":
            return "found" if self._add_states(self.steps) else "no solution"
        self.table = np.zeros((1, self.steps.labels), np.int32)
        lengths: dict[int, int] = {}
        while conflict := self._conflict(self.table):
            for trace, length in conflict:
                lengths[trace] = max(length, lengths.get(trace, 0))
            if not self._add_states(self.steps.prefixes(lengths)):
                return "no solution"
        return "found"

    def machine(self) -> EdgeRewardMachine | None:
        """Make a machine of the last table, if it explains all traces."""
        if self.table is None or self._conflict(self.table):
            return None
        return machine_of_table(self.table, self.traces)[0]

    def _add_states(self, steps: "Steps") -> bool:
        """Solve for the last number of states tried, then for more; False if none suffice."""
        for states in range(self.states, self.most_states + 1):
            self.states = states
            solution = self._solution(steps)
            if solution.status == "time limit":
                raise TimeLimitReached
            if solution.status == "optimal":
                return True
        return False

    def _solution(self, steps: "Steps") -> "Solution":
        """Build and solve one program, and keep its table if there is one."""
        clock = self.clock
        clock.check()
        program = Program.of(steps, self.states, clock)
        started = clock.seconds
        solution = solve(program, clock)
        cost = None
        if solution.values is not None:
            cost = round(float(program.cost @ solution.values), 6)
            self.table = program.table(solution.values, steps.labels)
        self.tried.append(
            {
                "states": self.states,
                "traces": len(steps.offsets) - 1,
                "steps": len(steps),
                "variables": len(program.cost),
                "constraints": len(program.row_lower),
                "status": solution.status,
                "cost": cost,
                "bound": solution.bound,
                "nodes": solution.nodes,
                "seconds": clock.seconds - started,
            }
        )
        return solution

    def _conflict(self, table: Codes) -> list[tuple[int, int]] | None:
        """Return the two shortest traces that a table cannot explain, and their lengths.

        They end in the same state with the same label but different rewards.
        """
        steps = self.steps
        states = states_before(table, steps.label, steps.offsets)
        edge = states.astype(np.int64) * steps.labels + steps.label
        trace = self.traces.trace_of_step
        length = np.arange(len(steps)) - steps.offsets[trace] + 1
        order = np.lexsort((length, steps.reward, edge))
        is_first = np.ones(len(order), bool)  # the shortest of each edge and reward
        is_first[1:] = (np.diff(edge[order]) != 0) | (np.diff(steps.reward[order]) != 0)
        shortest: dict[int, list[int]] = {}
        for row in order[is_first].tolist():
            shortest.setdefault(int(edge[row]), []).append(row)
        pairs = [
            sorted(rows, key=lambda row: int(length[row]))[:2]
            for rows in shortest.values()
            if len(rows) > 1
        ]
        if not pairs:
            return None
        best = min(pairs, key=lambda rows: int(length[rows].sum()))
        return [(int(trace[row]), int(length[row])) for row in best]


# --- Programs ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Steps:
    """The label and the reward of each step, which a machine must explain.

    Trace m has steps `offsets[m]:offsets[m + 1]`. Labels are numbered from 0 to `labels`.
    """

    label: Codes
    reward: Codes
    offsets: NDArray[np.int64]
    labels: int

    def __len__(self) -> int:
        return len(self.label)

    def prefixes(self, lengths: dict[int, int]) -> "Steps":
        """Return prefixes of some traces, of the given lengths; labels keep their numbers."""
        starts = self.offsets[list(lengths)].tolist()
        ends = (start + length for start, length in zip(starts, lengths.values(), strict=True))
        rows = np.concatenate([np.arange(*bounds) for bounds in zip(starts, ends, strict=True)])
        offsets = np.cumsum([0, *lengths.values()])
        return Steps(self.label[rows], self.reward[rows], offsets, self.labels)


@dataclass(frozen=True, eq=False)
class Program:
    """Minimize cost · x over 0 ≤ x ≤ upper and row_lower ≤ A x ≤ row_upper, by rows.

    The variables are O[step, i, j], then I[label, i, j], then those for rewards. Only
    from `first_indicator` on do they need to be integral: once the I are, each trace
    has one path left, and the rest follows.
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

    @classmethod
    def of(cls, steps: Steps, states: int, clock: Clock) -> "Program":
        """Build the constraints and the cost of a machine with `states` states.

        The published program with tighter links: O ≤ I step by step instead of one
        big-M row for each I, and Σ_r I[κ, r, i, j] ≤ I[κ, i, j] instead of ≤ 1. Labels with a
        constant reward need no reward variables.
        """
        square = states * states
        if 5 * len(steps) * square > _MAX_ENTRIES:
            raise OptionError(
                f"a program of {len(steps):,} steps and {states} states is too large for the "
                f"solver: give fewer traces, or use mode 'conflicts'"
            )
        of_steps = len(steps) * square
        step_edges = np.arange(of_steps).reshape(len(steps), states, states)
        label_edges = of_steps + np.arange(steps.labels * square).reshape(-1, states, states)
        label_of_reward, reward_of_step, varying = _varying_rewards(steps)
        n_reward_edges = len(label_of_reward) * square
        reward_edges = np.arange(n_reward_edges).reshape(-1, square) + of_steps + label_edges.size

        rows = _Rows()
        rows.add(step_edges.reshape(-1, square), signs=np.ones(square), lower=1, upper=1)
        clock.check()
        continues = np.ones(len(steps), bool)
        continues[steps.offsets[1:] - 1] = False
        here = np.flatnonzero(continues)
        flow = np.concatenate([step_edges[here].swapaxes(1, 2), step_edges[here + 1]], axis=2)
        signs = np.repeat([1.0, -1.0], states)
        rows.add(flow.reshape(-1, 2 * states), signs=signs, lower=0, upper=0)
        clock.check()
        rows.add(label_edges.reshape(-1, states), signs=np.ones(states), lower=-np.inf, upper=1)
        for label in varying.tolist():
            of_label = np.flatnonzero(label_of_reward == label)
            block = np.column_stack([label_edges[label].ravel(), reward_edges[of_label].T])
            signs = np.array([-1.0, *np.ones(len(of_label))])
            rows.add(block, signs=signs, lower=-np.inf, upper=0)
        clock.check()
        allowing = np.where(
            (reward_of_step >= 0)[:, None],
            reward_edges[reward_of_step] if len(reward_edges) else 0,
            label_edges.reshape(-1, square)[steps.label],
        )
        links = np.column_stack([step_edges.ravel(), allowing.ravel()])
        rows.add(links, signs=np.array([1.0, -1.0]), lower=-np.inf, upper=0)
        clock.check()

        variables = of_steps + label_edges.size + reward_edges.size
        upper = np.ones(variables)
        upper[step_edges[steps.offsets[:-1], 1:]] = 0
        cost = np.zeros(variables)
        cost[label_edges[:, ~np.eye(states, dtype=bool)]] = 1
        return cls(states, of_steps, cost, upper, *rows.arrays())

    def table(self, values: Floats, labels: int) -> Codes:
        """Read the solution: the target of each state and label; an unused one stays."""
        indicators = values[self.first_indicator :][: labels * self.states**2]
        chosen = indicators.reshape(labels, self.states, self.states) > 0.5
        stays = np.arange(self.states)
        targets = np.where(chosen.any(axis=2), chosen.argmax(axis=2), stays)
        return np.ascontiguousarray(targets.T.astype(np.int32))


class _Rows:
    """Gathers rows in blocks; all rows of a block have the same coefficients."""

    def __init__(self) -> None:
        self.blocks: list[tuple[NDArray[Any], ...]] = []

    def add(
        self, variables: NDArray[np.int64], *, signs: Floats, lower: float, upper: float
    ) -> None:
        """Add a block: one row of variables for each row, one sign for each column."""
        rows, width = variables.shape
        bounds = np.full(rows, float(lower)), np.full(rows, float(upper))
        index, value = variables.astype(np.int32).ravel(), np.tile(signs, rows)
        self.blocks.append((*bounds, np.full(rows, width), index, value))

    def arrays(self) -> tuple[Floats, Floats, NDArray[np.int64], NDArray[np.int32], Floats]:
        """Return the bounds, starts, indices and values of all rows."""
        columns = zip(*self.blocks, strict=True)
        lower, upper, widths, index, value = (np.concatenate(column) for column in columns)
        return lower, upper, np.concatenate([[0], np.cumsum(widths)]), index, value


def _varying_rewards(steps: Steps) -> tuple[Codes, Codes, Codes]:
    """Find the labels with different rewards.

    Returns the label of each (label, reward) such a label has, for each step the number of
    its pair among those or −1, and these labels.
    """
    size = int(steps.reward.max()) + 1
    pairs, inverse = np.unique(
        steps.label.astype(np.int64) * size + steps.reward, return_inverse=True
    )
    labels = (pairs // size).astype(np.int32)
    varies = np.bincount(labels, minlength=steps.labels)[labels] > 1
    number = np.where(varies, np.cumsum(varies) - 1, NONE).astype(np.int32)
    return labels[varies], number[inverse], np.unique(labels[varies])


# --- The solver ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Solution:
    """The solver's result: the values if it found any, and a bound on the optimum."""

    status: Literal["optimal", "infeasible", "time limit"]
    values: Floats | None = None
    bound: float | None = None
    nodes: int = 0


def import_solver() -> Any:
    """Import the solver, or name the missing extra."""
    try:
        return importlib.import_module("highspy")
    except ImportError as error:
        raise MissingExtra(
            'integer programs need a solver: pip install "resolvent[baselines]"'
        ) from error


def solve(program: Program, clock: Clock) -> Solution:
    """Solve a program by HiGHS, within the time that the clock has left."""
    highspy = import_solver()
    highs = highspy.Highs()
    highs.silent()
    highs.setOptionValue("threads", 1)
    highs.setOptionValue("mip_rel_gap", 0.0)
    variables = len(program.cost)
    integrality = np.zeros(variables, np.int32)
    integrality[program.first_indicator :] = int(highspy.HighsVarType.kInteger)
    highs.passModel(
        variables,
        len(program.row_lower),
        len(program.index),
        int(highspy.MatrixFormat.kRowwise),
        int(highspy.ObjSense.kMinimize),
        0.0,
        program.cost,
        np.zeros(variables),
        program.upper,
        program.row_lower,
        program.row_upper,
        program.row_start[:-1].astype(np.int32),
        program.index,
        program.value,
        integrality,
    )
    highs.HandleUserInterrupt = True
    if not _run_in_thread(highs.run, highs.cancelSolve, clock):
        return Solution("time limit")
    model_status, info = highs.getModelStatus(), highs.getInfo()
    codes = highspy.HighsModelStatus
    statuses: dict[Any, Literal["optimal", "infeasible", "time limit"]] = {
        codes.kOptimal: "optimal",
        codes.kInfeasible: "infeasible",
        codes.kUnboundedOrInfeasible: "infeasible",  # no cost is below 0
        codes.kTimeLimit: "time limit",
        codes.kInterrupt: "time limit",
        codes.kHighsInterrupt: "time limit",
    }
    if model_status not in statuses:
        raise ResolventError(f"the solver failed: {model_status}; use fewer traces")
    is_feasible = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    values = np.array(highs.getSolution().col_value) if is_feasible else None
    bound = round(float(info.mip_dual_bound), 6) if np.isfinite(info.mip_dual_bound) else None
    return Solution(statuses[model_status], values, bound, max(0, int(info.mip_node_count)))


def _run_in_thread(run: Callable[[], object], stop: Callable[[], object], clock: Clock) -> bool:
    """Run a solver in a thread, so that Ctrl-C is handled; return whether it finished.

    A solver that ignores requests to stop is abandoned after a while: it retains its memory, but
    does not block the caller. In highspy's own threads it would block all later solvers.
    """
    failures: list[BaseException] = []

    def work() -> None:
        try:
            run()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=work, name="solver", daemon=True)
    thread.start()
    try:
        while thread.is_alive() and (inf if clock.left is None else clock.left) > 0:
            thread.join(_SECONDS_BETWEEN_CHECKS)
    finally:
        deadline = time.monotonic() + _SECONDS_TO_STOP
        while thread.is_alive() and time.monotonic() < deadline:
            stop()
            thread.join(_SECONDS_BETWEEN_CHECKS)
    if failures:
        raise failures[0]
    return not thread.is_alive()
