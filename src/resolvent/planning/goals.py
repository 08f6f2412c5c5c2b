"""An experiment → how far an episode is with it, label by label."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from resolvent.machines import UNSEEN, Machine, Machines
from resolvent.machines.situations import KINDS
from resolvent.planning.steps import StepPass
from resolvent.replay import Tables, through, whole
from resolvent.replay.steps import state_of
from resolvent.traces import Label, Symbol, TraceFolder, TraceSet
from resolvent.traces.column_names import ACTION, LABEL, OBSERVATION
from resolvent.traces.given import as_traces
from resolvent.trust import Experiment
from resolvent.workers import Threads

States: TypeAlias = tuple[int, ...]
"""The states of all machines, in their order."""

UNREACHABLE: Final = -1
"""How far an episode is that can no longer get there."""


@dataclass(frozen=True)
class Aim:
    """What has to be read before an experiment's question.

    How far an episode is, is a number, 0 at first. `wanted` are states of some of the machines,
    by their places. Without `labels`, being in these states is all. With `labels`, they have to
    be read one after another, from the beginning if `exact`, else from the wanted states on.
    Labels that are `trivial` do not count.
    """

    wanted: tuple[tuple[int, int], ...]
    labels: tuple[Label, ...]
    exact: bool
    trivial: frozenset[Label]

    def after(self, reached: int, states: States | None, label: Label) -> int:
        """Return how far it is once a label is read in these states."""
        if label in self.trivial or reached == UNREACHABLE or not (self.labels or self.exact):
            return reached
        is_next = reached < len(self.labels) and self.labels[reached] == label
        if is_next and (reached or self.exact or self._fits(states)):
            return reached + 1
        if self.exact:
            return UNREACHABLE
        return 1 if self.labels[0] == label and self._fits(states) else 0

    def is_reached(self, reached: int, states: States | None) -> bool:
        """Whether the question may be asked now."""
        return reached == len(self.labels) if self.labels or self.exact else self._fits(states)

    def _fits(self, states: States | None) -> bool:
        return states is not None and all(states[place] == state for place, state in self.wanted)


def aim_of(experiment: Experiment, machines: Machines) -> Aim:
    """Return what has to be read for an experiment, as these machines read labels."""
    kinds = list(machines)
    if experiment.situation is not None:
        acting = [kind for kind in KINDS if kind in machines]
        states = zip(acting, experiment.situation[1:], strict=False)
        wanted = tuple((kinds.index(kind), state) for kind, state in states)
        return Aim(wanted, (), False, frozenset())
    history, about = experiment.history, _about(experiment, machines)
    trivial = frozenset.intersection(*(frozenset(one.trivial_labels) for one in about.values()))
    if not experiment.exact:
        # All that is known of where the labels lead; the rest has to be read.
        for known in range(len(history), -1, -1):
            led = {kind: one.run(history[:known]) for kind, one in about.items()}
            if UNSEEN not in led.values():
                wanted = tuple((kinds.index(kind), state) for kind, state in led.items())
                return Aim(wanted, history[known:], False, trivial)
    return Aim((), history, True, trivial)


def _about(experiment: Experiment, machines: Machines) -> dict[str, Machine]:
    """Return the machines whose states matter for an experiment."""
    if experiment.machine is None or experiment.machine not in machines:
        return dict(machines.items())
    names = [experiment.machine]
    if machines[names[0]].supplemented and "transition" in machines:
        names.insert(0, "transition")
    return {name: machines[name] for name in names}


MOST_GUESSES: Final = 3
"""So many of what may come of a step elsewhere are thought of."""


class Came(NamedTuple):
    """What came of a step: what was seen, which label was read, whether it was the last."""

    observation: Symbol
    label: Label
    ends: bool


@dataclass(frozen=True)
class StepsSeen:
    """The steps that traces took.

    `taken` has what came of them most often by observation and states, and by action;
    `elsewhere` all that did by observation alone, the most frequent first.
    """

    actions: tuple[Symbol, ...]
    taken: Mapping[tuple[Symbol, States | None], Mapping[Symbol, Came]]
    elsewhere: Mapping[Symbol, Mapping[Symbol, list[Came]]]


def steps_seen(machines: Machines, traces: TraceSet | TraceFolder) -> StepsSeen:
    """Return which steps traces took, with the states that machines were in.

    >>> import resolvent as rs
    >>> traces = rs.collect(rs.environments.House(), episodes=20, seed=0)
    >>> seen = steps_seen(rs.infer(traces).machines, traces)
    >>> seen.taken["corridor", (0, 0)]["left"].observation
    'orangeroom'
    """
    corpus = whole(machines, as_traces(traces), Threads())
    alphabets = corpus.alphabets
    found = through(corpus, StepPass(Tables.of(machines, alphabets))).steps
    trace, step = found.places
    order = np.lexsort((step, trace, -found.count))
    columns = [found.columns.get("read", found[LABEL]), found["ended"]]
    columns += [found[name] for name in (OBSERVATION, ACTION, "following")]
    columns += [found[state_of(kind)] for kind in machines]
    taken: dict[tuple[Symbol, States | None], dict[Symbol, Came]] = {}
    elsewhere: dict[Symbol, dict[Symbol, list[Came]]] = {}
    for read, ended, seen, done, led, *states in np.stack(columns, axis=1)[order].tolist():
        observation, action = alphabets.observations[seen], alphabets.actions[done]
        came = Came(alphabets.observations[led], alphabets.labels[read], bool(ended))
        if not states or min(states) >= 0:
            taken.setdefault((observation, tuple(states)), {}).setdefault(action, came)
        others = elsewhere.setdefault(observation, {}).setdefault(action, [])
        if len(others) < MOST_GUESSES and came not in others:
            others.append(came)
    return StepsSeen(tuple(alphabets.actions), taken, elsewhere)
