"""Update the state of learning by the results of resets and steps, and choose labels.

A wrong prediction ends the path of its episode, and the machines are repaired at once.

In an environment without labels, those made of all observations, or of all actions and
observations, need many tests: each may lead anywhere from each state. So a few events among them
are searched for now and then.
"""

from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from resolvent.exploration.buffer import ABANDONED, TERMINATED, TRUNCATED, Episode
from resolvent.exploration.empirical_model import UNKNOWN, EmpiricalModel, Outcome, StepEffect
from resolvent.exploration.hypothesis import count_states
from resolvent.exploration.shortening import script_labelings
from resolvent.exploration.state import EpisodeState, LearnerState
from resolvent.exploration.state_checks import CHECK_STATE
from resolvent.exploration.tables import TransitionTables
from resolvent.exploration.tests import VALIDATE_PLAN
from resolvent.exploration.words import REPEAT, recent_labels
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
from resolvent.traces.symbols import Label, Symbol

FIRST_STEPS: Final = 8  # number of random steps before the first inference
Events: TypeAlias = tuple[LabelCandidate, InferenceResult]  # labels, and machines that read them
OBSERVATIONS: Final = LabelingFunction("observation")
FIRST_SEARCH: Final = 64  # number of steps before the first search for events
NEXT_SEARCH, NEXT_AFTER_NONE = 1.5, 3.0  # growth of steps until the next search; if none are found
MANY_TRANSITIONS: Final = 150  # number of transitions above which fewer labels are searched for
OUTGROWN: Final = 1.5  # growth of the number of states until other events are searched for
EFFORT, MACHINE_EFFORT = 0.02, 0.1  # shares of the effort of `infer`: for events, and machines
QUICK_EFFORT: Final = 0.005  # effort of an inference that only estimates the number of states


@dataclass(frozen=True, slots=True)
class EncodedStep:
    """A step in the symbols of machines; the action is its code, -1 for a reset.

    The label is None if the learner makes labels.
    """

    observation: Symbol
    label: Label | None
    action: int = -1
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False


def present_label(state: LearnerState, step: EncodedStep) -> Label:
    """Return the label of a step by the present source of labels."""
    if step.label is not None:
        return step.label
    labeling = state.labels.labeling
    if step.action < 0:
        return labeling.at_reset(step.observation)
    return labeling.after_step(state.buffer.actions[step.action], step.observation)


def begin_episode(state: LearnerState, episode: EpisodeState, reset: EncodedStep) -> None:
    """Record a reset."""
    buffer, model = state.buffer, state.model
    observation = buffer.observations.code(reset.observation)
    start = observation, buffer.labels.code(present_label(state, reset))
    episode.recorded, episode.path = buffer.begin(episode.index, *start), []
    state.selection.familiar_resets += 1
    episode.row = UNKNOWN
    if model is not None:
        if model.is_new_start(*start):
            state.selection.familiar_resets = 0
            state.selection.exhausted = state.selection.verified = False
        episode.row = model.begin(*start)
    episode.start, episode.context, episode.previous_context = episode.row, (-1, *start), ()


def close_episode(state: LearnerState, episode: EpisodeState, end: int = ABANDONED) -> None:
    """Close an episode, by default because no test is left in it."""
    follows_plan = episode.path and episode.purpose == VALIDATE_PLAN
    if follows_plan and end == TRUNCATED:  # the plan was executed for as long as episodes last
        _note_plan(state, episode)
    state.buffer.close(episode.index, end)
    episode.recorded, episode.path, episode.row = Episode(), [], UNKNOWN


def _note_plan(state: LearnerState, episode: EpisodeState) -> None:
    """Note that the plan was executed from the start of an episode."""
    if state.model is not None and episode.start != UNKNOWN:
        state.validation.starts.add(state.model.augmented_states[episode.start])


def update(state: LearnerState, episode: EpisodeState, step: EncodedStep) -> bool:
    """Record a step; return whether the machines changed because they did not explain it.

    If no machines explain it with these labels, other labels are tried; if none do, the state has
    a conflict.
    """
    state.truncated_episodes += step.truncated and not step.terminated
    is_surprise = _record(state, episode, step)
    if step.terminated or step.truncated:
        close_episode(state, episode, TERMINATED if step.terminated else TRUNCATED)
    if is_surprise:
        state.conflict = state.hypothesis.repair()
        if state.conflict is not None:
            add_detail_to_labels(state)
            return True
        state.adopt_machines()
    if is_surprise or state.steps >= state.labels.search_at:
        simplify_labels(state)
    label_shortened_episodes(state)
    return is_surprise


def _record(state: LearnerState, episode: EpisodeState, step: EncodedStep) -> bool:
    """Record a step; return whether the machines have to change."""
    buffer, recorded = state.buffer, episode.recorded
    label_before = recorded.labels[-1]
    observation = buffer.observations.code(step.observation)
    label = buffer.labels.code(present_label(state, step))
    recorded.step(step.action, step.reward, observation, label)
    episode.action = None
    if state.model is None:
        return state.steps >= FIRST_STEPS or step.terminated or step.truncated
    if episode.row == UNKNOWN:
        return True
    read = label_before if state.model.lag else label
    outcome = Outcome(observation, label, read, step.reward, step.terminated)
    effect = _add_to_model(state, state.model, episode, step.action, outcome)
    if effect.is_new:  # it may open new tests
        state.selection.exhausted = state.selection.verified = False
        state.selection.given_up.clear()
    return effect.contradicts


def _add_to_model(
    state: LearnerState, model: EmpiricalModel, episode: EpisodeState, action: int, outcome: Outcome
) -> StepEffect:
    """Add the last step of an episode to the model, and continue its path."""
    row, recorded, read = episode.row, episode.recorded, outcome.label_read
    observation, *states = model.augmented_states[row]
    query = observation, action
    model.note_query(episode.context, episode.previous_context, query)
    if state.selection.queries is not None:  # without the label that the step led to
        state.selection.queries.add(model.without_neutral(recorded.labels[1:-1]), *query)
    if read not in model.neutral_labels:
        episode.previous_context, episode.context = episode.context, (read, *states)
        model.note_word(recent_labels(model, recorded))
    effect = model.add_step(row, action, outcome)
    episode.row = effect.next_row if effect.next_row >= 0 else UNKNOWN
    if episode.path[:1] != [(row, action)]:
        episode.path = []
        return effect
    episode.path.pop(0)
    is_plan = episode.purpose == VALIDATE_PLAN
    state.validation.steps += is_plan
    state.validation.repeated_steps += episode.purpose in (REPEAT, CHECK_STATE)
    if episode.path:
        if episode.path[0][0] != effect.next_row:
            episode.path = []
    elif is_plan and not effect.contradicts:
        _note_plan(state, episode)
    return effect


def verify_if_exhausted(state: LearnerState) -> None:
    """Look for other machines before the tests count as passed.

    Machines are inferred from scratch once more.
    """
    if not state.selection.exhausted or state.selection.verified:
        return
    before = state.hypothesis.tables
    state.conflict = state.hypothesis.relearn(last=True)
    if state.conflict is not None:
        return
    after = state.hypothesis.tables
    if before is None or after is None or not after.equals(before):
        state.adopt_machines()
        return
    state.selection.verified = True


# --- Labels --------------------------------------------------------------------------------------


def set_labels(state: LearnerState, labeling: LabelingFunction) -> None:
    """Replace the labels of all steps so far."""
    state.labels.labeling, state.labels.changed = labeling, True
    state.buffer.relabel(labeling)


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
    if not labels.are_made or model is None:
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


def label_shortened_episodes(state: LearnerState) -> None:
    """Read the steps that the shortest rewarded episodes cannot do without, if that explains all.

    If machines are larger then, that is tried again once the present ones have grown.
    """
    shortening, labels, hypothesis = state.selection.shortening, state.labels, state.hypothesis
    if shortening is None or not shortening.is_done or state.model is None:
        return
    length = sum(len(script.actions) for script in shortening.scripts)
    n_states, has_events = sum(state.sizes.values()), labels.labeling.events is not None
    if length == labels.shortened_to and (has_events or n_states < labels.states_at_discovery):
        return
    labels.shortened_to, traces = length, state.buffer.traces()
    if not has_events:
        labels.states_at_discovery = int(OUTGROWN * n_states) + 1
    options = replace(
        hypothesis.options,
        timing=LabelTiming.CURRENT,
        effort=MACHINE_EFFORT,
        trivial=(),  # besides "no event", which stands for all other steps
        remove_trivial=True,
    )
    for labeling in script_labelings(state.model, shortening.scripts):
        result = try_infer(options, labeling.transform(traces))
        if isinstance(result, Conflict):
            continue
        if count_states(result) <= n_states:
            hypothesis.options = replace(hypothesis.options, remove_trivial=True)
            _adopt_events(state, (LabelCandidate(labeling, LabelTiming.CURRENT), result))
        return


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
