"""Models → the next experiment; experiments and traces → goals of an episode and observed steps.

Input: a model and a policy, or machines with an experiment or traces. Output: the path to an
unknown step; a `Goal` that follows an episode label by label; the most frequent outcomes of steps.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from resolvent._util.parallel import Threads
from resolvent.evaluation.experiments import Experiment, rarely_taken_reason
from resolvent.machines import UNSEEN, Machine, Machines
from resolvent.machines.augmented_state import ACTING_MACHINES
from resolvent.machines.memory import BreadthFirstSearch
from resolvent.planning.model import Model
from resolvent.planning.steps import StepPass
from resolvent.replay.corpus import run_pass, scan_corpus
from resolvent.replay.replaying import MachineTables
from resolvent.replay.steps import state_column
from resolvent.traces import Label, Symbol, TraceDataset, TraceSet
from resolvent.traces.io.formats import as_traces
from resolvent.traces.schema import ACTION, LABEL, OBSERVATION
from resolvent.traces.symbols import NO_EVENT
from resolvent.traces.vocabulary import Codes

# --- The next experiment of a plan ---------------------------------------------------------------

ModelStep: TypeAlias = tuple[int, int]
"""The numbers of an augmented state and of an action."""


def first_unknown_step(policy: Codes, model: Model, starts: Iterable[int]) -> Experiment | None:
    """Return the experiment that a policy reaches soonest from any of some starts.

    In a stochastic model, the step taken least often comes first. A step that ends episodes only
    sometimes does not count, since trying it again would not settle it.
    """
    experiments = [_unknown_step_from(policy, model, int(start)) for start in starts]
    return min(
        (experiment for experiment in experiments if experiment is not None),
        key=lambda experiment: (experiment.taken or 0, len(experiment.actions or ())),
        default=None,
    )


def _unknown_step_from(policy: Codes, model: Model, start: int) -> Experiment | None:
    """Return the first unknown step that a policy takes; None if it only takes known ones.

    In a stochastic model, the likeliest path is followed; if all its steps are known, the step
    taken least often is returned.
    """
    state, path, visited = start, list[ModelStep](), set[int]()
    while state >= 0 and state not in visited:
        visited.add(state)
        path.append((state, int(policy[state])))
        if not model.known[path[-1]]:
            break
        state = int(model.next_state[path[-1]])
    if model.outcomes is not None:
        numbers = [state * len(model.actions) + action for state, action in path]
        counts = model.outcomes.count[numbers].tolist()
        rarest = counts.index(min(counts))
        return _experiment(model, path[:rarest], path[rarest], counts[rarest])
    if model.known[path[-1]] or model.sometimes_ends[path[-1]]:
        return None
    return _experiment(model, path[:-1], path[-1])


def nearest_unknown_step(model: Model) -> Experiment | None:
    """Return the unknown step nearest to any start; None if there is none."""
    search: BreadthFirstSearch[int, int] = BreadthFirstSearch(model.starts.tolist())
    for state in search:
        untried = ~model.known[state] & ~model.sometimes_ends[state]
        if untried.any():
            last = state, int(untried.argmax())
            taken = None if model.outcomes is None else 0
            return _experiment(model, search.path_to(state), last, taken)
        for action, after in enumerate(model.next_state[state].tolist()):
            if after >= 0:
                search.add(after, state, action)
    return None


def _experiment(
    model: Model, path: Sequence[ModelStep], last: ModelStep, taken: int | None = None
) -> Experiment:
    """Return the experiment that follows a path, then takes a last step."""
    start = path[0][0] if path else last[0]
    codes = [
        *model.first_label[model.starts == start].tolist(),
        *(int(model.label_read[step]) for step in path),
    ]
    labels = (model.labels[code] for code in codes if code >= 0)
    augmented_state = model.augmented_state(last[0])
    return Experiment(
        tuple(label for label in labels if label != NO_EVENT),
        (augmented_state[0], model.actions[last[1]]),
        rarely_taken_reason(taken or 0),
        start=model.augmented_state(start),
        actions=tuple(model.actions[code] for _, code in path),
        augmented_state=augmented_state,
        taken=taken,
    )


# --- The goal of an experiment -------------------------------------------------------------------

States: TypeAlias = tuple[int, ...]
"""The states of all machines, in their order."""

UNREACHABLE: Final = -1
"""Progress of an episode that cannot reach its goal any more."""


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

MOST_GUESSES: Final = 3
"""Maximum number of outcomes stored for a step by its observation alone."""


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
    """Return the outcomes of the steps of traces, with the states that machines were in.

    >>> import resolvent as rs
    >>> traces = rs.collect(rs.worlds.House(), episodes=20, seed=0)
    >>> steps = observed_steps(rs.infer(traces).machines, traces)
    >>> steps.in_state["corridor", (0, 0)]["left"].observation
    'orangeroom'
    """
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
