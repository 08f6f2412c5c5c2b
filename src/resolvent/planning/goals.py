"""Experiments → goals of an episode; traces → observed steps that lead to them.

Input: an experiment and machines, or machines and traces. Output: a `Goal` that follows an
episode label by label, and the most frequent outcomes of steps.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from resolvent._util.parallel import Threads
from resolvent.evaluation.experiments import Experiment
from resolvent.machines import UNSEEN, Machine, Machines
from resolvent.machines.situations import ACTING_MACHINES
from resolvent.planning.steps import StepPass
from resolvent.replay.passes import run_pass, scan_corpus
from resolvent.replay.replaying import MachineTables
from resolvent.replay.steps import state_of
from resolvent.traces import Label, Symbol, TraceDataset, TraceSet
from resolvent.traces.io.formats import as_traces
from resolvent.traces.schema import ACTION, LABEL, OBSERVATION

States: TypeAlias = tuple[int, ...]
"""The states of all machines, in their order."""

UNREACHABLE: Final = -1
"""Progress of an episode that cannot reach its goal any more."""

MOST_GUESSES: Final = 3
"""Maximum number of outcomes stored for a step by its observation alone."""


@dataclass(frozen=True)
class Goal:
    """The states or labels to reach before the query of an experiment.

    The progress of an episode is a number, 0 at first. `wanted` are (place of a machine, state)
    pairs. Without `labels`, these states are the goal. Otherwise the labels have to be read one
    after another, from the start of the episode if `exact`, else from the wanted states on;
    `trivial` labels do not count.
    """

    wanted: tuple[tuple[int, int], ...]
    labels: tuple[Label, ...]
    exact: bool
    trivial: frozenset[Label]

    def after(self, reached: int, states: States | None, label: Label) -> int:
        """Return the progress after reading a label in these states."""
        if label in self.trivial or reached == UNREACHABLE or not (self.labels or self.exact):
            return reached
        is_next = reached < len(self.labels) and self.labels[reached] == label
        if is_next and (reached or self.exact or self._fits(states)):
            return reached + 1
        if self.exact:
            return UNREACHABLE
        return 1 if self.labels[0] == label and self._fits(states) else 0

    def is_reached(self, reached: int, states: States | None) -> bool:
        """Return whether the query can be made now."""
        return reached == len(self.labels) if self.labels or self.exact else self._fits(states)

    def _fits(self, states: States | None) -> bool:
        return states is not None and all(states[place] == state for place, state in self.wanted)


def goal_of(experiment: Experiment, machines: Machines) -> Goal:
    """Return the goal of an experiment, as these machines read labels."""
    names = list(machines)
    if experiment.situation is not None:
        acting = [name for name in ACTING_MACHINES if name in machines]
        states = zip(acting, experiment.situation[1:], strict=False)
        return Goal(
            tuple((names.index(name), state) for name, state in states), (), False, frozenset()
        )
    history, about = experiment.history, _machines_of(experiment, machines)
    trivial = frozenset.intersection(
        *(frozenset(machine.trivial_labels) for machine in about.values())
    )
    if not experiment.exact:
        # The longest prefix of known transitions; the other labels have to be read.
        for length in range(len(history), -1, -1):
            after = {name: machine.run(history[:length]) for name, machine in about.items()}
            if UNSEEN not in after.values():
                wanted: tuple[tuple[int, Any], ...] = tuple(
                    (names.index(name), state) for name, state in after.items()
                )
                return Goal(wanted, history[length:], False, trivial)
    return Goal((), history, True, trivial)


def _machines_of(experiment: Experiment, machines: Machines) -> dict[str, Machine]:
    """Return the machines whose states matter for an experiment."""
    if experiment.machine is None or experiment.machine not in machines:
        return dict(machines.items())
    names = [experiment.machine]
    if machines[names[0]].supplemented and "transition" in machines:
        names.insert(0, "transition")
    return {name: machines[name] for name in names}


class StepOutcome(NamedTuple):
    """The outcome of a step: next observation, label read, and whether the episode ended."""

    observation: Symbol
    label: Label
    ends: bool


@dataclass(frozen=True)
class SeenSteps:
    """The outcomes of the steps of traces.

    `taken` is the most frequent outcome by observation and states, and by action. `elsewhere`
    are outcomes by observation alone, and by action, the most frequent first.
    """

    actions: tuple[Symbol, ...]
    taken: Mapping[tuple[Symbol, States | None], Mapping[Symbol, StepOutcome]]
    elsewhere: Mapping[Symbol, Mapping[Symbol, list[StepOutcome]]]


def seen_steps(machines: Machines, traces: TraceSet | TraceDataset) -> SeenSteps:
    """Return the outcomes of the steps of traces, with the states that machines were in.

    >>> import resolvent as rs
    >>> traces = rs.collect(rs.worlds.House(), episodes=20, seed=0)
    >>> seen = seen_steps(rs.infer(traces).machines, traces)
    >>> seen.taken["corridor", (0, 0)]["left"].observation
    'orangeroom'
    """
    corpus = scan_corpus(machines, as_traces(traces), Threads())
    alphabets = corpus.alphabets
    steps = run_pass(corpus, StepPass(MachineTables.of(machines, alphabets))).steps
    trace, step = steps.places
    order = np.lexsort((step, trace, -steps.count))
    columns = [steps.columns.get("read", steps[LABEL]), steps["ended"]]
    columns += [steps[name] for name in (OBSERVATION, ACTION, "following")]
    columns += [steps[state_of(name)] for name in machines]
    taken: dict[tuple[Symbol, States | None], dict[Symbol, StepOutcome]] = {}
    elsewhere: dict[Symbol, dict[Symbol, list[StepOutcome]]] = {}
    for read, ended, seen, done, following, *states in np.stack(columns, axis=1)[order].tolist():
        observation, action = alphabets.observations[seen], alphabets.actions[done]
        outcome = StepOutcome(
            alphabets.observations[following], alphabets.labels[read], bool(ended)
        )
        if not states or min(states) >= 0:
            taken.setdefault((observation, tuple(states)), {}).setdefault(action, outcome)
        guesses = elsewhere.setdefault(observation, {}).setdefault(action, [])
        if len(guesses) < MOST_GUESSES and outcome not in guesses:
            guesses.append(outcome)
    return SeenSteps(tuple(alphabets.actions), taken, elsewhere)
