"""A policy that runs an experiment: paths through observed steps to its query.

Paths use the steps that traces took in an augmented state; without one, the outcomes of the same
step in other states; without these, any action.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, Final, NamedTuple, TypeAlias

import gymnasium as gym
import numpy as np

from resolvent._util.parallel import Threads
from resolvent._util.validation import check_at_least
from resolvent.errors import OptionError
from resolvent.evaluation.experiments import Experiment
from resolvent.inference.result import InferenceResult, machines_of_result
from resolvent.machines import UNSEEN, Machine, Machines
from resolvent.machines.augmented_state import ACTING_MACHINES
from resolvent.planning.steps import StepPass
from resolvent.preprocess.timing import LabelReader
from resolvent.replay.corpus import run_pass, scan_corpus
from resolvent.replay.replaying import MachineTables
from resolvent.replay.steps import state_column
from resolvent.rl.env import LivePreprocessor, check_env
from resolvent.rl.tracker import StateTracker
from resolvent.traces import TraceDataset, TraceSet
from resolvent.traces.io.formats import as_traces
from resolvent.traces.schema import ACTION, LABEL, OBSERVATION
from resolvent.traces.symbols import Label, Symbol, as_label

# --- The goal of an experiment -------------------------------------------------------------------

States: TypeAlias = tuple[int, ...]  # the states of all machines, in their order
UNREACHABLE: Final = -1  # progress of an episode that cannot reach its goal any more


@dataclass(frozen=True)
class Goal:
    """The states or labels to reach before the query of an experiment.

    The progress of an episode is a number, 0 at first. `states` are pairs of the position of a
    machine and its state. Without `labels`, these states are the goal. Otherwise the labels have
    to be read one after another, from the start of the episode if `exact`, else from those states
    on; `trivial` labels do not count.
    """

    states: tuple[tuple[int, int], ...]
    labels: tuple[Label, ...]
    exact: bool
    trivial: frozenset[Label]

    def after(self, progress: int, states: States | None, label: Label) -> int:
        """Return the progress after reading a label in these states."""
        if label in self.trivial or progress == UNREACHABLE or not (self.labels or self.exact):
            return progress
        is_next = progress < len(self.labels) and self.labels[progress] == label
        if is_next and (progress or self.exact or self._fits(states)):
            return progress + 1
        if self.exact:
            return UNREACHABLE
        return 1 if self.labels[0] == label and self._fits(states) else 0

    def is_reached(self, progress: int, states: States | None) -> bool:
        """Return whether the query can be made now."""
        return progress == len(self.labels) if self.labels or self.exact else self._fits(states)

    def _fits(self, states: States | None) -> bool:
        return states is not None and all(
            states[position] == state for position, state in self.states
        )


def goal_of(experiment: Experiment, machines: Machines) -> Goal:
    """Return the goal of an experiment, as these machines read labels."""
    names = list(machines)
    if experiment.augmented_state is not None:
        acting = [name for name in ACTING_MACHINES if name in machines]
        states = zip(acting, experiment.augmented_state[1:], strict=False)
        return Goal(
            tuple((names.index(name), state) for name, state in states), (), False, frozenset()
        )
    labels, concerned = experiment.history, _machines_of(experiment, machines)
    trivial = frozenset.intersection(
        *(frozenset(machine.trivial_labels) for machine in concerned.values())
    )
    if not experiment.exact:
        # The longest prefix of known transitions; the other labels have to be read.
        for length in range(len(labels), -1, -1):
            after: dict[str, Any] = {
                name: machine.run(labels[:length]) for name, machine in concerned.items()
            }
            if UNSEEN not in after.values():
                wanted = tuple((names.index(name), state) for name, state in after.items())
                return Goal(wanted, labels[length:], False, trivial)
    return Goal((), labels, True, trivial)


def _machines_of(experiment: Experiment, machines: Machines) -> dict[str, Machine]:
    """Return the machines whose states matter for an experiment."""
    if experiment.machine is None or experiment.machine not in machines:
        return dict(machines.items())
    names = [experiment.machine]
    if machines[names[0]].supplemented and "transition" in machines:
        names.insert(0, "transition")
    return {name: machines[name] for name in names}


# --- Steps to a goal -----------------------------------------------------------------------------

MOST_GUESSES: Final = 3  # maximum number of outcomes stored for a step by its observation alone


class StepOutcome(NamedTuple):
    """The outcome of a step: next observation, label read, and whether the episode ended."""

    observation: Symbol
    label: Label
    ends: bool


@dataclass(frozen=True)
class ObservedSteps:
    """The outcomes of the steps of traces.

    `in_state` has the most frequent outcome by observation and states, and by action. `anywhere`
    has outcomes by observation alone, and by action, the most frequent first.
    """

    actions: tuple[Symbol, ...]
    in_state: Mapping[tuple[Symbol, States | None], Mapping[Symbol, StepOutcome]]
    anywhere: Mapping[Symbol, Mapping[Symbol, list[StepOutcome]]]


def observed_steps(machines: Machines, traces: TraceSet | TraceDataset) -> ObservedSteps:
    """Return the outcomes of the steps of traces, with the states that machines were in."""
    corpus = scan_corpus(machines, as_traces(traces), Threads())
    alphabets = corpus.alphabets
    steps = run_pass(corpus, StepPass(MachineTables.of(machines, alphabets))).steps
    trace, step = steps.locations
    order = np.lexsort((step, trace, -steps.count))
    columns = [steps.columns.get("label_read", steps[LABEL]), steps["ended"]]
    columns += [steps[name] for name in (OBSERVATION, ACTION, "next_observation")]
    columns += [steps[state_column(name)] for name in machines]
    in_state: dict[tuple[Symbol, States | None], dict[Symbol, StepOutcome]] = {}
    anywhere: dict[Symbol, dict[Symbol, list[StepOutcome]]] = {}
    for read, ended, before, done, after, *states in np.stack(columns, axis=1)[order].tolist():
        observation, action = alphabets.observations[before], alphabets.actions[done]
        outcome = StepOutcome(alphabets.observations[after], alphabets.labels[read], bool(ended))
        if not states or min(states) >= 0:
            in_state.setdefault((observation, tuple(states)), {}).setdefault(action, outcome)
        outcomes = anywhere.setdefault(observation, {}).setdefault(action, [])
        if len(outcomes) < MOST_GUESSES and outcome not in outcomes:
            outcomes.append(outcome)
    return ObservedSteps(tuple(alphabets.actions), in_state, anywhere)


# --- The policy ----------------------------------------------------------------------------------

GUESS_COST: Final = 4  # of a step that was only taken in other states; a known one costs 1
MAX_NODES: Final = 50_000  # maximum number of nodes in the search for a path


class Node(NamedTuple):
    """An observation, the states of the machines if known, and the progress to the goal."""

    observation: Symbol
    states: States | None
    progress: int


Path: TypeAlias = list[tuple[Node, Symbol]]  # nodes, and the action to take at each


class ExperimentPolicy:
    """Runs an experiment, step by step; `Experiment.policy` makes it.

    It is a policy for `collect`, which passes labels to it. In a loop of your own, call `begin`
    with the label of a reset and `read` with that of each step, then call it with the
    observation for an action. `done` says whether the query was made after the labels; parallel
    copies (`collect(..., on="processes")`) do not count here.

    >>> import resolvent as rs
    >>> house = rs.worlds.House()
    >>> result = rs.infer(rs.collect(house, episodes=2, seed=0))
    >>> experiment = rs.plan(result, result.all_traces()).next_experiment
    >>> trial = experiment.policy(house, result, result.all_traces())
    >>> observation, info = house.reset(seed=0)
    >>> trial.begin(info["labels"])
    >>> while not trial.done:
    ...     observation, reward, terminated, truncated, info = house.step(trial(observation))
    ...     trial.read(info["labels"])
    """

    def __init__(
        self,
        experiment: Experiment,
        env: gym.Env[Any, Any],
        machines: Machines | InferenceResult,
        traces: TraceSet | TraceDataset,
        *,
        observation_fn: Callable[[Any], Any] | None = None,
        seed: int = 0,
    ) -> None:
        check_env(env, gym.Env, "policy")
        check_at_least(0, seed=seed)
        self.experiment, self.done = experiment, False
        self._machines = machines = machines_of_result(machines)
        self._live = LivePreprocessor(env, machines.preprocessor, observation_fn=observation_fn)
        self._seen = observed_steps(machines, traces)
        listed = self._live.actions.of_space(env.action_space) or ()
        self._actions = list(dict.fromkeys([*listed, *self._seen.actions]))
        self._goal = goal_of(experiment, machines)
        self._tracker, self._reader = StateTracker(machines), LabelReader(machines.timing)
        self._rng = np.random.default_rng(seed)
        self._label: tuple[Label, bool] | None = None  # and whether it is that of a reset
        self._last: tuple[Node, Symbol] | None = None  # and its action
        self._path: Path = []
        self._outcomes: dict[Node, dict[Symbol, StepOutcome]] = {}
        self._counts: dict[Node, dict[Symbol, int]] = {}
        self._hopeless: set[Node] = set()

    def begin(self, label: Any) -> None:
        """Read the label of a reset."""
        self._label, self._last = (as_label(label), True), None

    def read(self, label: Any) -> None:
        """Read the label of a step."""
        self._label = as_label(label), False

    def __call__(self, observation: Any) -> Any:
        """Return the next action."""
        labeled, last = self._label, self._last
        if labeled is None or (last is None and not labeled[1]):
            raise OptionError(
                "the policy of an experiment needs labels: call begin() with that of a reset "
                "and read() with that of a step before it is called for an action, or have "
                "collect() do so"
            )
        node = self._arrive(observation, labeled[0], last)
        action = self._choose(node)
        counts = self._counts.setdefault(node, {})
        counts[action] = counts.get(action, 0) + 1
        self._label, self._last = None, (node, action)
        return self._live.actions.value(action)

    def _arrive(self, observation: Any, label: Label, last: tuple[Node, Symbol] | None) -> Node:
        """Return the present node, and note the outcome of the last step, None after a reset."""
        symbol, tracker = self._live.observations(observation), self._tracker
        value = None if last is None else self._live.actions.value(last[1])
        label = as_label(self._live.label(value, observation, label))
        states: States | None = (0,) * len(self._machines)
        if last is None:
            self._path, progress = [], 0
            tracker.reset(label)
            read = self._reader.reset(label)
        else:
            node, action = last
            _, states, progress = node
            tracker.step(label)
            read = self._reader.step(label)
            outcome = StepOutcome(symbol, read, False)
            outcomes = self._outcomes.setdefault(node, {})
            if outcomes.get(action) != outcome:
                outcomes[action] = outcome
                self._hopeless.clear()
        if read is not None:
            progress = self._goal.after(progress, states, read)
        return Node(symbol, None if tracker.unseen else tracker.values, progress)

    def _choose(self, node: Node) -> Symbol:
        query = self.experiment.query
        if not self.done and self._is_goal(node):
            self.done = True
            if query is not None:
                return query[1]
        if self.done:
            return self._least_tried(node)
        if not self._path or self._path[0][0] != node:
            self._path = self._find_path(node)
        return self._path.pop(0)[1] if self._path else self._least_tried(node)

    def _is_goal(self, node: Node) -> bool:
        """Return whether the query can be made here."""
        query = self.experiment.query
        is_reached = self._goal.is_reached(node.progress, node.states)
        return is_reached and (query is None or query[0] == node.observation)

    def _least_tried(self, node: Node) -> Symbol:
        """Draw one of the actions taken least often here, unknown ones first."""
        counts = self._counts.get(node, {})
        known = {} if self.done else self._seen.in_state.get((node.observation, node.states), {})
        ranks = {action: (counts.get(action, 0), action in known) for action in self._actions}
        lowest = min(ranks.values())
        actions = [action for action, rank in ranks.items() if rank == lowest]
        return actions[int(self._rng.integers(len(actions)))]

    def _find_path(self, start: Node) -> Path:
        """Return the cheapest path to the query; empty if there is none."""
        if start in self._hopeless:
            return []
        number = 0
        parents: dict[Node, tuple[Node, Symbol] | None] = {}
        queue: list[tuple[int, int, Node, tuple[Node, Symbol] | None]] = [(0, 0, start, None)]
        while queue and len(parents) < MAX_NODES:
            cost, _, node, parent = heappop(queue)
            if node in parents:
                continue
            parents[node] = parent
            if self._is_goal(node):
                path = []
                while parent is not None:
                    path.append(parent)
                    parent = parents[parent[0]]
                return path[::-1]
            for step_cost, action, next_node in self._steps(node):
                if next_node not in parents:
                    number += 1  # of equal costs, the first found
                    heappush(queue, (cost + step_cost, number, next_node, (node, action)))
        self._hopeless.update(parents)
        return []

    def _steps(self, node: Node) -> Iterator[tuple[int, Symbol, Node]]:
        """Yield the cost, the action and the next node of each possible step."""
        observation, states, progress = node
        observed = self._outcomes.get(node, {})
        recorded = self._seen.in_state.get((observation, states), {})
        elsewhere = self._seen.anywhere.get(observation, {})
        for action in self._actions:
            outcome = observed.get(action) or recorded.get(action)
            possible, cost = ([outcome], 1) if outcome else (elsewhere.get(action, []), GUESS_COST)
            for outcome in possible:
                if not outcome.ends:
                    after = self._next_states(states, outcome.label)
                    reached = self._goal.after(progress, states, outcome.label)
                    yield cost, action, Node(outcome.observation, after, reached)

    def _next_states(self, states: States | None, label: Label) -> States | None:
        if states is None:
            return None
        pairs = zip(self._machines.values(), states, strict=True)
        next_states: list[Any] = [machine.step(state, label) for machine, state in pairs]
        return None if UNSEEN in next_states else tuple(next_states)
