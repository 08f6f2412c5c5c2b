"""Select the next test, for one of several episodes side by side.

Input: the `LearnerState` and the state of an episode. Output: an action, or None to reset.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from resolvent.exploration.alternatives import rule_out_alternatives
from resolvent.exploration.empirical_model import UNKNOWN
from resolvent.exploration.frontier import frontier
from resolvent.exploration.plan_validation import (
    FAMILIAR_RESETS,
    is_plan_validated,
    try_plan,
    validate_plan,
)
from resolvent.exploration.search import RESET, Path
from resolvent.exploration.state import EpisodeState, LearnerState
from resolvent.exploration.state_checks import check_pairs, check_states
from resolvent.exploration.w_method import rule_out_more_states
from resolvent.exploration.words import read_words, repeat_queries, search_reward

TestSource: TypeAlias = Callable[[LearnerState, EpisodeState], Path | None]
"""Returns the path of its next test; `RESET` for a test in another episode; None without a test."""


def find_starts(state: LearnerState, episode: EpisodeState) -> Path | None:
    """Begin episodes until no other start is expected."""
    if episode.length or state.selection.familiar_resets >= FAMILIAR_RESETS:
        return None
    return RESET


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


def select_action(state: LearnerState, episode: EpisodeState) -> int | None:
    """Return the next action of an episode; None if it is of no more use."""
    if state.model is None or episode.row == UNKNOWN:
        episode.purpose = "where it is"
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
