"""Update the state of learning by the results of resets and steps.

A wrong prediction ends the path of its episode, and the machines are repaired at once.
"""

from dataclasses import dataclass
from typing import Final

from resolvent.exploration.buffer import ABANDONED, TERMINATED, TRUNCATED, Episode
from resolvent.exploration.empirical_model import UNKNOWN, EmpiricalModel, Outcome, StepEffect
from resolvent.exploration.relabel import (
    add_actions_to_labels,
    add_detail_to_labels,
    simplify_labels,
)
from resolvent.exploration.state import EpisodeState, LearnerState
from resolvent.exploration.state_checks import CHECK_STATE
from resolvent.exploration.tests import VALIDATE_PLAN
from resolvent.exploration.words import REPEAT, recent_labels
from resolvent.traces.symbols import Label, Symbol

FIRST_STEPS: Final = 8  # number of random steps before the first inference


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
    state: LearnerState,
    model: EmpiricalModel,
    episode: EpisodeState,
    action: int,
    outcome: Outcome,
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

    Machines are inferred from scratch once more. If all rewards are equal, labels of observations
    are replaced by labels of actions and observations, since events may not be observable.
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
    if state.all_rewards_equal:
        add_actions_to_labels(state)
