"""Propose to execute the plan, and decide whether it was executed often enough.

The plan reveals wrong machines sooner than tests of all known steps.
"""

from typing import Final

from resolvent._util.math import log
from resolvent.exploration.empirical_model import UNKNOWN, EmpiricalModel
from resolvent.exploration.search import Path, Step
from resolvent.exploration.state import EpisodeState, LearnerState

VALIDATE_PLAN: Final = "whether the plan holds"

ENOUGH_STARTS: Final = 10
"""Number of starts from which the plan is executed, including each first label."""

MIN_VALIDATION, VALIDATION_SHARE = 40, 0.02
"""Minimum number of steps that execute the plan, plus a share of all steps."""

FAMILIAR_RESETS: Final = 30
"""Number of resets without a new start after which no other start is expected."""

NEGLIGIBLE: Final = 0.01
"""Largest share of the value in later rewards when a plan that repeats a cycle is stopped."""

MAX_CYCLE_STEPS: Final = 1_000
"""Maximum number of steps of such a plan."""


def try_plan(state: LearnerState, episode: EpisodeState) -> Path | None:
    """Execute the plan once no better one is possible by the value bounds."""
    model = state.present_model()
    is_validated = model.augmented_states[episode.row] in state.validation.starts
    if episode.length or is_validated or len(state.validation.starts) >= ENOUGH_STARTS:
        return None
    return None if model.all_rewards_equal else _plan_from_start(state, model, episode)


def validate_plan(state: LearnerState, episode: EpisodeState) -> Path | None:
    """Execute the plan from a start, unless it was executed often and from this start, too."""
    model = state.present_model()
    is_validated = model.augmented_states[episode.row] in state.validation.starts
    if episode.length or (_has_enough_steps(state) and is_validated):
        return None
    return _plan_from_start(state, model, episode)


def is_plan_validated(state: LearnerState) -> bool:
    """Return whether the plan was executed for enough steps and from enough starts.

    A start counts no more if new steps have changed the plan from it.
    """
    model = state.present_model()
    if not _has_enough_steps(state) or state.selection.familiar_resets < FAMILIAR_RESETS:
        return False
    augmented_states = model.augmented_states
    for row, symbols in model.start_symbols.items():
        start = augmented_states[row]
        if start in state.validation.starts and not _was_executed(state, model, row, symbols):
            state.validation.starts.discard(start)
    missing = [row for row in model.starts if augmented_states[row] not in state.validation.starts]
    first_labels = {model.start_symbols[row][1] for row in model.starts}
    first_labels -= {model.start_symbols[row][1] for row in model.starts if row not in missing}
    is_enough = len(model.starts) - len(missing) >= ENOUGH_STARTS and not first_labels
    return not missing or is_enough or state.selection.are_resets_useless


def _has_enough_steps(state: LearnerState) -> bool:
    # A random world may have been lucky once or twice.
    return state.validation.steps >= MIN_VALIDATION + VALIDATION_SHARE * state.steps


def _was_executed(
    state: LearnerState, model: EmpiricalModel, row: int, symbols: tuple[int, int]
) -> bool:
    actions = [action for _, action in _planned_steps(state, model, row)]
    return (
        not actions
        or any(
            (episode.observations[0], episode.labels[0]) == symbols
            and episode.actions[: len(actions)].tolist() == actions
            for episode in state.buffer.open.values()
            if len(episode) >= len(actions)
        )
        or state.buffer.has_episode(symbols, actions)
    )


def _plan_from_start(
    state: LearnerState, model: EmpiricalModel, episode: EpisodeState
) -> Path | None:
    """Return the path of the plan from a start, unless an episode took it before."""
    start, steps = model.augmented_states[episode.row], _planned_steps(state, model, episode.row)
    symbols = episode.recorded.observations[0], episode.recorded.labels[0]
    if not steps or (
        start not in state.validation.starts
        and state.buffer.has_episode(symbols, [action for _, action in steps])
    ):
        state.validation.starts.add(start)
        state.validation.steps += max(len(steps), 1)
        return None
    return Path(tuple(steps), 1.0, VALIDATE_PLAN)


def _planned_steps(state: LearnerState, model: EmpiricalModel, row: int) -> list[Step]:
    """Return the steps that the plan takes from a start, with repetitions of a cycle that pays."""
    steps, number_of = list[Step](), dict[int, int]()
    while row >= 0 and row not in number_of:
        number_of[row] = len(steps)
        action = int(state.values.policy[row])
        target = model.next_row[row][action]
        if target == UNKNOWN:
            return steps
        steps.append((row, action))
        row = target
    if row in number_of:
        steps += _repetitions(state, model, steps[number_of[row] :], len(steps))
    return steps


def _repetitions(
    state: LearnerState, model: EmpiricalModel, cycle: list[Step], n_taken: int
) -> list[Step]:
    """Return the repetitions of a cycle of the plan, if it has rewards.

    Machines that are too small may take several steps in a row for a repeated one.
    """
    gamma = state.config.gamma
    highest = max(model.reward[row][action] for row, action in cycle)
    if highest <= model.least or gamma == 1:
        return []
    until = min(int(log(NEGLIGIBLE) / log(gamma)) + 1, MAX_CYCLE_STEPS)
    return [cycle[number % len(cycle)] for number in range(until - n_taken)]
