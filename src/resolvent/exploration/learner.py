"""Update the state of learning by the results of resets and steps.

A wrong prediction ends the path of its episode, and the machines are repaired at once.
"""

from dataclasses import dataclass
from enum import Enum

from resolvent.errors import ContradictoryTraces
from resolvent.exploration.buffer import ABANDONED, TERMINATED, TRUNCATED, Episode
from resolvent.exploration.empirical_model import UNKNOWN, EmpiricalModel
from resolvent.exploration.plan_validation import VALIDATE_PLAN
from resolvent.exploration.relabel import (
    add_actions_to_labels,
    add_detail_to_labels,
    simplify_labels,
)
from resolvent.exploration.state import EpisodeState, LearnerState
from resolvent.exploration.state_checks import CHECK_STATE
from resolvent.exploration.words import REPEAT, recent_labels, without_neutral
from resolvent.traces.symbols import Label, Symbol

FIRST_STEPS = 8
"""Number of random steps before the first inference."""


class Change(Enum):
    """How an update changed the machines."""

    NONE = "none"
    REPAIRED = "repaired"
    RELEARNED = "relearned"
    RELABELED = "relabeled"


@dataclass(frozen=True, slots=True)
class EncodedStep:
    """A step in the symbols of machines; the action is its code."""

    action: int
    reward: float
    observation: Symbol
    label: Label
    terminated: bool
    truncated: bool


def begin_episode(state: LearnerState, episode: EpisodeState, observation: int, label: int) -> None:
    """Record a reset."""
    episode.episode = Episode()
    episode.episode.begin(observation, label)
    episode.active, episode.path = True, []
    state.familiar_resets += 1
    episode.row = UNKNOWN
    if state.model is not None:
        if state.model.is_new_start(observation, label):
            state.familiar_resets = 0
            state.has_news()
        episode.row = state.model.begin(observation, label)
    episode.start, episode.context = episode.row, (-1, observation, label)
    episode.previous_context = ()


def update(state: LearnerState, episode: EpisodeState, step: EncodedStep) -> Change:
    """Record a step, and repair or relearn the machines if they do not explain it.

    If no machines explain it with these labels, other labels are tried.

    Raises:
        ContradictoryTraces: if no labels explain all steps.
    """
    label, labelling = step.label, state.labels.labelling
    state.truncated_episodes += step.truncated and not step.terminated
    if not labelling.is_given:  # it may have changed since the step was encoded
        label = labelling.after_step(state.buffer.actions[step.action], step.observation)
    try:
        change = _learn(state, episode, step, label)
    except ContradictoryTraces:
        if not add_detail_to_labels(state):
            raise
        return Change.RELABELED
    if change is not Change.NONE or state.steps >= state.labels.search_at:
        simplify_labels(state)
    return change


def _learn(state: LearnerState, episode: EpisodeState, step: EncodedStep, label: Label) -> Change:
    observation, label_code = (
        state.buffer.observations(step.observation),
        state.buffer.labels(label),
    )
    label_before = episode.episode.labels[-1]
    episode.episode.step(step.action, step.reward, observation, label_code)
    is_over = step.terminated or step.truncated
    if state.model is None:
        is_surprise = state.steps >= FIRST_STEPS or is_over
    elif episode.row == UNKNOWN:
        is_surprise = True
    else:
        is_surprise = _add_to_model(state, state.model, episode, step, label_before)
    if is_over:
        close_episode(state, episode, TERMINATED if step.terminated else TRUNCATED)
    if not is_surprise:
        return Change.NONE
    is_relearned = state.hypothesis.repair(state.open_episodes)
    state.forget_validation()
    state.rebuild()
    return Change.RELEARNED if is_relearned else Change.REPAIRED


def _add_to_model(
    state: LearnerState,
    model: EmpiricalModel,
    episode: EpisodeState,
    step: EncodedStep,
    label_before: int,
) -> bool:
    """Add the last step of an episode to the model; return whether it contradicts the machines."""
    row, action = episode.row, step.action
    recorded = episode.episode
    observation, label = recorded.observations[-1], recorded.labels[-1]
    query = model.augmented_states[row][0], action
    model.note_query(episode.context, episode.previous_context, query)
    if state.queries is not None:  # without the label that the step led to
        state.queries.add(without_neutral(model, recorded.labels[1:-1]), *query)
    read = label_before if model.lag else label
    if read not in model.neutral_labels:
        episode.previous_context = episode.context
        episode.context = (read, *model.augmented_states[row][1:])
        model.note_word(recent_labels(model, recorded))
    effect = model.add_step(
        row, action, step.reward, observation, label, label_before, step.terminated
    )
    is_surprise = effect.contradicts is not None
    episode.row = effect.next_row if effect.next_row >= 0 else UNKNOWN
    _advance(state, model, episode, (row, action), effect.next_row, is_surprise)
    if effect.is_new:
        state.has_news()
        state.given_up.clear()
        state.given_up_pairs.clear()
    return is_surprise


def _advance(
    state: LearnerState,
    model: EmpiricalModel,
    episode: EpisodeState,
    step: tuple[int, int],
    next_row: int,
    is_surprise: bool,
) -> None:
    """Continue the path of an episode, or leave it if another step was taken."""
    if episode.path[:1] != [step]:
        episode.path = []
        return
    episode.path.pop(0)
    state.validation_steps += episode.purpose == VALIDATE_PLAN
    state.repeated_steps += episode.purpose in (REPEAT, CHECK_STATE)
    if episode.path:
        if episode.path[0][0] != next_row:
            episode.path = []
    elif episode.purpose == VALIDATE_PLAN and not is_surprise and episode.start != UNKNOWN:
        state.validated.add(model.augmented_states[episode.start])


def close_episode(state: LearnerState, episode: EpisodeState, end: int = ABANDONED) -> None:
    """Close an episode, by default because no test is left in it."""
    model = state.model
    follows_plan = episode.path and episode.purpose == VALIDATE_PLAN
    if model is not None and follows_plan and end == TRUNCATED and episode.start != UNKNOWN:
        state.validated.add(model.augmented_states[episode.start])  # for as long as episodes last
    state.buffer.close(episode.episode, end, episode.index)
    episode.episode, episode.active, episode.path = Episode(), False, []
    episode.row = UNKNOWN


def verify(state: LearnerState) -> None:
    """Look for other machines before the tests count as passed.

    Machines are inferred from scratch once more. If all rewards are equal, labels of observations
    are replaced by labels of actions and observations, since events may not be observable.
    """
    before = state.hypothesis.tables
    state.hypothesis.relearn(state.open_episodes, last=True)
    after = state.hypothesis.tables
    if before is None or after is None or not after.equals(before):
        state.forget_validation()
        state.rebuild()
        return
    state.verified = True
    if state.all_rewards_equal:
        add_actions_to_labels(state)
