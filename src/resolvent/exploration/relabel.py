"""Choose labels for an environment without labels.

Labels made of all observations, or of all actions and observations, need many tests: each may lead
anywhere from each state. So a few events among them are searched for now and then.
"""

from dataclasses import replace
from typing import Final, TypeAlias

from resolvent.exploration.hypothesis import count_states
from resolvent.exploration.state import LearnerState
from resolvent.exploration.tables import TransitionTables
from resolvent.inference.conflict import Conflict
from resolvent.inference.context import ACTION_OBSERVATION
from resolvent.inference.infer import try_infer
from resolvent.inference.options import InferenceOptions
from resolvent.inference.result import InferenceResult
from resolvent.preprocess.event_discovery import LabelCandidate, label_candidates
from resolvent.preprocess.labeling import AS_RECORDED, LabelingFunction
from resolvent.preprocess.timing import LabelTiming
from resolvent.traces import TraceSet
from resolvent.traces.schema import OBSERVATION, REWARD

Events: TypeAlias = tuple[LabelCandidate, InferenceResult]  # labels, and machines that read them
OBSERVATIONS: Final = LabelingFunction("observation")
FIRST_SEARCH: Final = 64  # number of steps before the first search for events
NEXT_SEARCH, NEXT_AFTER_NONE = 1.5, 3.0  # growth of steps until the next search; if none are found
MANY_TRANSITIONS: Final = 150  # number of transitions above which fewer labels are searched for
OUTGROWN: Final = 1.5  # growth of the number of states until other events are searched for
EFFORT, MACHINE_EFFORT = 0.02, 0.1  # shares of the effort of `infer`: for events, and machines
QUICK_EFFORT: Final = 0.005  # effort of an inference that only estimates the number of states


def set_labels(state: LearnerState, labeling: LabelingFunction) -> None:
    """Replace the labels of all steps so far."""
    state.labels.labeling, state.labels.changed = labeling, True
    state.buffer.relabel(labeling)


def add_actions_to_labels(state: LearnerState) -> None:
    """Replace labels of observations by labels of actions and observations."""
    if state.labels.automatic and state.labels.labeling.reads == "observation":
        _adopt(state, ACTION_OBSERVATION)


def add_detail_to_labels(state: LearnerState) -> None:
    """Replace labels that do not explain the world, if there are others."""
    labels = state.labels
    if not labels.automatic or labels.labeling in (AS_RECORDED, ACTION_OBSERVATION):
        return
    discovered = _search(state)
    if discovered is not None:
        _adopt_events(state, discovered)
    elif labels.labeling.events is not None:  # other observations may have been events
        _adopt(state, OBSERVATIONS, ACTION_OBSERVATION)
    else:
        _adopt(state, ACTION_OBSERVATION)


def simplify_labels(state: LearnerState) -> None:
    """Read a few events instead of all observations or actions, if there is much to test.

    Events are given up if machines need ever more states for them.
    """
    labels, model = state.labels, state.model
    if not labels.automatic or labels.labeling == AS_RECORDED or model is None:
        return
    n_states, n_labels = sum(state.sizes.values()), len(state.buffer.labels)
    reads_events = labels.labeling.events is not None
    is_outgrown = reads_events and n_states > OUTGROWN * labels.states_at_discovery
    # Labels that change no state need no test, however many there are.
    n_transitions = n_states * (n_labels - len(model.neutral_labels))
    is_large = not reads_events and n_transitions >= MANY_TRANSITIONS
    needs_actions = not is_large and _are_actions_needed(state, n_states, n_labels)
    if not (is_outgrown or is_large or needs_actions):
        return
    discovered = _search(state)
    if discovered is not None and discovered[0].labeling != labels.labeling:
        n_events = len(set((discovered[0].labeling.events or {}).values()))
        has_fewer_labels = reads_events or n_events + 1 < n_labels
        if count_states(discovered[1]) <= n_states and has_fewer_labels:
            _adopt_events(state, discovered)
            return
    if is_outgrown:
        _adopt(state, OBSERVATIONS, ACTION_OBSERVATION)
    elif needs_actions:
        _adopt(state, ACTION_OBSERVATION)


def _are_actions_needed(state: LearnerState, n_states: int, n_labels: int) -> bool:
    """Return whether half of the states are enough if actions are read, too.

    Machines that read only observations may need ever more states to infer the actions.
    """
    labels = state.labels
    if labels.labeling != OBSERVATIONS or n_states <= n_labels or state.steps < labels.search_at:
        return False
    options = replace(
        state.hypothesis.options,
        labels=ACTION_OBSERVATION,
        timing=LabelTiming.CURRENT,
        effort=QUICK_EFFORT,
    )
    result = try_infer(options, state.buffer.traces())
    if not isinstance(result, Conflict) and 2 * count_states(result) <= n_states:
        return True
    labels.search_at = int(NEXT_SEARCH * state.steps)
    return False


def _adopt(state: LearnerState, *labelings: LabelingFunction) -> None:
    """Replace the labels by the first of these with machines that explain all steps, if any."""
    hypothesis = state.hypothesis
    hypothesis.options = replace(hypothesis.options, timing=LabelTiming.CURRENT)
    for labeling in labelings:
        set_labels(state, labeling)
        hypothesis.tables = None
        state.conflict = hypothesis.repair()
        if state.conflict is None:
            state.adopt_machines()
            return


def _adopt_events(state: LearnerState, discovered: Events) -> None:
    """Replace the labels, and the machines by those that read discovered events."""
    (candidate, result), hypothesis = discovered, state.hypothesis
    set_labels(state, candidate.labeling)
    hypothesis.options = replace(hypothesis.options, timing=candidate.timing)
    hypothesis.tables = TransitionTables.of(result.machines, state.buffer)
    state.labels.states_at_discovery = sum(hypothesis.tables.sizes)
    state.conflict = None
    state.adopt_machines()


def _search(state: LearnerState) -> Events | None:
    """Search for a few events that explain all steps, unless the last search was recent."""
    if state.steps < state.labels.search_at:
        return None
    discovered = _discover_events(state.buffer.traces(), state.hypothesis.options)
    factor = NEXT_AFTER_NONE if discovered is None else NEXT_SEARCH
    state.labels.search_at = int(factor * state.steps)
    return discovered


def _discover_events(traces: TraceSet, options: InferenceOptions) -> Events | None:
    """Return a few events that explain all traces, and machines that read them, if any do."""
    outputs = (OBSERVATION, REWARD)
    for group in label_candidates(traces, outputs, seed=options.seed, effort=EFFORT):
        for candidate in group:
            if candidate.labeling.events is None:  # those that follow have all sources as labels
                return None
            part = replace(options, timing=candidate.timing, effort=MACHINE_EFFORT)
            result = try_infer(part, candidate.labeling.transform(traces))
            if not isinstance(result, Conflict):
                return (candidate, result) if candidate.labeling.events else None
    return None
