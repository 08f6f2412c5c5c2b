"""Select the next test, for one of several episodes side by side; the plan itself is a test, too.

Input: the `LearnerState` and the state of an episode. Output: an action, or None to reset.
Executing the plan reveals wrong machines sooner than tests of all known steps.
"""

from collections.abc import Callable
from itertools import cycle, islice
from typing import Final, TypeAlias

from resolvent._util.math import log
from resolvent.exploration.alternatives import rule_out_alternatives
from resolvent.exploration.empirical_model import UNKNOWN
from resolvent.exploration.frontier import frontier
from resolvent.exploration.search import RESET, Path, Step
from resolvent.exploration.state import EpisodeState, LearnerState
from resolvent.exploration.state_checks import check_pairs, check_states
from resolvent.exploration.w_method import rule_out_more_states
from resolvent.exploration.words import read_words, repeat_queries, search_reward

TestSource: TypeAlias = Callable[[LearnerState, EpisodeState], Path | None]
"""Returns the path of its next test; `RESET` for a test in another episode; None without a test."""

VALIDATE_PLAN: Final = "plan validation"

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


def select_action(state: LearnerState, episode: EpisodeState) -> int | None:
    """Return the next action of an episode; None if it is of no more use."""
    if state.model is None or episode.row == UNKNOWN:
        episode.purpose = "random step"
        return state.random_action(episode)
    if not episode.path:
        path = select_test(state, episode)
        if path is None or path.start != episode.row:
            state.selection.useless_resets += not episode.length
            return None
        episode.path, episode.purpose = list(path.steps), path.purpose
    state.selection.useless_resets = 0
    return episode.path[0][1]


def select_test(state: LearnerState, episode: EpisodeState) -> Path | None:
    """Return the next test for an episode; None if no source has any.

    Without a test, the plan is executed until it is validated; then tests are exhausted.
    """
    is_reward_known = not state.all_rewards_equal
    for source in TESTS if is_reward_known else TESTS_FOR_REWARD:
        path = source(state, episode)
        if path is not None:
            return path
    state.selection.exhausted = not is_reward_known or is_plan_validated(state)
    return validate_plan(state, episode) if is_reward_known else None


def find_starts(state: LearnerState, episode: EpisodeState) -> Path | None:
    """Begin episodes until no other start is expected."""
    if episode.length or state.selection.familiar_resets >= FAMILIAR_RESETS:
        return None
    return RESET


def try_plan(state: LearnerState, episode: EpisodeState) -> Path | None:
    """Execute the plan once no better one is possible by the value bounds."""
    is_enough = len(state.validation.starts) >= ENOUGH_STARTS
    if episode.length or is_enough or _start(state, episode.row) in state.validation.starts:
        return None
    return _plan_from_start(state, episode)


def validate_plan(state: LearnerState, episode: EpisodeState) -> Path | None:
    """Execute the plan from a start, unless it was executed often and from this start, too."""
    is_validated = _start(state, episode.row) in state.validation.starts
    if episode.length or (_has_enough_steps(state) and is_validated):
        return None
    return _plan_from_start(state, episode)


TESTS: Final[tuple[TestSource, ...]] = (
    frontier,
    find_starts,
    try_plan,
    check_states,
    check_pairs,
    read_words,
    repeat_queries,
    rule_out_alternatives,
    rule_out_more_states,
)
"""Sources of tests in the order of their priority."""

TESTS_FOR_REWARD: Final[tuple[TestSource, ...]] = (frontier, check_states, search_reward)
"""The same while all rewards are equal, so that no plan is better than another."""


def is_plan_validated(state: LearnerState) -> bool:
    """Return whether the plan was executed for enough steps and from enough starts.

    A start counts no more if new steps have changed the plan from it.
    """
    if not _has_enough_steps(state) or state.selection.familiar_resets < FAMILIAR_RESETS:
        return False
    model, validated = state.present_model(), state.validation.starts
    for row, symbols in model.start_symbols.items():
        if _start(state, row) in validated and not _was_executed(state, row, symbols):
            validated.discard(_start(state, row))
    missing = [row for row in model.starts if _start(state, row) not in validated]
    first_labels = {model.start_symbols[row][1] for row in model.starts}
    first_labels -= {model.start_symbols[row][1] for row in model.starts if row not in missing}
    is_enough = len(model.starts) - len(missing) >= ENOUGH_STARTS and not first_labels
    return not missing or is_enough or state.selection.are_resets_useless


def _start(state: LearnerState, row: int) -> tuple[int, ...]:
    return state.present_model().augmented_states[row]


def _has_enough_steps(state: LearnerState) -> bool:
    # A stochastic environment may agree with the plan once or twice.
    return state.validation.steps >= MIN_VALIDATION + VALIDATION_SHARE * state.steps


def _was_executed(state: LearnerState, row: int, symbols: tuple[int, int]) -> bool:
    actions = [action for _, action in _planned_steps(state, row)]
    return (
        not actions
        or any(
            episode.start == symbols and episode.actions[: len(actions)].tolist() == actions
            for episode in state.buffer.open.values()
        )
        or state.buffer.has_episode(symbols, actions)
    )


def _plan_from_start(state: LearnerState, episode: EpisodeState) -> Path | None:
    """Return the path of the plan from a start, unless an episode took it before."""
    start, steps = _start(state, episode.row), _planned_steps(state, episode.row)
    actions, validation = [action for _, action in steps], state.validation
    if not steps or (
        start not in validation.starts and state.buffer.has_episode(episode.recorded.start, actions)
    ):
        validation.starts.add(start)
        validation.steps += max(len(steps), 1)
        return None
    return Path(tuple(steps), 1.0, VALIDATE_PLAN)


def _planned_steps(state: LearnerState, row: int) -> list[Step]:
    """Return the steps that the plan takes from a start, with repetitions of a rewarded cycle."""
    model, gamma = state.present_model(), state.config.gamma
    steps, number_of = list[Step](), dict[int, int]()
    while row >= 0 and row not in number_of:
        number_of[row] = len(steps)
        action = int(state.values.policy[row])
        target = model.next_row[row][action]
        if target == UNKNOWN:
            return steps
        steps.append((row, action))
        row = target
    if row in number_of and gamma < 1:
        repeated = steps[number_of[row] :]
        if max(model.reward[row][action] for row, action in repeated) > model.least:
            # Machines that are too small may take several steps in a row for a repeated one.
            until = min(int(log(NEGLIGIBLE) / log(gamma)) + 1, MAX_CYCLE_STEPS)
            steps += islice(cycle(repeated), max(until - len(steps), 0))
    return steps
