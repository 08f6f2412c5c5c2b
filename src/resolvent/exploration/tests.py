"""Select the next test, for one of several episodes side by side.

Input: the `LearnerState` and the state of an episode. Output: an action, or None to reset.

A test is an unknown step (`frontier`), the plan itself, or one of other modules. An unknown step is
of use if it could be better than the plan in some world that agrees with all steps so far. It is of
more use if that needs fewer assumptions, and if it may read a label that was never read in the
state. Executing the plan reveals wrong machines sooner than tests of all known steps.
"""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import cycle, islice
from typing import Final, TypeAlias

from resolvent._util.math import log
from resolvent.exploration.alternatives import rule_out_alternatives, rule_out_more_states
from resolvent.exploration.empirical_model import (
    ENDS,
    RESET,
    UNKNOWN,
    VARIES,
    EmpiricalModel,
    Path,
    Step,
    StepSearch,
)
from resolvent.exploration.reward_search import search_on, search_reward
from resolvent.exploration.shortening import shorten
from resolvent.exploration.state import EpisodeState, LearnerState
from resolvent.exploration.state_checks import (
    CHECK_STATE,
    LONG_CHECK,
    check_states,
    distinguishing_query,
    nearest_informative,
)
from resolvent.exploration.values import RELIED_ON, USES, ValueBounds
from resolvent.exploration.words import read_words, repeat_queries

# Returns the path of its next test; `RESET` for a test in another episode; None without a test.
TestSource: TypeAlias = Callable[[LearnerState, EpisodeState], Path | None]
VALIDATE_PLAN: Final = "plan validation"
ENOUGH_STARTS: Final = 10  # number of starts of the plan that are enough, with each first label
MIN_VALIDATION, VALIDATION_SHARE = 40, 0.02  # minimum steps by the plan, plus a share of all
FAMILIAR_RESETS: Final = 30  # number of resets without a new start after which none is expected
NEGLIGIBLE: Final = 0.01  # largest share of the value in later rewards where a cyclic plan stops
MAX_CYCLE_STEPS: Final = 1_000  # maximum number of steps of such a plan
UNREAD_USE: Final = 5.0  # use of a step that may read a label in a state where it was never read
FEW_RESETS: Final = 8  # number of episodes begun before a long check, to see if starts differ
N_STARTS_RATED: Final = 4  # number of starts by which the use of another episode is estimated
RATED_APART: Final = 0.005  # share of new steps after which too low an estimate is repeated


def select_action(state: LearnerState, episode: EpisodeState) -> int | None:
    """Return the next action of an episode; None if it is of no more use."""
    trial = None if state.model is None else shorten(state, episode)
    if trial is None and (state.model is None or episode.row == UNKNOWN):
        episode.purpose = "random step"
        return state.random_action(episode)
    if trial is not None or not episode.path:
        path = trial or select_test(state, episode)
        if path is None or not path.steps or path.steps[0][0] != episode.row:
            state.selection.useless_resets += not episode.length
            return None
        episode.path, episode.purpose = list(path.steps), path.purpose
    state.selection.useless_resets = 0
    return episode.path[0][1]


def select_test(state: LearnerState, episode: EpisodeState) -> Path | None:
    """Return the next test for an episode; None if no source has any.

    Without a test, the plan is executed until it is validated; then tests are exhausted. If a
    better plan is possible even so, or all rewards are equal, the search for rewards goes on.
    """
    is_reward_known, selection = not state.all_rewards_equal, state.selection
    for source in TESTS if is_reward_known else TESTS_FOR_REWARD:
        path = source(state, episode)
        if path is not None:
            return path
    if selection.exhausted and selection.verified and state.gap(state.values) > state.config.target:
        return search_on(state, episode)
    selection.exhausted = is_plan_validated(state)
    return validate_plan(state, episode)


def find_starts(state: LearnerState, episode: EpisodeState) -> Path | None:
    """Begin episodes until no other start is expected."""
    if episode.length or state.selection.familiar_resets >= FAMILIAR_RESETS:
        return None
    return RESET


def try_plan(state: LearnerState, episode: EpisodeState) -> Path | None:
    """Execute the plan once no better one is possible by the value bounds."""
    validated = state.validation.starts
    is_enough = len(validated) >= ENOUGH_STARTS or _start(state, episode.row) in validated
    return None if is_enough else _plan_from_start(state, episode)


def validate_plan(state: LearnerState, episode: EpisodeState) -> Path | None:
    """Execute the plan from a start, unless it was executed often and from this start, too."""
    is_validated = _start(state, episode.row) in state.validation.starts
    is_enough = is_validated and _has_enough_steps(state)
    return None if is_enough else _plan_from_start(state, episode)


def frontier(state: LearnerState, episode: EpisodeState) -> Path | None:
    """Return the path to the unknown step of most use, or to a check of the state before it."""
    model = state.present_model()
    state.refresh_bounds(fully=False)
    path = _most_useful(state, model, episode)
    if path is None and state.bounds_at != model.n_known:
        state.refresh_bounds()
        path = _most_useful(state, model, episode)
    is_long_check = path and path.purpose == CHECK_STATE and len(path.steps) >= LONG_CHECK
    are_starts_known = episode.length or state.selection.familiar_resets >= FEW_RESETS
    if is_long_check and not are_starts_known and not model.all_rewards_equal:
        return RESET
    return path


def _most_useful(state: LearnerState, model: EmpiricalModel, episode: EpisodeState) -> Path | None:
    here = most_useful_step(model, state.values, [episode.row])
    queries = model.queries_after.get(episode.context, set())
    if here is None:
        check = distinguishing_query(model, episode.row, queries)
        return check or _from_starts(state, model)
    check = nearest_informative(model, episode.row, queries, here.rate)
    if check is not None:
        return check
    # Another episode is worth it where far less has to be walked than from here.
    begun = episode.length > 0
    if len(model.starts) == 1:
        return (_from_starts(state, model, 1.5 * here.rate) if begun else None) or here
    may_leave = begun or any(row != UNKNOWN for row in model.next_row[episode.row])
    least = (1.5 if begun else 3.0) * here.rate
    is_useless = not may_leave or state.selection.are_resets_useless
    return here if is_useless or not _is_reset_better(state, model, least) else RESET


def _from_starts(state: LearnerState, model: EmpiricalModel, floor: float = 0.0) -> Path | None:
    if state.selection.are_resets_useless:
        return None
    return most_useful_step(model, state.values, model.starts, floor)


def _is_reset_better(state: LearnerState, model: EmpiricalModel, least: float) -> bool:
    """Return whether steps are of more use than `least` in another episode.

    A recent estimate may answer no; an estimate that answers yes is repeated.
    """
    bounds_at, known_then, rate = state.selection.start_rate
    is_recent = 0 <= model.n_known - known_then < RATED_APART * model.n_known
    if bounds_at == state.bounds_at and is_recent and rate <= least:
        return False
    starts = list(model.starts)
    count, rate = min(N_STARTS_RATED, len(starts)), 0.0
    for number in range(count):
        start = starts[(state.buffer.episodes * count + number) * 7919 % len(starts)]
        path = most_useful_step(model, state.values, [start])
        rate += 0.0 if path is None else path.rate
    state.selection.start_rate = state.bounds_at, model.n_known, rate / count
    return rate / count > least


def most_useful_step(
    model: EmpiricalModel, values: ValueBounds, sources: Iterable[int], floor: float = 0.0
) -> Path | None:
    """Return the path with the highest use per step, above the floor, from one of the sources."""
    search = StepSearch[int](sources)
    best: Step | None = None
    rate, purpose = floor, ""
    next_row, nondeterministic, parents = model.next_row, model.nondeterministic, search.parents
    highest = _highest_use(model, values)
    for row in search:
        length = search.distance + 1
        if highest / length <= rate:
            break
        levels = values.levels(row)
        for action, target in enumerate(next_row[row]):
            if target == UNKNOWN:
                if not levels[action] or (row, action) in nondeterministic:
                    continue
                use, why = _use(model, values, row, action)
                if use / length > rate:
                    best, rate, purpose = (row, action), use / length, why
            elif target != ENDS and target not in parents:
                search.add(target, row, action)
    if best is None:
        return None
    return search.path(*_unless_terminating(model, values, best, purpose), rate)


def _highest_use(model: EmpiricalModel, values: ValueBounds) -> float:
    """Return an upper bound on the use of any unknown step."""
    relied_on = values.relied_on
    while relied_on and model.next_row[relied_on[-1][0]][relied_on[-1][1]] != UNKNOWN:
        relied_on.pop()
    return RELIED_ON if relied_on else UNREAD_USE


def _unless_terminating(
    model: EmpiricalModel, values: ValueBounds, step: Step, purpose: str
) -> tuple[int, int, str]:
    """Postpone a step that likely ends the episode while others here are of use."""
    row, observation = step[0], model.augmented_states[step[0]][0]
    if (observation, step[1]) not in model.terminating:
        return *step, purpose
    most = 0.0
    for action, target in enumerate(model.next_row[row]):
        is_open = target == UNKNOWN and (row, action) not in model.nondeterministic
        if is_open and (observation, action) not in model.terminating:
            use, why = _use(model, values, row, action)
            if use > most:
                step, purpose, most = (row, action), why, use
    return *step, purpose


def _use(model: EmpiricalModel, values: ValueBounds, row: int, action: int) -> tuple[float, str]:
    """Return the use of an unknown step, and its purpose."""
    level = values.levels(row)[action]
    if not level:
        return 0.0, ""
    observation, *states = model.augmented_states[row]
    outcome = model.last_outcome.get((observation, action))
    if outcome is not None:
        label = model.label_of.get(outcome, VARIES)
        if label >= 0 and model.machines.next_states(states, label) is None:
            return UNREAD_USE, "unread label"
    use, purpose = USES[level]
    if level == 2 and row < len(values.novelty):
        use = max(use * float(values.novelty[row, action]), USES[1][0])
    return use, purpose


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
    is_open = any(
        episode.start == symbols and episode.actions[: len(actions)].tolist() == actions
        for episode in state.buffer.open.values()
    )
    return not actions or is_open or state.buffer.has_episode(symbols, actions)


def _plan_from_start(state: LearnerState, episode: EpisodeState) -> Path | None:
    """Return the path of the plan from a start, unless an episode took it before."""
    if episode.length:
        return None
    start, steps = _start(state, episode.row), _planned_steps(state, episode.row)
    actions, validation = [action for _, action in steps], state.validation
    was_taken = start not in validation.starts and state.buffer.has_episode(
        episode.recorded.start, actions
    )
    if not steps or was_taken:
        validation.starts.add(start)
        validation.steps += max(len(steps), 1)
        return None
    return Path(tuple(steps), VALIDATE_PLAN)


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


TESTS: Final[tuple[TestSource, ...]] = (
    frontier,
    find_starts,
    try_plan,
    check_states,
    partial(check_states, in_pairs=True),
    read_words,
    repeat_queries,
    rule_out_alternatives,
    rule_out_more_states,
)
"""Sources of tests in the order of their priority."""

TESTS_FOR_REWARD: Final[tuple[TestSource, ...]] = (frontier, check_states, search_reward)
"""The same while all rewards are equal, so that no plan is better than another."""
