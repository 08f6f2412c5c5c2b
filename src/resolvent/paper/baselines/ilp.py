"""Integer programming: traces → the machine with fewest states, and of those fewest edges.

Hyde and Santos, "Detecting Hidden Triggers: Mapping Non-Markov Reward Functions to
Markov" (2024).
"""

from contextlib import suppress
from typing import Any, Literal

import numpy as np

from resolvent import _core
from resolvent.errors import OptionError, TimeLimitReached, TraceError
from resolvent.machines import EdgeRewardMachine
from resolvent.paper.baselines.clock import Clock, Listener
from resolvent.paper.baselines.edge_machine import (
    KeyedRewardMachine,
    canonical,
    edges_used,
    keyed_machine,
    label_machine,
    read_at_steps,
    states_before,
)
from resolvent.paper.baselines.integer_program import (
    Solution,
    Steps,
    build_program,
    moves_of,
    solver_called,
)
from resolvent.paper.baselines.outcome import Outcome, Status
from resolvent.preprocess.timing import NONE
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes

MODES = ("all", "conflicts")


def ilp(
    traces: TraceSet,
    *,
    mode: Literal["all", "conflicts"] = "all",
    key: Literal["label", "state", "triple"] = "label",
    most_states: int = 10,
    monotone: bool = False,
    solver: Literal["highs", "cp-sat"] = "highs",
    time_limit: float | None = None,
    progress: Listener | None = None,
) -> Outcome:
    """Find a smallest machine that explains all rewards, by integer programming.

    States are added until the program has a solution; its optimum changes state on
    as few (state, key) pairs as possible. A machine reads keys from the first step on:
    l_1, l_2 and so on, or the same of observations.

    Args:
        traces: The traces.
        mode: "all" puts all traces into one program. "conflicts", as published,
            starts from none, adds the two shortest that the last machine cannot
            distinguish although their rewards differ, and solves again until it explains
            all. Both modes minimise the states and the changes of state: a program of
            some traces can only be easier, and the final machine fits all.
        key: The key that a machine reads: the label a step leads to, the observation
            ("state"), or observation, action and next observation ("triple"). The
            first gives an `EdgeRewardMachine`, the others a `KeyedRewardMachine`.
        most_states: The maximal number of states.
        monotone: Never return to an earlier state.
        solver: "highs", or "cp-sat" of OR-Tools; both on one thread.
        time_limit: Seconds for everything. After them the status is "time limit", and
            the machine the best one that explains all traces, if any.
        progress: Called regularly with a description of the work and the share of the
            time used.

    Returns:
        An outcome whose details name the states tried, the size of the last program
        (variables, constraints), its traces and steps, the cost of the optimum, the
        best bound on it, solver nodes, and seconds building and solving.

    Raises:
        MissingExtra: when the solver is not installed.

    >>> import gymnasium as gym, resolvent as rs
    >>> traces = rs.collect(gym.make("resolvent/PhaseGrid3-v0"), episodes=20, seed=0)
    >>> outcome = ilp(traces, mode="conflicts")
    >>> outcome.status, outcome.states, outcome.details["cost"]
    ('found', 2, 1.0)
    >>> outcome.machine.step(0, {"Coffee"}), outcome.machine.step(0, {"Stair"})
    ((1, 0.0), (0, 0.0))
    """
    if mode not in MODES:
        raise OptionError(f"unknown mode '{mode}': choose one of {', '.join(MODES)}")
    if most_states < 1:
        raise OptionError(f"most_states={most_states}: a machine has at least one")
    if not len(traces):
        raise TraceError("there are no traces to learn from: collect or read at least one")
    run = _Run(traces, key, monotone, solver, Clock(time_limit, progress))
    status: Status = "time limit"
    with suppress(TimeLimitReached):
        status = run.search(mode, most_states)
    return Outcome(
        method="ilp",
        status=status,
        seconds=run.clock.seconds,
        machine=run.machine(),
        details={"mode": mode, "key": key, "monotone": monotone, "solver": solver, **run.details},
    )


class _Run:
    """One search in progress."""

    def __init__(
        self, traces: TraceSet, key: str, monotone: bool, solver: str, clock: Clock
    ) -> None:
        self.clock = clock
        self.traces, self.key, self.monotone = traces, key, monotone
        self.solve = solver_called(solver)
        self.values, codes = read_at_steps(traces, key)
        self.steps = Steps(codes, traces.reward_codes, traces.offsets, len(self.values))
        self.table: Codes | None = None
        self.details: dict[str, Any] = {
            "tried": [],
            "states": 0,
            "rounds": 0,
            "traces": 0,
            "steps": 0,
            "variables": 0,
            "constraints": 0,
            "nodes": None,
            "bound": None,
            "cost": None,
            "seconds_building": 0.0,
            "seconds_solving": 0.0,
        }

    def search(self, mode: str, most_states: int) -> Status:
        """Add states, and in conflict mode traces, until a machine explains all traces."""
        self.details["contradiction"] = self._contradicts_itself()
        if self.details["contradiction"]:
            return "no solution"
        if mode == "all":
            return "found" if self._add_states(self.steps, most_states) else "no solution"
        self.table = np.zeros((1, self.steps.keys), np.int32)
        self.details.update(states=1, cost=0.0, bound=0.0)
        chosen: dict[int, int] = {}  # how many steps of which trace
        while conflict := self._conflict(self.table):
            for trace, length in conflict:
                chosen[trace] = max(length, chosen.get(trace, 0))
            if not self._add_states(self.steps.prefixes(chosen), most_states):
                return "no solution"
        return "found"

    def machine(self) -> EdgeRewardMachine | KeyedRewardMachine | None:
        """Make a machine of the last table, if it explains all traces."""
        if self.table is None or self._conflict(self.table):
            return None
        table = canonical(self.table, self.steps.key, self.steps.offsets)
        used = edges_used(table, self.steps.key, self.traces)
        if self.key == "label":
            return label_machine(used, list(self.traces.labels), len(table))
        return keyed_machine(used, self.key, self.values, table)

    def _contradicts_itself(self) -> bool:
        """Whether the same keys led to different rewards."""
        same_question = np.zeros(len(self.steps), np.int32)
        tree = _core.build_history_tree(self.steps.key, self.steps.offsets)
        return _core.find_contradiction(tree, same_question, self.steps.reward) is not None

    def _add_states(self, steps: Steps, most_states: int) -> bool:
        """Solve for the last number of states tried, then for more; False if none suffice."""
        for states in range(max(1, self.details["states"]), most_states + 1):
            solution = self._solution(steps, states)
            if solution.verdict == "time limit":
                raise TimeLimitReached
            if solution.verdict == "optimal":
                return True
        return False

    def _solution(self, steps: Steps, states: int) -> Solution:
        """Build and solve one program, and keep its table if there is one."""
        details, clock = self.details, self.clock
        before = clock.seconds
        try:
            clock.look()
            program = build_program(steps, states, monotone=self.monotone, tick=clock.look)
        finally:
            details["seconds_building"] += clock.seconds - before
        details.update(
            states=states,
            traces=len(steps.offsets) - 1,
            steps=len(steps),
            variables=program.variables,
            constraints=program.constraints,
            cost=None,
            bound=None,
        )
        text = f"{states} states: {program.variables:,} variables"
        before = clock.seconds
        try:
            solution = self.solve(program, clock.left, lambda: clock.tell(text))
        finally:
            details["seconds_solving"] += clock.seconds - before
        details["rounds"] += 1
        details["bound"] = solution.bound
        if solution.nodes is not None:
            details["nodes"] = (details["nodes"] or 0) + solution.nodes
        details["tried"].append(
            {
                "states": states,
                "verdict": solution.verdict,
                "steps": len(steps),
                "variables": program.variables,
                "constraints": program.constraints,
                "seconds": clock.seconds - before,
            }
        )
        if solution.values is not None:
            details["cost"] = round(float(program.cost @ solution.values), 6)
            table = moves_of(program, solution.values, steps.keys)
            stays = np.arange(states, dtype=np.int32)[:, None]
            self.table = np.where(table == NONE, stays, table)
        return solution

    def _conflict(self, table: Codes) -> list[tuple[int, int]] | None:
        """Return the two shortest traces that a table cannot explain, and their lengths.

        They end in the same state with the same key but different rewards.
        """
        steps = self.steps
        states = states_before(table, steps.key, steps.offsets)
        place = states.astype(np.int64) * steps.keys + steps.key
        trace = np.repeat(np.arange(len(self.traces)), np.diff(steps.offsets))
        length = np.arange(len(steps)) - steps.offsets[trace] + 1
        order = np.lexsort((length, steps.reward, place))
        new = np.ones(len(order), bool)  # the shortest of each place and reward
        new[1:] = (np.diff(place[order]) != 0) | (np.diff(steps.reward[order]) != 0)
        shortest: dict[int, list[int]] = {}
        for row in order[new].tolist():
            shortest.setdefault(int(place[row]), []).append(row)
        pairs = [
            sorted(rows, key=lambda row: int(length[row]))[:2]
            for rows in shortest.values()
            if len(rows) > 1
        ]
        if not pairs:
            return None
        best = min(pairs, key=lambda rows: int(length[rows].sum()))
        return [(int(trace[row]), int(length[row])) for row in best]
