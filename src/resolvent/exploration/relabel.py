"""Choose labels for an environment without labels.

Labels made of all observations, or of all actions and observations, need many tests: each may lead
anywhere from each state. So a few events among them are searched for now and then.
"""

from dataclasses import replace
from typing import Any, Final

from resolvent.errors import ContradictoryTraces
from resolvent.exploration.state import LearnerState
from resolvent.exploration.tables import TransitionTables
from resolvent.inference.conflict import Conflict
from resolvent.inference.infer import EVERYTHING, infer_with, try_infer
from resolvent.inference.options import InferenceOptions
from resolvent.inference.result import InferenceResult
from resolvent.preprocess import event_discovery
from resolvent.preprocess.event_discovery import DiscoveredLabels
from resolvent.preprocess.labeling import AS_RECORDED, LabelingFunction
from resolvent.preprocess.timing import LabelTiming
from resolvent.traces import TraceSet
from resolvent.traces.schema import OBSERVATION, REWARD
from resolvent.traces.symbols import as_symbol

OBSERVATIONS: Final = LabelingFunction("observation")

FIRST_SEARCH: Final = 64
"""Number of steps before the first search for events."""

NEXT_SEARCH, NEXT_AFTER_NONE = 1.5, 3.0
"""Factors by which steps have to grow until the next search: after a success, and a failure."""

MANY_TRANSITIONS: Final = 150
"""Number of transitions to test above which fewer labels are searched for."""

OUTGROWN: Final = 1.5
"""Factor by which the number of states may grow before other events are searched for."""

EFFORT, MACHINE_EFFORT = 0.02, 0.1
"""Effort of the search for events, and of the inference of machines that read them, as shares of
the default of `infer`."""

QUICK_EFFORT: Final = 0.005
"""Effort of an inference that only estimates the number of states."""


def set_labels(state: LearnerState, labelling: LabelingFunction) -> None:
    """Replace the labels of all steps so far."""
    state.labels.labelling, state.labels.changed = labelling, True
    active = [episode.episode for episode in state.episodes if episode.active]
    state.buffer.relabel(labelling, active)


def _adopt(
    state: LearnerState,
    labelling: LabelingFunction,
    discovered: DiscoveredLabels[InferenceResult] | None = None,
) -> None:
    """Replace the labels and the machines."""
    set_labels(state, labelling)
    hypothesis = state.hypothesis
    timing = LabelTiming.CURRENT if discovered is None else discovered.timing
    hypothesis.options = replace(hypothesis.options, timing=timing)
    hypothesis.tables = None
    if discovered is None:
        hypothesis.repair(state.open_episodes)
    else:
        machines = discovered.inferred.machines
        hypothesis.tables = TransitionTables.of(machines, state.buffer)
        state.labels.states_at_discovery = sum(hypothesis.tables.sizes)
    state.forget_validation()
    state.rebuild()


def add_actions_to_labels(state: LearnerState) -> None:
    """Replace labels of observations by labels of actions and observations."""
    if state.labels.automatic and state.labels.labelling.reads == "observation":
        _adopt(state, EVERYTHING)


def add_detail_to_labels(state: LearnerState) -> bool:
    """Replace labels that do not explain the world; return False if there are no others."""
    labels = state.labels
    if not labels.automatic or labels.labelling in (AS_RECORDED, EVERYTHING):
        return False
    discovered = _search(state)
    if discovered is not None:
        _adopt(state, discovered.labelling, discovered)
    elif labels.labelling.events is not None:  # other observations may have been events
        _adopt_all_observations(state)
    else:
        _adopt(state, EVERYTHING)
    return True


def simplify_labels(state: LearnerState) -> None:
    """Read a few events instead of all observations or actions, if there is much to test.

    Events are given up if machines need ever more states for them.
    """
    labels, tables, model = state.labels, state.hypothesis.tables, state.model
    if not labels.automatic or labels.labelling == AS_RECORDED or tables is None or model is None:
        return
    n_states, n_labels = sum(tables.sizes), len(state.buffer.labels)
    reads_events = labels.labelling.events is not None
    is_outgrown = reads_events and n_states > OUTGROWN * labels.states_at_discovery
    # Labels that change no state need no test, however many there are.
    n_transitions = n_states * (n_labels - len(model.neutral_labels))
    is_large = not reads_events and n_transitions >= MANY_TRANSITIONS
    needs_actions = not is_large and _are_actions_needed(state, n_states, n_labels)
    if not (is_outgrown or is_large or needs_actions):
        return
    discovered = _search(state)
    if discovered is not None and discovered.labelling != labels.labelling:
        machines = discovered.inferred.machines.values()
        n_events = len(set((discovered.labelling.events or {}).values()))
        if sum(machine.states for machine in machines) <= n_states and (
            reads_events or n_events + 1 < n_labels
        ):
            _adopt(state, discovered.labelling, discovered)
            return
    if is_outgrown:
        _adopt_all_observations(state)
    elif needs_actions:
        _adopt(state, EVERYTHING)


def _are_actions_needed(state: LearnerState, n_states: int, n_labels: int) -> bool:
    """Return whether half of the states are enough if actions are read, too.

    Machines that read only observations may need ever more states to infer the actions.
    """
    labels = state.labels
    if labels.labelling != OBSERVATIONS or n_states <= n_labels or state.steps < labels.search_at:
        return False
    needed = count_states(EVERYTHING, state.traces(), state.hypothesis.options)
    if needed is not None and 2 * needed <= n_states:
        return True
    labels.search_at = int(NEXT_SEARCH * state.steps)
    return False


def _adopt_all_observations(state: LearnerState) -> None:
    """Make each observation a label, with the action if observations alone do not suffice."""
    try:
        _adopt(state, OBSERVATIONS)
    except ContradictoryTraces:
        _adopt(state, EVERYTHING)


def _search(state: LearnerState) -> DiscoveredLabels[InferenceResult] | None:
    """Search for a few events, unless the last search was a few steps ago."""
    if state.steps < state.labels.search_at:
        return None
    discovered = discover_labels(state.traces(), state.hypothesis.options)
    factor = NEXT_AFTER_NONE if discovered is None else NEXT_SEARCH
    state.labels.search_at = int(factor * state.steps)
    return discovered


def discover_labels(
    traces: TraceSet, options: InferenceOptions
) -> DiscoveredLabels[InferenceResult] | None:
    """Return a few events that explain all traces, and machines that read them, if there are any.

    >>> import resolvent as rs
    >>> traces = rs.collect(rs.worlds.House(), episodes=60, seed=0, labels="observation")
    >>> discovered = discover_labels(traces, InferenceOptions(noise="none"))
    >>> sorted(discovered.labelling.events), discovered.inferred.machines.reward.states
    (['cyanroom', 'orangeroom'], 2)
    """

    def infer(labelled: TraceSet, timing: LabelTiming) -> InferenceResult:
        return infer_with(replace(options, timing=timing, effort=MACHINE_EFFORT), labelled)

    outputs = (OBSERVATION, REWARD)
    try:
        discovered = event_discovery.discover_labels(
            traces, outputs, infer, seed=options.seed, effort=EFFORT
        )
    except ContradictoryTraces:
        return None
    return discovered if discovered.labelling.events else None


def count_states(
    labelling: LabelingFunction, traces: TraceSet, options: InferenceOptions
) -> int | None:
    """Return the number of states of machines with these labels; None if none explain all steps.

    >>> import resolvent as rs
    >>> traces = rs.collect(rs.worlds.House(), episodes=60, seed=0)
    >>> count_states(OBSERVATIONS, traces, InferenceOptions(noise="none"))
    4
    """
    options = replace(options, labels=labelling, timing=LabelTiming.CURRENT, effort=QUICK_EFFORT)
    result = try_infer(options, traces)
    if isinstance(result, Conflict):
        return None
    return sum(machine.states for machine in result.machines.values())


def stored_sources(labelling: LabelingFunction) -> list[tuple[Any, Any]] | None:
    """Return the events of a labeling as JSON values; None if each source is an event."""
    return None if labelling.events is None else labelling.plain_events()


def restored_labelling(reads: str, events: list[tuple[Any, Any]] | None) -> LabelingFunction:
    """Return a labeling from the values of `stored_sources`.

    >>> restored_labelling("observation", [("attic", "key")]).events
    {'attic': 'key'}
    """
    named = None if events is None else {as_symbol(source): name for source, name in events}
    return LabelingFunction(reads, named)  # type: ignore[arg-type]


def describe_labeling(labelling: LabelingFunction) -> str:
    """Describe the source of labels in a few words; empty if they are given.

    >>> describe_labeling(LabelingFunction("observation", {"attic": "key"}))
    '1 event, made of observations (key)'
    """
    if labelling == AS_RECORDED:
        return ""
    first, *rest = str(labelling).splitlines()
    names = [line.partition(": ")[0] for line in rest]
    return f"{first} ({', '.join(names)})" if names else first
